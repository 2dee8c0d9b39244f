"""``routecast benchmark``: benchmarking procedures of the IETF."""

from __future__ import annotations

import shlex
import sys
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from routecast.cli.console import data, print_json, print_table, print_table_to_stderr, progress_bar, remark
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


def streams_of_options(
    *, bidirectional: bool, ipv6: bool, networks: int, filters: int, burst: int, conditions: Mapping[str, bool]
) -> Sequence[Stream]:
    """Return the stream that the options describe, nothing without options; ``conditions`` are fields of the stream."""
    from routecast.errors import QuantityProblem
    from routecast.lab.benchmark.streams import StreamProfile, stream_of

    enabled = [name for name, is_on in {**conditions, "filters": filters > 0}.items() if is_on]
    if len(enabled) > 1:
        options = " and ".join(f"--{name.replace('_', '-')}" for name in enabled)
        raise QuantityProblem("", f"{options} are separate conditions: give one of them")
    stream = StreamProfile(
        protocol="IPv6" if ipv6 else "IPv4",
        bidirectional=bidirectional,
        networks=networks,
        filters=filters,
        burst_frames=burst,
        **conditions,
    )
    return () if stream == StreamProfile() else (stream_of(stream),)


def rig_of_options(
    router: Path | None,
    evaluator: EvaluatorName,
    *,
    testbed: str | None,
    dut: str | None,
    options: Sequence[str],
    encapsulation: str | None,
    outages: Sequence[str],
    own_network: bool,
    share_cores: bool,
    power: str | None,
    seed: int,
) -> Rig:
    """Return the rig of the options: a test bed with a device, or a model with an evaluator.

    Raises RoutecastError: there is nothing to test, the evaluator has no use for an option, or a file is not readable.
    """
    from routecast.errors import QuantityProblem

    if evaluator is EvaluatorName.MEASURE:
        if router is not None:
            text = f"{router}: a model is answered by --evaluator simulate or --evaluator solve"
            raise QuantityProblem(str(router), text)
        if testbed is None and dut is None:
            text = (
                "nothing to test: give --testbed namespaces --dut linux, or a *.testbed.toml, "
                "or --evaluator simulate ROUTER.toml"
            )
            raise QuantityProblem("", text)
        if outages:
            raise QuantityProblem(outages[0], "--outage is for a simulated model: a device is really reset")
        from routecast.lab.benchmark.bed_rig import BedRig
        from routecast.lab.testbed.opening import parse_device_options

        return BedRig(
            testbed or "namespaces",
            device=dut,
            options=parse_device_options(options),
            encapsulation=encapsulation,
            own_network=own_network,
            share_cores=share_cores,
            power=power,
            on_remark=remark,
        )
    if router is None:
        name = evaluator.value
        raise QuantityProblem("", f"--evaluator {name} answers for a model: give a ROUTER.toml as argument")
    if testbed is not None or dut is not None:
        raise QuantityProblem("", f"--testbed and --dut are for --evaluator measure, not {evaluator.value}")
    if encapsulation is not None:
        raise QuantityProblem("", f"--encapsulation is for --evaluator measure: {evaluator.value} knows frames alone")
    if power is not None:
        text = f"--power {power}: a model's watts come from its power states; a meter is for --evaluator measure"
        raise QuantityProblem(power, text)
    from routecast.lab.benchmark.rig import ModelRig
    from routecast.router.files import read_router_and_load

    model, _ = read_router_and_load(router)
    outages_s = _outages_s(outages)
    if evaluator is EvaluatorName.SOLVE:
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


def rfc2544(
    router: Annotated[
        Path | None, typer.Argument(metavar="[ROUTER.toml]", help="The router, for --evaluator simulate or solve.")
    ] = None,
    *,
    testbed: Annotated[
        str | None,
        _tested_option(
            "--testbed",
            metavar="FILE|namespaces",
            help="A *.testbed.toml, or namespaces: a test bed on this machine alone.",
        ),
    ] = None,
    dut: Annotated[
        str | None, _tested_option("--dut", metavar="DEVICE", help="Device under test, such as linux.")
    ] = None,
    dut_option: Annotated[
        list[str] | None, _tested_option("--dut-option", metavar="KEY=VALUE", help="Option of the device.")
    ] = None,
    encapsulation: EncapsulationOption = None,
    evaluator: Annotated[EvaluatorName, _tested_option("--evaluator", help="Who answers.")] = EvaluatorName.MEASURE,
    outage: Annotated[
        list[str] | None,
        _tested_option(
            "--outage", metavar="KIND=TIME", help="A reset that a simulated model is given, such as process=250ms."
        ),
    ] = None,
    own_network: Annotated[
        bool, _tested_option("--i-own-this-network", help="Send on interfaces that carry other traffic as well.")
    ] = False,
    share_cores: ShareCoresOption = False,
    power: PowerOption = None,
    cores: CoresOption = None,
    profile: Annotated[
        str,
        _procedure_option(
            "--profile",
            metavar="NAME|FILE",
            help="rfc2544, quick, ndrpdr, or a profile's file.",
            autocompletion=_profiles,
        ),
    ] = "quick",
    procedures: Annotated[
        str,
        _procedure_option(
            "--procedures",
            metavar="NAME,…",
            help="Some of them, such as throughput,latency; those that they rest on are run as well.",
        ),
    ] = "",
    search: Annotated[Search | None, _procedure_option("--search", help="How throughput is searched.")] = None,
    dry_run: Annotated[bool, _procedure_option("--dry-run", help="Say how long it will take, and leave.")] = False,
    frame: Annotated[
        list[str] | None,
        _stream_option(
            "--frame",
            "--frames",
            metavar="SIZE",
            help='Frame size or mix: "64 B", IMIX, "genome aaafg", "7x64, 4x594, 1x1518".',
        ),
    ] = None,
    bidirectional: Annotated[bool, _stream_option("--bidirectional", help="Both ways (sec. 14).")] = False,
    ipv6: Annotated[bool, _stream_option("--ipv6", help="IPv6 instead of IPv4 (RFC 5180).")] = False,
    networks: Annotated[int, _stream_option("--networks", min=1, max=256, help="Destination networks (sec. 12).")] = 1,
    filters: Annotated[
        int, _stream_option("--filters", min=0, max=1000, help="Filter conditions (sec. 11.4: 1, 25).")
    ] = 0,
    broadcast: Annotated[
        bool, _stream_option("--broadcast", help="Every 100th frame is a broadcast frame (sec. 11.1).")
    ] = False,
    management: Annotated[
        bool, _stream_option("--management", help="The device answers an SNMP query each second (sec. 11.2).")
    ] = False,
    routing_updates: Annotated[
        bool,
        _stream_option("--routing-updates", help="A neighbour changes a route of the device each second (sec. 11.3)."),
    ] = False,
    burst: Annotated[
        int, _stream_option("--burst", min=1, max=100_000, help="Frames a burst (sec. 21: 16 … 1024).")
    ] = 1,
    flows: Annotated[int, _stream_option("--flows", min=1, max=60_000, help="Flows each way (RFC 4814).")] = 1,
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
    from routecast.errors import EnvironmentProblem
    from routecast.lab.benchmark.page import write_report
    from routecast.lab.benchmark.plan import plan_of
    from routecast.lab.benchmark.profile import read_profile
    from routecast.lab.benchmark.run import run_benchmark
    from routecast.lab.benchmark.values import parse_frames

    counts = _core_counts(cores, evaluator, testbed, dut, dut_option or [])
    if flows == 1 and max(count or 1 for count, _ in counts) > 1:
        flows = FLOWS_OF_SEVERAL_CORES
        remark(f"{flows:,} flows are sent, so that a hash spreads them evenly over the cores")
    procedure_profile = read_profile(profile)
    frames = [parse_frames(text) for text in frame or ()]
    plan = plan_of(
        procedure_profile,
        procedures=[name.strip() for name in procedures.split(",") if name.strip()],
        frame_bytes=[size for size in frames if isinstance(size, int)],
        mixes=[mix for mix in frames if isinstance(mix, str)],
        streams=streams_of_options(
            bidirectional=bidirectional,
            ipv6=ipv6,
            networks=networks,
            filters=filters,
            burst=burst,
            conditions={"broadcast": broadcast, "management": management, "routing_updates": routing_updates},
        ),
        search=search.value if search else "",
        flows=flows,
    )
    rigs = [
        rig_of_options(
            router,
            evaluator,
            testbed=testbed,
            dut=dut,
            options=[*(dut_option or []), *(f"{name}={value}" for name, value in core_options.items())],
            encapsulation=encapsulation,
            outages=outage or [],
            own_network=own_network,
            share_cores=share_cores,
            power=power,
            seed=seed,
        )
        for _, core_options in counts
    ]
    if dry_run or evaluator is EvaluatorName.MEASURE:
        _print_plan(plan)
        if len(counts) > 1:
            remark(f"This runs {len(counts)} times: for {', '.join(str(count) for count, _ in counts)} cores")
    if dry_run:
        return
    tested = router.name.partition(".")[0] if router else dut or Path(testbed or "namespaces").name.partition(".")[0]
    root = out or Path(f"{procedure_profile.name}-{tested}")
    command = shlex.join(["routecast", *sys.argv[1:]])
    results: list[BenchmarkResult] = []
    points: list[Point] = []
    for (count, _), rig in zip(counts, rigs, strict=True):
        folder = root / f"cores-{count}" if len(counts) > 1 else root
        try:
            with progress_bar("benchmark") as progress:
                result = run_benchmark(plan, rig, out=folder, on_progress=progress, command=command)
        except (KeyboardInterrupt, EnvironmentProblem):
            trials = folder / "trials.parquet"
            if trials.exists():
                remark(f"Finished trials are in {trials}; the same command continues from there.")
            raise
        results.append(result)
        if not as_json:
            print_result(result)
        remark(f"Report: {write_report(result, folder)}")
        points += _write_points(result, count, root, points)
    if as_json:
        print_json(results[0].to_json() if len(results) == 1 else {"runs": [result.to_json() for result in results]})


def _core_counts(
    cores: str | None, evaluator: EvaluatorName, testbed: str | None, dut: str | None, options: Sequence[str]
) -> tuple[tuple[int | None, dict[str, int]], ...]:
    """Return the numbers of cores of the device, each with its options."""
    from routecast.errors import QuantityProblem
    from routecast.lab.testbed.opening import parse_device_options

    if cores is None:
        return ((None, {}),)
    if evaluator is not EvaluatorName.MEASURE:
        message = f"--cores {cores}: the cores of a model stand in its file; --cores is for --evaluator measure"
        raise QuantityProblem(cores, message)
    return core_counts(cores, testbed or "namespaces", device=dut, options=parse_device_options(options))


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
