"""Where runs are computed: threads, processes, or a Dask cluster, all of them executors of ``concurrent.futures``."""

from routecast.evaluate.executor._opening import EXECUTORS, MAX_WORKERS, check_executor, chosen_executor, open_executor
from routecast.evaluate.executor._processes import Submit, process_pool
from routecast.evaluate.executor.workers import Threads, Workers, answer_of, cores, finished, stop_if_ended

__all__ = [
    "EXECUTORS",
    "MAX_WORKERS",
    "Submit",
    "Threads",
    "Workers",
    "answer_of",
    "check_executor",
    "chosen_executor",
    "cores",
    "finished",
    "open_executor",
    "process_pool",
    "stop_if_ended",
]
