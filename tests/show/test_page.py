"""Figures, tables and the page."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html import unescape
from xml.etree import ElementTree

import pytest

from routecast.show.drawing import draw
from routecast.show.figures import Axis, Figure, Line, Points, Stack, palette
from routecast.show.page import Page, Prose, Section, Tile, Tiles, render_page
from routecast.show.tables import Column, Table, shown, table_html

FIGURE = Figure(
    name="one",
    title="Throughput <of a router>",
    caption="It bends.",
    x=Axis(title="frame size [B]", scale="log", ticks=(64.0, 1518.0)),
    y=Axis(title="throughput [Gbit/s]"),
    marks=(
        Line(name="predicted", x=(64.0, 512.0, 1518.0), y=(1.0, 5.0, 10.0), low=(0.9, 4.0, 9.0), high=(1.1, 6.0, 10.0)),
        Points(name="measured", x=(64.0, 512.0), y=(1.05, float("nan")), labels=("a", "b")),
        Points(name="simulated", x=(64.0,), y=(1.0,), low=(0.8,), high=(1.2,), filled=False, symbol="cross"),
    ),
)
ENERGY = Figure(
    name="energy",
    title="Energy by state",
    caption="",
    x=Axis(title="load [Mpps]"),
    y=Axis(title="energy [J]"),
    marks=(
        Stack(name="active", x=(0.0, 1.0, 2.0), y=(0.0, 5.0, 10.0)),
        Stack(name="idle", x=(0.0, 1.0, 2.0), y=(20.0, 14.0, 8.0)),
    ),
)
TABLE = Table(
    name="t",
    title="A table",
    caption="c",
    columns=(Column(title="Model", align="left"), Column(title="Error", unit="%", form="+.2f", group="both")),
    rows=(("<b>", -1.5), ("y", float("nan")), ("z", 1e-9)),
    strong=frozenset({0}),
)
PAGE = Page(
    title="A & B",
    question="Which?",
    answer="**B**, not `A`",
    sections=(
        Section(
            anchor="s", title="S", lead="l", blocks=(Tiles((Tile(value="1 %", meaning="m"),)), FIGURE, ENERGY, TABLE)
        ),
        Section(anchor="p", title="P", blocks=(Prose(("</script> & text",)),)),
    ),
    provenance=(("Seed", "1"),),
    source="A paper",
)


@pytest.mark.parametrize("figure", [FIGURE, ENERGY], ids=["lines", "stack"])
def test_a_drawing_is_well_formed_and_stays_on_its_paper(figure: Figure) -> None:
    root = ElementTree.fromstring(draw(figure))
    width, height = (float(edge) for edge in root.attrib["viewBox"].split()[2:])
    for circle in root.iter("{http://www.w3.org/2000/svg}circle"):
        assert 0 <= float(circle.attrib["cx"]) <= width
        assert 0 <= float(circle.attrib["cy"]) <= height


def test_a_point_without_a_value_is_not_drawn() -> None:
    circles = draw(FIGURE).count("<circle")
    assert circles == 2  # one of the two measured points, and the legend's


def test_a_stack_piles_up_to_the_sum_of_its_layers() -> None:
    # 5 + 14 and 10 + 8 are below the 20 that the axis ends at, so the top edge falls from left to right.
    areas = re.findall(r'<path d="M([^"]+)Z" fill', draw(ENERGY))
    tops = [float(pair.split()[1]) for pair in areas[1].split("L")[:3]]
    assert tops[0] < tops[1] < tops[2]


def test_the_page_asks_for_nothing_and_allows_its_own_scripts_alone() -> None:
    html = render_page(PAGE)
    outside = re.sub(r"<script>.*?</script>", "", html, flags=re.DOTALL)
    assert not re.search(r"(src|href)=[\"']?(https?:)?//", outside)
    assert "@import" not in outside
    scripts = re.findall(r"<script>(.*?)</script>", html, flags=re.DOTALL)
    digests = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', html)
    assert policy
    allowed = unescape(policy[1]).split("; ")
    assert "default-src 'none'" in allowed
    assert " ".join(["script-src", *(f"'sha256-{each}'" for each in digests)]) in allowed
    assert len(html) < 60_000


def test_a_page_without_figures_has_no_script() -> None:
    page = Page(title="t", question="q", answer="a", sections=(Section(anchor="s", title="S", blocks=(TABLE,)),))
    html = render_page(page)
    assert "<script" not in html
    assert len(html) < 30_000


def test_every_mark_of_a_figure_is_there_for_the_script() -> None:
    result = re.search(r"const figures = (\[.*?\]);\n", render_page(PAGE))
    assert result
    item, energy = json.loads(result[1].replace("<\\/", "</"))
    assert [mark["kind"] for mark in item["marks"]] == ["line", "points", "points"]
    assert item["marks"][1]["y"] == [1.05, None]
    assert item["x"] == {"title": "frame size [B]", "scale": "log", "ticks": [64.0, 1518.0]}
    assert [mark["y"] for mark in energy["marks"]] == [[0.0, 5.0, 10.0], [20.0, 14.0, 8.0]]


def test_text_from_outside_cannot_become_markup() -> None:
    html = render_page(PAGE)
    assert "<td class='left'>&lt;b&gt;</td>" in html
    assert "A &amp; B" in html
    assert "&lt;/script&gt; &amp; text" in html
    assert "<strong>B</strong>, not <code>A</code>" in html


def test_unknown_numbers_are_dashes_and_zeros_have_no_sign() -> None:
    column = TABLE.columns[1]
    assert shown(float("nan"), column) == shown(None, column) == "–"
    assert shown(-1e-9, column) == "0.00"
    assert shown(-1.5, column) == "−1.50"


def test_group_titles_span_their_columns() -> None:
    assert "<th colspan='1' class='grouped'>both</th>" in table_html(TABLE)


def test_colours_differ_for_as_many_things_as_are_shown() -> None:
    assert len(set(palette(9))) == 9
    assert len(set(palette(7, ordered=False))) == 7
