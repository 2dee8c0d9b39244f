"""``routecast hardware``: the hosts that routecast knows, and this one."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from routecast.cli.console import data, print_json, progress_bar, remark

if TYPE_CHECKING:
    from routecast.hardware.model import Hardware, MemoryLevel, OperationCost
    from routecast.hardware.probe import Probed
    from routecast.report.tables import Table

__all__ = ["list_hardware", "probe", "show"]


def levels_table(hardware: Hardware) -> Table:
    """Return the levels with their sizes and what a line costs there, in nanoseconds."""
    from routecast.quantity import format_binary_bytes
    from routecast.report.tables import Column, Table

    separate = hardware.stalls == "separate"
    patterns = () if separate else ("dependent", "batched", "streamed")
    clock = hardware.cpu.frequency_hz
    return Table(
        name="levels",
        title="Levels of the memory",
        caption="The cycles of the operations hold all that a core waits; lines in DRAM load the memory."
        if separate
        else "What a line costs on top of the operations' cycles, by the level where it is found.",
        columns=(
            Column(title="Level", align="left"),
            Column(title="Size"),
            *(Column(title=pattern, unit="ns", form=".3g") for pattern in patterns),
        ),
        rows=tuple(
            (
                level.name,
                format_binary_bytes(level.size_bytes),
                *(line_seconds(level, pattern, clock) * 1e9 for pattern in patterns),
            )
            for level in hardware.levels
        ),
    )


def line_seconds(level: MemoryLevel, pattern: str, clock_hz: float) -> float:
    """Return what a line of a level costs: ``pattern`` is dependent, batched or streamed."""
    return level.line_cycles(pattern, clock_hz) / clock_hz


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
    from routecast.cli.console import print_table
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


JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]


def list_hardware(*, as_json: JsonOption = False) -> None:
    """List the hosts that come with routecast, and this one once it was probed."""
    from routecast.cli.console import print_table
    from routecast.hardware.catalogue import HOST, hardware_names, host_file, read_hardware
    from routecast.quantity import format_frequency
    from routecast.report.tables import Column, Table

    names = hardware_names()
    found = {name: read_hardware(name) for name in names}
    if as_json:
        print_json(
            [
                {
                    "name": name,
                    "title": one.title,
                    "cores": one.cpu.cores,
                    "frequency_hz": one.cpu.frequency_hz,
                    "operations": sorted(one.operations),
                    "source": one.source,
                }
                for name, one in found.items()
            ]
        )
        return
    table = Table(
        name="hardware",
        title="Hardware",
        caption="",
        columns=(
            Column(title="Name", align="left"),
            Column(title="Cores", form=".0f"),
            Column(title="Clock"),
            Column(title="What it is", align="left"),
        ),
        rows=tuple(
            (name, one.cpu.cores, format_frequency(one.cpu.frequency_hz), one.title) for name, one in found.items()
        ),
    )
    print_table(data(), table)
    if HOST not in names:
        remark(f"this host is not among them; `routecast hardware probe` writes {host_file()}")


def show(
    name: Annotated[
        str,
        typer.Argument(metavar="NAME|FILE", help='A name of `list`, "host", or a *.hardware.toml.'),
    ],
    *,
    as_json: JsonOption = False,
) -> None:
    """Show a host: clock, memory, network cards, and the formulas of its operations with their sources."""
    from routecast.cli.console import print_table
    from routecast.function.operations import OPERATIONS, cost_on, mapping_problems
    from routecast.hardware.catalogue import read_hardware

    hardware = read_hardware(name)
    for problem in mapping_problems(hardware):
        remark(f"{name}: {problem}")
    unmapped = [name for name in OPERATIONS if cost_on(hardware, name) is None]
    if as_json:
        print_json(_show_document(hardware, unmapped))
        return
    console = data()
    for line in _facts(hardware):
        console.print(line, markup=False)
    console.print()
    print_table(console, levels_table(hardware))
    print_table(console, _show_operations(hardware))
    if unmapped:
        console.print(f"No cost of: {', '.join(unmapped)}.", markup=False)
    for note in hardware.notes:
        console.print(f"Note: {note}", markup=False)


def _facts(hardware: Hardware) -> list[str]:
    from routecast.quantity import format_binary_bytes, format_bps, format_duration, format_frequency

    cpu = hardware.cpu
    lines = [
        f"{hardware.name}: {hardware.title}" if hardware.title else hardware.name,
        f"processor  {cpu.name}, {cpu.sockets} x {cpu.cores_per_socket} cores at {format_frequency(cpu.frequency_hz)}",
    ]
    if math.isfinite(hardware.memory_bytes):
        lines.append(f"memory     {format_binary_bytes(hardware.memory_bytes)}")
    if hardware.memory is not None:
        timing = hardware.memory
        lines.append(
            f"           (2 x {timing.cas_latency_cycles:g} + 3) / {timing.data_rate_per_s / 1e6:g} MT/s = "
            f"{format_duration(timing.access_s)} an access, {timing.channels} channel(s)"
        )
    for nic in hardware.nics:
        bus = f", PCIe {nic.pcie.generation}.0 x{nic.pcie.lanes}" if nic.pcie else ""
        lines.append(f"card       {nic.name}, {nic.ports} x {format_bps(nic.link_bps)}{bus}, socket {nic.socket}")
    call = hardware.call
    if call.per_batch_cycles or call.per_packet_cycles:
        lines.append(
            f"call       {call.per_batch_cycles:.4g} cycles a batch of {call.batch_frames}, "
            f"{call.per_packet_cycles:.4g} cycles a frame"
        )
    lines.append(f"source     {hardware.source}")
    return lines


def _show_operations(hardware: Hardware) -> Table:
    from routecast.report.tables import Column, Table

    rows = []
    for name, cost in hardware.operations.items():
        rows.append((name, _cost(cost)))
        if cost.remote is not None:
            rows.append((f"  remote {name}", _cost(cost.remote)))
    return Table(
        name="operations",
        title="Elementary operations",
        caption="Formulas over the operations' parameters, sizes in bytes; remote: the frame lies in the other "
        "socket's L3.",
        columns=(
            Column(title="Operation", align="left"),
            Column(title="Cycles, lines of memory, source", align="left"),
        ),
        rows=tuple(rows),
    )


def _cost(cost: OperationCost) -> str:
    cycles = cost.cycles.text if cost.factor == 1.0 else f"{cost.factor:.4g} x ({cost.cycles.text})"
    lines = [f"{access.of} lines: {access.lines.text}" for access in cost.accesses]
    fit = f" ({cost.samples} samples, rms {cost.residual_ratio:.1%})" if cost.samples else ""
    return "\n".join([cycles, *lines, f"{cost.source}{fit}"])


def _show_document(hardware: Hardware, unmapped: list[str]) -> dict[str, object]:
    from dataclasses import fields

    from routecast.evaluate.plain import plain

    shown = {field.name: _texts(plain(getattr(hardware, field.name))) for field in fields(hardware)}
    return {**shown, "unmapped": unmapped}


def _texts(value: object) -> object:
    """Write formulas as their texts, and what JSON has no word for, such as a date, as text."""
    if isinstance(value, dict):
        return value["text"] if value.keys() == {"text"} else {name: _texts(entry) for name, entry in value.items()}
    if isinstance(value, list):
        return [_texts(entry) for entry in value]
    return value if isinstance(value, str | int | float | bool | None) else str(value)
