"""``routecast hardware probe``: what elementary operations cost on this host."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from routecast.cli.console import data, print_json, remark, share_bar
from routecast.cli.options import AsJson, Seed

if TYPE_CHECKING:
    from routecast.lab.probe import Probed

__all__ = ["probe"]

_PATTERNS = ("dependent", "batched", "streamed")


def probe(
    *,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="FILE",
            help="Where to write; this host's own file if not given, which `--on host` names.",
            dir_okay=False,
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="A few seconds instead of most of a minute: fewer sizes and repeats.")
    ] = False,
    cpu: Annotated[int | None, typer.Option("--cpu", metavar="N", min=0, help="The processor to measure on.")] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Refuse a noisy host: write nothing and leave with 1.")
    ] = False,
    seed: Seed = 1,
    as_json: AsJson = False,
) -> None:
    """Measure this host: clock, caches and memory, elementary operations. Takes less than a minute."""
    from routecast.errors import CriterionFailed
    from routecast.hardware.catalogue import check_writable, host_file, write_hardware
    from routecast.lab.probe import probe as probe_host

    path = out or host_file()
    check_writable(path)
    with share_bar("probing this host") as on_progress:
        probed = probe_host(quick=quick, cpu=cpu, seed=seed, on_progress=on_progress)
    if strict and not probed.noise.is_quiet:
        raise CriterionFailed(f"this host is {probed.noise.verdict}; nothing was written (--strict)")
    write_hardware(probed.hardware, path)
    if as_json:
        print_json(_probe_document(probed, path))
    else:
        _print(probed)
    if not probed.noise.is_quiet:
        remark(f"{probed.noise.verdict}: stop what else runs and probe again")
    remark(f"written to {path}")


def _print(probed: Probed) -> None:
    from routecast.cli.console import print_table
    from routecast.hardware.views import probe_tables
    from routecast.quantity.format import format_frequency

    console = data()
    hardware = probed.hardware
    counter = hardware.facts["clock_counter"]
    console.print(hardware.title, style="bold", markup=False)
    console.print(
        f"core clock {format_frequency(hardware.cpu.frequency_hz)} (by {counter}), "
        f"{'quiet' if probed.noise.is_quiet else 'noisy'}, measured for {probed.duration_s:.0f} s\n",
        markup=False,
    )
    for table in probe_tables(hardware):
        print_table(console, table)
    for note in hardware.notes:
        console.print(f"* {note}", markup=False)


def _probe_document(probed: Probed, path: Path) -> dict[str, object]:
    from routecast.evaluate.plain import plain

    hardware = probed.hardware
    hz = hardware.cpu.frequency_hz
    document = {
        "file": str(path),
        "title": hardware.title,
        "noise": probed.noise,
        "duration_s": probed.duration_s,
        "frequency_hz": hz,
        "levels": [
            {
                "name": level.name,
                "size_bytes": level.size_bytes,
                **{f"{pattern}_s": level.line_cycles(pattern, hz) / hz for pattern in _PATTERNS},
            }
            for level in hardware.levels
        ],
        "call": hardware.call,
        "operations": {
            name: {"cycles": cost.cycles.text, "residual_ratio": cost.residual_ratio, "samples": cost.samples}
            for name, cost in hardware.operations.items()
        },
        "nics": hardware.nics,
        "notes": hardware.notes,
        "facts": hardware.facts,
        "measured": probed.outcome,
    }
    result = plain(document)
    assert isinstance(result, dict)
    return result
