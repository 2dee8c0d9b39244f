"""Columns of tables are typed: mypy finds a misspelt attribute of a row, and a value that is no cell."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from routecast.show import tables

RIGHT = (
    'Column("Rate", "pps", ".4g", lambda row: row.rate_pps)',
    'Column.text("Name", lambda row: row.name)',
    'is_shown and Column("Rate", getter=lambda row: row.rate_pps)',
    'Column[object]("Row", getter=str)',
)
MISSPELT = tuple(column.replace("row.rate_pps", "row.rate_pp").replace("row.name", "row.nam") for column in RIGHT[:3])
NO_CELL = 'Column("Rates", getter=lambda row: row.rates_pps)'

HEAD = """\
from dataclasses import dataclass
from tables import Column, Table

@dataclass
class Row:
    name: str
    rate_pps: float
    rates_pps: list[float]

def make(rows: tuple[Row, ...], is_shown: bool) -> None:
"""


@pytest.fixture(scope="module")
def problems(tmp_path_factory):
    """What mypy says of a table with each column, by the column."""
    mypy = pytest.importorskip("mypy.api")
    folder = tmp_path_factory.mktemp("columns")
    (folder / "tables.py").write_bytes(Path(tables.__file__).read_bytes())
    columns = (*RIGHT, *MISSPELT, NO_CELL)
    (folder / "rows.py").write_text(HEAD + "".join(f'    Table.of(rows, {text}, name="rows")\n' for text in columns))
    options = ["--config-file=", "--strict", "--no-site-packages", "--ignore-missing-imports", "--cache-dir=/dev/null"]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        output, errors, _ = mypy.run([*options, "rows.py"])
    assert not errors
    found: dict[str, str] = dict.fromkeys(columns, "")
    for line, problem in re.findall(r"^rows\.py:(\d+): error: (.*)$", output, re.MULTILINE):
        found[columns[int(line) - HEAD.count("\n") - 1]] += problem
    return found


@pytest.mark.parametrize("column", RIGHT)
def test_a_getter_that_fits_the_rows_passes(problems, column):
    assert problems[column] == ""


@pytest.mark.parametrize("column", MISSPELT)
def test_a_misspelt_attribute_is_found(problems, column):
    assert '"Row" has no attribute "' in problems[column]


def test_a_list_is_no_cell(problems):
    assert 'got "list[float]"' in problems[NO_CELL]
