"""When the tasks of the protocol that recur are due."""

from __future__ import annotations

import math

from routecast.multistage._detection import CALL_EVERY_S

__all__ = ["ANNOUNCE_EVERY_S", "AUDIT_EVERY_S", "PATHS_EVERY_S", "PROBE_EVERY_S", "Schedule"]

PROBE_EVERY_S = 0.1
PATHS_EVERY_S = 0.5
AUDIT_EVERY_S = 1.0
ANNOUNCE_EVERY_S = 1.0
_ANNOUNCE_OFTEN_EVERY_S = 0.02
_ANNOUNCE_OFTEN_FOR_S = 1.0
_INTERVALS_S = {
    "probe": PROBE_EVERY_S,
    "call": CALL_EVERY_S,
    "paths": PATHS_EVERY_S,
    "audit": AUDIT_EVERY_S,
    "announce": ANNOUNCE_EVERY_S,
}


class Schedule:
    """The tasks that recur: "probe", "call", "paths", "audit" and "announce".

    ``due_s``: by task, when it is due next.
    """

    def __init__(self) -> None:
        self.due_s = dict.fromkeys(_INTERVALS_S, 0.0)
        self._announces_until_s = 0.0

    def start(self, now_s: float) -> None:
        """Let every task be due."""
        for task in self.due_s:
            self.due_s[task] = now_s

    @property
    def next_s(self) -> float:
        """When the next task is due."""
        return min(self.due_s.values())

    def announce_often(self, now_s: float) -> None:
        """Let announcements come often for a while, the first one at once."""
        self._announces_until_s = now_s + _ANNOUNCE_OFTEN_FOR_S
        self.due_s["announce"] = now_s

    def announces_often(self, now_s: float) -> bool:
        """Return whether announcements come often now."""
        return now_s < self._announces_until_s

    def is_due(self, task: str, now_s: float) -> bool:
        """Return whether a task is due; if it is, set when it is due next."""
        due_s = self.due_s[task]
        if now_s < due_s:
            return False
        is_often = task == "announce" and self.announces_often(now_s)
        interval_s = _ANNOUNCE_OFTEN_EVERY_S if is_often else _INTERVALS_S[task]
        # After a pause the next one comes a whole interval later: rounds need time for their answers.
        self.due_s[task] = due_s + interval_s if due_s + interval_s > now_s else now_s + interval_s
        return True

    def pass_idle(self, until_s: float) -> int:
        """Let time pass as ticking would leave the schedule; return the rounds of probes that passed."""
        rounds = self._rounds("probe", until_s)
        for task, interval_s in _INTERVALS_S.items():
            self.due_s[task] += self._rounds(task, until_s) * interval_s
        return rounds

    def _rounds(self, task: str, until_s: float) -> int:
        return max(math.ceil((until_s - self.due_s[task]) / _INTERVALS_S[task] - 1e-6), 0)
