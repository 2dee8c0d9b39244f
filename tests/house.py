"""The storeys of the house: a core, a lab that measures, and wings."""

from __future__ import annotations

__all__ = ["LAB", "WINGS"]

WINGS = ("experiment", "multistage", "noc", "plan")
"""Rooms above all floors: a wing imports the core and no other wing, and the core imports no wing."""
LAB = (
    "lab",
    "benchmark",
    "testbed",
    "study/wire",
    *("power/table", "power/table_views", "power/wire"),
    *(
        "cli/bed_options",
        "cli/benchmark",
        "cli/doctor",
        "cli/exchange",
        "cli/forwarding_rate",
        "cli/function_run",
        "cli/measure",
    ),
    *("cli/power_meters", "cli/power_table", "cli/testbed", "cli/workload"),
)
"""Rooms, parts of rooms and commands that measure: they import the core, and the core runs without them."""
