"""Figures and maps of networks on chip: their marks, positions and colours."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

import routecast
from routecast.noc._views.link_map import RIM_COLOUR, SCALE, LinkMap, MapPanel, colour_of, draw_link_map
from routecast.noc._views.pictures import LatencyCurve, latency_figure, optimum_map, power_by_load, power_map
from routecast.noc._views.tables import with_interval
from routecast.noc.answer.optimum import optimum_answer
from routecast.noc.answer.power import power_answer
from routecast.noc.file import NocChange, parse_noc, read_noc
from routecast.noc.simulate._result import MeanEstimate
from routecast.noc.topology import Topology, TopologyKind, links
from routecast.show.drawing import draw
from routecast.show.figures import Line, Points

SVG = "{http://www.w3.org/2000/svg}"
EXAMPLES = Path(routecast.__file__).parents[3] / "examples"


def mapped(topology: Topology, *panels: MapPanel) -> ElementTree.Element:
    item = LinkMap(name="m", title="A & B", caption="", topology=topology, panels=panels)
    return ElementTree.fromstring(draw_link_map(item, has_heading=True))


def bars(svg: ElementTree.Element) -> dict[str, ElementTree.Element]:
    """Return the bars by the name of their link."""
    results = {}
    for path in svg.iter(f"{SVG}path"):
        title = path.find(f"{SVG}title")
        if title is not None and title.text:
            results[title.text.partition(":")[0]] = path
    return results


def corners(path: ElementTree.Element) -> list[tuple[float, float]]:
    parts = path.attrib["d"].strip("MZ").split("L")
    return [(float(x), float(y)) for x, y in (part.split() for part in parts)]


@pytest.mark.parametrize(("columns", "rows"), [(4, 4), (16, 16), (5, 1), (1, 3)])
@pytest.mark.slow
def test_a_map_shows_every_link_once_apart_from_all_others(columns: int, rows: int) -> None:
    topology = Topology(kind=TopologyKind.MESH, columns=columns, rows=rows)
    count = len(links(topology))
    svg = mapped(topology, MapPanel(title="XY", loads=tuple(n / count for n in range(count))))
    drawn = bars(svg)
    assert set(drawn) == {topology.link_name(number) for number in range(count)}
    boxes = []
    for path in drawn.values():
        xs, ys = zip(*corners(path), strict=True)
        boxes.append((min(xs), min(ys), max(xs), max(ys)))
    for number, (left, top, right, bottom) in enumerate(boxes):
        for other in boxes[:number]:
            assert right < other[0] or other[2] < left or bottom < other[1] or other[3] < top
    width, height = (float(size) for size in svg.attrib["viewBox"].split()[2:])
    assert all(left > 0 and right < width and top > 0 and bottom < height for left, top, right, bottom in boxes)


def test_arrows_point_where_their_link_leads_and_keep_right() -> None:
    topology = Topology(kind=TopologyKind.MESH, columns=2, rows=2)
    drawn = bars(mapped(topology, MapPanel(title="", loads=(0.5,) * 8)))
    east, west = corners(drawn["(0, 0)->(1, 0)"]), corners(drawn["(1, 0)->(0, 0)"])
    south, north = corners(drawn["(0, 0)->(0, 1)"]), corners(drawn["(0, 1)->(0, 0)"])
    # The third corner is the tip.
    assert east[2][0] == max(x for x, _ in east)
    assert west[2][0] == min(x for x, _ in west)
    assert south[2][1] == max(y for _, y in south)
    assert north[2][1] == min(y for _, y in north)
    assert east[2][1] > west[2][1]
    assert south[2][0] < north[2][0]


def test_the_most_loaded_links_alone_have_a_rim() -> None:
    topology = Topology(kind=TopologyKind.MESH, columns=3, rows=1)
    drawn = bars(mapped(topology, MapPanel(title="", loads=(0.2, 0.9, 0.9, 0.1))))
    rimmed = {name for name, path in drawn.items() if path.get("stroke") == RIM_COLOUR}
    assert rimmed == {topology.link_name(1), topology.link_name(2)}
    idle = bars(mapped(topology, MapPanel(title="", loads=(0.0,) * 4)))
    assert all(path.get("stroke") is None for path in idle.values())


def test_links_that_close_a_ring_are_drawn_at_both_ends() -> None:
    topology = Topology(kind=TopologyKind.TORUS, columns=3, rows=3)
    svg = mapped(topology, MapPanel(title="", loads=(0.5,) * len(links(topology))))
    paths = [path for path in svg.iter(f"{SVG}path") if path.find(f"{SVG}title") is not None]
    # 3 rows and 3 columns close in both directions.
    assert len(paths) == len(links(topology)) + 12


def test_colours_run_from_idle_to_full_and_stop_there() -> None:
    assert [colour_of(load) for load, _ in SCALE] == [colour for _, colour in SCALE]
    assert colour_of(1.7) == colour_of(1.0)
    # Reds rise over greens with the load: the eye finds the hot links.
    warmth = [
        int(colour[1:3], 16) - int(colour[3:5], 16)
        for colour in (colour_of(load) for load in (0.3, 0.45, 0.55, 0.65, 0.8))
    ]
    assert warmth == sorted(warmth)


def test_power_is_drawn_relative_to_no_scaling_at_its_highest_load() -> None:
    case = read_noc(EXAMPLES / "hotspot.noc.toml", change=NocChange(routings="xy,2p_es", load="0.5,1,1.2"))
    result = power_answer(case)
    figure = power_by_load(result, optimum_answer(case, power=result))
    curves = {mark.name: mark for mark in figure.marks if isinstance(mark, Line)}
    # At 1.2 XY is over capacity and 2P-ES is not.
    assert curves["NoDVFS"].x == (0.5, 1.0)
    assert curves["NoDVFS"].y == pytest.approx((0.5, 1.0))
    assert curves["XY"].y == pytest.approx((0.125, 1.0))
    assert curves["2P-ES"].x == (0.5, 1.0, 1.2)
    lower = dict(zip(curves["optimum"].x, curves["optimum"].y, strict=True))
    for name in ("XY", "2P-ES"):
        pairs = zip(curves[name].x, curves[name].y, strict=True)
        assert all(lower[load] <= power * (1 + 1e-9) for load, power in pairs)
    assert draw(power_by_load(result)).startswith("<svg")


def test_latency_has_intervals_and_a_line_where_it_becomes_unbounded() -> None:
    curve = LatencyCurve(
        key="xy",
        name="XY",
        loads=(0.1, 0.2),
        cycles=(30.0, 40.0),
        low=(29.0, 38.0),
        high=(31.0, 42.0),
        saturated_from=0.3,
    )
    figure = latency_figure([curve], title="", caption="")
    upright = [mark for mark in figure.marks if isinstance(mark, Line) and mark.x == (0.3, 0.3)]
    (points,) = (mark for mark in figure.marks if isinstance(mark, Points))
    assert len(upright) == 1
    assert (points.low, points.high) == (curve.low, curve.high)
    assert figure.x.high is not None
    assert figure.x.high > 0.3


def test_a_curve_that_is_saturated_from_its_first_load_is_drawn_all_the_same() -> None:
    curve = LatencyCurve(key="xy", name="XY", loads=(), cycles=(), saturated_from=0.2)
    assert "saturated from 0.2" in draw(latency_figure([curve], title="", caption=""))


def test_latencies_far_apart_stand_on_a_logarithmic_axis() -> None:
    def scale(*cycles: float) -> str:
        curve = LatencyCurve(key="xy", name="XY", loads=(0.1, 0.2), cycles=cycles)
        return latency_figure([curve], title="", caption="").y.scale

    assert (scale(30, 90), scale(30, 900)) == ("linear", "log")


def test_maps_of_planes_and_of_the_optimum_have_a_panel_for_each() -> None:
    text = (EXAMPLES / "two-planes.noc.toml").read_text(encoding="utf-8")
    case = parse_noc(text.replace('"balance", "mini", "four_phase", "search"', '"mini"'), change=NocChange(load="1"))
    result = power_answer(case)
    titles = [panel.title for panel in power_map(result, 1.0, keys=("mini",)).panels]
    assert titles == ["MINI, plane 1", "MINI, plane 2"]
    best = optimum_answer(case, power=result)
    panels = optimum_map(best, best.rows[0]).panels
    assert [panel.title for panel in panels] == ["optimum, plane 1", "optimum, plane 2"]
    total = sum(sum(panel.loads) for panel in panels)
    assert total == pytest.approx(sum(plane.flow.sum() for plane in best.rows[0].optimum.planes))


def test_means_are_written_with_their_intervals() -> None:
    assert with_interval(MeanEstimate(value=43.714, half_width=0.123)) == "43.71 ± 0.12"
    assert with_interval(MeanEstimate(value=43.714)) == "43.71"
    assert with_interval(None) == "unbounded (saturated)"
