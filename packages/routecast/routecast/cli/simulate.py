"""``routecast simulate``: one trial, packet by packet."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
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
from routecast.errors import QuantityProblem
from routecast.quantity import format_duration, parse_duration_s
from routecast.quantity.did_you_mean import did_you_mean

if TYPE_CHECKING:
    from routecast.evaluate.trial import Trial
    from routecast.load.offered import OfferedLoad
    from routecast.router.model import RouterModel
    from routecast.router.multistage.failures import Absence

__all__ = ["FailureOptions", "simulate"]


_failure_option = partial(typer.Option, rich_help_panel="Failures")

_NEVER = "never"
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

    def absences(
        self, duration_s: float, *, known: Sequence[str] = (), replaced: Collection[str] = ()
    ) -> tuple[Absence, ...]:
        """Return the absences of elements in a trial.

        ``known`` are the router's elements, for messages; ``replaced``: load balancers that another one replaces.

        Raises RoutecastError: an option is missing, empty, given too often, or no time; or an element fails, or is
        drained, after the end of the trial.
        """
        from routecast.router.multistage.failures import TAKEOVER_S, failed, planned_absence

        fails, switched_off = self.fail or [], self.switch_off or []
        for option, elements in (("--fail", fails), ("--switch-off", switched_off)):
            if not all(name.strip() for name in elements):
                raise QuantityProblem("", f"{option} is empty: name {_element_hint(known)}")
        names = (*fails, *switched_off)
        if not names:
            for option, text in (("--at", self.at), ("--until", self.until), ("--detect", self.detect)):
                if text:
                    message = f"{option} is given, but nothing fails: name an element with --fail or --switch-off"
                    raise QuantityProblem("", message)
            return ()
        if not self.at:
            raise QuantityProblem("", 'say when: --at TIME, e.g. --at "20 ms"')
        starts = [parse_duration_s(text) for text in _one_for_each("--at", self.at, len(names))]
        ends = [
            math.inf if text == _NEVER else parse_duration_s(text)
            for text in _one_for_each("--until", self.until or (_NEVER,), len(names))
        ]
        detection_s = parse_duration_s(self.detect) if self.detect else math.inf
        drain_s = parse_duration_s(self.drain)
        absences = []
        for number, (name, start_s, end_s) in enumerate(zip(names, starts, ends, strict=True)):
            start = format_duration(start_s)
            _require_before_end(start_s, duration_s, f'"{name}" goes down at {start}', "an earlier --at")
            if number < len(fails):
                takeover_s = TAKEOVER_S if name in replaced and not self.detect else detection_s
                absences.append(failed(name, at_s=start_s, until_s=end_s, detection_s=takeover_s))
                continue
            drains = f'"{name}" drains for {self.drain} from {start} on'
            _require_before_end(start_s + drain_s, duration_s, drains, "a shorter --drain, an earlier --at")
            absences.append(planned_absence(name, off_s=start_s, on_s=end_s, drain_s=drain_s))
        return tuple(_without_late_detection(absence, duration_s) for absence in absences)


def _require_before_end(time_s: float, duration_s: float, event: str, remedy: str) -> None:
    if time_s >= duration_s:
        end = format_duration(duration_s)
        message = f"{event}, but the trial ends at {end}: give {remedy} or a longer --duration"
        raise QuantityProblem("", message)


def _without_late_detection(absence: Absence, duration_s: float) -> Absence:
    """Return an absence without the detections after the end of the trial."""
    return replace(
        absence,
        avoided_s=absence.avoided_s if absence.avoided_s < duration_s else math.inf,
        used_s=absence.used_s if absence.used_s < duration_s else math.inf,
    )


def _element_hint(names: Sequence[str]) -> str:
    """Name some elements, or describe an element if no name is known."""
    return f"an element; {did_you_mean('', names)}" if names else "a machine or a task unit"


def _one_for_each(option: str, times: Sequence[str], count: int) -> Sequence[str]:
    """Return one time for each element; a single time counts for all."""
    if len(times) == 1:
        return [times[0]] * count
    if len(times) != count:
        message = f"{option} is given {len(times)} times for {count} elements: give it once, or once for each"
        raise QuantityProblem("", message)
    return times


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
    over_time: OverTimeOptions,
    as_csv: AsCsv = False,
    as_json: AsJson = False,
) -> None:
    """Answer by simulating every packet: throughput, loss by place, latency percentiles, and the bottleneck."""
    from routecast.evaluate.plain import plain
    from routecast.evaluate.simulate import Simulate
    from routecast.evaluate.views import messages_table
    from routecast.router.files import read_router_and_load
    from routecast.router.multistage.failures import events_of

    refuse_two_forms(as_csv=as_csv, as_json=as_json)
    check_figure_file(over_time.figure)
    model, default = read_router_and_load(file, frames=frames_option(load.frame))
    offered = load.offered(default, ports=len(model.ports), seed=runs.seed)
    duration_s = _duration_s(duration, offered)
    instants = over_time.instants(duration_s)
    model, absences = _with_absences(model, failures, duration_s)
    with share_bar("simulate") as on_progress:
        simulator = Simulate(
            model,
            seed=runs.seed,
            replications=runs.replications,
            target_relative_half_width=runs.half_width,
            path=_path(runs.path, trace_messages=runs.trace_messages),
            # The verdict on steadiness is then printed, and steadiness is not required.
            steady_state=not over_time.is_wanted,
            over_time=over_time.is_wanted,
            events=events_of(model, absences),
            on_progress=on_progress,
        )
        if runs.trace_messages:
            trace = simulator.trace(offered, duration_s)
            trial, messages = trace.trial, trace.messages
        else:
            trial, messages = simulator.trial(offered, duration_s), ()
    course = OverTime.of(trial, instants, is_disturbed=bool(absences)) if over_time.is_wanted else None
    if as_json:
        document = trial.to_json()
        document |= course.to_json() if course else {}
        print_json({**document, "messages": plain(messages)} if runs.trace_messages else document)
    elif as_csv:
        print_csv([trial.to_json()])
    else:
        if runs.trace_messages:
            print_table(data(), messages_table(messages))
        _print(trial, absences, course)
    if course and over_time.figure is not None:
        course.draw(over_time.figure)


def _with_absences(
    model: RouterModel, failures: FailureOptions, duration_s: float
) -> tuple[RouterModel, tuple[Absence, ...]]:
    """Return the router, whose load balancers replace one that fails, and the absences of its elements."""
    from routecast.router.multistage.failures import balancers, elements, with_takeovers

    replaced = balancers(model) if len(balancers(model)) > 1 else ()
    absences = failures.absences(duration_s, known=elements(model), replaced=replaced)
    if any(absence.element in replaced for absence in absences):
        model = with_takeovers(model)
    return model, absences


def _print(trial: Trial, absences: Sequence[Absence], course: OverTime | None) -> None:
    """Print a trial, its phases if elements were absent, and its course over time."""
    from routecast.cli.console import print_trial
    from routecast.evaluate.views import phases_table

    print_trial(data(), trial)
    if absences:
        print_table(data(), phases_table(trial, absences))
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
