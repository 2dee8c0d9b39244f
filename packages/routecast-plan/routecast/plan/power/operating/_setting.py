"""The settings that a router file offers (cores, clock, C-states, activation), and the router in each setting."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

from routecast.errors import ModelProblem, Problem
from routecast.load.frames import FrameMix
from routecast.quantity import format_duration, format_frequency, format_power
from routecast.quantity.did_you_mean import did_you_mean
from routecast.quantity.schema import field, value
from routecast.router.files import build_router
from routecast.router.model import (
    Activation,
    ActivationKind,
    PowerDraw,
    ResourcePool,
    RouterModel,
    SleepState,
    TaskUnit,
)
from routecast.router.variants import vary

_MAX_SETTINGS = 100_000


@value
class Candidate:
    """A setting and the router in that setting."""

    setting: Setting
    model: RouterModel


def candidates(
    document: Mapping[str, Any],
    model: RouterModel,
    choices: Choices,
    *,
    subject: str = "router file",
    folder: Path | None = None,
    frames: FrameMix | None = None,
) -> tuple[Candidate, ...]:
    """Return every valid setting of ``choices``, with fewer cores, lower clocks and deeper sleep first.

    If polling task units hold all working cores, no core sleeps, and a single setting stands for all depths of sleep.

    ``document``: content of the router file; ``model``: the router that it describes; ``subject`` and ``folder``: as in
    :func:`routecast.router.files.parse_router`; ``frames``: as in :func:`routecast.router.files.read_router_and_load`.
    Raises ModelProblem: there are too many settings to enumerate, or none is valid.
    """
    count = len(choices.cores) * len(choices.frequencies_hz) * len(choices.sleeps) * len(choices.activations)
    if count > _MAX_SETTINGS:
        message = (
            f"{count:,} settings, at most {_MAX_SETTINGS:,} are allowed: give fewer P-states or times of lingering"
        )
        raise ModelProblem(subject, [Problem("power", message)])
    result: list[Candidate] = []
    problems: list[Problem] = []
    for cores in choices.cores:
        base = _router_with_cores(document, model, choices, cores, subject=subject, folder=folder, frames=frames)
        for frequency_hz in choices.frequencies_hz:
            for activation, linger_s in choices.activations:
                for depth, sleep in enumerate(reversed(choices.sleeps)):
                    setting = Setting(
                        cores=cores, frequency_hz=frequency_hz, sleep=sleep, activation=activation, linger_s=linger_s
                    )
                    try:
                        variant = router_in_setting(base, choices.pool, setting, units=choices.units)
                    except ModelProblem as problem:
                        problems += problem.problems
                        break  # the problem is the same for every depth of sleep
                    if depth == 0 and len(choices.sleeps) > 1 and _polled_units(variant, choices.pool) >= cores:
                        awake = Setting(cores=cores, frequency_hz=frequency_hz, activation=activation)
                        variant = router_in_setting(base, choices.pool, awake, units=choices.units)
                        result.append(Candidate(setting=awake, model=variant))
                        break
                    result.append(Candidate(setting=setting, model=variant))
    if not result:
        raise ModelProblem(subject, list(dict.fromkeys(problems)))
    return tuple(result)


def _router_with_cores(
    document: Mapping[str, Any],
    model: RouterModel,
    choices: Choices,
    cores: int,
    *,
    subject: str,
    folder: Path | None,
    frames: FrameMix | None,
) -> RouterModel:
    """Return the router with ``cores`` units in its forwarding pool."""
    builder = document.get("builder")
    if builder is None and cores == choices.units:
        return model
    if builder == "multicore":
        overrides: dict[str, object] = {"cores": cores, "units": cores}
    elif builder is not None:
        overrides = {"cores": cores}
    else:
        overrides = {f"pool[{choices.pool}].units": cores}
        for number, task in enumerate(model.tasks):
            for need in task.needs:
                if need.pool == choices.pool and need.units * task.parallel > cores:
                    overrides[f"task[{number}].parallel"] = max(cores // need.units, 1)
    return build_router(vary(document, overrides, subject=subject), subject=subject, folder=folder, frames=frames)[0]


def _polled_units(model: RouterModel, pool: str) -> int:
    """Return the number of units of a pool that polling task units hold permanently."""
    return sum(
        need.units * task.parallel
        for task in model.tasks
        if task.activation.kind == "polling"
        for need in task.needs
        if need.pool == pool
    )


ActivationChoice = Literal["as given", "dedicated", "polling", "interrupt"]

UNCHANGED: ActivationChoice = "as given"
"""Each task unit keeps its activation of the file."""


@value
class Setting:
    """Number of working cores, their clock, their deepest allowed sleep, and the activation of their task units."""

    cores: int = field(
        "Number of working units of the forwarding pool; its other units are parked in the deepest state"
    )
    frequency_hz: float | None = field("Clock of the pool, Hz; None if the file offers no choice", default=None)
    sleep: str = field("Deepest C-state that idle working cores may enter; empty: none", default="")
    activation: ActivationChoice = field("Activation of the task units on the pool", default=UNCHANGED)
    linger_s: float = field(
        "Time of polling before interrupts are enabled again, s; above 0 the mode is adaptive", default=0.0
    )

    @property
    def mode(self) -> str:
        """The activation in one word: ``polling``, ``interrupt``, ``adaptive``, …"""
        return "adaptive" if self.activation == "interrupt" and self.linger_s > 0.0 else self.activation

    def __str__(self) -> str:
        parts = [f"{self.cores} core{'s' if self.cores > 1 else ''}"]
        if self.frequency_hz is not None:
            parts.append(format_frequency(self.frequency_hz))
        parts.append(f"sleep to {self.sleep}" if self.sleep else "no sleep")
        if self.activation != UNCHANGED:
            linger = f" {format_duration(self.linger_s)}" if self.mode == "adaptive" else ""
            parts.append(self.mode + linger)
        return ", ".join(parts)


def parked_pool_name(pool: str) -> str:
    """Return the name of the pool that holds the parked units of ``pool``."""
    return f"{pool} parked"


def router_in_setting(model: RouterModel, pool: str, setting: Setting, *, units: int) -> RouterModel:
    """Return a router in a setting.

    ``model``: router whose forwarding pool ``pool`` already has ``setting.cores`` units; ``units``: units of the pool
    in the machine, of which those beyond ``setting.cores`` form a separate pool without work. Raises ModelProblem: the
    setting is invalid, e.g. because polling task units hold units that other task units need.
    """
    if setting.frequency_hz is not None:
        from routecast.router.performance import at_frequency

        model = at_frequency(model, setting.frequency_hz, pool=pool)
    pools: list[ResourcePool] = []
    for entry in model.pools:
        if entry.name != pool or entry.power is None:
            pools.append(entry)
            continue
        pools.append(
            replace(entry, power=replace(entry.power, sleep=_allowed_sleep_states(entry.power, setting.sleep)))
        )
        if units > entry.units:
            parked_w = parked_power_w(entry.power)
            draw = PowerDraw(active_w=parked_w, idle_w=parked_w, scope=entry.power.scope)
            pools.append(ResourcePool(name=parked_pool_name(pool), units=units - entry.units, power=draw))
    tasks = tuple(_task_in_setting(task, pool, setting) for task in model.tasks)
    return replace(model, pools=tuple(pools), tasks=tasks)


def parked_power_w(power: PowerDraw) -> float:
    """Return the power of a parked unit: the lowest of all states without work."""
    idle = [power.idle_w, *(state.idle_w for state in power.performance)]
    return min([*idle, *(state.power_w for state in power.sleep)])


def _allowed_sleep_states(power: PowerDraw, deepest: str) -> tuple[SleepState, ...]:
    names = [state.name for state in power.sleep]
    return power.sleep[: names.index(deepest) + 1] if deepest else ()


def _task_in_setting(task: TaskUnit, pool: str, setting: Setting) -> TaskUnit:
    if setting.activation == UNCHANGED or all(need.pool != pool for need in task.needs):
        return task
    if setting.activation == "interrupt":
        return replace(task, activation=replace(task.activation, kind="interrupt", linger_s=setting.linger_s))
    # Only interrupts have wake-ups and lingering.
    kind: ActivationKind = "polling" if setting.activation == "polling" else "dedicated"
    return replace(task, activation=replace(task.activation, kind=kind, linger_s=0.0, wakeup=None))


def implausible_state_notes(pool: str, power: PowerDraw) -> list[str]:
    """Return a note for each P-state and C-state whose values appear to be exchanged.

    A lower clock should not draw more than a higher clock, and the exit from a deeper sleep should not be shorter than
    from a lighter one. Such states are valid and are tried like all others. (The reader of files refuses a deeper
    sleep that draws more.)
    """
    notes = []
    states = sorted(power.performance, key=lambda state: state.frequency_hz)
    for slow, fast in pairwise(states):
        for name, slow_w, fast_w in (("active", slow.active_w, fast.active_w), ("idle", slow.idle_w, fast.idle_w)):
            if slow_w > fast_w:
                clocks = f"{format_frequency(slow.frequency_hz)} is slower than {format_frequency(fast.frequency_hz)}"
                notes.append(
                    f'pool "{pool}": {clocks} and draws more when {name}, {format_power(slow_w)} against '
                    f"{format_power(fast_w)}; check whether the watts are exchanged"
                )
    for light, deep in pairwise(power.sleep):
        if deep.exit_s < light.exit_s:
            notes.append(
                f'pool "{pool}": {deep.name} is deeper than {light.name} and is left sooner, in '
                f"{format_duration(deep.exit_s)} against {format_duration(light.exit_s)}; check whether the times are "
                "exchanged"
            )
    return notes


_LINGER_MULTIPLES = (1.0, 5.0)


@value
class Choices:
    """The choices that a router file offers."""

    pool: str = field("The forwarding pool")
    units: int = field("Number of units of the pool")
    cores: tuple[int, ...] = field("Possible numbers of working units")
    frequencies_hz: tuple[float | None, ...] = field("Possible clocks, Hz; ``(None,)`` without a choice")
    sleeps: tuple[str, ...] = field("Possible deepest C-states, from none (empty) to all")
    activations: tuple[tuple[ActivationChoice, float], ...] = field(
        "Possible activations with their time of lingering, s"
    )
    notes: tuple[str, ...] = field(
        "Notes on choices that the file does not offer, and on implausible power states", default=()
    )


def choices_of(model: RouterModel, *, is_built: bool, pool: str = "", lingers_s: Sequence[float] = ()) -> Choices:
    """Return the choices of a router.

    ``model``: the router of the file; ``is_built``: whether a builder makes it, for any number of cores; ``pool``: the
    forwarding pool, empty for the only pool with power states; ``lingers_s``: times of lingering to try. Empty: the
    time of the file, and one and five times the time in which a core at active power spends the energy of a wake-up
    from the deepest C-state. (A wait that costs as much as a wake-up costs at most twice the optimum with hindsight:
    Karlin et al., Algorithmica 11, 1994.) Raises ModelProblem: no pool has power states, or several have and ``pool``
    names none.
    """
    forwarding_pool = _forwarding_pool(model, pool)
    tasks = [task for task in model.tasks if any(need.pool == forwarding_pool.name for need in task.needs)]
    notes: list[str] = []
    assert forwarding_pool.power is not None
    if not forwarding_pool.power.sleep:
        notes.append(
            f'no C-states: pool "{forwarding_pool.name}" has none; add '
            'sleep = [{ name = "C1", power = …, exit = … }] to its power'
        )
    notes += implausible_state_notes(forwarding_pool.name, forwarding_pool.power)
    return Choices(
        pool=forwarding_pool.name,
        units=forwarding_pool.units,
        cores=_core_choices(forwarding_pool, tasks, notes, is_built=is_built),
        frequencies_hz=_frequency_choices(forwarding_pool, tasks, notes),
        sleeps=("", *(state.name for state in forwarding_pool.power.sleep)),
        activations=_activation_choices(forwarding_pool, tasks, notes, lingers_s),
        notes=tuple(notes),
    )


def _forwarding_pool(model: RouterModel, name: str) -> ResourcePool:
    subject = f"router {model.name!r}"
    names = [pool.name for pool in model.pools]
    if name and name not in names:
        raise ModelProblem(subject, [Problem("pool", f'"{name}" is no pool: {did_you_mean(name, names)}')])
    powered_pools = [pool for pool in model.pools if pool.power is not None and name in ("", pool.name)]
    if not powered_pools:
        where = f'pool "{name or (names[0] if names else "cpu")}"'
        message = (
            f'{where} has no power states, so that all settings draw the same; add to it power = {{ active = "… W", '
            'idle = "… W", sleep = [{ name = "C1", power = "… W", exit = "… us" }], performance = [{ frequency = '
            '"… GHz", active = "… W", idle = "… W" }] } with the watts that you measured'
        )
        raise ModelProblem(subject, [Problem("power", message)])
    if len(powered_pools) > 1:
        pool_names = ", ".join(f'"{pool.name}"' for pool in powered_pools)
        raise ModelProblem(
            subject, [Problem("pool", f"several pools have power states: {pool_names}; name one (--pool)")]
        )
    return powered_pools[0]


def _core_choices(
    pool: ResourcePool, tasks: Sequence[TaskUnit], notes: list[str], *, is_built: bool
) -> tuple[int, ...]:
    counts = tuple(range(1, pool.units + 1))
    if is_built or pool.units == 1:
        return counts
    reason = ""
    if any(task.pin for task in tasks):
        reason = "its task units are pinned to units"
    elif pool.unit_speed_ratio:
        reason = "its units differ in speed"
    if reason:
        notes.append(f"all {pool.units} cores work: {reason}; only a file with a builder can run on fewer")
        return (pool.units,)
    return counts


def _frequency_choices(pool: ResourcePool, tasks: Sequence[TaskUnit], notes: list[str]) -> tuple[float | None, ...]:
    assert pool.power is not None
    if not pool.power.performance:
        notes.append(
            f'one clock: pool "{pool.name}" has no P-states; '
            "add performance = [{ frequency = …, active = …, idle = … }] to its power"
        )
        return (None,)
    costs = [task.service for task in tasks if task.needs[0].pool == pool.name]
    if not any(cost.per_packet_cycles or cost.per_byte_cycles or cost.per_batch_cycles for cost in costs):
        notes.append("one clock: all costs are given as times, which do not depend on the clock; give them in cycles")
        return (None,)
    clocks_hz = sorted(state.frequency_hz for state in pool.power.performance)
    if pool.frequency_hz is not None and pool.frequency_hz not in clocks_hz:
        pool_clock = format_frequency(pool.frequency_hz)
        notes.append(f'clock: {pool_clock} of pool "{pool.name}" is none of its P-states and is not tried')
    return tuple(clocks_hz)


def _activation_choices(
    pool: ResourcePool, tasks: Sequence[TaskUnit], notes: list[str], lingers_s: Sequence[float]
) -> tuple[tuple[ActivationChoice, float], ...]:
    kinds_in_file = {task.activation.kind for task in tasks}
    if len(kinds_in_file) != 1:
        notes.append("activation as given: the task units of the pool have several kinds of activation")
        return ((UNCHANGED, 0.0),)
    activation = tasks[0].activation
    is_costed = activation.interrupt_cost_s > 0.0 or activation.moderation_s > 0.0
    if kinds_in_file == {"dedicated"} or (kinds_in_file == {"polling"} and not is_costed):
        notes.append(
            f"no interrupts: activation is {activation.kind}, and the file lacks the cost of an interrupt; "
            'give activation = { kind = "interrupt", interrupt_cost = … }'
        )
        kinds: tuple[ActivationChoice, ...] = (
            ("dedicated", "polling") if kinds_in_file == {"dedicated"} else ("polling",)
        )
        return tuple((kind, 0.0) for kind in kinds)
    lingers = sorted({*lingers_s} or _linger_choices_s(pool, activation))
    return (("polling", 0.0), ("interrupt", 0.0), *(("interrupt", linger) for linger in lingers if linger > 0.0))


def _linger_choices_s(pool: ResourcePool, activation: Activation) -> set[float]:
    """Return the time of lingering of the file, and times in which active power spends the energy of a wake-up."""
    assert pool.power is not None
    active_w = max(pool.power.active_w, 1e-9)
    wakeup_s = activation.interrupt_cost_s
    if activation.wakeup is not None:
        wakeup_s += activation.wakeup.average_s
    costs = [wakeup_s]
    costs += [wakeup_s + state.exit_s + state.wake_energy_j / active_w for state in pool.power.sleep]
    times = {float(f"{cost * multiple:.2g}") for cost in costs[-2:] for multiple in _LINGER_MULTIPLES}
    return {activation.linger_s, *times} - {0.0}
