"""Figures in a page: what the script does with the SVG that stands there."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from routecast.show.figures import Axis, Figure, Line, Points, Stack
from routecast.show.page import Page, Section, render_page
from routecast.show.ticks import log_ticks, nice_step

pytestmark = pytest.mark.slow

HOSTILE = '</script><img src=x onerror="document.title=1">'
FIGURE = Figure(
    name="one",
    title="Throughput",
    caption="It bends.",
    x=Axis(title="cores"),
    y=Axis(title="throughput, Mpps", low=0.0),
    marks=(
        Line(
            name="predicted",
            x=(1.0, 2.0, 4.0, 8.0),
            y=(1.7, 3.3, 6.0, 9.9),
            low=(1.6, 3.0, 5.0, 7.0),
            high=(1.8, 3.6, 7.0, 12.0),
        ),
        Points(name="measured", x=(1.0, 4.0), y=(1.75, 6.04), colour="#d6812f", labels=("first", HOSTILE)),
        Points(name=HOSTILE, x=(2.0,), y=(3.0,), low=(2.5,), high=(3.5,), filled=False, symbol="cross"),
    ),
)
LOGARITHMIC = Figure(
    name="two",
    title="Latency",
    caption="",
    x=Axis(title="frames, B", scale="log", ticks=(64.0, 512.0, 1518.0)),
    y=Axis(title="latency, us", scale="log"),
    marks=(Line(name="p99", x=(64.0, 512.0, 1518.0), y=(1.0, 20.0, 400.0)),),
)
STACK = Figure(
    name="three",
    title="Energy",
    caption="",
    x=Axis(title="load"),
    y=Axis(title="energy, J"),
    marks=(
        Stack(name="active", x=(0.0, 1.0), y=(1.0, 2.0), colour="#4aa36a"),
        Stack(name="idle", x=(0.0, 1.0), y=(3.0, 1.0), colour="#3f6fb5"),
    ),
)


@pytest.fixture
def page(tmp_path: Path, page_of: Callable[[Path], Any]) -> Any:
    """A page with three figures, of which nothing may be heard on the console and nothing be asked for."""
    section = Section(anchor="s", title="S", blocks=(FIGURE, LOGARITHMIC, STACK))
    path = tmp_path / "page.html"
    path.write_text(render_page(Page(title="t", question="q", answer="a", sections=(section,))), encoding="utf-8")
    opened = page_of(path)
    yield opened.page
    assert opened.console == []
    assert opened.requests == opened.requests[:1]


def test_pointing_shows_the_value_and_its_interval(page: Any) -> None:
    target = page.evaluate(
        """(() => {
            const at = plots.one.targets().find(each => each.mark.name === 'predicted' && each.at === 3);
            const box = plots.one.svg.getBoundingClientRect();
            return [box.left + at.x, box.top + at.y];
        })()"""
    )
    page.mouse.move(*target)
    tip = page.locator("#plot-one .tip")
    assert tip.is_visible()
    for text in ("predicted", "cores: 8", "throughput, Mpps: 9.9", "from 7 to 12"):
        assert text in tip.inner_text()
    page.mouse.move(5, 5)
    assert not tip.is_visible()


def test_keys_walk_along_the_points_and_hostile_names_stay_text(page: Any) -> None:
    page.locator("#plot-one > svg").focus()
    seen = []
    for _ in range(7):
        page.keyboard.press("ArrowRight")
        seen.append(page.locator("#plot-one .tip").inner_text())
    assert any(HOSTILE in text for text in seen)
    assert page.locator("img").count() == 0
    assert page.title() == "t"
    page.keyboard.press("Escape")
    assert not page.locator("#plot-one .tip").is_visible()


def test_the_legend_hides_and_shows(page: Any) -> None:
    button = page.locator("#plot-one .legend button", has_text="measured").first
    circles = page.locator("#plot-one > svg circle:not(.ring)")
    assert circles.count() == 2
    button.click()
    assert button.get_attribute("aria-pressed") == "false"
    assert circles.count() == 0
    button.click()
    assert circles.count() == 2


def test_dragging_zooms_and_the_button_shows_the_whole_again(page: Any) -> None:
    labels = "[...document.querySelectorAll('#plot-one > svg text')].map(each => each.textContent)"
    before = page.evaluate(labels)
    box = page.locator("#plot-one > svg").bounding_box()
    page.mouse.move(box["x"] + 100, box["y"] + 100)
    page.mouse.down()
    page.mouse.move(box["x"] + 300, box["y"] + 105, steps=4)
    page.mouse.up()
    assert page.evaluate(labels) != before
    low, high = page.evaluate("[plots.one.x.low, plots.one.x.high]")
    assert 1.0 < low < high < 8.0
    page.locator("#plot-one .unzoom").click()
    assert page.evaluate(labels) == before


def test_other_marks_are_drawn_at_once(page: Any) -> None:
    line = {"kind": "line", "name": "new", "x": [0, 10, 20], "y": [0, 5, None], "colour": "#c8524a"}
    page.evaluate("line => plots.one.update([line], {x: {title: 'load'}})", line)
    assert page.locator("#plot-one > svg path[stroke='#c8524a']").count() == 1
    assert page.evaluate("plots.one.x.high") >= 20
    assert "load" in page.locator("#plot-one > svg").inner_html()


def test_ticks_are_those_of_python(page: Any) -> None:
    spans = [0.003, 0.7, 1.0, 4.9, 5.0, 33.0, 999.0, 1e7]
    assert page.evaluate("spans => spans.map(niceStep)", spans) == pytest.approx([nice_step(span) for span in spans])
    for low, high in ((2.4, 40.0), (1.0, 1.5), (0.013, 720.0), (64.0, 1518.0), (1e-7, 3.0)):
        assert page.evaluate("([a, b]) => logTicks(a, b)", [low, high]) == pytest.approx(list(log_ticks(low, high)))


def test_a_stack_piles_up(page: Any) -> None:
    tops = page.evaluate("[...pilesOf(plots.three.figure.marks).values()].map(([, high]) => high)")
    assert tops == [[1.0, 2.0], [4.0, 3.0]]


def test_themes_differ_and_print_shows_the_whole_figure(page: Any) -> None:
    ink = "getComputedStyle(document.querySelector('#plot-one > svg text')).fill"
    colours = []
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        colours.append(page.evaluate(ink))
    assert colours[0] != colours[1]
    page.emulate_media(media="print")
    assert page.locator("#plot-one > .still svg").is_visible()
    assert not page.locator("#plot-one > svg").is_visible()


@pytest.mark.parametrize("width_px", [1400, 390])
def test_figures_fit_the_window(page: Any, width_px: int) -> None:
    page.set_viewport_size({"width": width_px, "height": 800})
    page.wait_for_timeout(100)
    assert page.evaluate("document.documentElement.scrollWidth") <= width_px
    for name in ("one", "two", "three"):
        box = page.locator(f"#plot-{name} > svg").bounding_box()
        assert box["width"] > 0.7 * min(width_px, 1200)
    assert math.isclose(page.evaluate("plots.two.x.pixel(64)"), page.evaluate("plots.two.area.left"), abs_tol=60.0)


def test_text_stands_out_from_the_paper(page: Any) -> None:
    """WCAG 2.2, criterion 1.4.3: a contrast of 4.5 at least."""
    luminance = """name => {
        const colour = getComputedStyle(document.documentElement).getPropertyValue(name);
        const [r, g, b] = colour.match(/[0-9a-f]{2}/gi).map(each => parseInt(each, 16) / 255)
            .map(c => c <= .04045 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4);
        return .2126 * r + .7152 * g + .0722 * b;
    }"""
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        for ink in ("--ink", "--soft", "--accent", "--good", "--fair", "--bad"):
            for paper in ("--paper", "--card"):
                item, other = sorted((page.evaluate(luminance, ink), page.evaluate(luminance, paper)))
                assert (other + 0.05) / (item + 0.05) >= 4.5, f"{ink} on {paper}, {scheme}"
