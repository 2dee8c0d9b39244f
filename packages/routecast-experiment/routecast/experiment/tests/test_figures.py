"""The pictures of an experiment: what they show is what was analysed, and nothing leaves the paper."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from itertools import pairwise
from xml.etree import ElementTree

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from routecast.experiment.model import Factor, Level, Results
from routecast.experiment.runs import wire_order
from routecast.experiment.tests import experiment_results as examples
from routecast.experiment.views._pictures import (
    effect_bars,
    half_normal_figure,
    interaction_panels,
    main_effect_panels,
    pictures_of,
    profile_panels,
    residual_panels,
    sample_panels,
)
from routecast.experiment.views._surface import contour_lines, surface_figure
from routecast.experiment.views._words import axis_of, scale_of
from routecast.show.drawing import columns_for, draw_panels, panel_px
from routecast.show.figures import Axis, Figure, Line, Points
from routecast.show.ticks import few_ticks, linear_ends

SVG = "{http://www.w3.org/2000/svg}"
DRAWN = ("paper", "replicated", "broken", "fraction", "surface", "sample", "multilevel")


def parts(name: str, response: str = "throughput"):  # type: ignore[no-untyped-def] # three values of three kinds
    results = getattr(examples, name)()
    assert isinstance(results, Results)
    response = results.experiment.responses[0].name
    return results, examples.analyses_of(results)[response], scale_of(results, response)


@pytest.mark.parametrize("name", DRAWN)
def test_every_picture_is_well_formed_and_its_marks_are_on_the_paper(name: str) -> None:
    results, analysis, scale = parts(name)
    pictures = pictures_of(results, analysis, scale)
    assert pictures
    for picture in pictures:
        root = ElementTree.fromstring(picture.svg(has_heading=True))
        width, height = (float(edge) for edge in root.attrib["viewBox"].split()[2:])
        for inner in (root, *root.iter(f"{SVG}svg")):
            wide = float(inner.attrib.get("width", width))
            tall = float(inner.attrib.get("height", height))
            for circle in inner.findall(f"{SVG}circle"):
                assert -1.0 <= float(circle.attrib["cx"]) <= wide + 1.0
                assert -1.0 <= float(circle.attrib["cy"]) <= tall + 1.0
        title = "".join(root.itertext())
        assert picture.title.split()[0] in title


def test_bars_are_the_shares_and_add_up_with_the_errors() -> None:
    _, analysis, _ = parts("replicated")
    bars = effect_bars(analysis)
    assert sum(bar.ratio for bar in bars) == pytest.approx(1.0)
    assert [bar.ratio for bar in bars[:-1]] == sorted((bar.ratio for bar in bars[:-1]), reverse=True)
    assert bars[-1].label == "errors (noise)"
    assert "99." in bars[2].text or "100.0" in bars[2].text


def test_main_effects_stand_where_the_means_of_the_levels_are_on_one_scale_for_all() -> None:
    results, analysis, scale = parts("paper")
    panels = main_effect_panels(results.experiment, analysis, scale)
    assert [panel.title for panel in panels] == ["A: packet size", "B: queue manager", "C: parse threads"]
    assert len({(panel.y.low, panel.y.high) for panel in panels}) == 1
    # 1500 -/+ 464 Mbit/s
    assert panels[0].marks[1].y == pytest.approx((1.036, 1.964))


def test_an_interaction_has_a_line_for_each_level_and_the_strongest_pair_comes_first() -> None:
    results, analysis, scale = parts("paper")
    first = interaction_panels(results.experiment, analysis, scale)[0]
    assert first.title == "AB: packet size x queue manager"
    lines = {mark.name: mark for mark in first.marks if isinstance(mark, Line)}
    # 1500 + a 464 + b 148 - ab 215, by hand
    assert lines["queue manager full"].y == pytest.approx((0.673, 2.031))
    assert lines["queue manager stub"].y == pytest.approx((1.399, 1.897))


def test_the_half_normal_plot_names_what_stands_out_and_has_the_margins() -> None:
    _, analysis, scale = parts("paper")
    figure = half_normal_figure(analysis, scale)
    assert figure is not None
    out = next(mark for mark in figure.marks if isinstance(mark, Points) and mark.name == "stands out")
    assert out.labels == ("queue manager", "packet size x queue manager", "packet size")
    assert out.x == pytest.approx((148.0, 215.0, 464.0))
    # Seven effects: the largest has the half-normal quantile of 6.5/7, 1.803 (tables of the normal distribution: z of
    # 0.9643).
    assert out.y[-1] == pytest.approx(1.803, abs=1e-3)
    margin = next(mark for mark in figure.marks if mark.name == "margin (one effect)")
    assert analysis.lenth is not None
    assert margin.x[0] == pytest.approx(analysis.lenth.margin / 1e6)
    assert half_normal_figure(parts("replicated")[1], scale) is None


def test_residuals_are_shown_over_prediction_order_and_scores_in_a_unit_of_their_own() -> None:
    results, analysis, scale = parts("replicated")
    panels = residual_panels(results, analysis, scale)
    assert [panel.x.title for panel in panels] == [
        "predicted throughput [Gbit/s]", "predicted throughput [Gbit/s]", "run", "normal score",
    ]  # fmt: skip
    cloud = next(mark for mark in panels[2].marks if isinstance(mark, Points))
    assert cloud.x == tuple(float(run) for run in range(1, 25))
    assert sum(cloud.y) == pytest.approx(0.0, abs=1e-6)
    assert panels[1].y.title == "residual [Mbit/s]"
    assert cloud.labels[3].startswith("run 4: packet size 1500 B, queue manager full")
    assert residual_panels(*parts("paper")) == ()


def test_runs_on_the_wire_stand_in_the_order_in_which_they_were_made() -> None:
    results = examples.results_of(
        examples.experiment(replications=3, evaluator="measure"), examples.noisy(examples.paper_value, 30e6)
    )
    analysis = examples.analyses_of(results)["throughput"]
    panels = residual_panels(results, analysis, scale_of(results, "throughput"))
    cloud = next(mark for mark in panels[2].marks if isinstance(mark, Points))
    order = wire_order(results.experiment.seed, 24)
    assert cloud.x[order[0]] == 1.0
    assert cloud.x[order[23]] == 24.0


def test_what_a_formula_leaves_over_is_shown_without_order_and_without_chance() -> None:
    sampled = examples.sample()
    bent = replace(
        sampled,
        answers=tuple(
            replace(answer, values={"throughput": 1e9 * math.exp(0.5 * run)})
            for answer, (run, *_) in zip(sampled.answers, sampled.experiment.design.coded, strict=True)
        ),
    )
    panels = residual_panels(bent, examples.analyses_of(bent)["throughput"], scale_of(bent, "throughput"))
    assert [panel.title for panel in panels] == ["Answered against predicted", "Residual over prediction"]
    assert residual_panels(*parts("sample")) == ()  # a polynomial of second order: nothing is left over


def test_a_surface_s_lines_lie_where_the_surface_has_their_value() -> None:
    results, analysis, scale = parts("surface")
    figure = surface_figure(results.experiment, analysis, scale)
    assert figure is not None
    assert analysis.surface is not None
    lines = [mark for mark in figure.marks if isinstance(mark, Line)]
    assert lines
    for line in lines:
        level = float(line.name.split()[0])
        for at in zip(line.x, line.y, strict=True):
            assert analysis.surface.at(at) / 1e9 == pytest.approx(level, abs=0.01)
    flat = figure.marks[-1]
    assert flat.name.startswith("highest point: 5.0")
    assert (flat.x[0], flat.y[0]) == pytest.approx((0.4, -0.3), abs=0.05)


def test_profiles_of_a_surface_have_their_top_at_its_highest_point() -> None:
    results, analysis, scale = parts("surface")
    for panel, top in zip(profile_panels(results.experiment, analysis, scale), (0.4, -0.3), strict=True):
        line = panel.marks[0]
        assert isinstance(line, Line)
        assert line.x[line.y.index(max(line.y))] == pytest.approx(top, abs=0.08)
        assert all(low <= value <= high for low, value, high in zip(line.low, line.y, line.high, strict=True))


def test_a_sample_shows_every_run_and_its_mean_climbs_with_the_factor_that_matters() -> None:
    results, analysis, scale = parts("sample")
    panels = sample_panels(results, analysis, scale)
    assert panels[0].title == "A: frame size"
    dots, trend = panels[0].marks[0], panels[0].marks[1]
    assert len(dots.x) == 200
    assert trend.y[-1] - trend.y[0] == pytest.approx(3.0 * (trend.x[-1] - trend.x[0]), rel=0.25)
    assert panels[-1].title == "D: ring length"


@given(st.floats(0.1, 0.9))
@example(0.5)  # goes through points of the grid
def test_a_contour_of_a_cone_is_a_circle(radius: float) -> None:
    grid = [-1.0 + 0.05 * step for step in range(41)]
    heights = [[math.hypot(x, y) for x in grid] for y in grid]
    lines = contour_lines(grid, grid, heights, radius)
    assert len(lines) == 1
    assert lines[0][0] == lines[0][-1]  # closed
    assert all(math.hypot(*at) == pytest.approx(radius, abs=0.02) for at in lines[0])


def test_a_contour_through_a_saddle_does_not_cross_itself() -> None:
    grid = [-1.0 + 0.1 * step for step in range(21)]
    heights = [[x * y for x in grid] for y in grid]
    lines = contour_lines(grid, grid, heights, 0.2)
    assert len(lines) == 2
    assert {x > 0.0 for line in lines for x, _ in line} == {True, False}
    assert all(len({x > 0.0 for x, _ in line}) == 1 for line in lines)
    assert contour_lines(grid, grid, heights, 7.0) == []


def test_panels_stand_side_by_side_and_do_not_overlap() -> None:
    item = Figure(
        name="f", title="a title", caption="", x=Axis(title="x"), y=Axis(title="y"),
        marks=(Line(name="l", x=(0.0, 1.0), y=(0.0, 1.0), legend=False),), height_px=200,
    )  # fmt: skip
    for count in range(1, 8):
        root = ElementTree.fromstring(draw_panels([item] * count, columns=columns_for(count), title="t"))
        width, height = (float(edge) for edge in root.attrib["viewBox"].split()[2:])
        boxes = [
            tuple(float(inner.attrib[key]) for key in ("x", "y", "width", "height"))
            for inner in root.findall(f"{SVG}svg")
        ]
        assert len(boxes) == count
        assert all(x + wide <= width + 1.0 and y + tall <= height + 1.0 for x, y, wide, tall in boxes)
        for first, (x, y, wide, tall) in enumerate(boxes):
            for u, v, _, _ in boxes[first + 1 :]:
                assert u >= x + wide or v >= y + tall or u + panel_px(columns_for(count)) <= x
    svg = draw_panels([item], columns=1, title="Told <above>", has_heading=True)
    assert re.search(r">Told &lt;above&gt;</text>", svg)


@pytest.mark.parametrize(("least", "greatest"), [(0.0, 0.0), (1e9, 1e9), (1e9, 1e9 + 1e-6), (-5.0, -5.0)])
def test_an_axis_of_one_value_has_a_length(least: float, greatest: float) -> None:
    low, high = linear_ends(least, greatest)
    assert low <= least <= greatest <= high
    assert high > low
    assert few_ticks(low, high)


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6))
def test_ends_of_an_axis_are_round_and_hold_what_is_shown(least: float, span: float) -> None:
    low, high = linear_ends(least, least + span)
    assert low <= least
    assert high >= least + span
    assert high - low <= 4.0 * max(span, abs(least), abs(least + span))
    ticks = few_ticks(low, high)
    assert 1 <= len(ticks) <= 6
    assert all(low - 1e-9 * abs(low) <= tick <= high + 1e-9 * abs(high) for tick in ticks)


@given(st.lists(st.integers(0, 1000), min_size=2, max_size=8, unique=True), st.sampled_from([260, 400, 800]))
@example([0, 11, 33, 88], 400)
def test_labels_of_levels_that_lie_close_together_do_not_run_into_each_other(places: list[int], width_px: int) -> None:
    coded = [2.0 * (place - min(places)) / (max(places) - min(places)) - 1.0 for place in places]
    factor = Factor(
        letter="A",
        name="load",
        levels=tuple(
            Level(coded=at, label=f"{place} Mpps", overrides={}) for at, place in zip(coded, places, strict=True)
        ),
        is_quantity=False,
    )
    axis = axis_of(factor, coded, width_px)
    assert axis.ticks is not None
    assert axis.low is not None
    assert axis.high is not None
    px = (width_px - 78.0) / (axis.high - axis.low)
    ends = [
        (px * at - 3.3 * len(label), px * at + 3.3 * len(label))
        for at, label in zip(axis.ticks, axis.labels or (), strict=True)
    ]
    assert all(before[1] <= after[0] for before, after in pairwise(ends))
    assert (axis.ticks[0], axis.ticks[-1]) == pytest.approx((-1.0, 1.0))
