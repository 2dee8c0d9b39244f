"""What ships with routecast, and what is on this machine, as tables: each entry with its name and what it is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from routecast.quantity import format_frequency
from routecast.report.tables import Column, Table

if TYPE_CHECKING:
    from routecast.function.model import NetworkFunction
    from routecast.function.operations import Operation
    from routecast.hardware.model import Hardware
    from routecast.testbed.catalogue import DeviceEntry
    from routecast.testbed.power.finding import FoundMeter
    from routecast.testbed.tester import BackEnd

__all__ = [
    "back_ends_table",
    "beds_table",
    "devices_table",
    "examples_table",
    "functions_table",
    "hardware_table",
    "meters_table",
    "operations_table",
    "studies_table",
]


def examples_table(shows: Iterable[tuple[str, str]]) -> Table:
    """Return the examples that ship, each with what it shows."""
    return Table.of(
        shows,
        Column.text("Example", lambda one: one[0]),
        Column.text("What it shows", lambda one: one[1]),
        name="examples",
        caption="`routecast examples NAME` copies one, with what it names, into ./examples; --all copies all.",
    )


def studies_table(studies: Iterable[tuple[str, str, str, str]]) -> Table:
    """Return the studies that ship: name, what it shows, how long it takes, which right it needs."""
    return Table.of(
        studies,
        *(
            Column.text(name, itemgetter(place))
            for place, name in enumerate(("Study", "What it shows", "Takes", "Needs"))
        ),
        name="studies",
        caption="`routecast study NAME` runs one; `routecast study --copy NAME DIR` copies one, with what it names.",
    )


def functions_table(functions: Sequence[NetworkFunction]) -> Table:
    """Return the functions that ship."""
    return Table.of(
        functions,
        Column.text("Name", "name"),
        Column.text("What it is", "title"),
        Column.text("Directions", lambda one: ", ".join(direction.name for direction in one.directions)),
        Column.text("Real", lambda one: "yes" if one.runs_as else ""),
        name="functions",
        title="Network functions",
        caption="Several in a row: `acl_firewall,nat44`. An own one: a *.function.toml. Real: --run runs it.",
    )


def operations_table(operations: Iterable[Operation]) -> Table:
    """Return the elementary operations."""

    def parameters(one: Operation) -> str:
        given = ((name, parameter.default is None) for name, parameter in one.parameters.items())
        return ", ".join(name if needed else f"[{name}]" for name, needed in given)

    return Table.of(
        operations,
        Column.text("Operation", "name"),
        Column.text("Parameters", parameters),
        Column("Row", getter=lambda one: "–" if one.row is None else str(one.row)),
        Column.text("What it does", "meaning"),
        name="registry",
        title="Elementary operations",
        caption="Row: number in Table 1 of Baldi & Sapio 2018. Parameters in brackets need not be given.",
    )


def hardware_table(hosts: Mapping[str, Hardware]) -> Table:
    """Return the hosts that are known, by name."""
    return Table.of(
        hosts.items(),
        Column.text("Name", lambda one: one[0]),
        Column("Cores", "", ".0f", lambda one: one[1].cpu.cores),
        Column("Clock", getter=lambda one: format_frequency(one[1].cpu.frequency_hz)),
        Column.text("What it is", lambda one: one[1].title),
        name="hardware",
        title="Hardware",
    )


def beds_table(beds: Sequence[Mapping[str, Any]]) -> Table:
    """Return the test beds that stand."""
    return Table.of(
        beds,
        Column.text("Name", lambda one: one["name"]),
        Column.text("State", lambda one: one["state"]),
        Column.text("Process", lambda one: str(one["pid"])),
        Column.text("Namespaces", lambda one: ", ".join(map(str, one["namespaces"]))),
        name="beds",
        title="Test beds",
    )


def devices_table(devices: Sequence[DeviceEntry]) -> Table:
    """Return the devices under test, and what each lacks here."""
    return Table.of(
        devices,
        Column.text("Name", "name"),
        Column.text("What", "title"),
        Column.text("Is a", lambda one: "router" if one.layer == 3 else "bridge"),
        Column.text("Missing", lambda one: "; ".join(map(str, one.missing)) or "nothing"),
        name="devices",
        title="Devices under test",
        caption="Options: routecast testbed devices --json",
    )


def back_ends_table(back_ends: Sequence[BackEnd]) -> Table:
    """Return how the tester can send and receive, and what each way lacks here."""
    return Table.of(
        back_ends,
        Column.text("Name", "name"),
        Column.text("To", "task"),
        Column.text("Missing", lambda one: one.why_not or "nothing"),
        name="back-ends",
        title="Back ends of the tester",
    )


def meters_table(meters: Sequence[FoundMeter]) -> Table:
    """Return the power meters: what each covers, and whether it can be read here."""

    def readable(one: FoundMeter) -> str:
        return "yes" if one.is_readable else "if told where" if one.needs_address else "no"

    return Table.of(
        meters,
        Column.text("Meter", "name"),
        Column.text("Scope", "scope"),
        Column.text("Readable", readable),
        Column.text("Why not, and what to do", "why_not"),
        name="meters",
        title="Power meters",
    )
