"""Whether windows make sense: units that a frame carries over several task units (:attr:`Need.until`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from routecast.quantity.did_you_mean import did_you_mean
from routecast.router.check_route import Targets
from routecast.router.graph import find_cycle
from routecast.router.model import Need, ResourcePool, Route, RouterModel, TaskUnit
from routecast.router.window import Window, windows_among

__all__ = ["check_ways", "check_windows"]

Add = Callable[[str, str], None]


def check_windows(model: RouterModel, targets: Targets, add: Add) -> None:
    """Report what is wrong with the windows of a model, through ``add(place, message)``."""
    places: dict[str, str] = {}
    carrying: dict[str, str] = {}
    sound = True
    for index, task in enumerate(model.tasks):
        for position, need in enumerate(task.needs):
            if need.until:
                places[task.name] = f"task[{index}].needs[{position}].until"
                carrying.setdefault(need.pool, task.name)
                sound &= _check_until(places[task.name], task, need, targets, add)
                _check_asking(f"task[{index}]", task, add)
    if not places:
        return
    working = {
        need.pool: task.name for task in reversed(model.tasks) for need in task.needs if not need.until
    }
    for index, pool in enumerate(model.pools):
        if pool.name in carrying:
            _check_pool(f"pool[{index}]", pool, carrying[pool.name], working.get(pool.name, ""), add)
    if sound and not find_cycle(model.tasks):
        check_ways(model.tasks, lambda window: places[window.enter], add)
    for index, task in enumerate(model.tasks):
        for position, name in enumerate(task.route.copies):
            if name in places:
                add(f"task[{index}].route.copies[{position}]", copied(name))


def copied(name: str) -> str:
    """Say that a task unit with a window gets no copies."""
    return f'"{name}" gives units to frames that carry them on, but a copy ends there: send it elsewhere'


def check_ways(tasks: Sequence[TaskUnit], place: Callable[[Window], str], add: Add) -> None:
    """Report windows that frames leave, if their routes are these, with units in hand, or that wait for each other.

    The task units may have more routes than a model's: all that are ever in force.
    """
    windows = windows_among(tasks)
    for window in windows:
        if window.until not in window.inside:
            add(
                place(window),
                f'"{window.until}" is not further on: no way leads there from "{window.enter}"; name a task unit '
                f"behind it: {did_you_mean('', window.inside)}",
            )
        elif window.leak:
            add(
                place(window),
                f'"{window.until}" is missed on the way {" → ".join(window.leak)}: every way from "{window.enter}" '
                "must lead through it, or the frame never gives its units back",
            )
    _check_order(tasks, windows, place, add)


def _check_until(place: str, task: TaskUnit, need: Need, targets: Targets, add: Add) -> bool:
    others = (name for name in targets.tasks if name != task.name)
    if need.until == task.name:
        add(place, "is the task unit itself, which gives its units back when it has served: leave it out")
    elif need.until in targets.ports:
        add(place, f'"{need.until}" is a port: name a task unit before it, {did_you_mean("", others)}')
    elif need.until not in targets.tasks:
        add(place, f'"{need.until}" is no task unit: {did_you_mean(need.until, others)}')
    else:
        return True
    return False


def _check_asking(place: str, task: TaskUnit, add: Add) -> None:
    if task.request != "frame":
        add(
            f"{place}.request",
            f"is {task.request}, but its frames carry their units on: each asks for its own, so give frame",
        )
    if len(task.needs) > 1:
        add(
            f"{place}.needs",
            f"has {len(task.needs)} entries: a need with until stands alone; let another task unit behind it "
            "ask for the others",
        )
    if task.pin:
        add(
            f"{place}.pin",
            "is given, but units that frames carry are all alike: leave it out, or split the pool",
        )


def _check_pool(place: str, pool: ResourcePool, carrying: str, working: str, add: Add) -> None:
    """Report what is wrong with a pool whose units frames of ``carrying`` carry on, and that ``working`` works with."""
    if working:
        add(
            place,
            f'frames of "{carrying}" carry its units on (until), but "{working}" needs them to serve: '
            "give one of the two a pool of its own",
        )
    if pool.policy.kind != "fifo":
        add(
            f"{place}.policy.kind",
            f'is {pool.policy.kind}, but frames of "{carrying}" carry its units on: they are granted in order '
            "of arrival, so give fifo",
        )
    for name, is_given in (
        ("unit_speed_ratio", bool(pool.unit_speed_ratio)),
        ("switch_cost_s", bool(pool.switch_cost_s)),
        ("migration_cost_s", bool(pool.migration_cost_s)),
        ("contention", not pool.contention.is_none),
        ("interruptions", pool.interruptions is not None),
        ("power", pool.power is not None),
    ):
        if is_given:
            add(
                f"{place}.{name}",
                f'is given, but its units do no work, frames of "{carrying}" carry them on: give it to the pool '
                "that works",
            )


def _check_order(
    tasks: Sequence[TaskUnit], windows: Sequence[Window], place: Callable[[Window], str], add: Add
) -> None:
    """Report pools whose frames could wait for each other for ever: each carries what the other asks for."""
    named = {task.name: task for task in tasks}
    asked = {window.enter: window.pool for window in windows}
    # By pool: the pools that a frame may wait for with units of it in hand, and where.
    waits: dict[str, dict[str, tuple[Window, str]]] = {}
    seen: dict[str, set[str]] = {}
    for window in windows:
        for name in window.inside:
            for pool, where in _awaited(name, asked, named, seen.setdefault(window.pool, set())):
                waits.setdefault(window.pool, {}).setdefault(pool, (window, where))
    cycle = find_cycle(
        [TaskUnit(name=pool, route=Route(kind="rss", to=tuple(others))) for pool, others in waits.items()]
    )
    if not cycle:
        return
    steps = [waits[pool][other] for pool, other in zip(cycle, (*cycle[1:], cycle[0]), strict=True)]
    what = "; ".join(
        f'with units of "{window.pool}" in hand frames wait at "{where}" for units of "{other}"'
        for (window, where), other in zip(steps, (*cycle[1:], cycle[0]), strict=True)
    )
    add(
        place(steps[0][0]), f"{what}: once none is left they wait for ever; let all ask in one order of pools"
    )


def _awaited(
    name: str, asked: Mapping[str, str], tasks: Mapping[str, TaskUnit], seen: set[str]
) -> Iterator[tuple[str, str]]:
    """Yield the pools that a frame may wait for at a task unit, and the task units that ask for them.

    One that holds back waits for room in the next queue, and so for whatever that one waits for. What was ``seen``
    before is left out, and so is all that it waits for: that was seen with it.
    """
    pending = [name] if name not in seen else []
    seen.add(name)
    while pending:
        at = pending.pop()
        if at in asked:
            yield asked[at], at
        if at in tasks and tasks[at].holds_back:
            following = [to for to in tasks[at].route.to if to not in seen]
            seen.update(following)
            pending.extend(following)
