"""``routecast function``: what a network function costs on a host, estimated or run for real."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from routecast.cli.console import data, print_json, progress_bar, remark
from routecast.cli.options import AsJson, Seed
from routecast.errors import ModelProblem, Problem, QuantityProblem, TransientProblem
from routecast.quantity.schema import field, value

if TYPE_CHECKING:
    from routecast.calibration.refine import Refined
    from routecast.evaluate.trial import Trial
    from routecast.function.estimate import Estimate
    from routecast.function.model import NetworkFunction
    from routecast.function.stated import Beside
    from routecast.hardware.model import Hardware, MeasuredFunction
    from routecast.load.frames import FrameMix
    from routecast.load.offered import IntendedRate, OfferedLoad
    from routecast.load.popularity import Popularity
    from routecast.testbed.function_views import FunctionRun
    from routecast.testbed.in_memory import InMemory

__all__ = ["function"]


_ANY_RATE_PPS = 1e6
"""A saturated run has no rate; an offered load must have one."""


@value
class Asked:
    """What the command line asks to be run."""

    function: NetworkFunction
    hardware: Hardware = field("What the estimate is for")
    directions: tuple[str, ...] = field("Names of its directions, each run by itself")
    frames: tuple[FrameMix, ...] = field("Each run by itself")
    popularity: Popularity
    tables: Mapping[str, int] = field("Entries by table; the others keep the function's own", default_factory=dict)
    cores: int = 1
    duration_s: float = field("Of each run", default=1.0)
    rate: IntendedRate | None = field("Offered rate; None: as fast as it goes", default=None)
    seed: int = 1
    refine: Path | None = field(
        "The hardware's file, to be corrected by what is measured; None: left alone", default=None
    )


def evaluator_of(asked: Asked, direction: str, progress: Callable[[float], object] | None = None) -> InMemory:
    """Return what runs a direction of the function.

    Raises
    ------
    routecast.errors.ModelProblem
        The function does not run for real.
    routecast.errors.EnvironmentProblem
        There are not the cores.
    """
    import os

    from routecast.errors import EnvironmentProblem, ModelProblem, Problem
    from routecast.function.catalogue import function_names, read_function
    from routecast.testbed.in_memory import InMemory

    function = asked.function
    if not function.runs_as:
        real = ", ".join(name for name in function_names() if read_function(name).runs_as)
        what = f"is an estimate only; those that run for real are {real}"
        raise ModelProblem(f"function {function.name!r}", [Problem("runs_as", what)])
    processors = sorted(os.sched_getaffinity(0))
    if asked.cores > len(processors):
        there = f"this process may use {len(processors)}"
        raise EnvironmentProblem(f"{asked.cores} cores are asked for, {there}: ask for fewer with --cores")
    return InMemory(
        function=function.runs_as,
        direction=direction,
        tables={table.name: asked.tables.get(table.name, table.entries) for table in function.tables},
        popularity=asked.popularity,
        cores=tuple(processors[: asked.cores]),
        saturate=asked.rate is None,
        seed=asked.seed,
        progress=progress,
    )


def load_of(asked: Asked, direction: str, frames: FrameMix) -> OfferedLoad:
    """Return what is offered; frames that are too short for the direction's headers are as long as they must be."""
    from dataclasses import replace

    from routecast.load.offered import OfferedLoad

    least = next(one.smallest_frame_bytes for one in asked.function.directions if one.name == direction)
    frames = replace(frames, sequence_bytes=tuple(max(size, least) for size in frames.sequence_bytes))
    return OfferedLoad(rate_pps=asked.rate.pps(frames) if asked.rate else _ANY_RATE_PPS, frames=frames)


_PAPER_HOST = "xeon-e5-2690v2"
_TABLE = re.compile(r"(?P<name>\w+)\s*=\s*(?P<number>\d[\d_,]*(?:\.\d+)?)\s*(?P<prefix>[kKMG]i?|)", re.ASCII)
_PREFIXES = {"": 1, "k": 10**3, "K": 10**3, "M": 10**6, "G": 10**9, "ki": 2**10, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What is estimated, everything but direction and frames."""

    function: NetworkFunction
    hardware: Hardware
    cores: int
    popularity: Popularity
    tables: Mapping[str, int]
    giga: float

    def estimate(self, direction: str | None, frames: FrameMix, remote_ratio: float = 0.0) -> Estimate:
        """Return the estimate of a direction, or of all, at these frames."""
        from routecast.function.estimate import estimate

        return estimate(
            self.function,
            self.hardware,
            direction=direction,
            frame_bytes=frames,
            cores=self.cores,
            popularity=self.popularity,
            tables=self.tables,
            remote_ratio=remote_ratio,
            giga=self.giga,
        )


def read_case(
    name: str, on: str | None, cores: int, traffic: str, flows: int | None, tables: Sequence[str], giga: float
) -> Case:
    """Read what the options name; without ``--on`` it is this host, or the paper's if this one was not probed.

    Raises
    ------
    routecast.errors.RoutecastError
        A file or an option says something wrong.
    """
    from routecast.function.chain import read_chain
    from routecast.hardware.catalogue import HOST, host_file, read_hardware
    from routecast.load.popularity import Popularity

    chain = read_chain(name)
    if on is None:
        on = HOST if host_file().is_file() else _PAPER_HOST
        if on == _PAPER_HOST:
            remark(f"On {on}; to estimate this host, probe it: routecast hardware probe")
    popularity = Popularity.parse(traffic)
    return Case(
        function=chain,
        hardware=read_hardware(on),
        cores=cores,
        popularity=replace(popularity, flows=flows) if flows is not None else popularity,
        tables=dict(_table(text) for text in tables),
        giga=giga,
    )


def _table(text: str) -> tuple[str, int]:
    match = _TABLE.fullmatch(text.strip()) if len(text) <= 200 else None
    if match is None:
        raise QuantityProblem(
            text, f'got --table {text[:60]!r}: NAME=ENTRIES is wanted, such as "mac=2Mi" (k M G Ki Mi Gi)'
        )
    entries = float(match["number"].replace("_", "").replace(",", "")) * _PREFIXES[match["prefix"]]
    if entries != round(entries) or not 1 <= entries <= 2**40:
        raise QuantityProblem(text, f"got --table {text!r}: a whole number of entries, 1 to 2^40")
    return match["name"], round(entries)


_PAPER_GIGA = 1024e6
_TRAFFIC = "Traffic"
_ANSWER = "What is answered"


def function(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME|FILE]",
            help="A function that ships, a *.function.toml, or several in a row: acl_firewall,nat44.",
            show_default=False,
        ),
    ] = None,
    *,
    on: Annotated[
        str | None,
        typer.Option("--on", metavar="HARDWARE", help="Host: a name of `hardware list`, or a *.hardware.toml."),
    ] = None,
    direction: Annotated[
        str | None, typer.Option("--direction", metavar="NAME", help="One direction of the function only.")
    ] = None,
    frame: Annotated[
        list[str] | None,
        typer.Option(
            "--frame",
            metavar="SIZE",
            help='Frame size or mix: "64 B", IMIX, "7x64, 4x594, 1x1518"; may be repeated.',
            rich_help_panel=_TRAFFIC,
        ),
    ] = None,
    cores: Annotated[int, typer.Option("--cores", min=1, metavar="N", help="Cores that process frames.")] = 1,
    traffic: Annotated[
        str,
        typer.Option(
            "--traffic",
            metavar="TEXT",
            help='Which flow a packet is of: uniform, "10 flows", "zipf 1.1", "100k zipf 0.9".',
            rich_help_panel=_TRAFFIC,
        ),
    ] = "uniform",
    flows: Annotated[
        int | None, typer.Option("--flows", min=1, metavar="N", help="Number of flows.", rich_help_panel=_TRAFFIC)
    ] = None,
    table: Annotated[
        list[str] | None,
        typer.Option("--table", metavar="NAME=ENTRIES", help="Size of a table, such as mac=2Mi; may be repeated."),
    ] = None,
    remote: Annotated[
        float,
        typer.Option(
            "--remote",
            min=0.0,
            max=1.0,
            metavar="RATIO",
            help="Share of packets in the other socket's L3: adds the platform-specific estimate.",
            rich_help_panel=_TRAFFIC,
        ),
    ] = 0.0,
    paper_giga: Annotated[
        bool, typer.Option("--paper-giga", help="Take 1 GHz for 1024 MHz, as Baldi & Sapio 2018 do.")
    ] = False,
    simulate: Annotated[
        bool,
        typer.Option("--simulate", help="Simulate the estimated router: latency and loss.", rich_help_panel=_ANSWER),
    ] = False,
    run: Annotated[
        bool,
        typer.Option("--run", help="Run the real function on this host, beside its estimate.", rich_help_panel=_ANSWER),
    ] = False,
    counts: Annotated[
        bool,
        typer.Option("--counts", help="Count the real function's instructions with valgrind.", rich_help_panel=_ANSWER),
    ] = False,
    refine: Annotated[
        bool,
        typer.Option(
            "--refine", help="Correct the probed host's file by what --run measures.", rich_help_panel=_ANSWER
        ),
    ] = False,
    operations: Annotated[
        bool, typer.Option("--operations", help="List the elementary operations.", rich_help_panel=_ANSWER)
    ] = False,
    load: Annotated[
        str | None,
        typer.Option(
            "--load",
            metavar="RATE",
            help='Of --simulate and --run, "2 Mpps" or "10 Gbit/s"; else 80 % of the estimate, or as fast as it goes.',
            rich_help_panel=_ANSWER,
        ),
    ] = None,
    duration: Annotated[
        str | None,
        typer.Option(
            "--duration",
            metavar="TIME",
            help="Of --simulate (20 ms, or what the transient needs) and --run (1 s).",
            rich_help_panel=_ANSWER,
        ),
    ] = None,
    seed: Seed = 1,
    as_json: AsJson = False,
) -> None:
    """Estimate a network function on a host: cycles by operation, throughput, what limits it.

    Without a name, lists the functions that ship.
    """
    from routecast.cli.console import print_table
    from routecast.function.operations import OPERATIONS
    from routecast.function.views import functions_table, registry_table
    from routecast.load.frames import FrameMix
    from routecast.load.offered import IntendedRate
    from routecast.quantity import parse_duration_s

    if operations or name is None:
        if as_json:
            print_json(operations_document() if operations else functions_document())
        else:
            print_table(data(), registry_table(OPERATIONS.values()) if operations else functions_table(_shipped()))
        return
    _check_options(
        estimate_only={"--remote": bool(remote), "--simulate": simulate},
        real={"--run": run, "--refine": refine, "--counts": counts},
        timed={"--load": load is not None, "--duration": duration is not None},
        simulate=simulate,
    )
    case = read_case(name, on, cores, traffic, flows, table or [], _PAPER_GIGA if paper_giga else 1e9)
    frames = [FrameMix.parse(text) for text in frame or ["64 B"]]
    rate = IntendedRate.parse(load) if load else None
    duration_s = parse_duration_s(duration) if duration else None
    if run or counts or refine:
        into = file_to_refine(on) if refine else None
        _run(case, direction, frames, rate, duration_s, seed, counts=counts, into=into, as_json=as_json)
        return
    trials: list[Trial] = []
    if simulate:
        trials = [simulated(case, case.estimate(direction, one, remote), rate, duration_s, seed) for one in frames]
    if as_json:
        print_json(_document(case, direction, frames, remote, trials))
        return
    _print(case, direction, frames, remote, trials)


def _check_options(
    *, estimate_only: Mapping[str, bool], real: Mapping[str, bool], timed: Mapping[str, bool], simulate: bool
) -> None:
    """Refuse options that the answer would leave out of account; each mapping says which are given."""
    asked = [name for name, given in real.items() if given]
    problems = []
    if asked:
        what = f"is of the estimate alone: leave it or {asked[0]} out"
        problems += [Problem(name, what) for name, given in estimate_only.items() if given]
    if real["--counts"]:
        what = "measures time, which --counts does not: ask for one after the other"
        problems += [Problem(name, what) for name in asked if name != "--counts"]
    if not simulate and not real["--run"] and not real["--refine"]:
        what = "is of --simulate and --run: add one of them, or leave it out"
        problems += [Problem(name, what) for name, given in timed.items() if given]
    if problems:
        raise ModelProblem("routecast function", problems)


def _named(case: Case, direction: str | None) -> list[tuple[str, str | None]]:
    """Return what is estimated: (name in tables, direction); several directions also together."""
    names = [one.name for one in case.function.directions]
    if direction is not None:
        from routecast.function.estimate import chosen_directions

        return [(names[number], names[number]) for number in chosen_directions(case.function, direction)]
    if len(names) == 1:
        return [(names[0], None)]
    return [*((name, name) for name in names), ("together", None)]


def _print(
    case: Case, direction: str | None, frames: Sequence[FrameMix], remote: float, trials: Sequence[Trial]
) -> None:
    from routecast.cli.console import print_table, print_trial
    from routecast.function.views import limits_table, operations_table, throughput_table

    console = data()
    whole = case.estimate(direction, frames[0], remote)
    if len(frames) == 1:
        for name in dict.fromkeys(one.direction for one in whole.operations):
            title = f"{case.function.title or case.function.name} on {case.hardware.name}"
            if len(case.function.directions) > 1:
                title += f", {name}"
            print_table(console, operations_table(whole, name, title))
    rows = []
    for mix in frames:
        for name, one in _named(case, direction):
            if remote:
                rows.append((f"{name}, generic", case.estimate(one, mix)))
                rows.append((f"{name}, platform", case.estimate(one, mix, remote)))
            else:
                rows.append((name, case.estimate(one, mix)))
    print_table(console, throughput_table(rows))
    if len(frames) == 1:
        print_table(console, limits_table(whole))
    if case.function.chosen_in_sight:
        known = f"Chosen in sight of what is stated: {case.function.chosen_in_sight}."
        console.print(known, markup=False, style="dim")
    for note in dict.fromkeys(note for _, found in rows for note in found.notes):
        console.print(f"Note: {note}.", markup=False, style="dim")
    _print_stated(case, direction)
    for mix, trial in zip(frames, trials, strict=False):
        console.print(f"Simulated, {mix.name}", style="bold", markup=False)
        print_trial(console, trial)


def _stated(case: Case, direction: str | None) -> tuple[Beside, ...]:
    from routecast.function.stated import beside_stated

    asked = None if direction is None else [name for name, _ in _named(case, direction)]
    return beside_stated(case.function, case.hardware, directions=asked, giga=case.giga)


def _print_stated(case: Case, direction: str | None) -> None:
    """Print what the source states of the function on this host, and why ours differs."""
    from routecast.cli.console import print_table
    from routecast.function.views import stated_table

    rows = _stated(case, direction)
    if not rows:
        return
    console = data()
    print_table(console, stated_table(rows))
    for why in dict.fromkeys(one.stated.unknown or one.stated.why for one in rows):
        if why:
            of = dict.fromkeys(
                f"{one.stated.value:.10g} {one.stated.unit}"
                for one in rows
                if why in (one.stated.unknown, one.stated.why)
            )
            console.print(f"{', '.join(of)}: {why}.", markup=False, style="dim")


def _document(
    case: Case, direction: str | None, frames: Sequence[FrameMix], remote: float, trials: Sequence[Trial]
) -> dict[str, object]:
    estimates = [
        {"kind": "platform" if ratio else "generic", **case.estimate(one, mix, ratio).to_json()}
        for mix in frames
        for _, one in _named(case, direction)
        for ratio in ((0.0, remote) if remote else (0.0,))
    ]
    hardware = {
        "name": case.hardware.name,
        "title": case.hardware.title,
        "cores": case.hardware.cpu.cores,
        "sockets": case.hardware.cpu.sockets,
        "frequency_hz": case.hardware.cpu.frequency_hz,
    }
    return {
        "function": case.function.name,
        "title": case.function.title,
        "chosen_in_sight": case.function.chosen_in_sight or None,
        "hardware": hardware,
        "estimates": estimates,
        "stated": [one.to_json() for one in _stated(case, direction)],
        "simulated": [trial.to_json() for trial in trials],
    }


def _run(
    case: Case,
    direction: str | None,
    frames: Sequence[FrameMix],
    rate: IntendedRate | None,
    duration_s: float | None,
    seed: int,
    *,
    counts: bool,
    into: Path | None,
    as_json: bool,
) -> None:
    asked = Asked(
        function=case.function,
        hardware=case.hardware,
        directions=tuple(one for _, one in _named(case, direction) if one is not None)
        or (case.function.directions[0].name,),
        frames=tuple(frames),
        popularity=case.popularity,
        tables=case.tables,
        cores=case.cores,
        duration_s=duration_s or 1.0,
        rate=rate,
        seed=seed,
        refine=into,
    )
    if counts:
        count_function(asked, as_json=as_json)
    else:
        run_function(asked, case.estimate, as_json=as_json)


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
            {"direction": direction, "frames": frames.name, "frame_bytes": frames.mean_bytes, **asdict(counts)}
            for direction, frames, counts in counted
        ]
        print_json({"function": asked.function.name, "counts": rows})
        return
    from routecast.cli.console import print_table
    from routecast.testbed.function_views import counts_table

    print_table(data(), counts_table(_titled(asked), counted))


def _shipped() -> list[NetworkFunction]:
    from routecast.function.catalogue import function_names, read_function

    return [read_function(name) for name in function_names()]


def functions_document() -> dict[str, object]:
    """Return the functions that ship as plain data."""
    return {
        "functions": [
            {
                "name": one.name,
                "title": one.title,
                "directions": [direction.name for direction in one.directions],
                "tables": {table.name: table.entries for table in one.tables},
                "runs_as": one.runs_as or None,
                "source": one.source,
            }
            for one in _shipped()
        ]
    }


def operations_document() -> dict[str, object]:
    """Return the elementary operations as plain data."""
    from routecast.function.operations import OPERATIONS

    return {
        "operations": [
            {
                "name": one.name,
                "meaning": one.meaning,
                "table_1_row": one.row,
                "source": one.source,
                "parameters": [
                    {
                        "name": parameter.name,
                        "meaning": parameter.meaning,
                        "unit": parameter.unit,
                        "least": parameter.least,
                        "most": parameter.most if math.isfinite(parameter.most) else None,
                        "default": parameter.default,
                    }
                    for parameter in one.parameters.values()
                ],
            }
            for one in OPERATIONS.values()
        ]
    }


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
    if asked.rate is not None:
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
    from routecast.calibration.refine import refine
    from routecast.hardware.catalogue import write_hardware

    refined = refine(hardware, measured)
    write_hardware(refined.hardware, path)
    return refined


def run_function(asked: Asked, estimates: Callable[[str, FrameMix], Estimate], *, as_json: bool = False) -> None:
    """Run the real function for every direction and frame size and print it beside its estimate.

    Parameters
    ----------
    asked : Asked
    estimates : callable
        Gives the estimate of a direction at a frame size, everything else as asked.
    as_json : bool
        One JSON document instead of tables.

    Raises
    ------
    routecast.errors.ModelProblem
        The function does not run for real, or not like that.
    routecast.errors.EnvironmentProblem
        There is not the memory, or there are not the cores.
    """
    if asked.refine is not None:
        check_refining(asked)
    cases = [(direction, frames) for direction in asked.directions for frames in asked.frames]
    ran: list[FunctionRun] = []
    with progress_bar(f"running {asked.function.name}") as report:
        for number, (direction, frames) in enumerate(cases):

            def heard(share: float, done: int = number) -> None:
                report(round(100.0 * (done + share)), 100 * len(cases), "")

            ran.append(_run_run(asked, direction, frames, estimates, heard))
    refined = None
    if asked.refine is not None:
        measured = [
            measured_function(asked, one.direction, one.frames, 1e-9 * one.run_ns, one.outcome["pass_s"]) for one in ran
        ]
        refined = refine_file(asked.hardware, measured, asked.refine)
    if as_json:
        document: dict[str, object] = {"function": asked.function.name, "runs": [_run_document(one) for one in ran]}
        if refined is not None:
            document["refined"] = {
                "file": str(asked.refine),
                "before_ratio": list(refined.before_ratio),
                "after_ratio": list(refined.after_ratio),
            }
        print_json(document)
        return
    _run_print(asked, ran)
    if refined is not None:
        before, after = (_worst(errors) for errors in (refined.before_ratio, refined.after_ratio))
        held = f"{len(refined.after_ratio)} measurement" + ("s" if len(refined.after_ratio) > 1 else "")
        remark(
            f"{asked.refine} holds {held}; the estimate that is furthest off "
            f"was so by {before:.1%}, and is by {after:.1%} now"
        )


def _run_run(
    asked: Asked,
    direction: str,
    frames: FrameMix,
    estimates: Callable[[str, FrameMix], Estimate],
    progress: Callable[[float], object],
) -> FunctionRun:
    from routecast.testbed.function_views import FunctionRun

    evaluator = evaluator_of(asked, direction, progress)
    load = load_of(asked, direction, frames)
    estimate = None if _without_cost(asked, direction) else estimates(direction, frames)
    outcome = evaluator.run(load, asked.duration_s, hand_loop=asked.rate is None)
    return FunctionRun(
        direction=direction,
        frames=frames,
        estimate=estimate,
        estimated_pps=min(estimate.limit_pps("core"), estimate.limit_pps("memory")) if estimate else math.nan,
        alone_s=_alone_s(estimate, asked.hardware) if estimate else math.nan,
        trial=evaluator.trial_of(load, asked.duration_s, outcome),
        outcome=outcome,
    )


def _worst(errors: Sequence[float]) -> float:
    return max((abs(error) for error in errors), default=math.nan)


def _without_cost(asked: Asked, direction: str) -> list[str]:
    """Return the operations of a direction that the hardware does not know: there can be no estimate."""
    from routecast.function.estimate import in_the_manner_of

    function = in_the_manner_of(asked.hardware, asked.function)
    steps = next(one.steps for one in function.directions if one.name == direction)
    return sorted({step.operation for step in steps} - asked.hardware.operations.keys())


def _run_print(asked: Asked, ran: Sequence[FunctionRun]) -> None:
    from routecast.cli.console import print_table, print_trial
    from routecast.function.views import cores_said
    from routecast.testbed.function_views import runs_table

    console = data()
    title = f"{_titled(asked)}: estimate and run, {cores_said(asked.cores)}, {asked.popularity}"
    print_table(console, runs_table(title, ran, asked.cores))
    missing = sorted({name for one in ran for name in _without_cost(asked, one.direction)})
    if missing:
        remark(
            f"{asked.hardware.name} gives no cost of {', '.join(missing)}, so there is no estimate: probe this host "
            "(routecast hardware probe) and leave --on out"
        )
    if asked.rate is not None:
        for one in ran:
            console.print(f"{_name(asked, one.direction)}, {one.frames.name}", style="bold", markup=False)
            print_trial(console, one.trial)
        return
    for note in dict.fromkeys(note for one in ran for note in one.trial.notes):
        console.print(f"Note: {note}", markup=False, style="dim")


def _titled(asked: Asked) -> str:
    return asked.function.title or asked.function.name


def _name(asked: Asked, direction: str) -> str:
    return asked.function.name if len(asked.directions) == 1 else f"{asked.function.name} {direction}"


def _alone_s(estimate: Estimate, hardware: Hardware) -> float:
    """Return what the lines of tables take one after the other: the bound that memory's latency sets."""
    hz = hardware.cpu.frequency_hz
    cost_s = {level.name: level.line_cycles("dependent", hz) / hz for level in hardware.levels}
    return math.fsum(
        step.share * lines * cost_s[level]
        for step in estimate.operations
        for level, lines in step.table_lines_by_level.items()
    )


def _run_document(one: FunctionRun) -> dict[str, object]:
    return {
        "direction": one.direction,
        "frames": one.frames.name,
        "frame_bytes": one.frames.mean_bytes,
        "estimated_pps": _or_none(one.estimated_pps),
        "measured_pps": one.trial.forwarded_pps,
        "error_ratio": _or_none(one.error_ratio),
        "run_ns": one.run_ns,
        "hand_loop_ns": _or_none(one.hand_ns),
        "alone_ns": _or_none(1e9 * one.alone_s),
        "estimate": one.estimate.to_json() if one.estimate else None,
        "trial": one.trial.to_json(),
        "run": dict(one.outcome),
    }


def _or_none(value: float) -> float | None:
    return value if math.isfinite(value) else None


_LOAD_RATIO = 0.8
_SIMULATED_S = 0.02


def simulated(case: Case, found: Estimate, rate: IntendedRate | None, duration_s: float | None, seed: int) -> Trial:
    """Return a trial of the router that the estimate makes, at ``rate`` or 80 % of its throughput."""
    from routecast.evaluate.simulate import Simulate
    from routecast.load.flows import FlowSet
    from routecast.load.frames import FrameMix
    from routecast.load.offered import OfferedLoad
    from routecast.router.estimated import estimated_router

    sizes = found.frames.share_by_bytes
    by_size = (
        {size: case.estimate(found.direction, FrameMix.fixed(size), found.remote_ratio).packet_cycles for size in sizes}
        if len(sizes) > 1
        else {}
    )
    model = estimated_router(found, case.hardware, by_size=by_size)
    ports = len(model.ports)
    offered = OfferedLoad(
        rate_pps=rate.pps(found.frames) if rate else _LOAD_RATIO * found.pps,
        frames=found.frames,
        flows=FlowSet.crafted(math.lcm(found.cores, ports), ports=ports),
    )
    with progress_bar(f"simulating {found.function}") as report:
        simulator = Simulate(model, seed=seed, on_progress=lambda share: report(round(100.0 * share), 100, ""))
        try:
            return simulator.trial(offered, duration_s or _SIMULATED_S)
        except TransientProblem as problem:
            if duration_s is not None:
                raise
            return simulator.trial(offered, 1.5 * problem.needed_s)
