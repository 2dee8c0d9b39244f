"""What ``routecast function`` lists: the functions that ship, and the elementary operations."""

from __future__ import annotations

import math

from routecast.report.tables import Column, Table

__all__ = ["functions_document", "functions_table", "operations_document", "registry_table"]


def functions_table() -> Table:
    """Return the functions that ship."""
    from routecast.function.catalogue import function_names, read_function

    functions = [read_function(name) for name in function_names()]
    return Table(
        name="functions",
        title="Network functions",
        caption="Several in a row: `acl_firewall,nat44`. An own one: a *.function.toml. Real: --run runs it.",
        columns=(
            Column(title="Name", align="left"),
            Column(title="What it is", align="left"),
            Column(title="Directions", align="left"),
            Column(title="Real", align="left"),
        ),
        rows=tuple(
            (
                one.name,
                one.title,
                ", ".join(direction.name for direction in one.directions),
                "yes" if one.runs_as else "",
            )
            for one in functions
        ),
    )


def registry_table() -> Table:
    """Return the elementary operations."""
    from routecast.function.operations import OPERATIONS

    return Table(
        name="registry",
        title="Elementary operations",
        caption="Row: number in Table 1 of Baldi & Sapio 2018. Parameters in brackets need not be given.",
        columns=(
            Column(title="Operation", align="left"),
            Column(title="Parameters", align="left"),
            Column(title="Row"),
            Column(title="What it does", align="left"),
        ),
        rows=tuple(
            (
                one.name,
                ", ".join(
                    name if parameter.default is None else f"[{name}]" for name, parameter in one.parameters.items()
                ),
                "–" if one.row is None else str(one.row),
                one.meaning,
            )
            for one in OPERATIONS.values()
        ),
    )


def functions_document() -> dict[str, object]:
    """Return the functions that ship as plain data."""
    from routecast.function.catalogue import function_names, read_function

    functions = [read_function(name) for name in function_names()]
    return {
        "functions": [
            {
                "name": one.name,
                "title": one.title,
                "directions": [direction.name for direction in one.directions],
                "tables": {table.name: table.entries for table in one.tables},
                "runs_as": one.runs_as or None,
                "source": one.source,
            }
            for one in functions
        ]
    }


def operations_document() -> dict[str, object]:
    """Return the elementary operations as plain data."""
    from routecast.function.operations import OPERATIONS

    return {
        "operations": [
            {
                "name": one.name,
                "meaning": one.meaning,
                "table_1_row": one.row,
                "source": one.source,
                "parameters": [
                    {
                        "name": parameter.name,
                        "meaning": parameter.meaning,
                        "unit": parameter.unit,
                        "least": parameter.least,
                        "most": parameter.most if math.isfinite(parameter.most) else None,
                        "default": parameter.default,
                    }
                    for parameter in one.parameters.values()
                ],
            }
            for one in OPERATIONS.values()
        ]
    }
