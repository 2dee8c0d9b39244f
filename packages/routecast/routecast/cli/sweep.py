"""``routecast sweep``: a router at every combination of some of its values."""

from __future__ import annotations

import shlex
import sys
from dataclasses import fields, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from routecast.cli.console import (
    check_output_file,
    data,
    print_json,
    print_notes,
    print_table,
    progress_bar,
    refuse_two_forms,
    remark,
)
from routecast.cli.device import GraphicsOptions
from routecast.cli.options import AsCsv, AsJson, ModelLoadOptions, RouterFile, Seed, frames_option, grouped
from routecast.errors import FileProblem, Problem, QuantityProblem

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from routecast.evaluate.sweep import Settings, Sweep
    from routecast.load.offered import OfferedLoad
    from routecast.router.model import RouterModel

__all__ = ["sweep"]


class _Only(StrEnum):
    SIMULATE = "simulate"


_PLACEHOLDER_RATE = "1 pps"
"""The rate of the load has no effect where the sweep searches for the greatest rates."""


@grouped
def sweep(
    file: RouterFile,
    *,
    vary: Annotated[
        list[str] | None,
        typer.Option(
            "--vary",
            metavar="KEY=VALUES",
            help="What varies: cores=1..16, frame=64,512,IMIX, load, flows, or a place in the file; may be repeated.",
        ),
    ] = None,
    load: ModelLoadOptions,
    simulate: Annotated[bool, typer.Option("--simulate", help="Simulate each point beside the closed form.")] = False,
    duration: Annotated[
        str | None,
        typer.Option(
            "--duration", metavar="TIME", help="--simulate: simulated time; 20 ms, or what the transient needs."
        ),
    ] = None,
    only: Annotated[
        _Only | None, typer.Option("--only", help="--simulate: leave the closed form out, where points are many.")
    ] = None,
    where: GraphicsOptions,
    seed: Seed = 1,
    as_csv: AsCsv = False,
    as_json: AsJson = False,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE.html", help="Write a page with the figure.", dir_okay=False),
    ] = None,
) -> None:
    """Vary cores, frames, the load or any field of a router: the rates at each combination, and what limits.

    Without a load, find the greatest rates with and without loss; with a load, throughput, loss and latency. The flows
    follow the cores unless their number is given.
    """
    from routecast.evaluate.sweep import parse_varied
    from routecast.evaluate.sweep import sweep as evaluate
    from routecast.quantity import parse_duration_s
    from routecast.quantity.bounded_file import read_text
    from routecast.quantity.toml_file import parse_toml

    refuse_two_forms(as_csv=as_csv, as_json=as_json)
    if duration is not None and not simulate and only is None:
        raise QuantityProblem(duration, "--duration is the time that is simulated: give --simulate too")
    where.check()
    simulates = simulate or only is not None
    if where.device is not None and not simulates:
        raise QuantityProblem("", "--device says where trials are simulated: give --simulate too")
    check_output_file(out, "--out", ".html")
    document = parse_toml(read_text(file, kind="router file"), str(file))
    varied = parse_varied(vary or (), document, subject=str(file))
    keys = {axis.key for axis in varied}
    _refuse_twice(keys, load)
    has_load = bool(load.load) or "load" in keys

    def offered(settings: Settings, model: RouterModel, default: OfferedLoad | None) -> OfferedLoad:
        return _offered(load, settings, default, ports=len(model.ports), seed=seed)

    with progress_bar("sweep") as progress:
        answer = evaluate(
            document,
            varied,
            offered,
            subject=str(file),
            folder=file.parent,
            frames=frames_option(load.frame),
            has_load=has_load,
            keeps_flows=load.flows is not None or load.random_flows or "flows" in keys,
            simulates=simulates,
            solves=only is None,
            prepare=where.for_many(),
            duration_s=parse_duration_s(duration) if duration else None,
            seed=seed,
            on_progress=progress,
        )
    _print(answer, as_csv=as_csv, as_json=as_json)
    if out is not None:
        options = {
            "--duration": duration,
            "--seed": seed if seed != 1 else None,
            "--simulate": simulate or None,
            "--only": only,
            "--device": where.device,
            "--adapter": where.adapter,
        }
        _write(answer, out, command=_command(file, vary or (), load, options))


def _offered(
    load: ModelLoadOptions, settings: Settings, default: OfferedLoad | None, *, ports: int, seed: int
) -> OfferedLoad:
    """Return the load of one combination; ``default`` is that of the file."""
    from routecast.load.offered import IntendedRate

    flows = settings.get("flows", load.flows)
    options = replace(
        load,
        frame=str(settings["frame"]) if "frame" in settings else load.frame,
        flows=None if flows is None else int(flows),
    )
    if load.is_recording or (load.arrivals is None and default is not None and default.arrivals.trace is not None):
        recorded = options.offered(default, ports=ports, seed=seed)
        if "load" not in settings:
            return recorded
        return recorded.at(IntendedRate.parse(str(settings["load"])).pps(recorded.frames))
    options = replace(options, load=str(settings.get("load", load.load or _PLACEHOLDER_RATE)))
    return options.offered(default, ports=ports, seed=seed)


def _refuse_twice(keys: set[str], load: ModelLoadOptions) -> None:
    for key in ("load", "frame", "flows"):
        if key in keys and getattr(load, key) is not None:
            raise QuantityProblem("", f"--{key} is given, and --vary {key} too: leave one of them out")


def _print(answer: Sweep, *, as_csv: bool, as_json: bool) -> None:
    from routecast.evaluate.sweep_views import sweep_csv, sweep_notes, sweep_table

    if as_json:
        print_json(answer.to_json())
    elif as_csv:
        sys.stdout.write(sweep_csv(answer))
        for note in sweep_notes(answer):
            remark(f"Note: {note}")
    else:
        print_table(data(), sweep_table(answer))
        print_notes(data(), sweep_notes(answer))


def _command(file: Path, vary: Sequence[str], load: ModelLoadOptions, options: Mapping[str, object]) -> str:
    """Return the command line with the options that decide the answer."""
    load_options: dict[str, object] = {
        "--" + option.name.replace("_", "-"): getattr(load, option.name)
        for option in fields(load)
        if getattr(load, option.name) != option.default
    }
    words = ["routecast", "sweep", str(file), *(word for text in vary for word in ("--vary", text))]
    for option, value in {**load_options, **options}.items():
        if value is not None:
            words += [option] if value is True else [option, str(value)]
    return shlex.join(words)


def _write(answer: Sweep, out: Path, *, command: str) -> None:
    from routecast.evaluate.sweep_views import sweep_page
    from routecast.quantity.whole_file import write_whole
    from routecast.show.page import render_page

    try:
        write_whole(out, render_page(sweep_page(answer, command=command)))
    except OSError as problem:
        reason = problem.strerror or problem
        raise FileProblem(str(out), [Problem("--out", f"cannot be written: {reason}")]) from problem
    remark(f"wrote {out}")
