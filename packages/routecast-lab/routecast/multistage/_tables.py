"""Tables of the elements of a router of many machines, of an audit, and of predictions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from routecast.multistage._client import state_text
from routecast.show.tables import Column, Table


def routers_table(status: Mapping[str, Any]) -> Table:
    """Return the table of the back-end routers with their rates."""
    has_caps = any(router["cap_pps"] for router in status["routers"])
    has_other_forwarding = any(router["forwarding"] != "linux" for router in status["routers"])
    return Table.of(
        status["routers"],
        Column.text("Router", lambda row: row["name"]),
        Column.text("State", state_text),
        has_other_forwarding and Column.text("Forwards by", lambda row: row["forwarding"]),
        Column("Weight", getter=lambda row: row["weight"]),
        Column("In", "frames/s", getter=lambda row: row["in_pps"]),
        Column("Out", "frames/s", getter=lambda row: row["out_pps"]),
        has_caps and Column("Emulated cap", "frames/s", getter=lambda row: row["cap_pps"]),
        Column("Deaths", getter=lambda row: row["deaths"]),
        Column("Back again", getter=lambda row: row["revivals"]),
        name="routers",
        title=f"{status['name']}: back-end routers, epoch {status['epoch']}",
        strong=lambda row: row["state"] in ("dead", "not seen", "differs"),
    )


_CLAIMS = {
    "foreign": "of another network",
    "own": "to the router's own addresses",
    "refused": "while the owner answers",
    "invalid": "without a valid address",
    "full": "beyond the table's size",
}
"""Reasons for which a claim is dropped, in words."""


def claims_lines(status: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for each network on which neighbours' claims to addresses were dropped."""
    for network, counts in status["claims_dropped"].items():
        words = [f"{counts[reason]} {text}" for reason, text in _CLAIMS.items() if counts[reason]]
        if words:
            yield f"Claims dropped on {network}: {', '.join(words)}; `routecast multistage events` has the claimants"


def balancers_table(status: Mapping[str, Any]) -> Table:
    """Return the table of the load balancers, with a row for each network."""
    rows = [(balancer, name, port) for balancer in status["balancers"] for name, port in balancer["ports"].items()]
    return Table.of(
        rows,
        Column.text("Load balancer", lambda row: row[0]["name"]),
        Column.text("State", lambda row: state_text(row[0])),
        Column.text("Network", lambda row: row[1]),
        Column("In", "frames/s", getter=lambda row: row[2]["in_pps"]),
        Column("Out", "frames/s", getter=lambda row: row[2]["out_pps"]),
        Column("No router", "frames", getter=lambda row: row[0]["dropped"]["no_member"]),
        name="balancers",
        title="Load balancers",
    )


def audit_table(audit: Mapping[str, Any]) -> Table:
    """Return the table of the digests of each element's tables."""
    rows = [
        (name, balancer["rows"], balancer["neighbours"], str(balancer["epoch"]))
        for name, balancer in audit["balancers"].items()
    ] + [(name, digest, "", "") for name, digest in audit["routers"].items()]
    return Table.of(
        rows,
        Column.text("Element", lambda row: row[0]),
        Column.text("Table, or addresses, routes and neighbours", lambda row: row[1]),
        Column.text("Neighbours", lambda row: row[2]),
        Column.text("Epoch", lambda row: row[3]),
        name="audit",
        title="Digests of the elements' tables",
    )


def forwarding_table(rows: Sequence[Mapping[str, Any]], frame: str) -> Table:
    """Return the table of what each back-end router can carry and forwards."""
    return Table.of(
        rows,
        Column.text("Element", lambda row: row["element"]),
        Column("Rate", "frames/s", ".0f", lambda row: row["rate_pps"]),
        Column("Capacity", "frames/s", ".0f", lambda row: row["capacity_pps"]),
        Column("Forwarded", "frames/s", ".0f", lambda row: row["forwarded_pps"]),
        Column.text("Capacity from", lambda row: row["source"] or "neither a cap nor a model"),
        name="forwarding",
        title=f"Predicted forwarding of the back-end routers, frames of {frame}",
    )


def failures_table(rows: Sequence[Mapping[str, Any]], load: str) -> Table:
    """Return the table of the predicted loss by the failure of each element; NaN for an element without flows."""
    return Table.of(
        rows,
        Column.text("Element", lambda row: row["element"]),
        Column("Share of flows", "%", ".1f", lambda row: 100.0 * row["share"]),
        Column("Rate", "frames/s", ".0f", lambda row: row["rate_pps"]),
        Column("Away", "ms", ".1f", lambda row: 1e3 * row["away_s"]),
        Column("Lost", "frames", ".0f", lambda row: row["lost_frames"]),
        name="failures",
        title=f"Predicted loss by a failure at {load}",
        caption="Away: time until other elements have its flows.",
    )
