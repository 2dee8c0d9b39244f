"""Tables on a terminal, readable at 80 columns."""

from __future__ import annotations

from rich import box
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from routecast.report.tables import Column, Table, shown

__all__ = ["print_table", "terminal_table"]


def print_table(console: Console, table: Table) -> None:
    """Print a table between its title and its caption, and an empty line."""
    if table.title:
        console.print(table.title, style="bold", markup=False)
    console.print(terminal_table(table))
    if table.caption:
        plain = table.caption.replace("**", "").replace("`", "").replace("Shaded rows", "▸ rows")
        console.print(plain, style="dim", markup=False)
    console.print()


def terminal_table(table: Table) -> RichTable:
    """Return a report's table for the terminal: unit below each column's name, strong rows marked."""
    rich = RichTable(
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        show_edge=False,
        padding=0,
        show_header=any(column.title for column in table.columns),
    )
    kept = [number for number, column in enumerate(table.columns) if not column.wide]
    rows = [[shown(row[number], table.columns[number]) for number in kept] for row in table.rows]
    if table.strong:
        rich.add_column("", width=1)
    for place, number in enumerate(kept):
        column = table.columns[number]
        # Numbers never break; texts may.
        least = max((len(row[place]) for row in rows), default=0) if column.align == "right" else None
        rich.add_column(_head(column), justify=column.align, min_width=least, overflow="fold")
    for number, row in enumerate(rows):
        is_strong = number in table.strong
        mark = ["▸" if is_strong else ""] if table.strong else []
        rich.add_row(*[Text(cell) for cell in (*mark, *row)], style="bold" if is_strong else None)
    return rich


def _head(column: Column) -> Text:
    head = Text(column.title)
    if column.unit:
        head.append(f"\n{column.unit}", style="not bold dim")
    return head
