"""``routecast benchmark``: benchmarking procedures of the IETF."""

from __future__ import annotations

import shlex
import sys
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from routecast.cli.console import data, print_json, print_table, print_table_to_stderr, progress_bar, remark
from routecast.cli.options import grouped
from routecast.lab.cli.bed_options import CoresOption, EncapsulationOption, PowerOption, ShareCoresOption
from routecast.lab.cli.forwarding_rate import FLOWS_OF_SEVERAL_CORES, core_counts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from routecast.evaluate.points import Point
    from routecast.lab.benchmark.plan import Plan
    from routecast.lab.benchmark.rig import Rig
    from routecast.lab.benchmark.streams import Stream
    from routecast.lab.benchmark.values import BenchmarkResult

__all__ = ["rfc2544"]


class EvaluatorName(StrEnum):
    """Evaluators of trials."""

    MEASURE = "measure"
    SIMULATE = "simulate"
    SOLVE = "solve"


_tested_option = partial(typer.Option, rich_help_panel="What is tested")
_stream_option = partial(typer.Option, rich_help_panel="Test streams")
_procedure_option = partial(typer.Option, rich_help_panel="How")


class Search(StrEnum):
    """Searches for the throughput."""

    MLRSEARCH = "mlrsearch"
    BINARY = "binary"


def _profiles(incomplete: str) -> list[str]:
    from routecast.lab.benchmark.profile import shipped_profiles

    return [name for name in shipped_profiles() if name.startswith(incomplete)]


@dataclass(frozen=True, slots=True, kw_only=True)
class TestedOptions:
    """What is tested: a device on a test bed, or a model with an evaluator."""

    testbed: Annotated[
        str | None,
        _tested_option(
            "--testbed",
            metavar="FILE|namespaces",
            help="A *.testbed.toml, or namespaces: a test bed on this machine alone.",
        ),
    ] = None
    dut: Annotated[str | None, _tested_option("--dut", metavar="DEVICE", help="Device under test, such as linux.")] = (
        None
    )
    dut_option: Annotated[
        list[str] | None, _tested_option("--dut-option", metavar="KEY=VALUE", help="Option of the device.")
    ] = None
    encapsulation: EncapsulationOption = None
    evaluator: Annotated[EvaluatorName, _tested_option("--evaluator", help="Who answers.")] = EvaluatorName.MEASURE
    outage: Annotated[
        list[str] | None,
        _tested_option(
            "--outage", metavar="KIND=TIME", help="A reset that a simulated model is given, such as process=250ms."
        ),
    ] = None
    own_network: Annotated[
        bool, _tested_option("--i-own-this-network", help="Send on interfaces that carry other traffic as well.")
    ] = False
    share_cores: ShareCoresOption = False
    power: PowerOption = None
    cores: CoresOption = None

    def core_counts(self) -> tuple[tuple[int | None, dict[str, int]], ...]:
        """Return the numbers of cores of the device, each with its options.

        Raises QuantityProblem: a model has its cores in its file; RoutecastError: as
        :func:`routecast.lab.cli.forwarding_rate.core_counts`.
        """
        from routecast.errors import QuantityProblem
        from routecast.lab.testbed.opening import parse_device_options

        if self.cores is None:
            return ((None, {}),)
        if self.evaluator is not EvaluatorName.MEASURE:
            message = (
                f"--cores {self.cores}: the cores of a model stand in its file; --cores is for --evaluator measure"
            )
            raise QuantityProblem(self.cores, message)
        device_options = parse_device_options(self.dut_option or [])
        return core_counts(self.cores, self.testbed or "namespaces", device=self.dut, options=device_options)

    def name(self, router: Path | None) -> str:
        """Return the name of what is tested, for the folder of the results."""
        if router:
            return router.name.partition(".")[0]
        return self.dut or Path(self.testbed or "namespaces").name.partition(".")[0]

    def rig(self, router: Path | None, *, seed: int, core_options: Mapping[str, int]) -> Rig:
        """Return the rig of the options: a test bed with a device, or a model with an evaluator.

        ``core_options`` are further options of the device.

        Raises RoutecastError: there is nothing to test, the evaluator has no use for an option, or a file is not
        readable.
        """
        if self.evaluator is EvaluatorName.MEASURE:
            return self._bed_rig(router, core_options)
        return self._model_rig(router, seed)

    def _bed_rig(self, router: Path | None, core_options: Mapping[str, int]) -> Rig:
        from routecast.errors import QuantityProblem

        if router is not None:
            text = f"{router}: a model is answered by --evaluator simulate or --evaluator solve"
            raise QuantityProblem(str(router), text)
        if self.testbed is None and self.dut is None:
            text = (
                "nothing to test: give --testbed namespaces --dut linux, or a *.testbed.toml, "
                "or --evaluator simulate ROUTER.toml"
            )
            raise QuantityProblem("", text)
        if self.outage:
            raise QuantityProblem(self.outage[0], "--outage is for a simulated model: a device is really reset")
        from routecast.lab.benchmark.bed_rig import BedRig
        from routecast.lab.testbed.opening import parse_device_options

        settings = [*(self.dut_option or []), *(f"{name}={value}" for name, value in core_options.items())]
        return BedRig(
            self.testbed or "namespaces",
            device=self.dut,
            options=parse_device_options(settings),
            encapsulation=self.encapsulation,
            own_network=self.own_network,
            share_cores=self.share_cores,
            power=self.power,
            on_remark=remark,
        )

    def _model_rig(self, router: Path | None, seed: int) -> Rig:
        from routecast.errors import QuantityProblem

        name = self.evaluator.value
        if router is None:
            raise QuantityProblem("", f"--evaluator {name} answers for a model: give a ROUTER.toml as argument")
        if self.testbed is not None or self.dut is not None:
            raise QuantityProblem("", f"--testbed and --dut are for --evaluator measure, not {name}")
        if self.encapsulation is not None:
            raise QuantityProblem("", f"--encapsulation is for --evaluator measure: {name} knows frames alone")
        if self.power is not None:
            text = (
                f"--power {self.power}: a model's watts come from its power states; a meter is for --evaluator measure"
            )
            raise QuantityProblem(self.power, text)
        from routecast.lab.benchmark.rig import ModelRig
        from routecast.router.files import read_router_and_load

        model, _ = read_router_and_load(router)
        outages_s = _outages_s(self.outage or [])
        if self.evaluator is EvaluatorName.SOLVE:
            return ModelRig(model=model, with_="solve", seed=seed, outages_s={})
        return ModelRig(model=model, with_="simulate", seed=seed, outages_s=outages_s)


def _outages_s(texts: Sequence[str]) -> dict[str, float]:
    from routecast.errors import QuantityProblem
    from routecast.quantity import parse_duration_s

    outages_s = {}
    for text in texts:
        kind, equals, length = text.partition("=")
        if not equals or not kind.strip():
            raise QuantityProblem(text, f"--outage {text!r}: write KIND=TIME, such as process=250ms")
        outages_s[kind.strip()] = parse_duration_s(length)
    return outages_s


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcedureOptions:
    """The procedures that are run, and how."""

    profile: Annotated[
        str,
        _procedure_option(
            "--profile",
            metavar="NAME|FILE",
            help="rfc2544, quick, ndrpdr, or a profile's file.",
            autocompletion=_profiles,
        ),
    ] = "quick"
    procedures: Annotated[
        str,
        _procedure_option(
            "--procedures",
            metavar="NAME,…",
            help="Some of them, such as throughput,latency; those that they rest on are run as well.",
        ),
    ] = ""
    search: Annotated[Search | None, _procedure_option("--search", help="How throughput is searched.")] = None
    dry_run: Annotated[bool, _procedure_option("--dry-run", help="Say how long it will take, and leave.")] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamOptions:
    """The test streams; without them, all streams of the profile are tested."""

    frame: Annotated[
        list[str] | None,
        _stream_option(
            "--frame",
            "--frames",
            metavar="SIZE",
            help='Frame size or mix: "64 B", IMIX, "genome aaafg", "7x64, 4x594, 1x1518".',
        ),
    ] = None
    bidirectional: Annotated[bool, _stream_option("--bidirectional", help="Both ways (sec. 14).")] = False
    ipv6: Annotated[bool, _stream_option("--ipv6", help="IPv6 instead of IPv4 (RFC 5180).")] = False
    networks: Annotated[int, _stream_option("--networks", min=1, max=256, help="Destination networks (sec. 12).")] = 1
    filters: Annotated[
        int, _stream_option("--filters", min=0, max=1000, help="Filter conditions (sec. 11.4: 1, 25).")
    ] = 0
    broadcast: Annotated[
        bool, _stream_option("--broadcast", help="Every 100th frame is a broadcast frame (sec. 11.1).")
    ] = False
    management: Annotated[
        bool, _stream_option("--management", help="The device answers an SNMP query each second (sec. 11.2).")
    ] = False
    routing_updates: Annotated[
        bool,
        _stream_option("--routing-updates", help="A neighbour changes a route of the device each second (sec. 11.3)."),
    ] = False
    burst: Annotated[
        int, _stream_option("--burst", min=1, max=100_000, help="Frames a burst (sec. 21: 16 … 1024).")
    ] = 1
    flows: Annotated[int, _stream_option("--flows", min=1, max=60_000, help="Flows each way (RFC 4814).")] = 1

    def streams(self) -> Sequence[Stream]:
        """Return the stream that the options describe, nothing without options.

        Raises QuantityProblem: two of the conditions are given.
        """
        from routecast.errors import QuantityProblem
        from routecast.lab.benchmark.streams import StreamProfile, stream_of

        conditions = {
            "broadcast": self.broadcast,
            "management": self.management,
            "routing_updates": self.routing_updates,
        }
        enabled = [name for name, is_on in {**conditions, "filters": self.filters > 0}.items() if is_on]
        if len(enabled) > 1:
            options = " and ".join(f"--{name.replace('_', '-')}" for name in enabled)
            raise QuantityProblem("", f"{options} are separate conditions: give one of them")
        stream = StreamProfile(
            protocol="IPv6" if self.ipv6 else "IPv4",
            bidirectional=self.bidirectional,
            networks=self.networks,
            filters=self.filters,
            burst_frames=self.burst,
            **conditions,
        )
        return () if stream == StreamProfile() else (stream_of(stream),)


@grouped
def rfc2544(
    router: Annotated[
        Path | None, typer.Argument(metavar="[ROUTER.toml]", help="The router, for --evaluator simulate or solve.")
    ] = None,
    *,
    tested: TestedOptions,
    how: ProcedureOptions,
    stream: StreamOptions,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of a simulated model.")] = 1,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="DIR", help="Folder of the results; ./rfc2544-… if not given.", file_okay=False
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the results as one JSON document.")] = False,
) -> None:
    """Run the procedures of RFC 2544 (with RFC 9004, 6201, 8219, 9971) and say in what the run complies.

    Without options for streams, all streams of the profile are tested. An interrupted or killed run continues where it
    stopped if it is started again with the same folder.
    """
    counts = tested.core_counts()
    plan, name = _plan(how, _with_enough_flows(stream, max(count or 1 for count, _ in counts)))
    rigs = [tested.rig(router, seed=seed, core_options=core_options) for _, core_options in counts]
    if how.dry_run or tested.evaluator is EvaluatorName.MEASURE:
        _print_plan(plan)
        if len(counts) > 1:
            remark(f"This runs {len(counts)} times: for {', '.join(str(count) for count, _ in counts)} cores")
    if how.dry_run:
        return
    root = out or Path(f"{name}-{tested.name(router)}")
    results: list[BenchmarkResult] = []
    points: list[Point] = []
    for (count, _), rig in zip(counts, rigs, strict=True):
        folder = root / f"cores-{count}" if len(counts) > 1 else root
        results.append(_run(plan, rig, folder, as_json=as_json))
        points += _write_points(results[-1], count, root, points)
    if as_json:
        print_json(results[0].to_json() if len(results) == 1 else {"runs": [result.to_json() for result in results]})


def _with_enough_flows(stream: StreamOptions, max_cores: int) -> StreamOptions:
    """Return the streams with a number of flows that gives work to all cores, unless a number is given."""
    if stream.flows != 1 or max_cores <= 1:
        return stream
    remark(f"{FLOWS_OF_SEVERAL_CORES:,} flows are sent, so that a hash spreads them evenly over the cores")
    return replace(stream, flows=FLOWS_OF_SEVERAL_CORES)


def _plan(how: ProcedureOptions, stream: StreamOptions) -> tuple[Plan, str]:
    """Return the plan of the procedures, and the name of its profile."""
    from routecast.lab.benchmark.plan import plan_of
    from routecast.lab.benchmark.profile import read_profile
    from routecast.lab.benchmark.values import parse_frames

    profile = read_profile(how.profile)
    frames = [parse_frames(text) for text in stream.frame or ()]
    plan = plan_of(
        profile,
        procedures=[name.strip() for name in how.procedures.split(",") if name.strip()],
        frame_bytes=[size for size in frames if isinstance(size, int)],
        mixes=[mix for mix in frames if isinstance(mix, str)],
        streams=stream.streams(),
        search=how.search.value if how.search else "",
        flows=stream.flows,
    )
    return plan, profile.name


def _run(plan: Plan, rig: Rig, folder: Path, *, as_json: bool) -> BenchmarkResult:
    """Run the procedures on one rig, print the result unless it is for JSON, and write its report."""
    from routecast.errors import EnvironmentProblem
    from routecast.lab.benchmark.page import write_report
    from routecast.lab.benchmark.run import run_benchmark

    command = shlex.join(["routecast", *sys.argv[1:]])
    try:
        with progress_bar("benchmark") as progress:
            result = run_benchmark(plan, rig, out=folder, on_progress=progress, command=command)
    except (KeyboardInterrupt, EnvironmentProblem):
        trials = folder / "trials.parquet"
        if trials.exists():
            remark(f"Finished trials are in {trials}; the same command continues from there.")
        raise
    if not as_json:
        print_result(result)
    remark(f"Report: {write_report(result, folder)}")
    return result


def _write_points(
    result: BenchmarkResult, cores: int | None, folder: Path, earlier: Sequence[Point]
) -> Sequence[Point]:
    """Write a table of the points of this run and of earlier ones, report what it lacks, and return the new points."""
    from routecast.lab.benchmark.points import points_of, write_points

    if result.setup.evaluator != EvaluatorName.MEASURE.value:
        return ()
    points, reasons = points_of(result, cores=cores)
    for reason in reasons:
        remark(f"No row of points.csv: {reason}")
    if points:
        path = write_points([*earlier, *points], folder)
        remark(f"Maximum forwarding rates, for `routecast size`: {path}")
    return points


def _print_plan(plan: Plan) -> None:
    from routecast.lab.benchmark.tables import plan_table

    for note in plan.notes:
        remark(f"Note: {note}")
    print_table_to_stderr(plan_table(plan))


def print_result(result: BenchmarkResult) -> None:
    from routecast.lab.benchmark.procedures import PROCEDURES
    from routecast.lab.benchmark.tables import benchmark_tables

    console = data()
    console.print(f"{result.setup.device_title}, profile {result.profile_name}", style="bold", markup=False)
    console.print(f"{result.setup.medium}; {len(result.trials):,} trials\n", markup=False)
    for sentence in result.disturbed:
        console.print(f"{sentence[:1].upper()}{sentence[1:]}.", markup=False, style="bold yellow")
    for text in result.contradictions:
        console.print(f"Contradiction: {text}.", markup=False, style="bold")
    for table in benchmark_tables(result):
        print_table(console, table)
    for name in result.procedures:
        for answer in PROCEDURES[name].answers(result.by_procedure[name]):
            console.print(answer.replace("**", ""), markup=False)
    for note in result.notes:
        console.print(f"Note: {note}.", markup=False, style="dim")
    if result.invalid_trials:
        console.print(f"{result.invalid_trials} trials were invalid and were run again:", markup=False)
        for reason in result.invalid_reasons:
            console.print(f"  {reason}", markup=False)
    console.print(result.compliance.statement, markup=False, style="bold")
