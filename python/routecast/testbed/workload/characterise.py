"""Runs a kernel twice: at full speed for its time, and followed instruction by instruction for all else."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable

from routecast.errors import EnvironmentProblem
from routecast.hardware.probe_native import native
from routecast.testbed.workload.answer import Characterisation, WorkloadCase, characterisation_of

__all__ = ["CHILD", "MOST_INSTRUCTIONS", "TRACED_PACKETS", "characterise", "child_command"]

TRACED_PACKETS = 512
MOST_INSTRUCTIONS = 1_500_000
"""Bounds of a trace: some 6 µs an instruction make this 10 s."""

_TIMED_S = 0.3
_TRACED_SHARE = 0.9
"""Of the progress: what the trace is of the whole."""

CHILD = (
    "import sys, _imp, _frozen_importlib\n"
    "spec = _frozen_importlib.ModuleSpec('_core', None, origin=sys.argv[1])\n"
    "core = _imp.create_dynamic(spec)\n"
    "_imp.exec_dynamic(core)\n"
    "core.run_workload(sys.argv[2])\n"
    "import posix\n"
    "posix._exit(0)\n"
)
"""Runs a workload with as little of an interpreter as there can be: no site, no package but the core, no tidying up."""


def child_command(request: dict[str, object]) -> list[str]:
    """Return the command of a process that runs a workload and nothing else."""
    from routecast import _core

    return [
        sys.executable,
        # Without site; -I would leave the order of dictionaries and sets to chance, which a count must not hang on.
        "-S",
        "-c",
        CHILD,
        str(_core.__file__),
        json.dumps(request, allow_nan=False),
    ]


def characterise(
    case: WorkloadCase,
    *,
    packets: int = TRACED_PACKETS,
    most_instructions: int = MOST_INSTRUCTIONS,
    timed: bool = True,
    progress: Callable[[float], object] | None = None,
) -> Characterisation:
    """Characterise a kernel.

    Parameters
    ----------
    case : WorkloadCase
    packets : int
        Packets to trace; a quarter of them (or of the instructions) fills the caches first and is not counted.
    most_instructions : int
        The trace ends after the packet that reaches it.
    timed : bool
        Run it at full speed too.
    progress : callable, optional
        Told the finished share, 0..1.

    Raises
    ------
    routecast.errors.ModelProblem
        A size, a number or the capture is not what it must be.
    routecast.errors.EnvironmentProblem
        Programs cannot be traced on this host, or it is not x86-64.
    """

    def heard(share: float, offset: float, part: float) -> None:
        if progress is not None:
            progress(offset + part * share)

    run = native(
        "run_workload",
        case.request(warm_up=case.warm_up, duration_s=_TIMED_S if timed else 0.0),
        lambda share: heard(share, 0.0, 1.0 - _TRACED_SHARE),
    )
    request = case.request(warm_up=case.warm_up, measured=packets, traced=True)
    trace = native(
        "trace_workload",
        {
            "command": child_command(request),
            "packets": packets,
            "warm_up": packets // 4,
            "most_instructions": most_instructions,
        },
        lambda share: heard(share, 1.0 - _TRACED_SHARE, _TRACED_SHARE),
    )
    if not trace["packets"]:
        raise EnvironmentProblem(
            f"one packet of {case.kernel.name} takes more than the {most_instructions} instructions that are traced: "
            "ask for more"
        )
    return characterisation_of(case, run, trace)
