"""``routecast simulate``: one trial, packet by packet."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from routecast.cli.console import (
    check_figure_file,
    data,
    print_csv,
    print_json,
    print_table,
    refuse_two_forms,
    share_bar,
)
from routecast.cli.device import GraphicsOptions
from routecast.cli.options import (
    AsCsv,
    AsJson,
    ModelLoadOptions,
    RouterFile,
    Seed,
    frames_option,
    grouped,
    ratio_option,
)
from routecast.cli.over_time import OverTime, OverTimeOptions
from routecast.cli.precise import PrecisionOptions, simulate_until_precise
from routecast.errors import QuantityProblem
from routecast.quantity import format_duration, parse_duration_s
from routecast.wings import require_part

if TYPE_CHECKING:
    from routecast.evaluate.trial import Trial
    from routecast.load.offered import OfferedLoad
    from routecast.router.events import Event
    from routecast.router.model import RouterModel
    from routecast.show.tables import Table

__all__ = ["FailureOptions", "Failures", "simulate"]


_failure_option = partial(typer.Option, rich_help_panel="Failures")

_DURATION = "100 ms"


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureOptions:
    """Elements that fail, or are switched off, while a router is simulated."""

    fail: Annotated[
        list[str] | None,
        _failure_option(
            "--fail", metavar="ELEMENT", help="A machine or a task unit that fails; may be given several times."
        ),
    ] = None
    switch_off: Annotated[
        list[str] | None,
        _failure_option(
            "--switch-off",
            metavar="ELEMENT",
            help="A machine or a task unit that drains and is switched off; may be given several times.",
        ),
    ] = None
    at: Annotated[
        list[str] | None,
        _failure_option(
            "--at",
            metavar="TIME",
            help="When, since the start; once for all, or for each --fail and then each --switch-off.",
        ),
    ] = None
    until: Annotated[
        list[str] | None,
        _failure_option(
            "--until",
            metavar="TIME",
            help="Time of the return, once for all or for each element; never: not within the trial.",
        ),
    ] = None
    detect: Annotated[
        str | None,
        _failure_option(
            "--detect",
            metavar="TIME",
            help="Time until the others detect a failure, and its end; without it, 220 ms for a load balancer that "
            "another replaces, and no other failure is detected.",
        ),
    ] = None
    drain: Annotated[
        str,
        _failure_option("--drain", metavar="TIME", help="Time without new traffic before an element is switched off."),
    ] = "10 ms"

    def are_any(self) -> bool:
        """Return whether an element fails or is switched off.

        Raises QuantityProblem: times are given, but no element.
        """
        if self.fail or self.switch_off:
            return True
        for option, text in (("--at", self.at), ("--until", self.until), ("--detect", self.detect)):
            if text:
                message = f"{option} is given, but nothing fails: name an element with --fail or --switch-off"
                raise QuantityProblem("", message)
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Failures:
    """The router of a trial, what happens to its elements, and the table of the phases that this makes."""

    model: RouterModel
    events: tuple[Event, ...] = ()
    phases: Callable[[Trial], Table] | None = None


class Path(StrEnum):
    """Execution paths of the simulator."""

    AUTO = "auto"
    RECURSION = "recursion"
    EVENTS = "events"
    LANES = "lanes"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """The runs of the simulator, and how its engine works."""

    seed: Seed = 1
    replications: Annotated[
        int, typer.Option("--replications", min=1, help="Independent runs; two or more give 95 % intervals.")
    ] = 1
    half_width: Annotated[
        float | None,
        ratio_option(
            "--half-width",
            help="Add runs until the 95 % half-width of the mean latency is at most this share of it, such as 1%.",
            bounds={"beyond_one": True},
        ),
    ] = None
    path: Annotated[
        Path,
        typer.Option("--path", help="How the engine works; the results are the same, but for lanes, which draw anew."),
    ] = Path.AUTO
    trace_messages: Annotated[
        bool, typer.Option("--trace-messages", help="Record the managers' messages REQ, REP, REL, REV (small runs).")
    ] = False


@grouped
def simulate(
    file: RouterFile,
    *,
    load: ModelLoadOptions,
    duration: Annotated[
        str | None,
        typer.Option("--duration", metavar="TIME", help="Simulated time; without, 100 ms, or the length of a trace."),
    ] = None,
    failures: FailureOptions,
    runs: RunOptions,
    precise: PrecisionOptions,
    where: GraphicsOptions,
    over_time: OverTimeOptions,
    as_csv: AsCsv = False,
    as_json: AsJson = False,
) -> None:
    """Answer by simulating every packet: throughput, loss by place, latency percentiles, and the bottleneck."""
    from routecast.evaluate.plain import plain
    from routecast.evaluate.simulate import Simulate
    from routecast.evaluate.views import messages_table
    from routecast.router.files import read_router_and_load

    refuse_two_forms(as_csv=as_csv, as_json=as_json)
    check_figure_file(over_time.figure)
    model, default = read_router_and_load(file, frames=frames_option(load.frame))
    offered = load.offered(default, ports=len(model.ports), seed=runs.seed)
    if where.device is not None and runs.trace_messages:
        raise QuantityProblem("", "--device runs lanes, which send no messages; leave out --trace-messages")
    where.check(runs.path)
    if precise.precision is not None:
        others = {"--duration": duration is not None, "--replications": runs.replications > 1}
        others |= {"--half-width": runs.half_width is not None, "--trace-messages": runs.trace_messages}
        precise.refuse_beside(others | {"--over-time": over_time.is_wanted, "--fail": failures.are_any()})
        simulator = Simulate(model, seed=runs.seed, path=_path(runs.path, trace_messages=False))
        simulator = where.on_device(simulator, offered, parse_duration_s(_DURATION))
        simulate_until_precise(simulator, offered, precise, as_csv=as_csv, as_json=as_json)
        return
    duration_s = _duration_s(duration, offered)
    instants = over_time.instants(duration_s)
    applied = _failures_of(failures, model, duration_s)
    simulator = where.on_device(Simulate(applied.model, seed=runs.seed), offered, duration_s)
    with share_bar("simulate") as on_progress:
        simulator = Simulate(
            applied.model,
            seed=runs.seed,
            replications=runs.replications,
            target_relative_half_width=runs.half_width,
            path=_path(runs.path, trace_messages=runs.trace_messages) if where.device is None else "lanes",
            # The verdict on steadiness is then printed, and steadiness is not required.
            steady_state=not over_time.is_wanted,
            over_time=over_time.is_wanted,
            events=applied.events,
            on_progress=on_progress,
            device=simulator.device,
        )
        if runs.trace_messages:
            trace = simulator.trace(offered, duration_s)
            trial, messages = trace.trial, trace.messages
        else:
            trial, messages = simulator.trial(offered, duration_s), ()
    course = OverTime.of(trial, instants, is_disturbed=bool(applied.events)) if over_time.is_wanted else None
    if as_json:
        document = trial.to_json()
        document |= course.to_json() if course else {}
        print_json({**document, "messages": plain(messages)} if runs.trace_messages else document)
    elif as_csv:
        print_csv([trial.to_json()])
    else:
        if runs.trace_messages:
            print_table(data(), messages_table(messages))
        _print(trial, applied, course)
    if course and over_time.figure is not None:
        course.draw(over_time.figure)


def _failures_of(options: FailureOptions, model: RouterModel, duration_s: float) -> Failures:
    """Return the failures of a trial, which the package ``routecast-virtual`` reads where there are any."""
    if not options.are_any():
        return Failures(model=model)
    part = "simulate --fail" if options.fail else "simulate --switch-off"
    failures: Failures = require_part(part, "virtual")(options, model, duration_s)
    return failures


def _print(trial: Trial, failures: Failures, course: OverTime | None) -> None:
    """Print a trial, its phases if elements were absent, and its course over time."""
    from routecast.cli.console import print_trial

    print_trial(data(), trial)
    if failures.phases:
        print_table(data(), failures.phases(trial))
    if course:
        course.show()


def _duration_s(duration: str | None, load: OfferedLoad) -> float:
    """Return the simulated time, at most that of a trace."""
    from routecast.cli.console import remark

    trace = load.arrivals.trace
    if duration is None:
        return parse_duration_s(_DURATION) if trace is None else trace.length_s
    duration_s = parse_duration_s(duration)
    if trace is None or duration_s <= trace.length_s * (1.0 + 1e-9):
        return duration_s
    length = format_duration(trace.length_s)
    remark(f"--duration {duration}: the trace ends after {length}; it is simulated as long as it is")
    return trace.length_s


def _path(path: Path, *, trace_messages: bool) -> Literal["auto", "recursion", "events", "lanes"]:
    """Return the path; traces of messages need events, because the recursion has no resource managers."""
    if path is Path.RECURSION:
        return "recursion"
    if path is Path.LANES:
        return "lanes"
    return "events" if trace_messages or path is Path.EVENTS else "auto"
