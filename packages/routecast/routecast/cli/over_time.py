"""A trial over time: ``--over-time``, ``--read-at``, ``--figure``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from routecast.cli.console import data, print_table
from routecast.errors import QuantityProblem
from routecast.quantity import format_duration, parse_duration_s

if TYPE_CHECKING:
    from routecast.evaluate.steadiness import InstantReading, Steadiness
    from routecast.evaluate.trial import Trial

__all__ = ["OverTime", "OverTimeOptions"]


@dataclass(frozen=True, slots=True, kw_only=True)
class OverTimeOptions:
    """Options for the course of a trial over time."""

    over_time: Annotated[
        bool,
        typer.Option(
            "--over-time", help="Say from when on the throughput is steady (MSER-5, a test for drift), or why not."
        ),
    ] = False
    read_at: Annotated[
        list[str] | None,
        typer.Option(
            "--read-at",
            metavar="TIME",
            help="With --over-time: what a look at this instant would have said; may be repeated.",
        ),
    ] = None
    figure: Annotated[
        Path | None, typer.Option("--figure", metavar="FILE.svg", help="Draw the throughput over time.")
    ] = None

    @property
    def is_wanted(self) -> bool:
        """Whether an option asks for the course."""
        return self.over_time or bool(self.read_at) or self.figure is not None

    def instants(self, duration_s: float) -> tuple[float, ...]:
        """Return the instants of ``--read-at`` in seconds.

        Raises QuantityProblem: an instant is no time, or not within the trial.
        """
        instants = []
        for text in self.read_at or ():
            at_s = parse_duration_s(text)
            if not 0.0 < at_s <= duration_s:
                raise QuantityProblem(text, f"--read-at must be within the trial, 0 to {format_duration(duration_s)}")
            instants.append(at_s)
        return tuple(instants)


@dataclass(frozen=True, slots=True, kw_only=True)
class OverTime:
    """The verdict on a trial's throughput; None if there were events during the trial."""

    trial: Trial
    verdict: Steadiness | None
    readings: tuple[InstantReading, ...]

    @classmethod
    def of(cls, trial: Trial, instants: Sequence[float], *, is_disturbed: bool) -> OverTime:
        """Judge the throughput of a trial over time.

        Raises EnvironmentProblem: the trial has no rates over time, because the device makes its own frames, or the
        tester began too late.
        """
        from routecast.errors import EnvironmentProblem
        from routecast.evaluate.steadiness import reading, steadiness_of

        if not trial.over_time:
            message = "the trial has no rates over time: no frames were sent, or sending began too late; try again"
            raise EnvironmentProblem(message)
        rates = [moment.forwarded_pps for moment in trial.over_time]
        part_s = trial.duration_s / len(rates)
        return cls(
            trial=trial,
            verdict=None if is_disturbed else steadiness_of(trial),
            readings=tuple(reading(rates, part_s, at_s) for at_s in instants),
        )

    def to_json(self) -> dict[str, object]:
        """Return verdict and readings as plain data."""
        from routecast.evaluate.plain import plain

        return {
            "steadiness": plain(self.verdict),
            "readings": plain(self.readings),
            "sampled_sojourn_s": plain(self._sampled_sojourn_s),
        }

    @property
    def _sampled_sojourn_s(self) -> float:
        from routecast.evaluate.steadiness import sampled_sojourn_s

        return sampled_sojourn_s(self.trial) if self.verdict is not None else math.nan

    def show(self) -> None:
        """Print the verdict in a sentence, and the readings beside it."""
        from routecast.evaluate.views import describe_verdict, readings_table

        console = data()
        if self.verdict is not None:
            style = None if self.verdict.is_steady else "bold red"
            console.print(f"Throughput over time: {describe_verdict(self.verdict)}", markup=False, style=style)
            if not math.isnan(sojourn_s := self._sampled_sojourn_s):
                sampled = f"sampled {len(self.trial.over_time):,} times"
                delay = f"{format_duration(sojourn_s)}, the mean of frames inside, {sampled}, over the throughput"
                console.print(f"Time inside: {delay}.", markup=False)
            if self.readings:
                console.print()
                print_table(console, readings_table(self.readings, self.verdict))

    def draw(self, file: Path) -> None:
        """Write the figure."""
        from routecast.cli.console import write_figure
        from routecast.evaluate.views import over_time_figure

        figure = over_time_figure(self.trial.over_time, self.trial.duration_s, self.verdict, self.readings)
        write_figure(figure, file)
