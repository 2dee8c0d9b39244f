"""The table ``[power]`` of a test bed's file as settings of a meter."""

from __future__ import annotations

from typing import TYPE_CHECKING

from routecast.testbed.meters._finding import choose_meter
from routecast.testbed.meters._naming import MeterSettings
from routecast.testbed.meters.meter import PowerMeter

if TYPE_CHECKING:
    from routecast.testbed.document import MeterTable

__all__ = ["meter_for", "settings_of"]


def settings_of(table: MeterTable) -> MeterSettings:
    """Return how the meter of a file is asked."""
    return MeterSettings(
        interval_s=table.interval, scope=table.scope, verify_tls=table.verify_tls, timeout_s=table.timeout
    )


def meter_for(table: MeterTable | None, asked: str | None) -> tuple[PowerMeter | None, str]:
    """Return the meter of a run, and why there is none although one is wanted.

    ``table``: what the file says; ``asked``: what the command line says: it goes first, with the file's settings if it
    names the file's meter. ``"none"`` switches the file's meter off. Raises FileProblem: there is no meter of this
    name.
    """
    name = asked or (table.meter if table is not None else "none")
    if name == "none":
        return None, ""
    settings = settings_of(table) if table is not None and name == table.meter else MeterSettings()
    return choose_meter(name, settings)
