"""``routecast function NAME --counts``: instructions and memory accesses of the real function, by valgrind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from routecast.cli.console import data, print_json, progress_bar
from routecast.cli.function.asked import Asked, evaluator_of, load_of

if TYPE_CHECKING:
    from routecast.load.frames import FrameMix
    from routecast.report.tables import Table
    from routecast.testbed.instruction_counts import PacketCounts

__all__ = ["count_function"]


def count_function(asked: Asked, *, as_json: bool = False) -> None:
    """Print instructions and memory accesses per packet for every direction and frame size.

    Raises
    ------
    routecast.errors.EnvironmentProblem
        valgrind is missing: the message names its package.
    routecast.errors.ModelProblem
        The function does not run for real, or not like that.
    """
    from routecast.testbed.instruction_counts import count_instructions

    cases = [(direction, frames) for direction in asked.directions for frames in asked.frames]
    counted = []
    with progress_bar(f"counting {asked.function.name} under valgrind") as report:
        for number, (direction, frames) in enumerate(cases):

            def heard(share: float, done: int = number) -> None:
                report(round(100.0 * (done + share)), 100 * len(cases), "")

            evaluator = evaluator_of(asked, direction)
            counts = count_instructions(evaluator, load_of(asked, direction, frames), progress=heard)
            counted.append((direction, frames, counts))
    if as_json:
        from dataclasses import asdict

        rows = [
            {
                "direction": direction,
                "frames": frames.name,
                "frame_bytes": frames.mean_bytes,
                **asdict(counts),
            }
            for direction, frames, counts in counted
        ]
        print_json({"function": asked.function.name, "counts": rows})
        return
    from routecast.cli.tables import print_table

    print_table(data(), _counts_table(asked, counted))


def _counts_table(asked: Asked, counted: Sequence[tuple[str, FrameMix, PacketCounts]]) -> Table:
    from routecast.report.tables import Column, Table

    return Table(
        name="counts",
        title=f"{asked.function.title or asked.function.name}: instructions and memory accesses per packet",
        caption="Counted by valgrind's cachegrind over frames in memory, the starting of the run taken off.",
        columns=(
            Column(title="Direction", align="left"),
            Column(title="Frames", align="left"),
            Column(title="Instructions", form=".1f"),
            Column(title="Reads", form=".1f"),
            Column(title="Writes", form=".1f"),
        ),
        rows=tuple(
            (direction, frames.name, counts.instructions, counts.reads, counts.writes)
            for direction, frames, counts in counted
        ),
    )
