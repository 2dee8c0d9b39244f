"""A ramp as a table and in words."""

from __future__ import annotations

import math

from routecast.evaluate.ramp import Climb
from routecast.quantity import format_duration, format_pps, format_ratio
from routecast.show.tables import Column, Table

__all__ = ["climb_said", "ramp_table"]


def ramp_table(climb: Climb) -> Table:
    """Return a row for each part of the ramp; those that lose frames stand out."""
    return Table.of(
        climb.rungs,
        Column("From", "", format_duration, "from_s"),
        Column("Intended", "", format_pps, "intended_pps"),
        Column("Offered", "", format_pps, "offered_pps"),
        Column("Forwarded", "", format_pps, "forwarded_pps"),
        Column("Loss", "", format_ratio, lambda rung: None if math.isnan(rung.loss_ratio) else rung.loss_ratio),
        name="ramp",
        title="Ramp",
        caption="Means over equal parts of the trial. Lost frames count when they were due.",
        strong=lambda rung: rung.dropped_pps > 0.0,
    )


def climb_said(climb: Climb) -> str:
    """Say up to which rate nothing was lost."""
    most = f"at most {format_pps(climb.most_forwarded_pps)} were forwarded"
    if not climb.rungs:
        return "Ramp: the tester did not count over time, so nothing is known of single rates."
    if math.isnan(climb.first_loss_pps):
        return f"Ramp: no loss up to {format_pps(climb.lossless_pps)}, the end of the ramp; {most}."
    if math.isnan(climb.lossless_pps):
        return f"Ramp: loss from the start, at {format_pps(climb.first_loss_pps)}; {most}."
    first = format_pps(climb.first_loss_pps)
    return (
        f"Ramp: no loss up to {format_pps(climb.lossless_pps)}, the first at {first}; {most}. "
        "Each rate was offered for a moment only: a trial at that rate decides."
    )
