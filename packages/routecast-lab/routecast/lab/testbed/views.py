"""Tables of test beds: self-test, power meters and readings, findings of the doctor, devices, back ends."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from routecast.quantity import format_duration, format_power, format_pps
from routecast.show.tables import Column, Table

if TYPE_CHECKING:
    from rich.table import Table as RichTable

    from routecast.evaluate.trial import Delay
    from routecast.lab.testbed.doctor import Finding
    from routecast.lab.testbed.dut_host import Device
    from routecast.lab.testbed.meters import PowerReading
    from routecast.lab.testbed.meters._finding import MeterEntry
    from routecast.lab.testbed.selftest import SelfTest, SelfTestCheck
    from routecast.lab.testbed.tester import BackEnd

__all__ = [
    "MARKS",
    "back_ends_table",
    "beds_table",
    "devices_table",
    "findings_tables",
    "meters_table",
    "reading_tables",
    "selftest_tables",
]

MARKS = {"fine": ("✓", "green"), "distorts": ("▲", "yellow"), "missing": ("✗", "red"), "unseen": ("?", "dim")}
"""Sign and colour of each state of a finding."""


def selftest_tables(result: SelfTest) -> tuple[Table, ...]:
    """Return the tables of highest rates, latency floors and accuracy of the rate."""
    names = ("maximum", "latency", "rate")
    by_name = {name: [check for check in result.checks if check.name == name] for name in names}
    leading_columns: tuple[Column[SelfTestCheck], ...] = (
        Column.text("Back end", lambda row: row.back_end),
        Column.text("Receiver", lambda row: row.where),
    )

    def delay(title: str, of: Callable[[Delay], float]) -> Column[SelfTestCheck]:
        return Column(
            title, "", format_duration, lambda row: of(row.trial.latency) if row.trial and row.trial.latency else None
        )

    def error(check: SelfTestCheck) -> float | None:
        return check.rate_error_ratio if math.isfinite(check.rate_error_ratio) else None

    maxima = Table.of(
        by_name["maximum"],
        *leading_columns,
        Column("Frame", "B", "d", lambda row: row.frame_bytes),
        Column("Received", "", format_pps, lambda row: row.trial.forwarded_pps if row.trial else None),
        Column("Lost", "", ".2%", lambda row: row.trial.loss_ratio if row.trial else None),
        Column("On the wire", "Gbit/s", ".1f", lambda row: row.trial.l1_bps / 1e9 if row.trial else None),
        name="maxima",
        title="Highest rate, gen to sink without a device, time stamp in every frame",
    )
    floors = Table.of(
        [check for check in by_name["latency"] if check.trial is not None and check.trial.latency is not None],
        *leading_columns,
        delay("Least", lambda latency: latency.min_s),
        delay("Median", lambda latency: latency.p50_s),
        delay("p99", lambda latency: latency.p99_s),
        delay("Most", lambda latency: latency.max_s),
        name="floor",
        title="Latency floor at 100 kpps, 64 B",
        caption="What a wire between generator and receiver takes: no device can be measured below it.",
    )
    rates = Table.of(
        [check for check in by_name["rate"] if check.trial is not None],
        Column.text("Intended", lambda row: format_pps(row.trial.intended_pps) if row.trial else None),
        Column("Error", "", "+.4%", error),
        Column("Attempts", "", "d", lambda row: row.trial.attempts if row.trial else None),
        name="rates",
        title="Accuracy of the rate",
    )
    return tuple(table for table in (maxima, floors, rates) if table.rows)


def reading_tables(reading: PowerReading) -> tuple[Table, ...]:
    """Return the figures of a reading, and its zones if there are several."""
    facts = [
        ("mean power", format_power(reading.mean_w)),
        ("least, most", f"{format_power(reading.min_w)}, {format_power(reading.max_w)}"),
        ("energy", f"{reading.energy_j:.4g} J in {format_duration(reading.metered_s)}"),
        ("samples", f"{reading.samples}"),
    ]
    if math.isfinite(reading.quantum_w):
        facts.append(("least step", format_power(reading.quantum_w)))
    zones = Table.of(
        reading.zones,
        Column.text("Zone", lambda row: row.name),
        Column.text("Scope", lambda row: row.scope),
        Column.text("In the sum", lambda row: row.is_counted),
        Column("Mean", "", format_power, lambda row: row.mean_w),
        Column("Energy", "J", getter=lambda row: row.energy_j),
        name="zones",
        title="Zones",
        caption="Zones that are not in the sum lie within others, or beside what it covers.",
    )
    summary = Table.of_facts(facts, name="reading", title=f"{reading.meter}, scope {reading.scope}")
    return (summary, zones) if len(reading.zones) > 1 else (summary,)


def findings_tables(findings: Sequence[tuple[str, Finding]], *, everything: bool) -> list[RichTable]:
    """Return a table of findings for each group, for a terminal; ``everything`` adds the effects of fine ones."""
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    tables = []
    for group, entries in groupby(findings, key=lambda entry: entry[0]):
        interface = group.removeprefix("Interface ") if group.startswith("Interface ") else ""
        table = RichTable(
            title=group,
            title_justify="left",
            title_style="bold",
            box=box.SIMPLE_HEAD,
            show_header=False,
            show_edge=False,
            pad_edge=False,
            padding=(0, 1, 0, 0),
        )
        table.add_column(width=1)
        table.add_column(width=14, overflow="fold")
        table.add_column(overflow="fold")
        for _, finding in entries:
            mark, style = MARKS[finding.state.value]
            text = Text(finding.observation)
            if finding.effect and (finding.state != "fine" or everything):
                text.append(f"\n{finding.effect}", style="dim")
            if finding.advice:
                text.append(f"\n→ {finding.advice}", style="cyan")
            if finding.remedy:
                text.append(f"\n$ {finding.remedy}", style="cyan")
            name = finding.check.removesuffix(f" {interface}") if interface else finding.check
            table.add_row(Text(mark, style=style), Text(name, style=style if finding.state != "fine" else ""), text)
        tables.append(table)
    return tables


def beds_table(beds: Sequence[Mapping[str, Any]]) -> Table:
    """Return the table of the test beds that are up."""
    return Table.of(
        beds,
        Column.text("Name", lambda row: row["name"]),
        Column.text("State", lambda row: row["state"]),
        Column.text("Process", lambda row: str(row["pid"])),
        Column.text("Namespaces", lambda row: ", ".join(map(str, row["namespaces"]))),
        name="beds",
        title="Test beds",
    )


def devices_table(devices: Sequence[Device]) -> Table:
    """Return the table of devices under test and the programs that each lacks here."""
    return Table.of(
        devices,
        Column.text("Name", lambda row: row.name),
        Column.text("What", lambda row: row.title),
        Column.text("Is a", lambda row: "router" if row.layer == 3 else "bridge"),
        Column.text("Missing", lambda row: "; ".join(map(str, row.missing())) or "nothing"),
        name="devices",
        title="Devices under test",
        caption="Options: routecast testbed devices --json",
    )


def back_ends_table(back_ends: Sequence[BackEnd]) -> Table:
    """Return the table of the tester's back ends and the reasons why this process cannot use them."""
    return Table.of(
        back_ends,
        Column.text("Name", lambda row: row.name),
        Column.text("To", lambda row: row.task),
        Column.text("Missing", lambda row: row.why_not or "nothing"),
        name="back-ends",
        title="Back ends of the tester",
    )


def meters_table(meters: Sequence[MeterEntry]) -> Table:
    """Return the table of power meters: their scope, and whether they can be read here."""

    def readable(meter: MeterEntry) -> str:
        return "yes" if meter.is_readable else "with an address" if meter.needs_address else "no"

    return Table.of(
        meters,
        Column.text("Meter", lambda row: row.name),
        Column.text("Scope", lambda row: row.scope),
        Column.text("Readable", readable),
        Column.text("Why not, and what to do", lambda row: row.why_not),
        name="meters",
        title="Power meters",
    )
