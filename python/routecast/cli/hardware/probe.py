"""``routecast hardware probe``: measure this host and write its hardware file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from routecast.cli.console import data, print_json, progress_bar, remark
from routecast.cli.hardware.levels import levels_table, line_seconds

if TYPE_CHECKING:
    from routecast.hardware.probe import Probed
    from routecast.report.tables import Table

__all__ = ["probe"]


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
        bool,
        typer.Option("--quick", help="A few seconds instead of most of a minute: fewer sizes and repeats."),
    ] = False,
    cpu: Annotated[int | None, typer.Option("--cpu", metavar="N", min=0, help="The processor to measure on.")] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Refuse a noisy host: write nothing and leave with 1.")
    ] = False,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of the random lines.")] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="Print what was found as one JSON document.")] = False,
) -> None:
    """Measure this host: clock, caches and memory, elementary operations. Takes less than a minute."""
    from routecast.errors import CriterionFailed
    from routecast.hardware.catalogue import check_writable, host_file, write_hardware
    from routecast.hardware.probe import probe as probe_host

    path = out or host_file()
    check_writable(path)
    with progress_bar("probing this host") as report:
        probed = probe_host(
            quick=quick, cpu=cpu, seed=seed, progress=lambda share: report(round(100.0 * share), 100, "")
        )
    if strict and not probed.noise.is_quiet:
        raise CriterionFailed(f"this host is {probed.noise.verdict}; nothing was written (--strict)")
    write_hardware(probed.hardware, path)
    if as_json:
        print_json(_document(probed, path))
    else:
        _print(probed)
    if not probed.noise.is_quiet:
        remark(f"{probed.noise.verdict}: stop what else runs and probe again")
    remark(f"written to {path}")


def _print(probed: Probed) -> None:
    from routecast.cli.tables import print_table
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
    for table in (levels_table(hardware), _bandwidth(probed), _operations(probed)):
        if table.rows:
            print_table(console, table)
    for note in hardware.notes:
        console.print(f"* {note}", markup=False)


def _bandwidth(probed: Probed) -> Table:
    from routecast.report.tables import Column, Table

    facts = probed.hardware.facts
    rows = [
        (kind, float(str(facts[f"{kind}_bytes_per_s"])))
        for kind in ("read", "write", "copy")
        if f"{kind}_bytes_per_s" in facts
    ]
    return Table(
        name="bandwidth",
        title="Bandwidth of one core",
        caption="",
        columns=(
            Column(title="", align="left"),
            Column(title="Rate", unit="GB/s", form=lambda rate: f"{rate / 1e9:.1f}"),
        ),
        rows=tuple(rows),
    )


def _operations(probed: Probed) -> Table:
    from routecast.report.tables import Column, Table, percent

    return Table(
        name="operations",
        title="Elementary operations",
        caption="Core cycles of one execution with its data in L1; misfit: root mean square of the relative residuals.",
        columns=(
            Column(title="Operation", align="left"),
            Column(title="Cycles", align="left", wrap=True),
            Column(title="Misfit", unit="%", form=percent),
            Column(title="Samples", form=".0f"),
        ),
        rows=tuple(
            (name, cost.cycles.text, cost.residual_ratio, cost.samples)
            for name, cost in probed.hardware.operations.items()
        ),
    )


def _document(probed: Probed, path: Path) -> dict[str, object]:
    """Return what was found, with what was measured behind it."""
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
                **{
                    f"{pattern}_s": line_seconds(level, pattern, hz) for pattern in ("dependent", "batched", "streamed")
                },
            }
            for level in hardware.levels
        ],
        "call": hardware.call,
        "operations": {
            name: {
                "cycles": cost.cycles.text,
                "residual_ratio": cost.residual_ratio,
                "samples": cost.samples,
            }
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
