"""``routecast simulate --precision``: simulate until a figure is as precise as asked."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from routecast.cli.console import data, print_csv, print_json, print_notes, print_table, progress_bar, remark
from routecast.errors import QuantityProblem
from routecast.quantity import parse_duration_s

if TYPE_CHECKING:
    from routecast.evaluate.simulate import Simulate
    from routecast.load.offered import OfferedLoad

__all__ = ["PrecisionOptions", "simulate_until_precise"]

_option = partial(typer.Option, rich_help_panel="Precision")


@dataclass(frozen=True, slots=True, kw_only=True)
class PrecisionOptions:
    """How precise the figures of a simulation are to be, and how long it may work for that."""

    precision: Annotated[
        str | None,
        _option(
            "--precision",
            metavar="FIGURES",
            help='Simulate until 95 % half-widths are as small: "loss 1e-9", "p99.99 within 2 %", "mean 100 ns"; '
            "several with commas.",
        ),
    ] = None
    at_most: Annotated[str, _option("--at-most", metavar="TIME", help="With --precision: the longest work.")] = "10 min"

    def refuse_beside(self, others: dict[str, bool]) -> None:
        """Refuse options that a precision decides itself; ``others``: whether each is given.

        Raises QuantityProblem: one is given.
        """
        given = [option for option, is_given in others.items() if is_given]
        if self.precision is not None and given:
            message = f"--precision decides how long is simulated, and counts all frames alike: leave {given[0]} out"
            raise QuantityProblem("", message)


def simulate_until_precise(
    simulator: Simulate, load: OfferedLoad, options: PrecisionOptions, *, as_csv: bool, as_json: bool
) -> None:
    """Simulate until the figures are precise, and print them.

    Raises typer.Exit: with 1 where they are not; KeyboardInterrupt: after the figures so far.
    """
    from routecast.evaluate.precision_views import estimate_rows, estimates_table, figure_text, left_text, precise_facts
    from routecast.evaluate.simulate.precision import Progress, parse_precisions, simulate_precisely

    assert options.precision is not None
    precisions = parse_precisions(options.precision)
    at_most_s = parse_duration_s(options.at_most)
    with progress_bar("simulate") as report:

        def on_progress(progress: Progress) -> None:
            wanted = [estimate for estimate in progress.estimates if estimate.precision]
            figures = [
                f"{estimate.figure} {figure_text(estimate, estimate.value)}"
                f" +- {figure_text(estimate, estimate.half_width)}"
                for estimate in wanted
            ]
            report(progress.batches, 64, "; ".join([*figures, left_text(progress.left_s)]))

        trial = simulate_precisely(simulator, load, precisions, at_most_s=at_most_s, on_progress=on_progress)
    if as_json:
        print_json(trial.to_json())
    elif as_csv:
        print_csv(estimate_rows(trial))
    else:
        print_table(data(), precise_facts(trial))
        print_table(data(), estimates_table(trial))
        print_notes(data(), trial.notes)
    if trial.was_interrupted:
        remark(f"Interrupted after {trial.batches} batches: the figures are those of these.")
        raise KeyboardInterrupt
    if not trial.is_reached:
        remark(f"Not as precise as asked after {options.at_most} at most: {left_text(trial.left_s)}; --at-most TIME.")
        raise typer.Exit(1)
