"""``routecast simulate``: one trial, packet by packet."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

import typer

from routecast.cli.console import data, print_json, progress_bar
from routecast.cli.failures import (
    AtOption,
    DetectOption,
    DrainOption,
    FailOption,
    SwitchOffOption,
    UntilOption,
    absences_asked,
    phases_table,
)
from routecast.cli.offered import (
    ArrivalsOption,
    BurstOption,
    FlowsOption,
    FrameOption,
    LoadOption,
    PeakOption,
    RandomFlowsOption,
    frames_asked,
    offered_load,
)
from routecast.cli.over_time import FigureOption, OverTime, OverTimeOption, ReadAtOption, instants_asked
from routecast.cli.solve import RouterFile
from routecast.cli.tables import print_table

__all__ = ["Path", "simulate"]


class Path(StrEnum):
    """Execution paths of the simulator."""

    AUTO = "auto"
    RECURSION = "recursion"
    EVENTS = "events"


def simulate(
    file: RouterFile,
    *,
    load: LoadOption = None,
    frame: FrameOption = None,
    duration: Annotated[str, typer.Option("--duration", metavar="TIME", help="Simulated time.")] = "100 ms",
    flows: FlowsOption = None,
    random_flows: RandomFlowsOption = False,
    arrivals: ArrivalsOption = None,
    burst_frames: BurstOption = 32.0,
    peak_ratio: PeakOption = 4.0,
    fail: FailOption = None,
    switch_off: SwitchOffOption = None,
    at: AtOption = None,
    until: UntilOption = None,
    detect: DetectOption = None,
    drain: DrainOption = "10 ms",
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of all randomness.")] = 1,
    replications: Annotated[
        int, typer.Option("--replications", min=1, help="Independent runs; two or more give 95 % intervals.")
    ] = 1,
    half_width: Annotated[
        float | None,
        typer.Option(
            "--half-width",
            metavar="RATIO",
            help="Add runs until the 95 % half-width of the mean latency is at most this share of it, such as 0.01.",
        ),
    ] = None,
    path: Annotated[Path, typer.Option("--path", help="How the engine works; the results are the same.")] = Path.AUTO,
    trace_messages: Annotated[
        bool,
        typer.Option("--trace-messages", help="Record the managers' messages REQ, REP, REL, REV (small runs)."),
    ] = False,
    over_time: OverTimeOption = False,
    read_at: ReadAtOption = None,
    figure: FigureOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the trial as one JSON document.")] = False,
) -> None:
    """Answer by simulating every packet: throughput, loss by place, latency percentiles, and the bottleneck."""
    from routecast.cli.figure_file import refuse_no_figure_file
    from routecast.cli.trial import messages_table, print_trial
    from routecast.evaluate.plain import plain
    from routecast.evaluate.simulate import Simulate
    from routecast.quantity import parse_duration_s
    from routecast.router.files import read_router_and_load
    from routecast.router.multistage.failures import elements, events_of

    refuse_no_figure_file(figure)
    is_over_time = over_time or bool(read_at) or figure is not None
    model, default = read_router_and_load(file, frames=frames_asked(frame))
    offered = offered_load(
        default,
        ports=len(model.ports),
        load=load,
        frame=frame,
        flows=flows,
        random_flows=random_flows,
        arrivals=arrivals,
        burst_frames=burst_frames,
        peak_ratio=peak_ratio,
        seed=seed,
    )
    duration_s = parse_duration_s(duration)
    instants = instants_asked(read_at, duration_s)
    absences = absences_asked(
        duration_s,
        known=elements(model),
        fail=fail,
        switch_off=switch_off,
        at=at,
        until=until,
        detect=detect,
        drain=drain,
    )
    with progress_bar("simulate") as progress:
        simulator = Simulate(
            model,
            seed=seed,
            replications=replications,
            target_relative_half_width=half_width,
            path=_path(path, trace_messages=trace_messages),
            # Whether it is steady is then said, not required.
            steady_state=not is_over_time,
            over_time=is_over_time,
            events=events_of(model, absences),
            on_progress=lambda share: progress(round(100 * share), 100, ""),
        )
        if trace_messages:
            trace = simulator.trace(offered, duration_s)
            trial, messages = trace.trial, trace.messages
        else:
            trial, messages = simulator.trial(offered, duration_s), ()
    course = OverTime.of(trial, instants, is_disturbed=bool(absences)) if is_over_time else None
    if as_json:
        document = trial.to_json()
        document |= course.to_json() if course else {}
        print_json({**document, "messages": plain(messages)} if trace_messages else document)
    else:
        if trace_messages:
            print_table(data(), messages_table(messages))
        print_trial(data(), trial)
        if absences:
            print_table(data(), phases_table(trial, absences))
        if course:
            course.show()
    if course and figure is not None:
        course.draw(figure)


def _path(path: Path, *, trace_messages: bool) -> Literal["auto", "recursion", "events"]:
    """Messages need events: the recursion asks no manager for a unit."""
    if path is Path.RECURSION:
        return "recursion"
    return "events" if trace_messages or path is Path.EVENTS else "auto"
