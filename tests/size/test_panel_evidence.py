"""The panel of a table of points says nothing that a measured row of the same table refutes."""

from __future__ import annotations

import math
from typing import Any

import pytest

from routecast.calibration.forecast import Goal, forecast
from routecast.evaluate.point_table import parse_points
from routecast.evaluate.points import Point, calibrating
from routecast.explore.views import live_of_points
from routecast.load.frames import FrameMix
from routecast.load.offered import line_rate_pps
from routecast.quantity.parse import parse_bit_rate_bps

TABLES = {
    "one port of 10 Gbit/s, not stated": """cores,frame,throughput_mpps
1,64,3.3
1,128,3.3
1,512,2.3496
1,1518,0.8127
2,64,6.6
2,128,6.6
2,512,2.3496
2,1518,0.8127
4,64,13.2
4,128,8.4459
4,512,2.3496
4,1518,0.8127
""",
    "a ceiling that only a held-out row shows": """cores,frame,throughput_gbps,calibrate
1,1500,20,true
2,1500,40,true
4,1500,41,false
""",
    "a held-out row above what calibrates": """cores,frame,throughput_mpps,calibrate
1,64,1.0,true
2,64,2.0,true
4,64,6.0,false
""",
    "a knee": """cores,frame,throughput_mpps
1,64,2.0
2,64,3.9
4,64,5.0
8,64,5.2
""",
    "a card": """cores,frame,throughput_mpps
1,64,5.0
2,64,10.0
4,64,18.0
8,64,18.05
2,128,9.8
4,128,18.0
8,128,18.02
""",
    "a stated port": """cores,frame,throughput_mpps,link_gbps,ports
1,64,6.0,10,1
2,64,11.8,10,1
4,64,14.88,10,1
1,512,2.3496,10,1
""",
    "a held-out row far below": """cores,frame,throughput_mpps,calibrate
1,64,1.1,true
2,64,2.2,true
3,64,3.3,true
4,64,2.4,false
8,64,2.5,false
""",
}
FAST = {"one port of 10 Gbit/s, not stated", "a ceiling that only a held-out row shows"}


@pytest.fixture(
    scope="module", params=[pytest.param(name, marks=() if name in FAST else pytest.mark.slow) for name in TABLES]
)
def table(request: pytest.FixtureRequest) -> tuple[tuple[Point, ...], dict[str, Any]]:
    points = parse_points(TABLES[request.param])
    return points, dict(live_of_points(points)[0].data)


def chance(data: dict[str, Any], cores: int, frame_bytes: float, ports: int, load_pps: float) -> float:
    """Return the probability that the page shows (``chance`` of ``explorer.js``), with the link at its start."""
    panel, found = data["panels"][0]["panel"], data["panels"][0]["forecast"]
    link = next(control for control in panel["controls"] if control["key"] == "link")
    line_pps = ports * line_rate_pps(parse_bit_rate_bps(link["values"][link["at"]]), frame_bytes)
    at = found["frames"].index(FrameMix.fixed(round(frame_bytes)).name)
    rates = [
        math.nan if rate is None else min(rate, line_pps)
        for rate in found["quantiles_pps"][found["cores"].index(cores)][at]
    ]
    rate_pps, levels = load_pps * (1.0 - found["tolerance_ratio"]), found["probabilities"]
    if rate_pps > line_pps:
        return 0.0
    above = next((number for number, rate in enumerate(rates) if rate >= rate_pps), None)
    if above is None:
        return math.nan if math.isnan(rates[-1]) else 1.0 - levels[-1]
    if above == 0:
        return 1.0 - levels[0]
    below = rates[above - 1]
    share = (rate_pps - below) / ((rates[above] - below) or 1.0)
    return 1.0 - levels[above - 1] - share * (levels[above] - levels[above - 1])


def busy_ports(data: dict[str, Any]) -> int:
    return len(data["panels"][0]["panel"]["base"]["model"]["ports"])


def test_no_measured_row_refutes_the_panel(table: tuple[tuple[Point, ...], dict[str, Any]]) -> None:
    points, data = table
    for row in points:
        # Beyond twice the noise of any table that measures a router rather than its own disturbances.
        missed = chance(data, row.cores, row.frame_bytes, busy_ports(data), 1.12 * row.throughput_pps)
        met = chance(data, row.cores, row.frame_bytes, busy_ports(data), 0.88 * row.throughput_pps)
        assert missed <= 0.05, row
        assert met >= 0.95, row
        if row.cores - 1 not in {0, *(other.cores for other in points)}:  # a measured count has its own row
            fewer = chance(data, row.cores - 1, row.frame_bytes, busy_ports(data), 1.12 * row.throughput_pps)
            assert fewer <= 0.05, row


def test_the_panel_is_as_sure_as_size(table: tuple[tuple[Point, ...], dict[str, Any]]) -> None:
    points, data = table
    model = max(calibrating(points), key=lambda point: (point.cores, -point.frame_bytes))
    mix = FrameMix.fixed(round(model.frame_bytes))
    rates = [point.throughput_pps for point in points if point.frame_bytes == model.frame_bytes]
    for goal_pps in (0.7 * min(rates), *(rate * ratio for rate in rates for ratio in (0.93, 1.04, 1.2))):
        goal = Goal(rate_pps=goal_pps, frames=mix, confidence_ratio=0.95)
        for count in forecast(points, goal, (1, 2, 3, 4, 6, 8), next_points=0).counts:
            shown = chance(data, count.cores, model.frame_bytes, busy_ports(data), goal_pps)
            if count.probability is None:
                assert math.isnan(shown), (goal_pps, count.cores)
            else:
                # The page interpolates between quantiles, and tells the last half percent at each end not apart.
                assert shown == pytest.approx(count.probability, abs=0.05), (goal_pps, count.cores)


def test_the_figure_without_scripts_holds_the_rows_in_its_band() -> None:
    points = parse_points(TABLES["a ceiling that only a held-out row shows"])
    line, _ = live_of_points(points)[0].figure.marks
    at = line.x.index(4.0)
    held_out_mpps = points[-1].throughput_pps / 1e6
    assert line.low[at] <= held_out_mpps <= line.high[at]
    assert line.high[at] <= 1.12 * held_out_mpps
    assert line.low[at] <= line.y[at] <= line.high[at]
