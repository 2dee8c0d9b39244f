"""Tables of plain values whose columns have a unit and a format, and CSV of plain data.

:func:`terminal_table` renders a table for a terminal, :func:`table_html` for a page.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

if TYPE_CHECKING:
    from rich.table import Table as RichTable
    from rich.text import Text

__all__ = [
    "Cell",
    "Column",
    "Table",
    "csv_of",
    "percent",
    "plain_lines",
    "scaled",
    "shown",
    "signed_percent",
    "table_html",
    "terminal_table",
    "text_table",
]


def csv_of(rows: Iterable[Mapping[str, object]]) -> str:
    r"""Return rows of plain data as CSV, in the units of their keys; unknown values are empty.

    The columns of nested values have joined names. Lists of texts form one cell. Other lists and encoded histograms are
    omitted, because they do not fit into a cell.

    Examples
    --------
    >>> csv_of([{"pps": 1.0, "latency": {"mean_s": None}, "notes": ["a", "b"], "flows": [{"pps": 1.0}]}])
    'pps,latency_mean_s,notes\n1.0,,a; b\n'
    """
    flat = [_flat(row) for row in rows]
    heads = dict.fromkeys(key for row in flat for key in row)
    text = io.StringIO()
    writer = csv.DictWriter(text, list(heads), lineterminator="\n")
    writer.writeheader()
    writer.writerows(flat)
    return text.getvalue()


def _flat(row: Mapping[str, object]) -> dict[str, object]:
    flat: dict[str, object] = {}
    for key, entry in row.items():
        if isinstance(entry, Mapping):
            flat |= {f"{key}_{inner}": part for inner, part in _flat(entry).items()}
        elif isinstance(entry, list | tuple):
            if all(isinstance(part, str) for part in entry):
                flat[key] = "; ".join(entry)
        elif not key.endswith("_base64"):
            flat[key] = entry
    return flat


Cell = str | float | int | bool | None
_Row = TypeVar("_Row")
_Row_contra = TypeVar("_Row_contra", contravariant=True)


def _no_cell(row: object) -> Cell:
    raise TypeError("a column of Table.of has a getter")


@dataclass(frozen=True, slots=True)
class Column(Generic[_Row_contra]):
    """A column: its title, its unit, the format of numbers (a specification or a function), and its cells.

    ``getter`` returns the cell of a row, for :meth:`Table.of`. ``wide`` columns are omitted on a terminal. Texts of a
    ``wrap`` column break into lines in a page.
    """

    title: str
    unit: str = ""
    form: str | Callable[[float], str] = ".4g"
    getter: Callable[[_Row_contra], Cell] = _no_cell
    align: Literal["left", "right"] = "right"
    group: str = ""
    wide: bool = False
    wrap: bool = False

    @classmethod
    def text(cls, title: str, getter: Callable[[_Row_contra], Cell] = _no_cell, **more: Any) -> Column[_Row_contra]:
        """Return a left-aligned column of texts; ``more`` are the other fields."""
        return cls(title, getter=getter, align="left", **more)


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table; ``strong`` has the numbers of highlighted rows, ``caption`` describes the content."""

    name: str
    title: str
    caption: str
    columns: tuple[Column[Any], ...]
    rows: tuple[tuple[Cell, ...], ...]
    strong: frozenset[int] = frozenset()

    @classmethod
    def of(
        cls,
        rows: Iterable[_Row],
        *columns: Column[_Row] | bool | None,
        name: str,
        title: str = "",
        caption: str = "",
        strong: Iterable[int] | Callable[[_Row], bool] = (),
    ) -> Table:
        """Return a table of objects, whose cells the getters of the columns take.

        Columns that are False or None are omitted, as in ``has_flows and Column(...)``. ``strong`` has the numbers of
        highlighted rows, or is a function that says whether the row of an object is highlighted.

        Examples
        --------
        >>> real, imag = Column("Re", getter=lambda z: z.real), Column("Im", getter=lambda z: z.imag)
        >>> Table.of([1 + 2j, 3j], real, imag, name="z").rows
        ((1.0, 2.0), (0.0, 3.0))
        """
        rows, shown_columns = tuple(rows), tuple(column for column in columns if isinstance(column, Column))
        cells = tuple(tuple(column.getter(row) for column in shown_columns) for row in rows)
        numbers = (n for n, row in enumerate(rows) if strong(row)) if callable(strong) else strong
        return cls(
            name=name, title=title, caption=caption, columns=shown_columns, rows=cells, strong=frozenset(numbers)
        )

    @classmethod
    def of_facts(cls, rows: Iterable[tuple[str, str]], *, name: str, title: str, caption: str = "") -> Table:
        """Return a table of names and values without column titles."""
        return cls(
            name=name, title=title, caption=caption, columns=(Column.text(""), Column.text("")), rows=tuple(rows)
        )


def text_table(rows: Iterable[Sequence[str]], heads: Sequence[str], *, name: str, caption: str = "") -> Table:
    """Return a table of texts, one column for each head."""
    columns = (Column.text(head, itemgetter(number)) for number, head in enumerate(heads))
    return Table.of(rows, *columns, name=name, caption=caption)


def scaled(factor: float, form: str) -> Callable[[float], str]:
    """Return a format of numbers in another unit: the number times the factor.

    Examples
    --------
    >>> scaled(1e-6, ".2f")(14_880_952.0)
    '14.88'
    """
    return lambda value: format(factor * value, form)


def percent(ratio: float) -> str:
    """Write a ratio as percent, for a column whose unit is %.

    Examples
    --------
    >>> percent(0.01234)
    '1.23'
    """
    return f"{100.0 * ratio:.2f}"


def signed_percent(ratio: float) -> str:
    """Write a signed ratio as percent, for a column of errors whose unit is %.

    Examples
    --------
    >>> signed_percent(0.01234)
    '+1.23'
    """
    return f"{100.0 * ratio:+.2f}"


def shown(cell: Cell, column: Column[Any]) -> str:
    """Write a cell in the format of its column; unknown values are a dash.

    Examples
    --------
    >>> shown(-0.0312, Column(title="Error", form="+.1%"))
    '−3.1%'
    """
    if cell is None or (isinstance(cell, float) and not math.isfinite(cell)):
        return "–"
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, str):
        return cell
    text = column.form(cell) if callable(column.form) else format(cell, column.form)
    if text[:1] in "+-" and not text.strip("+-0.% "):
        text = text[1:]  # a number that rounds to zero has no sign
    return text.replace("-", "−") if text[:1] == "-" else text


def plain_lines(table: Table) -> tuple[list[str], list[str]]:
    r"""Return the lines of the head and of the rows of a table as :func:`terminal_table` shows them, without styles.

    Examples
    --------
    >>> real, imag = Column("Re", "m", getter=lambda z: z.real), Column("Im", getter=lambda z: z.imag)
    >>> table = Table.of([1 + 2j], real, imag, name="z")
    >>> print(*[line for lines in plain_lines(table) for line in lines], sep="\n")
    Re
     m Im
    ─────
     1  2
    """
    columns = [(number, column) for number, column in enumerate(table.columns) if not column.wide]
    rows = [[shown(row[number], column) for number, column in columns] for row in table.rows]
    heads = [[column.title, *filter(None, [column.unit])] for _, column in columns]
    height = max(map(len, heads), default=0)
    heads = [[""] * (height - len(head)) + head for head in heads]
    widths = [max(map(len, [*head, *(row[n] for row in rows)])) for n, head in enumerate(heads)]

    def line(cells: Sequence[str], mark: str = "") -> str:
        aligned = [
            cell.rjust(width) if column.align == "right" else cell.ljust(width)
            for cell, width, (_, column) in zip(cells, widths, columns, strict=True)
        ]
        return " ".join([mark.ljust(1), *aligned] if table.strong else aligned).rstrip()

    rule = "─" * (sum(widths) + len(widths) - 1 + 2 * bool(table.strong))
    head_lines = [line([head[level] for head in heads]) for level in range(height)]
    row_lines = [line(row, "▸" if number in table.strong else "") for number, row in enumerate(rows)]
    return [*head_lines, rule], row_lines


def terminal_table(table: Table) -> RichTable:
    """Return a table for the terminal, with units below the titles of the columns and marked strong rows."""
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    rich = RichTable(
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        show_edge=False,
        padding=0,
        show_header=any(column.title for column in table.columns),
    )
    shown_columns = [number for number, column in enumerate(table.columns) if not column.wide]
    rows = [[shown(row[number], table.columns[number]) for number in shown_columns] for row in table.rows]
    if table.strong:
        rich.add_column("", width=1)
    for place, number in enumerate(shown_columns):
        column = table.columns[number]
        # Numbers must not break into lines; texts may.
        least = max((len(row[place]) for row in rows), default=0) if column.align == "right" else None
        rich.add_column(_head(column), justify=column.align, min_width=least, overflow="fold")
    for number, row in enumerate(rows):
        is_strong = number in table.strong
        mark = ["▸" if is_strong else ""] if table.strong else []
        rich.add_row(*[Text(cell) for cell in (*mark, *row)], style="bold" if is_strong else None)
    return rich


def _head(column: Column[Any]) -> Text:
    from rich.text import Text

    head = Text(column.title)
    if column.unit:
        head.append(f"\n{column.unit}", style="not bold dim")
    return head


def table_html(table: Table) -> str:
    """Return the table as HTML, with a row of group titles if columns have groups."""
    lines = ["<table>", "<thead>"]
    if any(column.group for column in table.columns):
        lines.append("<tr class='groups'>" + "".join(_group_cells(table.columns)) + "</tr>")
    head = "".join(
        f"<th class='{column.align}' scope='col'>{escape(column.title)}"
        + (f"<span class='unit'>{escape(column.unit)}</span>" if column.unit else "")
        + "</th>"
        for column in table.columns
    )
    lines += [f"<tr>{head}</tr>", "</thead>", "<tbody>"]
    for number, row in enumerate(table.rows):
        cells = "".join(
            f"<td class='{column.align}{' wrap' if column.wrap else ''}'>{escape(shown(cell, column))}</td>"
            for cell, column in zip(row, table.columns, strict=True)
        )
        lines.append(f"<tr class='strong'>{cells}</tr>" if number in table.strong else f"<tr>{cells}</tr>")
    return "\n".join([*lines, "</tbody>", "</table>"])


def _group_cells(columns: tuple[Column[Any], ...]) -> list[str]:
    spans: list[tuple[str, int]] = []
    for column in columns:
        if spans and spans[-1][0] == column.group:
            spans[-1] = (column.group, spans[-1][1] + 1)
        else:
            spans.append((column.group, 1))
    return [f"<th colspan='{span}' class='{'grouped' if group else ''}'>{escape(group)}</th>" for group, span in spans]
