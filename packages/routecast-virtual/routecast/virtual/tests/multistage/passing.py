"""Where the frames of a flow pass, by following every route by hand: the oracle of these tests.

It knows only what routes mean (:class:`routecast.router.Route`), and no rate, queue or thread.
"""

from collections import Counter
from collections.abc import Mapping

from routecast.load.flows import Flow, rss_index
from routecast.router import Route, RouterModel


def passes(model: RouterModel, flow: Flow, routes: Mapping[str, Route] | None = None) -> Counter[str]:
    """Return how often a frame of a flow passes each task unit and port on average, copies not counted.

    ``routes`` are those of task units that have another one than the model says.
    """
    tasks = {task.name: task for task in model.tasks}
    seen: Counter[str] = Counter()
    pending = [(model.ports[flow.ingress].entry, 1.0)]
    while pending:
        name, share = pending.pop()
        seen[name] += share
        if name not in tasks:
            continue
        route = (routes or {}).get(name, tasks[name].route)
        if route.kind == "egress":
            ahead = [(model.ports[flow.egress].name, 1.0)]
        elif route.kind == "by_egress":
            ahead = [(route.to[flow.egress], 1.0)]
        elif route.kind == "rss":
            ahead = [(route.to[rss_index(flow.rss_hash, len(route.to), route.indirection)], 1.0)]
        else:
            assert route.kind in {"single", "round_robin"}
            ahead = [(to, 1.0 / len(route.to)) for to in route.to]
        pending += [(to, share * part) for to, part in ahead]
    return seen


def copies(model: RouterModel, flow: Flow) -> Counter[str]:
    """Return how many copies of a frame of a flow each task unit gets on average."""
    tasks = {task.name: task for task in model.tasks}
    got: Counter[str] = Counter()
    for name, times in passes(model, flow).items():
        if name in tasks:
            assert len(tasks[name].route.to) <= 1 or not tasks[name].route.copies
            for copy in tasks[name].route.copies:
                assert copy not in tasks[name].route.to
                got[copy] += times
    return got


def per_thread(model: RouterModel, flow: Flow) -> Counter[str]:
    """Return how often a frame visits each thread."""
    visits: Counter[str] = Counter()
    for name, times in passes(model, flow).items():
        thread = next((task.thread for task in model.tasks if task.name == name), "")
        if thread:
            visits[thread] += times
    return visits


def per_pool(model: RouterModel, flow: Flow) -> Counter[str]:
    """Return how often a frame is served by units of each pool."""
    visits: Counter[str] = Counter()
    seen = passes(model, flow)
    for task in model.tasks:
        for need in task.needs:
            visits[need.pool] += seen[task.name]
    return visits


def work_s(model: RouterModel, flow: Flow, frame_bytes: float) -> dict[tuple[str, tuple[int, ...]], float]:
    """Return the seconds of work that a frame is for each pool and pin, on a unit of speed 1."""
    seen = passes(model, flow)
    work: dict[tuple[str, tuple[int, ...]], float] = {}
    for task in model.tasks:
        for need in task.needs:
            key = (need.pool, task.pin)
            work[key] = work.get(key, 0.0) + seen[task.name] * task.service.mean_s(frame_bytes)
    return work
