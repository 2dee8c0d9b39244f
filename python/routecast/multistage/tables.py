"""A router of many machines as tables: its elements with their rates, and what an audit found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from routecast.show.tables import Column, Table

__all__ = ["audit_table", "balancers_table", "failures_table", "routers_table", "with_rates"]


def with_rates(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """Return the second of two statuses with the rates of routers and networks, ``in_pps`` and ``out_pps``, frames/s.

    Parameters
    ----------
    before, after : mapping
        As :meth:`routecast.multistage.appliance.Appliance.status` returns them, of one router.
    """
    time_s = after["time_s"] - before["time_s"]
    old_routers = {one["name"]: one for one in before["routers"]}
    old_balancers = {one["name"]: one for one in before["balancers"]}

    def rate(new: Mapping[str, Any], old: Mapping[str, Any] | None, key: str) -> float:
        # One that was replaced meanwhile counts from 0.
        return max(new[key] - (old or new)[key], 0) / time_s if time_s > 0 else 0.0

    routers = [
        {
            **one,
            "in_pps": rate(one, old_routers.get(one["name"]), "sent_frames"),
            "out_pps": rate(one, old_routers.get(one["name"]), "returned_frames"),
        }
        for one in after["routers"]
    ]
    balancers = []
    for one in after["balancers"]:
        ports = {}
        for name, counted in one["ports"].items():
            old = old_balancers.get(one["name"], one)["ports"].get(name)
            ports[name] = {
                **counted,
                "in_pps": rate(counted, old, "in_frames"),
                "out_pps": rate(counted, old, "out_frames"),
            }
        balancers.append({**one, "ports": ports})
    return {**after, "interval_s": time_s, "routers": routers, "balancers": balancers}


def routers_table(status: Mapping[str, Any]) -> Table:
    """Return the back-end routers with their rates."""
    caps = any(one["cap_pps"] for one in status["routers"])
    others = any(one["forwarding"] != "linux" for one in status["routers"])
    return Table.of(
        status["routers"],
        Column.text("Router", lambda one: one["name"]),
        Column.text("State", lambda one: one["state"]),
        others and Column.text("Forwards by", lambda one: one["forwarding"]),
        Column("Weight", getter=lambda one: one["weight"]),
        Column("In", "frames/s", getter=lambda one: one["in_pps"]),
        Column("Out", "frames/s", getter=lambda one: one["out_pps"]),
        caps and Column("Emulated cap", "frames/s", getter=lambda one: one["cap_pps"]),
        Column("Deaths", getter=lambda one: one["deaths"]),
        Column("Back again", getter=lambda one: one["revivals"]),
        name="routers",
        title=f"{status['name']}: back-end routers, epoch {status['epoch']}",
        strong=lambda one: one["state"] in ("dead", "differs"),
    )


def balancers_table(status: Mapping[str, Any]) -> Table:
    """Return the load balancers, a row for each of their networks."""
    rows = [(one, name, port) for one in status["balancers"] for name, port in one["ports"].items()]
    return Table.of(
        rows,
        Column.text("Load balancer", lambda row: row[0]["name"]),
        Column.text("State", lambda row: row[0]["state"]),
        Column.text("Network", lambda row: row[1]),
        Column("In", "frames/s", getter=lambda row: row[2]["in_pps"]),
        Column("Out", "frames/s", getter=lambda row: row[2]["out_pps"]),
        Column("No router", "frames", getter=lambda row: row[0]["dropped"]["no_member"]),
        name="balancers",
        title="Load balancers",
    )


def audit_table(audit: Mapping[str, Any]) -> Table:
    """Return what each element knows, as digests."""
    rows = [(name, one["rows"], one["neighbours"], str(one["epoch"])) for name, one in audit["balancers"].items()] + [
        (name, digest, "", "") for name, digest in audit["routers"].items()
    ]
    return Table.of(
        rows,
        Column.text("Element", lambda row: row[0]),
        Column.text("Table, or addresses, routes and neighbours", lambda row: row[1]),
        Column.text("Neighbours", lambda row: row[2]),
        Column.text("Epoch", lambda row: row[3]),
        name="audit",
        title="Digests of what the elements know",
    )


def failures_table(rows: Sequence[Mapping[str, Any]], load: str) -> Table:
    """Return what the failure of each element is predicted to cost; an element without flows has NaN."""
    return Table.of(
        rows,
        Column.text("Element", lambda row: row["element"]),
        Column("Share of flows", "%", ".1f", lambda row: 100.0 * row["share"]),
        Column("Gets", "frames/s", ".0f", lambda row: row["rate_pps"]),
        Column("Away", "ms", ".1f", lambda row: 1e3 * row["away_s"]),
        Column("Lost", "frames", ".0f", lambda row: row["lost_frames"]),
        name="failures",
        title=f"What a failure is predicted to cost at {load}",
        caption="Away: how long its flows are lost, until others have them.",
    )
