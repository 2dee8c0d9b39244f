"""Sweeps: proportion to cores, agreement with single answers, flows that follow the cores, what is not known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routecast.errors import RoutecastError
from routecast.evaluate import Solve, lossless_pps
from routecast.evaluate.solve.without_loss import throughput_of
from routecast.evaluate.sweep import Settings, Sweep, parse_varied, sweep
from routecast.evaluate.sweep_views import sweep_page, sweep_table
from routecast.load import Flow, FlowSet, FrameMix, OfferedLoad
from routecast.load.arrivals import Arrivals
from routecast.load.offered import line_rate_pps
from routecast.quantity import parse_rate_pps
from routecast.quantity.value_list import parse_values
from routecast.router.files import build_router
from routecast.router.model import RouterModel
from routecast.show.page import render_page

LINEAR: Mapping[str, Any] = {
    "builder": "multicore",
    "cores": 1,
    "service": {"per_packet": "1 us"},
    "link": "100 Gbit/s",
}


def swept(*texts: str, document: Mapping[str, Any] = LINEAR, **options: Any) -> Sweep:
    def offered(settings: Settings, model: RouterModel, default: OfferedLoad | None) -> OfferedLoad:
        flows = FlowSet.crafted(int(settings.get("flows", len(model.ports))), ports=len(model.ports))
        frames = FrameMix.parse(str(settings.get("frame", "64 B")))
        return OfferedLoad(rate_pps=parse_rate_pps(str(settings.get("load", "1 pps"))), frames=frames, flows=flows)

    varied = parse_varied(texts, document, subject="router")
    return sweep(document, varied, offered, **options)


def test_a_router_of_cores_that_do_not_disturb_each_other_forwards_in_proportion_to_them() -> None:
    points = swept("cores=1..16").points
    # 1 us a frame: n cores forward n frames each microsecond.
    assert [point.lossless_pps for point in points] == pytest.approx([1e6 * cores for cores in range(1, 17)])
    assert [point.maximum_pps for point in points] == pytest.approx([1e6 * cores for cores in range(1, 17)])
    assert {point.bottleneck.name for point in points if point.bottleneck} == {"cpu"}


def test_links_limit_where_cores_no_longer_do_and_are_named() -> None:
    points = swept("frame=64,1518", "cores=1,4", document={**LINEAR, "link": "1 Gbit/s"}).points
    line = {size: 2 * line_rate_pps(1e9, size) for size in (64, 1518)}
    # S1: two links of 1 Gbit/s; one core, or four, of 1 us a frame.
    expected = [min(1e6, line[64]), min(4e6, line[64]), min(1e6, line[1518]), min(4e6, line[1518])]
    assert [point.lossless_pps for point in points] == pytest.approx(expected)
    kinds = [point.bottleneck.kind for point in points if point.bottleneck]
    assert kinds == ["pool", "link", "link", "link"]


def test_a_point_is_what_one_answer_for_the_same_router_says() -> None:
    document = {**LINEAR, "contention": {"sigma": 0.055}}
    for point in swept("cores=1,3,4", "frame=64,IMIX", document=document).points:
        cores = int(point.settings["cores"])
        model, _ = build_router({**document, "cores": cores})
        load = OfferedLoad(
            rate_pps=1e9,
            frames=FrameMix.parse(str(point.settings["frame"])),
            flows=FlowSet.crafted(point.flows, ports=2),
        )
        assert point.overloads_nothing_pps == pytest.approx(lossless_pps(model, load))
        assert point.lossless_pps == pytest.approx(throughput_of(model, load).rate_pps)
        assert 0.99 * point.overloads_nothing_pps <= point.lossless_pps <= point.overloads_nothing_pps
        assert point.bottleneck is not None
        assert point.bottleneck.name == Solve(model=model).trial(load, 1.0).bottleneck.name


@given(cores=st.integers(1, 128), ports=st.integers(1, 8))
def test_flows_that_follow_fill_every_core_alike(cores: int, ports: int) -> None:
    (point,) = swept(f"cores={cores}", document={**LINEAR, "ports": ports, "link": "1000 Gbit/s"}).points
    shares = FlowSet.crafted(point.flows, ports=ports).share_per_core(cores)
    assert shares == pytest.approx([1 / cores] * cores)
    assert point.lossless_pps == pytest.approx(cores * 1e6)


def test_flows_that_are_fixed_leave_cores_idle_and_a_note_follows() -> None:
    followed, fixed = swept("cores=1,8"), swept("cores=1,8", keeps_flows=True)
    assert "Flows follow the cores" in followed.notes[0]
    assert "Flows do not follow the cores" in fixed.notes[0]
    # Two flows, one for each port, reach two cores.
    assert [point.lossless_pps for point in fixed.points] == pytest.approx([1e6, 2e6])
    assert [point.flows for point in fixed.points] == [2, 2]


def test_a_load_gives_what_is_forwarded_and_lost() -> None:
    points = swept("load=1 Mpps,4 Mpps", document={**LINEAR, "cores": 2}, has_load=True).points
    trials = [point.trial for point in points if point.trial is not None]
    assert [trial.forwarded_pps for trial in trials] == pytest.approx([1e6, 2e6])
    assert [trial.loss_ratio for trial in trials] == pytest.approx([0.0, 0.5])


def test_the_simulator_agrees_with_the_closed_form() -> None:
    """Constant work: 20 ms of overload show each core's rate but for what stands in its queue at the end."""
    for point in swept("cores=1..3", simulates=True).points:
        assert point.simulated is not None
        assert point.simulated.forwarded_pps == pytest.approx(point.maximum_pps, rel=2e-3)


def test_without_the_closed_form_pages_and_tables_say_what_was_simulated() -> None:
    answer = swept("cores=1,2", simulates=True, solves=False, duration_s=0.02)
    both = swept("cores=1,2", simulates=True, duration_s=0.02)
    assert [point.simulated for point in answer.points] == [point.simulated for point in both.points]
    text = render_page(sweep_page(answer, command="routecast sweep"))
    assert "forwarded, simulated with line rate offered to every port." in text
    assert "What limits, of 2 points: not known" not in text
    assert "not known" not in repr(sweep_table(answer).rows)


def test_what_the_closed_form_does_not_know_stays_unknown() -> None:
    def offered(settings: Settings, model: RouterModel, default: OfferedLoad | None) -> OfferedLoad:
        bursts = Arrivals(kind="bursts", burst_frames=8.0) if settings["cores"] == 2 else Arrivals.cbr()
        # The flow of each burst is drawn by these weights, which has no closed form.
        drawn = FlowSet(name="uneven", flows=(Flow(rss_hash=0, weight=3.0), Flow(rss_hash=1)))
        return OfferedLoad(rate_pps=1e5, flows=drawn, arrivals=bursts)

    varied = parse_varied(["cores=1,2"], LINEAR, subject="router")
    answer = sweep(LINEAR, varied, offered, has_load=True)
    known, unknown = answer.rows()
    assert known["problem"] is None
    assert unknown["forwarded_pps"] is None
    assert unknown["bottleneck"] == {"name": None, "kind": None, "reason": None}
    assert "bursts" in str(unknown["problem"])


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        ([], "nothing varies"),
        (["cores"], "KEY=VALUES"),
        (["=1"], "KEY=VALUES"),
        (["coers=1"], 'did you mean "cores"?'),
        (["framez=64"], 'did you mean "frame"?'),
        (["frames=64", "frame=128"], "given twice"),
        (["service.per_packt=1 us"], 'did you mean "per_packet"?'),
        (["cores=16..1"], "write 1..16"),
        (["cores=1..4..2"], "is no range"),
        (["cores=1,,2"], "no value between two commas"),
        (["cores="], "there is no value"),
        (["cores=1..99999999"], "at most 10,000"),
        (["cores=1..200", "ports=1..200"], "40,000 combinations: at most 10,000"),
        (["cores=1", "cores=2"], "given twice"),
        (["load=1 Mpps", "load.rate=2 Mpps"], "given twice"),
        (["cores=0"], "cores = 0: cores: got 0"),
        (["cores=2.5"], "whole number"),
        (["cores=true"], "whole number"),
        (["frame=63"], "63"),
        (["frame=64 Mbit"], "64 Mbit"),
        (["load=3"], "no unit"),
        (["load=1..3 Gbit/s"], "a bit rate"),
        (["flows=0"], "whole numbers from 1"),
        (["flows=few"], "whole numbers from 1"),
        (["service.per_packet=1 us,3 Mpps"], "service.per_packet = 3 Mpps: service.per_packet"),
        (["link=10"], "no unit"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_cannot_vary_is_refused_before_anything_is_evaluated(texts: list[str], words: str) -> None:
    with pytest.raises(RoutecastError) as raised:
        swept(*texts)
    assert words in str(raised.value)


@pytest.mark.parametrize(
    ("document", "words"),
    [
        (
            {"builder": "parallel", "server": [{"name": "host", "cores": 4}], "machines": 2},
            '"machines" or "server[host].cores"',
        ),
        ({"port": [], "task": [], "pool": [{"name": "cpu", "units": 4}]}, '"pool[cpu].units"'),
        ({"builder": "network_processor", "processor": "ixp2850"}, '"engines"'),
    ],
    ids=["parallel", "explicit", "network processor"],
)
def test_a_router_without_cores_says_what_it_has_instead(document: dict[str, Any], words: str) -> None:
    with pytest.raises(RoutecastError) as raised:
        parse_varied(["cores=1..4"], document, subject="router")
    assert "has no number of cores" in str(raised.value)
    assert words in str(raised.value)


def test_a_range_is_bounded_and_values_count_once() -> None:
    assert parse_values("1..4,2", most=9) == (1, 2, 3, 4)
    assert parse_values("1..3 kpps", most=3) == ("1 kpps", "2 kpps", "3 kpps")
