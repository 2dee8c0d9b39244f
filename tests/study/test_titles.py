"""Titles that follow the values of a study's file."""

from __future__ import annotations

import tomllib

from routecast.study.reading import find_study
from routecast.study.titles import with_filled_titles


def test_the_shipped_titles_follow_the_values_of_a_changed_copy() -> None:
    text = find_study("meyer2014").read_text(encoding="utf-8")
    shipped, changed = (
        with_filled_titles(tomllib.loads(copy))
        for copy in (text, text.replace("cores = 8", "cores = 6").replace("50 Gbit/s", "25 Gbit/s"))
    )
    assert shipped["scenario"][1]["title"] == "Eight cores, two links of 50 Gbit/s"
    assert changed["scenario"][1]["title"] == "Six cores, two links of 25 Gbit/s"
    assert changed["title"].endswith("the six-core one that nobody had built")


def test_lists_are_read_out_and_other_braces_stay() -> None:
    scenario = {
        "name": "s",
        "title": "{cores} cores, {flows} flows, {x} and {}",
        "cores": [1, 2, 3, 4],
        "flows": [5, 40],
    }
    document = with_filled_titles({"title": "{s.cores} cores", "scenario": [scenario]})
    assert document["scenario"][0]["title"] == "One to four cores, five and 40 flows, {x} and {}"
    assert document["title"] == "One to four cores"
