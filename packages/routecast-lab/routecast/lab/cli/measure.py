"""``routecast measure``: one trial, on the wire."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from routecast.cli.console import check_figure_file, data, print_json, print_table, progress_bar, remark
from routecast.cli.options import AsJson, LoadOptions, Seed, grouped
from routecast.cli.over_time import OverTime, OverTimeOptions
from routecast.lab.cli.bed_options import CoresOption, DeviceOptions, PowerOption
from routecast.lab.cli.forwarding_rate import FLOWS_OF_SEVERAL_CORES, core_counts, measure_latencies, measure_rates
from routecast.progress import Progress, ShareProgress

if TYPE_CHECKING:
    from routecast.evaluate.points import Point
    from routecast.evaluate.ramp import Ramp, RampResult
    from routecast.evaluate.trial import Trial
    from routecast.lab.benchmark.latency_rows import LatencyShares
    from routecast.lab.study.until import KnownRouter
    from routecast.lab.testbed.measure import Measure
    from routecast.lab.testbed.metrics_server import RunningMeasurement, SliceRates
    from routecast.load.offered import OfferedLoad

__all__ = ["measure"]


_OVERLOAD_RATIO = 1.5
_HEADERS_BYTES = 18
"""Ethernet header with the frame check sequence."""


def run_until(
    evaluator: Measure,
    load_of: Callable[[int], OfferedLoad],
    *,
    until_ratio: float,
    max_measurements: int,
    duration_s: float,
    spread_s: float,
    out: Path | None,
    on_progress: Progress,
) -> KnownRouter:
    """Measure the forwarding rate in overload at RFC 2544's frame sizes until each has the required precision.

    Every measured rate is appended at once to ``out``, a table of points, from which a later run continues.

    Raises EnvironmentProblem: a trial stays invalid, or the tester reaches no overload; FileProblem: ``out`` cannot be
    read, or cannot be appended to.
    """
    from routecast.errors import EnvironmentProblem
    from routecast.lab.benchmark.overload import find_overload_pps
    from routecast.lab.benchmark.points import append_point, measured_point, point_of, points_before
    from routecast.lab.study.until import measure_until
    from routecast.load.frames import RFC2544_FRAME_BYTES, FrameMix

    bed = evaluator.bed
    max_bytes = bed.ports[0].mtu + _HEADERS_BYTES
    points = [point_of(bed, FrameMix.fixed(size)) for size in RFC2544_FRAME_BYTES if size <= max_bytes]
    overload_pps: dict[float, float] = {}

    def measure(point: Point) -> float:
        load = load_of(round(point.frame_bytes))
        if point.frame_bytes not in overload_pps:
            overload_pps[point.frame_bytes] = find_overload_pps(evaluator, load, overload_ratio=_OVERLOAD_RATIO)
        trial = evaluator.trial(load.at(overload_pps[point.frame_bytes]), duration_s)
        if not trial.is_valid:
            raise EnvironmentProblem(
                f"the trial at {point.frame_bytes:g} B is invalid after {trial.attempts} attempts: "
                f"{'; '.join(trial.invalid)}"
            )
        if out is not None:
            append_point(out, measured_point(point, trial))
        return trial.forwarded_pps

    table = [] if out is None else points_before(out, points[0], command="--until")
    earlier = [point for point in table if point.series == points[0].series]
    if earlier:
        remark(f"{out} has {len(earlier)} measurements: continuing from them")
    return measure_until(
        measure,
        points,
        known=earlier,
        until_ratio=until_ratio,
        most=max_measurements,
        spread_s=spread_s,
        on_progress=lambda done, precision: on_progress(done, max_measurements, precision),
    )


def print_known(
    known: KnownRouter, *, until_ratio: float, as_json: bool, latencies: Sequence[Mapping[str, Any]] = ()
) -> None:
    """Print the measured rates, the precision at each frame size, and whether it suffices; in JSON latencies, too."""
    from routecast.calibration.views import rows_table
    from routecast.evaluate.plain import plain

    rows = [replace(row, calibrates=True) for row in known.fitted.predict(known.fitted.points)]
    if as_json:
        print_json(
            {
                "measured": [
                    {"frame_bytes": point.frame_bytes, "throughput_pps": point.throughput_pps}
                    for point in known.measured
                ],
                "rows": plain(rows),
                "noise_ratio": known.fitted.noise_ratio,
                "until_ratio": until_ratio,
                "half_width_ratio": known.half_width_ratio,
                "is_enough": known.is_enough,
                "warnings": list(known.fitted.warnings),
            }
            | ({"latency": list(latencies)} if latencies else {})
        )
        return
    print_table(data(), rows_table(rows))
    for warning in known.fitted.warnings:
        data().print(f"{warning[0].upper()}{warning[1:]}.", markup=False)
    data().print(
        f"{len(known.measured)} measurements, which repeat within {known.fitted.noise_ratio:.1%}: all rates are known "
        f"within ±{known.half_width_ratio:.1%}, required is ±{until_ratio:.1%}.",
        markup=False,
    )


_bed_option = partial(typer.Option, rich_help_panel="Test bed")
_address_option = partial(typer.Option, rich_help_panel="Addresses and phases")
_latency_option = partial(typer.Option, rich_help_panel="Latency, too")
_until_option = partial(typer.Option, rich_help_panel="Until enough is known")
_FIRST_LOAD = "50 kpps"
_DURATION = "500 ms"

TestbedOption = Annotated[
    str,
    _bed_option(
        "--testbed",
        metavar="namespaces|FILE",
        help='"namespaces" needs no lab: tester, device and wires on this machine; or a *.testbed.toml.',
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class SendingOptions:
    """How the frames of a trial are addressed and sent."""

    bidirectional: Annotated[
        bool,
        typer.Option(
            "--bidirectional",
            help="Send both ways: every other flow goes the other way (RFC 2544 sec. 14).",
            rich_help_panel="Offered load",
        ),
    ] = False
    duration: Annotated[
        str | None,
        typer.Option(
            "--duration", metavar="TIME", help="For how long frames are sent; 500 ms, or as long as a recording."
        ),
    ] = None
    seed: Seed = 1
    ip_version: Annotated[int, _address_option("--ip-version", min=4, max=6, help="4 or 6.")] = 4
    networks: Annotated[
        int,
        _address_option(
            "--networks", min=1, max=256, help="Destination networks at random (RFC 2544 sec. 12: 1, then 256)."
        ),
    ] = 1
    rfc2544_phases: Annotated[
        bool,
        _address_option(
            "--rfc2544-phases",
            help="Pause around the trial as RFC 2544 sec. 23 asks for: 2 s before, 2 s and 5 s after it.",
        ),
    ] = False
    slices: Annotated[
        str | None,
        typer.Option(
            "--slices", metavar="TIME", help="Send in pieces of at most this length, and add their counts up."
        ),
    ] = None
    retries: Annotated[int, typer.Option("--retries", min=0, help="How often an invalid trial is run again.")] = 2
    cores: CoresOption = None
    back_end: Annotated[str, typer.Option("--back-end", help="How frames are sent: auto, live, af_xdp, af_packet.")] = (
        "auto"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveOptions:
    """Reports of each second while the trial runs."""

    live: Annotated[
        bool, typer.Option("--live", help="Say rates, loss and latency each second; the trial is sent in such slices.")
    ] = False
    prometheus: Annotated[
        int | None,
        typer.Option(
            "--prometheus",
            metavar="PORT",
            min=0,
            max=65_535,
            help="Serve them each second at http://127.0.0.1:PORT/metrics while the trial runs.",
        ),
    ] = None

    @property
    def is_wanted(self) -> bool:
        """Whether the trial is reported each second."""
        return self.live or self.prometheus is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class UntilOptions:
    """The precision of the forwarding rates to reach, and the measurements that may be spent on it."""

    until: Annotated[
        str | None,
        _until_option(
            "--until",
            metavar="RATIO",
            help='Measure in overload until the rates at RFC 2544\'s frame sizes are known: "5%" is ±5 %, with 95 %.',
        ),
    ] = None
    max_measurements: Annotated[int, _until_option("--most", min=8, help="Measurements to make at most.")] = 200
    spread: Annotated[
        str,
        _until_option(
            "--spread",
            metavar="TIME",
            help="Spread eight repetitions at the smallest frames over this: what shares the machine comes and goes.",
        ),
    ] = "60 s"


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyOptions:
    """Shares of the maximum forwarding rate at which the latency is measured, too."""

    latency_at: Annotated[
        str | None,
        _latency_option(
            "--latency-at",
            metavar="SHARE,…",
            help='Then measure the latency at shares of the maximum forwarding rate, "10%,90%"; each trial is a row.',
        ),
    ] = None
    latency_trials: Annotated[
        int,
        _latency_option(
            "--latency-trials", metavar="N", min=1, max=100, help="Trials at each share: their spread is the noise."
        ),
    ] = 3

    def shares(self) -> LatencyShares | None:
        """Return the shares; None without any.

        Raises QuantityProblem: a share is no number above 0.
        """
        from routecast.lab.benchmark.latency_rows import LatencyShares

        if self.latency_at is None:
            return None
        return LatencyShares.parse(self.latency_at, repeats=self.latency_trials)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Request:
    """The options of ``measure`` that decide what is sent, and through what."""

    testbed: str
    device: DeviceOptions
    power: str | None
    load: LoadOptions
    sending: SendingOptions
    over_time: OverTimeOptions
    reports: LiveOptions
    ramp: Ramp | None
    until_ratio: float | None
    latency: LatencyShares | None = None

    @property
    def is_search(self) -> bool:
        """Whether the maximum forwarding rate is searched, because no option gives a load."""
        has_load = self.load.load is not None or self.load.is_recording
        return not has_load and self.until_ratio is None and self.ramp is None

    def refuse_contradictions(self, ramp: str | None) -> None:
        """Raise QuantityProblem if an option has no meaning beside another one; ``ramp``: as it was given."""
        from routecast.errors import QuantityProblem

        load, is_search, is_until = self.load, self.is_search, self.until_ratio is not None
        if self.latency is not None and not (is_search or is_until):
            message = (
                "--latency-at is for shares of the maximum forwarding rate: leave out --load, --ramp and the "
                "recording; a trial with --load prints its latency"
            )
            raise QuantityProblem("", message)
        if self.ramp and (load.load or is_until or self.over_time.is_wanted or self.sending.slices):
            message = "--ramp brings its own load: leave out --load, --until, --slices, --over-time"
            raise QuantityProblem(str(ramp), message)
        if load.is_recording and (load.load or load.frame or self.ramp or is_until):
            message = "a recording brings its rate and frames: leave out --load, --frame, --ramp and --until"
            raise QuantityProblem(str(load.arrivals), message)
        if self.reports.is_wanted and (is_search or is_until or self.ramp is not None):
            raise QuantityProblem("", "--live and --prometheus are for one load: give a rate with --load")
        if is_search and self.over_time.is_wanted:
            message = 'figures over time are of one load: give a rate with --load, e.g. --load "200 kpps"'
            raise QuantityProblem("", message)
        if self.sending.cores is not None and not is_search:
            message = (
                "--cores is for the maximum forwarding rate: leave out --load and --until, or give --dut-option cores=2"
            )
            raise QuantityProblem(self.sending.cores, message)
        if is_until and not (load.load is None and load.frame is None and not self.over_time.is_wanted):
            raise QuantityProblem("", "--until picks frames and loads: leave out --load, --frame and figures over time")
        if self.sending.ip_version not in {4, 6}:
            ip_version = self.sending.ip_version
            raise QuantityProblem(str(ip_version), f"--ip-version {ip_version}: write 4 or 6")

    def with_enough_flows(self, max_cores: int) -> _Request:
        """Return the request with a number of flows that gives work to all cores and directions.

        Raises QuantityProblem: the given number is below that of the cores.
        """
        from routecast.errors import QuantityProblem

        flows = self.load.flows
        min_flows = 2 if self.sending.bidirectional else 1
        if max_cores > 1:
            if flows is not None and flows < max_cores:
                message = f"--flows {flows}: fewer than {max_cores} cores, some of which would have no work"
                raise QuantityProblem(str(flows), message)
            min_flows = FLOWS_OF_SEVERAL_CORES
        # A recording has as many flows as it names.
        return replace(self, load=replace(self.load, flows=flows or (None if self.load.is_recording else min_flows)))

    def offered(self, **changes: Any) -> OfferedLoad:
        """Return the load of the options after ``changes`` of :class:`LoadOptions`."""
        load = replace(self.load, **changes).offered(None, ports=2, seed=self.sending.seed)
        return _one_way(load, bidirectional=self.sending.bidirectional)

    def load_and_duration_s(self) -> tuple[OfferedLoad, float]:
        """Return the load of the trial and its duration in seconds; a search starts with this load."""
        from routecast.quantity import parse_duration_s

        is_recording = self.load.is_recording
        offered = self.offered() if is_recording else self.offered(load=self.load.load or _FIRST_LOAD)
        if self.sending.duration is None and offered.arrivals.trace is not None:
            duration_s = offered.arrivals.trace.length_s
        else:
            duration_s = parse_duration_s(self.sending.duration or _DURATION)
        return (self.ramp.of(offered), self.ramp.duration_s) if self.ramp else (offered, duration_s)

    def open_bed(
        self,
        running: RunningMeasurement,
        *,
        device_options: Mapping[str, object] | None = None,
        on_progress: ShareProgress | None = None,
    ) -> AbstractContextManager[Measure]:
        """Open the test bed with further options of the device; ``running`` gets the counts of each second."""
        from routecast.lab.testbed import Phases, open_testbed
        from routecast.quantity import parse_duration_s

        sending, bed = self.sending, self.device.bed()
        slices = sending.slices or ("1 s" if self.reports.is_wanted else None)

        def report_second(second: SliceRates) -> None:
            if running.is_repetition:
                remark("the trial was invalid and is run again")
            if self.reports.live:
                remark(second.describe())

        return open_testbed(
            self.testbed,
            **{**bed, "options": {**bed["options"], **(device_options or {})}},
            on_remark=remark,
            power=self.power,
            seed=sending.seed,
            version=6 if sending.ip_version == 6 else 4,
            networks=sending.networks,
            phases=Phases.rfc2544() if sending.rfc2544_phases else Phases(),
            retries=sending.retries,
            slice_s=parse_duration_s(slices) if slices else None,
            over_time=self.over_time.is_wanted or self.ramp is not None,
            back_end=sending.back_end,
            on_progress=on_progress or (lambda _: None),
            on_slice=(lambda counts: report_second(running.add(counts))) if self.reports.is_wanted else None,
        )


@grouped
def measure(
    *,
    testbed: TestbedOption,
    device: DeviceOptions,
    power: PowerOption = None,
    load: LoadOptions,
    sending: SendingOptions,
    over_time: OverTimeOptions,
    reports: LiveOptions,
    ramp: Annotated[
        str | None,
        typer.Option(
            "--ramp",
            metavar='"LOW..HIGH over TIME"',
            help='Let the load grow during the trial: "100 kpps..2 Mpps over 10 s"; instead of --load and --duration.',
        ),
    ] = None,
    precision: UntilOptions,
    latency: LatencyOptions,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="FILE",
            help="Append to a table of trials, .parquet or CSV; without --load to one of points, for `size`.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Send frames through a real router: throughput, loss by place, latency, and whether the trial is valid.

    Without --load, find the maximum forwarding rate, which the device forwards in overload. If the tester reaches no
    overload, the rate is a lower bound, printed with ≥. An invalid trial is repeated, and then printed with its
    reasons. With --until, each of many trials is where it is expected to narrow the rates most. With --latency-at, the
    latency is measured at shares of the rate that was found. The command exits with 1 after a lower bound, an invalid
    trial, or too few trials for --until.
    """
    from routecast.evaluate.ramp import Ramp
    from routecast.lab.testbed.metrics_server import RunningMeasurement
    from routecast.quantity import parse_ratio

    check_figure_file(over_time.figure)
    request = _Request(
        testbed=testbed,
        device=device,
        power=power,
        load=load,
        sending=sending,
        over_time=over_time,
        reports=reports,
        until_ratio=parse_ratio(precision.until) if precision.until else None,
        ramp=Ramp.parse(ramp) if ramp else None,
        latency=latency.shares(),
    )
    request.refuse_contradictions(ramp)
    counts = core_counts(sending.cores, testbed, device=device.dut, options=device.settings())
    request = request.with_enough_flows(max(count or 1 for count, _ in counts))
    offered, duration_s = request.load_and_duration_s()
    if request.is_search:
        running = RunningMeasurement()
        measure_rates(
            lambda options: request.open_bed(running, device_options=options),
            counts,
            offered,
            duration_s=duration_s,
            out=out,
            as_json=as_json,
            latency=request.latency,
        )
    elif request.until_ratio is not None:
        _measure_until(request, precision, offered, duration_s, out, as_json=as_json)
    else:
        _measure_trial(request, offered, duration_s, out, as_json=as_json)


@contextlib.contextmanager
def _announced_bed(request: _Request, offered: OfferedLoad, duration_s: float) -> Iterator[tuple[Measure, Progress]]:
    """Open the test bed with a progress bar, say what is sent, and serve metrics if they are wanted."""
    from routecast.lab.testbed.metrics_server import MetricsServer, RunningMeasurement
    from routecast.quantity import format_duration

    running, port = RunningMeasurement(), request.reports.prometheus
    with (
        contextlib.nullcontext()
        if port is None
        else contextlib.closing(MetricsServer(port, running.exposition)) as server,
        progress_bar("measure") as progress,
        request.open_bed(running, on_progress=lambda share: progress(round(100 * share), 100, "")) as evaluator,
    ):
        for line in evaluator.announcement(offered):
            remark(f"{line}, {format_duration(duration_s)}")
        if server is not None:
            remark(f"metrics for Prometheus: http://127.0.0.1:{server.port}/metrics")
        yield evaluator, progress


def _measure_until(
    request: _Request,
    precision: UntilOptions,
    offered: OfferedLoad,
    duration_s: float,
    out: Path | None,
    *,
    as_json: bool,
) -> None:
    """Measure until the forwarding rates are known, print them, and append them to a table of points."""
    from routecast.errors import CriterionFailed
    from routecast.quantity import parse_duration_s

    assert request.until_ratio is not None
    with _announced_bed(request, offered, duration_s) as (evaluator, progress):
        evaluator.on_progress = None
        known = run_until(
            evaluator,
            lambda size: request.offered(load=_FIRST_LOAD, frame=f"{size} B"),
            until_ratio=request.until_ratio,
            max_measurements=precision.max_measurements,
            duration_s=duration_s,
            spread_s=parse_duration_s(precision.spread, zero_allowed=True),
            out=out,
            on_progress=progress,
        )
        latencies: list[dict[str, Any]] = []
        failures: list[str] = []
        if request.latency is not None and known.is_enough:
            latencies, failures = _latencies_of(request, known, evaluator, duration_s, out, as_json=as_json)
        print_known(known, until_ratio=request.until_ratio, as_json=as_json, latencies=latencies)
        if failures:
            raise CriterionFailed("; ".join(failures))
        if not known.is_enough:
            raise CriterionFailed(f"{len(known.measured)} measurements were not enough: allow more with --most")


def _latencies_of(
    request: _Request, known: KnownRouter, evaluator: Measure, duration_s: float, out: Path | None, *, as_json: bool
) -> tuple[list[dict[str, Any]], list[str]]:
    """Measure the latency at each frame size that was measured, at shares of the rate that is known of it."""
    from routecast.lab.benchmark.points import point_of
    from routecast.load.frames import FrameMix

    assert request.latency is not None
    documents, failures = [], []
    for size in sorted({round(point.frame_bytes) for point in known.measured}):
        frames = FrameMix.fixed(size)
        point = point_of(evaluator.bed, frames)
        (row,) = known.fitted.predict([point])
        of_size, missing = measure_latencies(
            evaluator,
            request.offered(load=_FIRST_LOAD, frame=f"{size} B"),
            request.latency,
            point,
            capacity_pps=row.throughput_pps,
            duration_s=duration_s,
            out=out,
            as_json=as_json,
        )
        documents += [{"frame_bytes": size, **document} for document in of_size]
        failures += missing
    return documents, failures


def _measure_trial(
    request: _Request, offered: OfferedLoad, duration_s: float, out: Path | None, *, as_json: bool
) -> None:
    """Run one trial, print it, and append it to a table of trials."""
    from routecast.errors import CriterionFailed, EnvironmentProblem
    from routecast.evaluate.ramp import RampResult

    over_time = request.over_time
    instants = over_time.instants(duration_s)
    with _announced_bed(request, offered, duration_s) as (evaluator, _):
        trial = evaluator.trial(offered, duration_s)
        facts = evaluator.facts()
    course = OverTime.of(trial, instants, is_disturbed=False) if over_time.is_wanted else None
    climb = RampResult.of(trial, request.ramp) if request.ramp else None
    _print(trial, facts, course, climb, as_json=as_json)
    if course and over_time.figure is not None:
        course.draw(over_time.figure)
    if out is not None:
        try:
            append_trial(out, trial, offered, evaluator, facts)
        except OSError as problem:
            message = f"{out}: cannot be written: {problem.strerror}; the trial itself is printed above"
            raise EnvironmentProblem(message) from problem
    if not trial.is_valid:
        raise CriterionFailed(f"the trial is invalid after {trial.attempts} attempts: {'; '.join(trial.invalid)}")


def _one_way(load: OfferedLoad, *, bidirectional: bool) -> OfferedLoad:
    """Return the load with all flows from port 0 to port 1, unless both directions are wanted."""
    from routecast.load.flows import FlowSet

    if bidirectional:
        return load
    flows = tuple(replace(flow, ingress=0, egress=1) for flow in load.flows.flows)
    return replace(load, flows=FlowSet(name=f"{len(flows)} flow{'s' if len(flows) > 1 else ''}", flows=flows))


def _print(trial: Trial, facts: object, course: OverTime | None, climb: RampResult | None, *, as_json: bool) -> None:
    from routecast.cli.console import print_trial
    from routecast.evaluate.plain import plain

    if as_json:
        over_time = course.to_json() if course else {}
        ramp = {"ramp": plain(climb)} if climb else {}
        print_json({**trial.to_json(), **over_time, **ramp, "facts": plain(facts)})
    else:
        print_trial(data(), trial)
        if course:
            course.show()
        if climb:
            from routecast.evaluate.views import describe_ramp, ramp_table

            print_table(data(), ramp_table(climb))
            data().print(describe_ramp(climb), markup=False)


def append_trial(path: Path, trial: Trial, load: OfferedLoad, evaluator: Measure, facts: object) -> None:
    """Append a row to a table of trials, in the format of `routecast import` and `export`."""
    from routecast.evaluate.plain import plain
    from routecast.lab.benchmark.exchange import COLUMNS, Record, csv_text, read_csv, read_parquet, write_parquet
    from routecast.quantity.whole_file import write_whole

    plain_facts = plain(facts)
    assert isinstance(plain_facts, dict)
    record = Record(
        source="routecast measure",
        trial=trial,
        title=evaluator.bed.device.title,
        frame_bytes=load.frames.mean_bytes,
        ports=len({flow.ingress for flow in load.flows.flows}),
        link_bps=evaluator.bed.ports[0].wire_bps,
        flows=len(load.flows.flows),
        device=evaluator.bed.device.name,
        tester="routecast",
        facts=plain_facts,
    )
    if path.suffix == ".parquet":
        write_parquet([*(read_parquet(path) if path.exists() else ()), record], path)
        return
    is_new = not path.is_file() or path.stat().st_size == 0
    earlier = () if is_new else read_csv(path)  # raises if the file is no table of trials
    with path.open("a+", encoding="utf-8") as file:
        file.seek(0)
        if is_new or file.readline().rstrip("\r\n") == ",".join(COLUMNS):
            text = csv_text([record])
            file.seek(0, os.SEEK_END)
            file.write(text if is_new else text.partition("\n")[2])
            return
    # The table has columns of another version: write all rows with the present columns.
    write_whole(path, csv_text([*earlier, record]))
