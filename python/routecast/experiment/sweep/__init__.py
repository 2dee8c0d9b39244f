"""Many runs: dealt out to workers, kept as they come in, taken up again, shared among jobs and joined.

::

    runs ─► dispatch ─► workers ─► book ─► OUT/runs.parquet
            shard i/n    pace: "2 min left"
"""

from routecast.experiment.sweep.dispatch import AnswerRun, Progress, Shard, answers_on_disk, join, sweep

__all__ = ["AnswerRun", "Progress", "Shard", "answers_on_disk", "join", "sweep"]
