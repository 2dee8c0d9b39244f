"""The table of what a study's source says beside what is found."""

from __future__ import annotations

from routecast.study.result import Statement, statements_table


def test_the_table_names_no_source_but_the_studys_own() -> None:
    row = Statement(says="Loss is rare.", where="p. 3", stated="0", here="0")
    table = statements_table([row], caption="A. Reader, My own measurements, 2020")
    assert table.caption == "A. Reader, My own measurements, 2020"
    assert table.title == "Statements of the source, and results here"
