"""``routecast function``: the cost of a network function on a host, estimated or measured."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from routecast.cli.console import data, print_json, print_notes, print_table, print_trial, remark, share_bar
from routecast.cli.options import AsJson, Seed, grouped, ratio_option
from routecast.errors import ModelProblem, Problem
from routecast.wings import require_part

if TYPE_CHECKING:
    from routecast.evaluate.trial import Trial
    from routecast.function.case import Case

__all__ = ["function"]

_traffic_option = partial(typer.Option, rich_help_panel="Traffic")
_answer_option = partial(typer.Option, rich_help_panel="What is answered")


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseOptions:
    """The host of a function, its tables, and the packets that it processes."""

    on: Annotated[
        str | None,
        typer.Option("--on", metavar="HARDWARE", help="Host: a name of `hardware list`, or a *.hardware.toml."),
    ] = None
    direction: Annotated[
        str | None, typer.Option("--direction", metavar="NAME", help="One direction of the function only.")
    ] = None
    frame: Annotated[
        list[str] | None,
        _traffic_option(
            "--frame",
            "--frames",
            metavar="SIZE",
            help='Frame size or mix: "64 B", IMIX, "7x64, 4x594, 1x1518"; may be repeated.',
        ),
    ] = None
    cores: Annotated[int, typer.Option("--cores", min=1, metavar="N", help="Cores that process frames.")] = 1
    traffic: Annotated[
        str,
        _traffic_option(
            "--traffic",
            metavar="TEXT",
            help='Flows and their popularity: uniform, "10 flows", "zipf 1.1", "100k zipf 0.9".',
        ),
    ] = "uniform"
    flows: Annotated[int | None, _traffic_option("--flows", min=1, metavar="N", help="Number of flows.")] = None
    table: Annotated[
        list[str] | None,
        typer.Option("--table", metavar="NAME=ENTRIES", help="Size of a table, such as mac=2Mi; may be repeated."),
    ] = None
    remote: Annotated[
        float,
        ratio_option(
            "--remote",
            help="Share of packets in the other socket's L3: adds the platform-specific estimate.",
            bounds={"zero_allowed": True, "one_allowed": True},
            rich_help_panel="Traffic",
        ),
    ] = 0.0
    paper_giga: Annotated[
        bool, typer.Option("--paper-giga", help="Count 1 GHz as 1024 MHz, as Baldi & Sapio 2018 do.")
    ] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerOptions:
    """What is answered: an estimate, a simulation, or a measurement of the real function."""

    simulate: Annotated[bool, _answer_option("--simulate", help="Simulate the estimated router: latency and loss.")] = (
        False
    )
    run: Annotated[bool, _answer_option("--run", help="Run the real function on this host, beside its estimate.")] = (
        False
    )
    counts: Annotated[
        bool, _answer_option("--counts", help="Count the real function's instructions with valgrind.")
    ] = False
    refine: Annotated[
        bool, _answer_option("--refine", help="Run it, and correct the probed host's file by the result.")
    ] = False
    operations: Annotated[bool, _answer_option("--operations", help="List the elementary operations.")] = False
    load: Annotated[
        str | None,
        _answer_option(
            "--load",
            metavar="RATE",
            help='Rate, "2 Mpps" or "10 Gbit/s", of --simulate (else 80 % of the estimate), --run (else the capacity).',
        ),
    ] = None
    duration: Annotated[
        str | None,
        _answer_option(
            "--duration",
            metavar="TIME",
            help="Duration of --simulate (20 ms, or what the transient needs) and --run (1 s).",
        ),
    ] = None

    def refuse_contradictions(self, *, remote_ratio: float) -> None:
        """Raise ModelProblem if options would have no effect together with the others."""
        given: dict[str, object] = {
            "--run": self.run,
            "--refine": self.refine,
            "--counts": self.counts,
            "--simulate": self.simulate,
            "--remote": remote_ratio,
            "--load": self.load,
            "--duration": self.duration,
        }
        options = [option for option, value in given.items() if value not in (None, False)]
        measurements = [option for option in ("--run", "--refine", "--counts") if option in options]
        refused: dict[str, tuple[str, str]] = {}
        if measurements:
            refused[f"applies to the estimate alone: remove it or {measurements[0]}"] = ("--remote", "--simulate")
        if "--counts" in measurements:
            refused["measures time, and --counts does not: run the command once with each"] = ("--run", "--refine")
        if not {"--simulate", "--run", "--refine"} & set(options):
            refused["applies to --simulate and --run: add one of them, or remove it"] = ("--load", "--duration")
        problems = [Problem(name, message) for message, names in refused.items() for name in names if name in options]
        if problems:
            raise ModelProblem("routecast function", problems)


@grouped
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
    case: CaseOptions,
    answer: AnswerOptions,
    seed: Seed = 1,
    as_json: AsJson = False,
) -> None:
    """Estimate a network function on a host: cycles by operation, throughput, what limits it.

    Without a name, lists the functions that ship.
    """
    from routecast.hardware.catalogue import probed_file

    if answer.operations or name is None:
        _list(operations=answer.operations, as_json=as_json)
        return
    answer.refuse_contradictions(remote_ratio=case.remote)
    question = _case(name, case, answer, seed)
    if answer.counts:
        require_part("function --counts")(question, as_json=as_json)
    elif answer.run or answer.refine:
        require_part("function --run")(question, probed_file(case.on) if answer.refine else None, as_json=as_json)
    else:
        _estimate(question, simulate=answer.simulate, as_json=as_json)


def _case(name: str, options: CaseOptions, answer: AnswerOptions, seed: int) -> Case:
    """Return the function on the host with the packets of the options."""
    from routecast.function.case import Case, parse_table_sizes
    from routecast.function.chain import read_chain
    from routecast.hardware.catalogue import HOST, default_host, read_hardware
    from routecast.load.frames import FrameMix
    from routecast.load.offered import IntendedRate
    from routecast.load.popularity import Popularity
    from routecast.quantity import parse_duration_s

    chain, host = read_chain(name), options.on or default_host()
    if options.on is None and host != HOST:
        remark(f"On {host}; to estimate this host, probe it: routecast hardware probe")
    popularity = Popularity.parse(options.traffic)
    return Case(
        function=chain,
        hardware=read_hardware(host),
        direction=options.direction,
        frames=tuple(FrameMix.parse(text) for text in options.frame or ["64 B"]),
        popularity=popularity if options.flows is None else replace(popularity, flows=options.flows),
        tables=parse_table_sizes(options.table or []),
        cores=options.cores,
        remote_ratio=options.remote,
        giga=1024e6 if options.paper_giga else 1e9,
        rate=IntendedRate.parse(answer.load) if answer.load else None,
        duration_s=parse_duration_s(answer.duration) if answer.duration else None,
        seed=seed,
    )


def _list(*, operations: bool, as_json: bool) -> None:
    from routecast.function.catalogue import FUNCTIONS
    from routecast.function.operations import OPERATIONS
    from routecast.function.views import functions_json, functions_table, registry_json, registry_table

    if as_json:
        print_json(registry_json(OPERATIONS.values()) if operations else functions_json(FUNCTIONS.all()))
    else:
        print_table(data(), registry_table(OPERATIONS.values()) if operations else functions_table(FUNCTIONS.all()))


def _estimate(case: Case, *, simulate: bool, as_json: bool) -> None:
    from routecast.evaluate.estimated_trial import estimated_trial
    from routecast.function.stated import stated_reasons
    from routecast.function.views import case_tables, stated_table

    trials: list[Trial] = []
    for frames in case.frames if simulate else ():
        with share_bar(f"simulating {case.function.name}") as on_progress:
            trials.append(estimated_trial(case, frames, on_progress))
    if as_json:
        print_json({**case.to_json(), "simulated": [trial.to_json() for trial in trials]})
        return
    console = data()
    for table in case_tables(case):
        print_table(console, table)
    if choices := case.function.chosen_in_sight:
        console.print(f"Chosen in sight of what is stated: {choices}.", markup=False, style="dim")
    print_notes(console, dict.fromkeys(f"{note}." for estimate in case.estimates() for note in estimate.estimate.notes))
    if rows := case.stated():
        print_table(console, stated_table(rows))
        for reason in stated_reasons(rows):
            console.print(reason, markup=False, style="dim")
    for frames, trial in zip(case.frames, trials, strict=False):
        console.print(f"Simulated, {frames.name}", style="bold", markup=False)
        print_trial(console, trial)
