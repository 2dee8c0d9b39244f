"""What switching costs: machines that boot, how often they may, and the least way from one state to another."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from routecast.plan.cluster.model import ClusterProblem, Schedule
from routecast.plan.cluster.step.power import group_arrays, power_w
from routecast.quantity.schema import value

__all__ = [
    "SwitchingCosts",
    "Waits",
    "boot_energy_j",
    "cheapest_way",
    "machines_switched",
    "metered",
    "schedule_power_w",
    "steps_of",
    "switching_costs",
]

Joules = npt.NDArray[np.float64]
On = Sequence[Sequence[int]]


@value
class SwitchingCosts:
    """Joules of switching one machine of each group on, and off."""

    on_j: tuple[float, ...]
    off_j: tuple[float, ...]

    def between(self, states: npt.NDArray[np.int64], here: Sequence[int]) -> Joules:
        """Return the cost of going from ``here`` to each state."""
        more = states - np.asarray(here)
        cost: Joules = np.maximum(more, 0) @ np.array(self.on_j) + np.maximum(-more, 0) @ np.array(self.off_j)
        return cost


def boot_energy_j(problem: ClusterProblem, group: int, *, ahead: bool) -> float:
    """Return the energy of one boot.

    ``ahead``: the machine boots before the step in which it is first on, and draws idle power during it; otherwise it
    boots within that step, whose idle power is counted already.
    """
    one = problem.groups[group]
    return one.boot_energy_j + (one.unloaded_w * one.boot_s if ahead else 0.0)


def switching_costs(problem: ClusterProblem, *, payback_s: float, ahead: bool) -> SwitchingCosts:
    """Return the boots' energy, and for each switching what the machine draws at full load in ``payback_s``."""
    worth = [payback_s * group.power_w for group in problem.groups]
    return SwitchingCosts(
        on_j=tuple(boot_energy_j(problem, k, ahead=ahead) + worth[k] for k in range(len(worth))), off_j=tuple(worth)
    )


def cheapest_way(values: Joules, shape: Sequence[int], costs: SwitchingCosts) -> Joules:
    """Return for each state n the least of ``values[m] + cost of going from m to n`` over all states m.

    Groups are switched one by one, so the minimum is taken group by group: in one, going up adds ``on_j`` a machine
    and going down ``off_j``, and running minima in both directions find it in a single pass (the distance transform
    of Felzenszwalb & Huttenlocher, Theory of Computing 8, 2012, with the metric |m − n|).
    """
    table = values.reshape(tuple(shape))
    for axis, most in enumerate(shape):
        if most == 1:
            continue
        moved = np.moveaxis(table, axis, -1)
        number = np.arange(most)
        up, down = number * costs.on_j[axis], number * costs.off_j[axis]
        risen = np.minimum.accumulate(moved - up, axis=-1) + up
        sunk = np.minimum.accumulate((moved + down)[..., ::-1], axis=-1)[..., ::-1] - down
        table = np.moveaxis(np.minimum(risen, sunk), -1, axis)
    return table.reshape(-1)


class Waits:
    """Which machines must stay on for now: those that were switched on less than the minimum on-time ago.

    Machines of a group take turns, the one that is on for longest is switched off first; then at least as many must
    stay as were switched on within the minimum on-time.
    """

    def __init__(self, groups: int, steps: int) -> None:
        self._steps = steps
        self._started: list[tuple[int, ...]] = []
        self._none = (0,) * groups

    def least_on(self) -> tuple[int, ...]:
        """Return the least number of machines of each group that must be on in the next step."""
        recent = self._started[-self._steps :] if self._steps > 0 else []
        return tuple(sum(column) for column in zip(*recent, strict=True)) if recent else self._none

    def record(self, before: Sequence[int] | None, after: Sequence[int]) -> None:
        """Take down which machines were switched on in a step; ``before`` is None at the beginning."""
        if before is None:
            self._started.append(self._none)
        else:
            self._started.append(tuple(max(b - a, 0) for a, b in zip(before, after, strict=True)))


def steps_of(time_s: float, step_s: float) -> int:
    """Return how many whole steps a time takes, the begun one included."""
    return math.ceil(time_s / step_s - 1e-9)


def machines_switched(on: On, *, repeats: bool) -> tuple[tuple[int, ...], int]:
    """Return the boots by group and the number of all switchings; ``repeats``: the first step follows the last."""
    table = np.asarray(on, dtype=np.int64)
    change = np.diff(table, axis=0, prepend=table[-1:] if repeats else table[:1])
    boots = np.maximum(change, 0).sum(axis=0)
    return tuple(int(number) for number in boots), int(np.abs(change).sum())


def schedule_power_w(problem: ClusterProblem, on: On) -> npt.NDArray[np.float64]:
    """Return what the machines that are on draw in each step; boots are not counted."""
    table = np.asarray(on, dtype=np.int64)
    return power_w(group_arrays(problem), table, np.asarray(problem.traffic_bps, dtype=np.float64))


def metered(problem: ClusterProblem, on: On, *, repeats: bool, ahead: bool = True) -> Schedule:
    """Return a schedule with its energy, boots included.

    Parameters
    ----------
    problem : ClusterProblem
    on : sequence of sequences of int
        n_kt, for each step of the problem.
    repeats : bool
        Whether the horizon is a typical day: switching from its last to its first step counts too.
    ahead : bool
        Whether machines boot before the step that needs them (off-line) or within it (on-line).
    """
    table = np.asarray(on, dtype=np.int64)
    power = schedule_power_w(problem, on)
    boots, switchings = machines_switched(on, repeats=repeats)
    booted_j = sum(number * boot_energy_j(problem, k, ahead=ahead) for k, number in enumerate(boots))
    return Schedule(
        on=tuple(tuple(int(n) for n in row) for row in table),
        energy_j=float(power.sum()) * problem.step_s + booted_j,
        boots=sum(boots),
        switchings=switchings,
    )
