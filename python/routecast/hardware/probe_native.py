"""Calls of the compiled core's probe: JSON there and back, its errors as routecast's."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Literal

from routecast.errors import EnvironmentProblem, ModelProblem, Problem, RoutecastError

__all__ = ["Call", "native"]

Call = Literal["probe_host", "run_function", "run_workload", "trace_workload"]
"""Functions of the core that take and give JSON."""

_SUBJECTS = {"probe_host": "probe", "run_function": "run of a function"}

_ENVIRONMENT = ("memory", "system")
"""Kinds of the core's errors that the machine is to blame for; all others are the request's."""

_DEFECTS = ("panic", "outcome")


def native(
    call: Call, request: Mapping[str, object], progress: Callable[[float], object] | None = None
) -> dict[str, Any]:
    """Call the core and return its outcome.

    Parameters
    ----------
    call : {"probe_host", "run_function", "run_workload", "trace_workload"}
    request : mapping
        Plain data; ``crates/probe`` documents each field.
    progress : callable, optional
        Told the finished share, 0..1, about every 50 ms.

    Raises
    ------
    routecast.errors.ModelProblem
        The request asks for what is not possible.
    routecast.errors.EnvironmentProblem
        The machine lacks something: memory, a core, a right.
    """
    from routecast import _core

    try:
        text = getattr(_core, call)(json.dumps(request, allow_nan=False), progress)
    except _core.ProbeError as error:
        raise _problem(call, *error.args) from None
    outcome: dict[str, Any] = json.loads(text)
    return outcome


def _problem(call: str, kind: str = "", message: str = "", *more: object) -> RoutecastError:
    if kind == "interrupted":
        raise KeyboardInterrupt
    if kind in _DEFECTS:
        raise RuntimeError(f"{call}: {message}")
    if kind in _ENVIRONMENT:
        return EnvironmentProblem(message)
    return ModelProblem(_SUBJECTS.get(call, "workload"), [Problem("", message or kind)])
