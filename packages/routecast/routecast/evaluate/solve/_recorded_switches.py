"""How often a unit turns from one task unit to another as recorded frames come.

The fluid state lets every grant pay a switch, in full batches, as in overload. A unit that idles turns to whichever
task unit the next frame comes to: one frame in ten that takes another way makes two switches. Frames that wait are
served in batches, so of the changes between them one counts for each batch, or for each queue where fewer wait.
"""

from __future__ import annotations

import numpy as np

from routecast.evaluate.solve._recording import PS, Floats, Instants, Recording
from routecast.evaluate.solve._scheduling_shares import Component
from routecast.evaluate.solve.fluid import Fluid

__all__ = ["Switches"]


class Switches:
    """The switches of single units that several task units share, whose policy grants a batch at a time."""

    def __init__(self, fluid: Fluid, recording: Recording) -> None:
        self._fluid, self._recording = fluid, recording
        self._services: dict[int, tuple[list[Instants], list[Floats]]] = {}
        self._taken_s: dict[int, float] | None = None

    def concern(self, index: int) -> bool:
        """Whether a task unit works on one unit that turns to others at a cost."""
        return self._fluid.steady is None and self._part(index) is not None

    def _part(self, index: int) -> Component | None:
        uses = self._fluid.uses[index]
        if len(uses) != 1:
            return None
        part, _ = uses[0]
        dedicated = all(self._fluid.graph.tasks[member].activation.kind == "dedicated" for member, _ in part.members)
        is_plain = len(part.units) == 1 and len(part.members) > 1 and dedicated
        return part if is_plain and part.pool.switch_cost_s > 0.0 else None

    def note(self, index: int, starts: Instants, waits_s: Floats, work_ps: Instants) -> None:
        """Note services of a task unit: when they start, how long their frames waited and what they take."""
        served_meanwhile = waits_s * PS / np.maximum(work_ps.astype(np.float64), 1.0)
        batch_frames = float(max(self._fluid.graph.tasks[index].batch_frames, 1))
        all_starts, weights = self._services.setdefault(index, ([], []))
        all_starts.append(starts)
        weights.append(1.0 / np.clip(served_meanwhile, 1.0, batch_frames))

    def taken_s(self, index: int) -> float | None:
        """Return the time that a task unit's unit takes to turn to it, s; None where it does not pay for that."""
        if not self.concern(index):
            return None
        if self._taken_s is None:
            self._taken_s = {}
            for part in self._fluid.components:
                if any(self.concern(member) for member, _ in part.members):
                    self._count(part)
        return self._taken_s.get(index, 0.0)

    def _count(self, part: Component) -> None:
        assert self._taken_s is not None
        members = [member for member, _ in part.members if member in self._services]
        if not members:
            return
        starts = [np.concatenate(self._services[member][0]) for member in members]
        weights = np.concatenate([np.concatenate(self._services[member][1]) for member in members])
        owners = np.repeat(np.arange(len(members)), [len(of_member) for of_member in starts])
        at = np.concatenate(starts)
        order = np.argsort(at, kind="stable")
        owners, weights, counted = owners[order], weights[order], self._recording.counts(at[order])
        is_change = np.zeros(len(owners), bool)
        np.not_equal(owners[1:], owners[:-1], out=is_change[1:])
        changes = np.where(is_change & counted, weights, 0.0)
        by_owner = np.bincount(owners, weights=changes, minlength=len(members)) * part.pool.switch_cost_s
        self._taken_s |= dict(zip(members, by_owner.tolist(), strict=True))
