"""Views of a trial in which elements of a router are absent."""

from __future__ import annotations

from collections.abc import Sequence

from routecast.evaluate.trial import Trial
from routecast.quantity import format_duration, format_pps
from routecast.show.tables import Column, Table
from routecast.virtual.multistage.failures import Absence

__all__ = ["phases_table"]


def phases_table(trial: Trial, absences: Sequence[Absence]) -> Table:
    """Return the table of the phases of a trial between changes of the router, from its rates over time."""
    changes: dict[float, list[str]] = {0.0: []}
    for absence in absences:
        for at_s, change in (
            (absence.down_s, "goes down"),
            (absence.avoided_s, "is avoided"),
            (absence.up_s, "is back"),
            (absence.used_s, "is used again"),
        ):
            if at_s < trial.duration_s:
                changes.setdefault(at_s, []).append(f"{absence.element} {change}")
    starts = sorted(changes)
    ends = dict(zip(starts, [*starts[1:], trial.duration_s], strict=True))
    part_s = trial.duration_s / len(trial.over_time) if trial.over_time else 0.0

    def rate(name: str) -> Column[float]:
        def mean_pps(start_s: float) -> float | None:
            during = [moment for moment in trial.over_time if start_s <= moment.time_s + part_s / 2 < ends[start_s]]
            return sum(getattr(moment, f"{name}_pps") for moment in during) / len(during) if during else None

        return Column(name.capitalize(), "", format_pps, mean_pps)

    return Table.of(
        starts,
        Column("From", "", format_duration, lambda start_s: start_s),
        Column.text("What happens", lambda start_s: ", ".join(changes[start_s])),
        rate("offered"),
        rate("forwarded"),
        rate("dropped"),
        name="phases",
        title="Over time",
    )
