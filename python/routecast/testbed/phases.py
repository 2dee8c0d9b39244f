"""The phases of a trial (RFC 2544 sec. 23)."""

from __future__ import annotations

import math
from dataclasses import dataclass

from routecast.errors import ModelProblem, Problem

__all__ = ["Phases"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Phases:
    """The phases of a trial around the counted frames (RFC 2544 sec. 23).

    Parameters
    ----------
    learning_frames : int
        Frames that each receiving port sends first, so that the device knows where it is; 0 for none.
    wait_before_s : float
        Pause after them. Without one, they are sent only if the device may not know them: before the first trial,
        after a reset, after a minute.
    warmup_s : float
        How long frames are sent before they are counted.
    residual_wait_s : float
        Pause for frames that are still in the device.
    restabilise_s : float
        Pause after the trial, before the next one.
    """

    learning_frames: int = 4
    wait_before_s: float = 0.0
    warmup_s: float = 0.0
    residual_wait_s: float = 0.05
    restabilise_s: float = 0.0

    def __post_init__(self) -> None:
        problems = [
            Problem(name, f"got {value}: a pause is a number of seconds >= 0")
            for name in ("wait_before_s", "warmup_s", "residual_wait_s", "restabilise_s")
            if not (math.isfinite(value := getattr(self, name)) and value >= 0.0)
        ]
        if not 0 <= self.learning_frames <= 1000:
            problems.append(Problem("learning_frames", f"got {self.learning_frames}: 0 to 1000 frames"))
        if problems:
            raise ModelProblem("phases of a trial", problems)

    @classmethod
    def rfc2544(cls) -> Phases:
        """Pauses as RFC 2544 sec. 23 has them: 2 s after learning, 2 s for residual frames, 5 s to restabilise."""
        return cls(wait_before_s=2.0, residual_wait_s=2.0, restabilise_s=5.0)
