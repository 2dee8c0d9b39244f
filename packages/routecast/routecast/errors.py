"""The exceptions of routecast, which have their values as attributes.

Every exception of the package derives from :class:`RoutecastError`. Its message says what is wrong, where, what is
allowed and what to do. Exceptions cross process borders in sweeps, so every argument goes to ``super().__init__`` and
all of them pickle.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

__all__ = [
    "ArgumentProblem",
    "CriterionFailed",
    "DeviceEnded",
    "EnvironmentProblem",
    "FileProblem",
    "FitProblem",
    "ModelProblem",
    "Problem",
    "QuantityProblem",
    "RoutecastError",
    "TransientProblem",
]


class RoutecastError(Exception):
    """Base of every error that routecast raises on purpose.

    ``exit_code`` is the exit code of the command line: 1 a criterion failed, 2 usage or bad file, 3 environment.
    """

    exit_code: ClassVar[int] = 2


class Problem(tuple[str, str]):
    """A fault in a file or a model: ``(place, message)``, e.g. ``("task[2].service.per_byte", "…")``."""

    __slots__ = ()

    def __new__(cls, place: str, message: str) -> Problem:
        """Make the pair."""
        return super().__new__(cls, (place, message))

    def __getnewargs__(self) -> tuple[str, str]:
        return (self[0], self[1])

    @property
    def place(self) -> str:
        """Path of the fault in the file or the model."""
        return self[0]

    @property
    def message(self) -> str:
        """The wrong value, what is allowed, and what to do."""
        return self[1]

    def __str__(self) -> str:
        return f"{self.place}: {self.message}" if self.place else self.message


class _ProblemList(RoutecastError):
    """An error with one or more :class:`Problem`, which are reported together."""

    def __init__(self, subject: str, problems: Sequence[Problem]) -> None:
        super().__init__(subject, tuple(problems))
        self.subject = subject
        self.problems = tuple(problems)

    def __str__(self) -> str:
        lines = [str(problem) for problem in self.problems]
        if len(lines) == 1:
            return f"{self.subject}: {lines[0]}"
        return "\n".join([f"{self.subject}: {len(lines)} problems", *(f"  {line}" for line in lines)])


class FileProblem(_ProblemList):
    """A file cannot be read or is not valid; ``subject`` is its name."""


class ModelProblem(_ProblemList):
    """A router model or an offered load contradicts itself; ``subject`` names it."""


class QuantityProblem(RoutecastError):
    """A text is not a quantity of the expected kind (``"64 Mbit"`` for a frame size)."""

    def __init__(self, text: str, message: str) -> None:
        super().__init__(text, message)
        self.text = text
        self.message = message

    def __str__(self) -> str:
        return self.message


class ArgumentProblem(QuantityProblem, TypeError):
    """A value of a type that a function does not take; Python's own ``except TypeError`` catches it too."""


class FitProblem(RoutecastError):
    """A calibration is not possible from the given points."""

    def __init__(self, series: str, message: str) -> None:
        super().__init__(series, message)
        self.series = series
        self.message = message

    def __str__(self) -> str:
        return f"series {self.series!r}: {self.message}" if self.series else self.message


class TransientProblem(RoutecastError):
    """A simulated trial ended before its transient did; ``needed_s`` is a duration that should suffice."""

    def __init__(self, duration_s: float, needed_s: float, message: str) -> None:
        super().__init__(duration_s, needed_s, message)
        self.duration_s = duration_s
        self.needed_s = needed_s
        self.message = message

    def __str__(self) -> str:
        return self.message


class CriterionFailed(RoutecastError):
    """A result was computed but misses a criterion that the user set (exit code 1)."""

    exit_code = 1


class EnvironmentProblem(RoutecastError):
    """The machine lacks a library, a right or a device (exit code 3)."""

    exit_code = 3


class DeviceEnded(EnvironmentProblem):
    """A process of the device under test ended by itself, so that no further trial can succeed."""
