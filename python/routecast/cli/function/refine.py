"""``routecast function NAME --run --refine``: what was measured corrects the file of the probed host."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from routecast.errors import ModelProblem, Problem

if TYPE_CHECKING:
    from routecast.calibrate.refine import Refined
    from routecast.cli.function.asked import Asked
    from routecast.hardware.model import Hardware, MeasuredFunction
    from routecast.load.frames import FrameMix

__all__ = ["check_refining", "file_to_refine", "measured_function", "refine_file"]

_QUARTILES_SD = 1.349
"""From the lower to the upper quartile of a normal law, in standard deviations."""


def file_to_refine(on: str | None) -> Path:
    """Return the file of the host that ``--on`` names: a probed one, none that ships.

    Raises
    ------
    routecast.errors.ModelProblem
        There is no such file.
    """
    from routecast.hardware.catalogue import HOST, host_file, shipped_hardware

    if on is None or on == HOST:
        if not host_file().is_file():
            what = "this host was not probed yet; run: routecast hardware probe"
            raise ModelProblem("--refine", [Problem("--on", what)])
        return host_file()
    if on in shipped_hardware():
        what = f"{on} ships with routecast: only the file of a host that was probed is corrected"
        raise ModelProblem("--refine", [Problem("--on", what)])
    return Path(on)


def check_refining(asked: Asked) -> None:
    """Refuse runs that cannot be taken up into a hardware file.

    Raises
    ------
    routecast.errors.ModelProblem
        All reasons at once.
    """
    from routecast.function.catalogue import function_names

    problems = []
    if asked.hardware.stalls != "added":
        what = f"{asked.hardware.name} does not say what a line of memory costs: name the file of a probed host"
        problems.append(Problem("--on", what))
    if asked.rate_pps is not None:
        problems.append(Problem("--load", "a refinement needs the capacity: leave the rate out"))
    if asked.cores != 1:
        problems.append(Problem("--cores", f"got {asked.cores}: a refinement is by one core"))
    if not all(frames.is_fixed for frames in asked.frames):
        problems.append(Problem("--frame", "a refinement is by frames of one size"))
    if asked.function.name not in function_names():
        problems.append(Problem("NAME", f"{asked.function.name} does not ship: only functions that do refine a host"))
    if problems:
        raise ModelProblem("--refine", problems)


def measured_function(
    asked: Asked, direction: str, frames: FrameMix, run_s: float, pass_s: Mapping[str, float]
) -> MeasuredFunction:
    """Return a run of ``run_s`` seconds of a core per frame as the hardware file keeps it."""
    from routecast.hardware.model import MeasuredFunction

    law = "uniform" if asked.popularity.kind == "uniform" else f"zipf {asked.popularity.exponent:g}"
    flows = asked.popularity.flows
    return MeasuredFunction(
        function=asked.function.name,
        direction=direction,
        frame_bytes=frames.sequence_bytes[0],
        traffic=law if flows is None else f"{flows} {law}",
        # In the clock that the file counts by, so that seconds agree.
        cycles=run_s * asked.hardware.cpu.frequency_hz,
        tables=dict(asked.tables),
        spread_ratio=(pass_s["p75"] - pass_s["p25"]) / (_QUARTILES_SD * pass_s["median"]),
    )


def refine_file(hardware: Hardware, measured: Sequence[MeasuredFunction], path: Path) -> Refined:
    """Correct the hardware by measured functions and write its file.

    Raises
    ------
    routecast.errors.FitProblem
        The host does not say what a line of memory costs.
    routecast.errors.EnvironmentProblem
        The file cannot be written.
    """
    from routecast.calibrate.refine import refine
    from routecast.hardware.catalogue import write_hardware

    refined = refine(hardware, measured)
    write_hardware(refined.hardware, path)
    return refined
