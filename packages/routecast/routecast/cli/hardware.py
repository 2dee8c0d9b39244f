"""``routecast hardware``: the hosts that routecast knows."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated

import typer

from routecast.cli.console import data, print_json, remark
from routecast.cli.options import AsJson

if TYPE_CHECKING:
    from routecast.hardware.model import Hardware

__all__ = ["list_hardware", "show"]


def list_hardware(*, as_json: AsJson = False) -> None:
    """List the hosts that come with routecast, and this one once it was probed."""
    from routecast.cli.console import print_table
    from routecast.hardware.catalogue import HOST, hardware_names, host_file, read_hardware
    from routecast.hardware.views import hardware_table

    names = hardware_names()
    hosts = {name: read_hardware(name) for name in names}
    if as_json:
        print_json(
            [
                {
                    "name": name,
                    "title": host.title,
                    "cores": host.cpu.cores,
                    "frequency_hz": host.cpu.frequency_hz,
                    "operations": sorted(host.operations),
                    "source": host.source,
                }
                for name, host in hosts.items()
            ]
        )
        return
    print_table(data(), hardware_table(hosts))
    if HOST not in names:
        remark(f"this host is not among them; `routecast hardware probe` writes {host_file()}")


def show(
    name: Annotated[str, typer.Argument(metavar="NAME|FILE", help='A name of `list`, "host", or a *.hardware.toml.')],
    *,
    as_json: AsJson = False,
) -> None:
    """Show a host: clock, memory, network cards, and the formulas of its operations with their sources."""
    from routecast.cli.console import print_table
    from routecast.function.operations import OPERATIONS, cost_on, mapping_problems
    from routecast.hardware.catalogue import read_hardware
    from routecast.hardware.views import formulas_table, levels_table

    hardware = read_hardware(name)
    for problem in mapping_problems(hardware):
        remark(f"{name}: {problem}")
    unmapped = [name for name in OPERATIONS if cost_on(hardware, name) is None]
    if as_json:
        print_json(_show_document(hardware, unmapped))
        return
    console = data()
    for line in _fact_lines(hardware):
        console.print(line, markup=False)
    console.print()
    print_table(console, levels_table(hardware))
    print_table(console, formulas_table(hardware))
    if unmapped:
        console.print(f"No cost of: {', '.join(unmapped)}.", markup=False)
    for note in hardware.notes:
        console.print(f"Note: {note}", markup=False)


def _fact_lines(hardware: Hardware) -> list[str]:
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


def _show_document(hardware: Hardware, unmapped: list[str]) -> dict[str, object]:
    from dataclasses import fields

    from routecast.evaluate.plain import plain

    document = {field.name: _texts(plain(getattr(hardware, field.name))) for field in fields(hardware)}
    return {**document, "unmapped": unmapped}


def _texts(value: object) -> object:
    """Return formulas, and types that JSON lacks, such as dates, as text."""
    if isinstance(value, dict):
        return value["text"] if value.keys() == {"text"} else {name: _texts(entry) for name, entry in value.items()}
    if isinstance(value, list):
        return [_texts(entry) for entry in value]
    return value if isinstance(value, str | int | float | bool | None) else str(value)
