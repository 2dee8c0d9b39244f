"""The compiled tester, as Measure sees it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from routecast.errors import EnvironmentProblem

__all__ = ["BACK_ENDS", "Tester", "open_tester", "said"]

BACK_ENDS = ("auto", "live", "af_xdp", "af_packet")
"""How frames are sent; auto takes the fastest that a port has for a load."""


class Tester(Protocol):
    """What Measure needs of the compiled tester (``routecast._core.Tester``)."""

    def trial(self, request: str, progress: Callable[[float], object] | None = None) -> str:
        """Run a trial; JSON in and out."""
        ...

    def facts(self) -> str:
        """Return what the tester is made of, as JSON."""
        ...

    def close(self) -> None:
        """Let go of the ports."""
        ...


def open_tester(configuration: Mapping[str, Any]) -> Tester:
    """Open the compiled tester.

    Raises
    ------
    routecast.errors.EnvironmentProblem
        A right, an interface or a kernel feature is missing.
    """
    from routecast import _core

    try:
        tester: Tester = _core.Tester(json.dumps(configuration))
    except _core.TesterError as problem:
        raise EnvironmentProblem(f"the tester cannot be opened: {said(problem)}") from problem
    return tester


def said(problem: Exception) -> str:
    """Return the message of the extension's error, whose arguments are a kind and a message."""
    return str(problem.args[1] if len(problem.args) > 1 else problem)
