"""The power benchmark's table of a router, and the lines below it."""

from __future__ import annotations

from routecast.lab.power.metrics import METRICS
from routecast.lab.power.table import PowerTable
from routecast.quantity import format_bps, format_duration, format_pps, format_ratio
from routecast.show.tables import Column, Table

__all__ = ["power_table_notes", "power_tables"]

_SHOWN_METRICS = ("eer", "eer_unweighted", "ecr", "epi")


def power_tables(table: PowerTable) -> tuple[Table, Table]:
    """Return the watts of a router by load (draft-ietf-bmwg-powerbench-02), and the metrics over them."""
    watts = Table.of(
        table.rows,
        Column.text("", lambda row: row.name),
        Column.text("Load", lambda row: row.state),
        Column("Forwarded", "Gbit/s", getter=lambda row: row.l2_bps / 1e9),
        Column("Power", "W", getter=lambda row: row.power_w),
        Column("Packet", "uJ", getter=lambda row: 1e6 * row.packet_j),
        Column("Bit", "nJ", getter=lambda row: 1e9 * row.bit_j),
        name="power",
        title=f"{table.router}, {table.frames}, {table.ports} ports: watts of the {table.scope}",
    )
    loads = "/".join(f"{100 * ratio:g}" for ratio in table.load_ratios)
    weights = "/".join(f"{weight:g}" for weight in table.weights)
    values = (
        (f"{table.eer_bit_per_j / 1e9:.4g} {METRICS['eer'].unit}", f"{loads} % weighted {weights}"),
        (
            f"{table.eer_unweighted_bit_per_j / 1e9:.4g} {METRICS['eer_unweighted'].unit}",
            "unweighted: not comparable with the line above",
        ),
        (f"{table.ecr_w_per_bps * 1e9:.4g} {METRICS['ecr'].unit}", ""),
        (format_ratio(table.proportionality_ratio), "100 % draws nothing when idle"),
    )
    metrics = Table(
        name="metrics",
        title="",
        caption="",
        columns=(Column.text(""), Column(""), Column.text("")),
        rows=tuple((METRICS[key].name, *row) for key, row in zip(_SHOWN_METRICS, values, strict=True)),
    )
    return watts, metrics


def power_table_notes(table: PowerTable) -> list[str]:
    """Return the lines below the power tables: throughput, times, source, formulas and notes."""
    return [
        f"Throughput without loss: {format_pps(table.throughput_pps)}, {format_bps(table.throughput_bps)}.",
        f"Stabilisation {format_duration(table.stabilise_s)}, measurement {format_duration(table.measure_s)}; "
        f"average: {table.averaging}.",
        f"Watts: {table.source} ({table.evaluator}).",
        *(f"Not measured: {row.name}, {row.not_measured}." for row in table.rows if row.not_measured),
        *(f"{METRICS[key].name}: {METRICS[key].formula}. {METRICS[key].source}." for key in _SHOWN_METRICS),
        *(f"Note: {note}" for note in table.notes),
    ]
