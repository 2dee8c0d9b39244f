"""Figures that stand alone as files: their ticks, their heading, and labels that do not cover one another."""

from __future__ import annotations

import math
from itertools import pairwise
from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st

from routecast.show.drawing import draw
from routecast.show.figures import Axis, Figure, Line, Points
from routecast.show.ticks import log_ticks

SVG = "{http://www.w3.org/2000/svg}"


def figure(*marks: Line | Points, title: str = "a figure", caption: str = "") -> Figure:
    x = Axis(title="x", scale="log")
    return Figure(name="f", title=title, caption=caption, x=x, y=Axis(title="y", low=0.0), marks=marks)


def texts(drawn: str) -> list[tuple[float, float, str]]:
    return [
        (float(node.attrib["x"]), float(node.attrib["y"]), node.text or "")
        for node in ElementTree.fromstring(drawn).iter(f"{SVG}text")
    ]


@given(st.floats(1e-9, 1e9), st.floats(1.0, 1e4))
def test_logarithmic_ticks_enclose_what_is_shown_and_are_round(least: float, ratio: float) -> None:
    ticks = log_ticks(least, least * ratio)
    assert ticks[0] <= least * 1.001
    assert ticks[-1] >= least * ratio * 0.999
    assert len(ticks) >= 2
    assert all(low < high for low, high in pairwise(ticks))
    digits = {round(tick / 10.0 ** math.floor(math.log10(tick) + 1e-9), 6) for tick in ticks}
    assert digits <= {1.0, 2.0, 5.0}


def test_a_decade_and_a_half_has_more_than_one_tick() -> None:
    shown = {text for _, _, text in texts(draw(figure(Line(name="l", x=(2.3, 40.0), y=(1.0, 2.0)))))}
    assert {"2", "5", "10", "20"} <= shown


def test_a_figure_that_stands_alone_bears_its_title_and_its_caption_above_all_else() -> None:
    line = Line(name="l", x=(1.0, 10.0), y=(1.0, 2.0))
    title, caption = "A & B: " + "a long title " * 12, "What is seen."
    placed = texts(draw(figure(line, title=title, caption=caption), has_heading=True))
    first_words = [text for _, _, text in placed]
    assert " ".join(first_words).startswith(" ".join(f"{title}{caption}".split()))
    heading = [at for _, at, text in placed if text in title or text == caption]
    rest = [at for _, at, text in placed if text not in title and text != caption]
    assert max(heading) < min(rest)
    assert title.strip() not in [text for _, _, text in texts(draw(figure(line, title=title)))]


def test_labels_of_points_never_cover_one_another() -> None:
    places = [1.0 + 0.02 * number for number in range(40)]
    labels = tuple(f"setting number {number}" for number in range(40))
    points = Points(name="p", x=tuple(places), y=(1.0,) * 40, labels=labels, is_labelled=True)
    written = [item for item in texts(draw(figure(points))) if item[2] in labels]
    assert 1 < len(written) < 40
    ends = sorted((left, left + 5.0 * len(text)) for left, _, text in written)
    assert all(right <= left for (_, right), (left, _) in pairwise(ends))


def test_labels_appear_under_the_pointer_unless_they_are_requested() -> None:
    points = Points(name="p", x=(1.0, 2.0), y=(1.0, 2.0), labels=("one", "two"))
    assert not {"one", "two"} & {text for _, _, text in texts(draw(figure(points)))}


def test_a_logarithmic_axis_that_shows_nothing_above_zero_is_drawn_all_the_same() -> None:
    empty = draw(figure(Points(name="p", x=(), y=())))
    nothing = draw(figure(Points(name="p", x=(math.nan,), y=(math.nan,))))
    for drawn in (empty, nothing):
        assert {"1", "10"} <= {text for _, _, text in texts(drawn)}
