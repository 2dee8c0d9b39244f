"""``routecast function``: what a network function costs on a host, from its elementary operations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from routecast.cli.console import data, print_json
from routecast.cli.function.case import Case, read_case
from routecast.errors import ModelProblem, Problem

if TYPE_CHECKING:
    from pathlib import Path

    from routecast.evaluate.trial import Trial
    from routecast.load.frames import FrameMix

__all__ = ["function"]

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
        int | None,
        typer.Option("--flows", min=1, metavar="N", help="Number of flows.", rich_help_panel=_TRAFFIC),
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
            "--refine",
            help="Correct the probed host's file by what --run measures.",
            rich_help_panel=_ANSWER,
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
            help="Offered rate of --simulate and --run; else 80 % of the estimate, and as fast as it goes.",
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
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of all randomness.")] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Estimate a network function on a host: cycles by operation, throughput, what limits it.

    Without a name, lists the functions that ship.
    """
    from routecast.cli.function.lists import (
        functions_document,
        functions_table,
        operations_document,
        registry_table,
    )
    from routecast.cli.tables import print_table
    from routecast.load.frames import FrameMix
    from routecast.quantity import parse_duration_s, parse_rate_pps

    if operations or name is None:
        if as_json:
            print_json(operations_document() if operations else functions_document())
        else:
            print_table(data(), registry_table() if operations else functions_table())
        return
    _check_options(
        estimate_only={"--remote": bool(remote), "--simulate": simulate},
        real={"--run": run, "--refine": refine, "--counts": counts},
        timed={"--load": load is not None, "--duration": duration is not None},
        simulate=simulate,
    )
    case = read_case(name, on, cores, traffic, flows, table or [], _PAPER_GIGA if paper_giga else 1e9)
    frames = [FrameMix.parse(text) for text in frame or ["64 B"]]
    load_pps = parse_rate_pps(load) if load else None
    duration_s = parse_duration_s(duration) if duration else None
    if run or counts or refine:
        from routecast.cli.function.refine import file_to_refine

        into = file_to_refine(on) if refine else None
        _run(case, direction, frames, load_pps, duration_s, seed, counts=counts, into=into, as_json=as_json)
        return
    trials: list[Trial] = []
    if simulate:
        from routecast.cli.function.simulate import simulated

        trials = [simulated(case, case.estimate(direction, one, remote), load_pps, duration_s, seed) for one in frames]
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
    case: Case,
    direction: str | None,
    frames: Sequence[FrameMix],
    remote: float,
    trials: Sequence[Trial],
) -> None:
    from routecast.cli.function.tables import limits_table, operations_table, throughput_table
    from routecast.cli.tables import print_table
    from routecast.cli.trial import print_trial

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
    for note in dict.fromkeys(note for _, found in rows for note in found.notes):
        console.print(f"Note: {note}.", markup=False, style="dim")
    for mix, trial in zip(frames, trials, strict=False):
        console.print(f"Simulated, {mix.name}", style="bold", markup=False)
        print_trial(console, trial)


def _document(
    case: Case,
    direction: str | None,
    frames: Sequence[FrameMix],
    remote: float,
    trials: Sequence[Trial],
) -> dict[str, object]:
    estimates = [
        {
            "kind": "platform" if ratio else "generic",
            **case.estimate(one, mix, ratio).to_json(),
        }
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
        "hardware": hardware,
        "estimates": estimates,
        "simulated": [trial.to_json() for trial in trials],
    }


def _run(
    case: Case,
    direction: str | None,
    frames: Sequence[FrameMix],
    load_pps: float | None,
    duration_s: float | None,
    seed: int,
    *,
    counts: bool,
    into: Path | None,
    as_json: bool,
) -> None:
    from routecast.cli.function.asked import Asked
    from routecast.cli.function.counts import count_function
    from routecast.cli.function.run import run_function

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
        rate_pps=load_pps,
        seed=seed,
        refine=into,
    )
    if counts:
        count_function(asked, as_json=as_json)
    else:
        run_function(asked, case.estimate, as_json=as_json)
