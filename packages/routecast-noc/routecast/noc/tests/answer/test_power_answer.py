"""Power of routings and allocations, against Li's closed forms."""

from __future__ import annotations

from pathlib import Path

import pytest

import routecast
from routecast.noc._views.tables import crossover_lines, power_table, watts_table
from routecast.noc.answer.optimum import optimum_answer
from routecast.noc.answer.power import NO_DVFS, PowerAnswer, power_answer
from routecast.noc.file import NocChange, parse_noc, read_noc
from routecast.noc.router_table import router_table
from routecast.noc.tests.toy_scenario import closed_form

EXAMPLES = Path(routecast.__file__).parents[3] / "examples"
HOT_SPOT = (EXAMPLES / "hotspot.noc.toml").read_text(encoding="utf-8")
TABLE = """
name = "made up for this test"
ports = 5
point = [
  { frequency = "0.5 GHz", idle = "0.1 W", full = "0.2 W" },
  { frequency = "1 GHz", idle = "0.4 W", full = "1 W" },
]
"""


def test_power_without_scaling_is_linear_in_load_and_with_it_cubic_until_alpha_max() -> None:
    result = power_answer(parse_noc(HOT_SPOT, change=NocChange(load="0.25, 0.5, 0.8, 1", routings="xy")))
    full = result.of(NO_DVFS)[-1].power
    assert full is not None
    assert [row.power for row in result.of(NO_DVFS)] == pytest.approx([full * load for load in (0.25, 0.5, 0.8, 1)])
    # Property 1 of Li (2012); below load 1/alpha_max = 1/3 the voltage is at its least.
    assert [row.power for row in result.of("xy")] == pytest.approx(
        [full * 0.25 / 9, full * 0.5**3, full * 0.8**3, full]
    )


def test_the_fifth_figure_of_chapter_6_at_load_1() -> None:
    result = power_answer(parse_noc(HOT_SPOT, change=NocChange(load="1", routings="xy,2p_es")))
    xy, es = (result.of(key)[0].of_no_dvfs_ratio for key in ("xy", "2p_es"))
    assert xy == pytest.approx(1.0, rel=0.03)
    assert es == pytest.approx(0.40, rel=0.03)  # Li 2012, fig. 6.6
    assert result.of("2p_es")[0].of_xy_ratio == pytest.approx(es)


def test_the_toy_scenario_is_its_closed_form() -> None:
    result = power_answer(read_noc(EXAMPLES / "toy.noc.toml"))
    wanted = closed_form(low_flows=47, low_rate=0.2, alpha_max=3)
    powers = {row.key: row.power for row in result.rows}
    assert powers[NO_DVFS] == powers["xy"] == pytest.approx(wanted.one_plane)  # eq. 7.4
    assert powers["mini"] == powers["four_phase"] == pytest.approx(wanted.concentrated)  # eq. 7.6
    # The example is of a size at which concentration beats even a balance that may split flows (eq. 7.5).
    assert wanted.concentrated < wanted.balanced
    assert powers["search"] <= powers["mini"] * (1 + 1e-9)


def test_equal_parts_of_the_toy_scenario_are_eq_7_5() -> None:
    result = power_answer(read_noc(EXAMPLES / "toy.noc.toml"))
    (split,) = result.equal_parts
    # Li 2012, eq. 7.5: (1 + k rho) / 4, k = 47 and rho = 0.2.
    assert split.power == pytest.approx((1 + 47 * 0.2) / 4)
    assert split.alphas == (2.0, 2.0)
    row = next(row for row in power_table(result).rows if row[0] == "equal parts")
    assert row[4] == pytest.approx(2.6)
    assert result.recommended is not split
    assert result.to_json()["equal_parts"][0]["power"] == pytest.approx(2.6)


def test_one_plane_has_no_equal_parts() -> None:
    assert power_answer(parse_noc(HOT_SPOT, change=NocChange(load="1", routings="xy"))).equal_parts == ()


def leaky(tmp_path: Path, asleep: float = 1.0) -> PowerAnswer:
    """Two planes whose routers draw idle power: XY at the lowest clock up to load 0.5, twice its idle power for two."""
    (tmp_path / "router.nocpower.toml").write_text(TABLE, encoding="utf-8")
    text = (EXAMPLES / "two-planes.noc.toml").read_text(encoding="utf-8")
    power = f'alpha_max = 2\ntable = "router.nocpower.toml"\nasleep = {asleep}'
    text = text.replace("alpha_max = 3", power).replace('["balance", "mini", "four_phase", "search"]', '["mini"]')
    return power_answer(parse_noc(text, folder=tmp_path))


def test_idle_watts_are_those_of_all_routers_at_their_planes_clock(tmp_path: Path) -> None:
    result = leaky(tmp_path)
    item, two, full = (result.of(key)[0] for key in ("xy", "mini", NO_DVFS))
    # 25 routers a plane, 0.1 W each at 0.5 GHz and 0.4 W at 1 GHz; load 0.2 needs the slowest clock only.
    assert (item.idle_w, two.idle_w, full.idle_w) == pytest.approx((2.5, 5.0, 10.0))
    assert all(row.idle_w <= row.watts[0] for row in result.rows if row.idle_w is not None and row.watts is not None)


def test_two_planes_draw_less_than_one_from_some_load_on(tmp_path: Path) -> None:
    result = leaky(tmp_path)
    less = {row.load: row.watts < xy.watts for row, xy in zip(result.of("mini"), result.of("xy"), strict=True)}
    assert not less[0.2]
    assert less[1.0]
    since = min(load for load, is_less in less.items() if is_less)
    assert crossover_lines(result) == (f"Less power than XY on one plane: MINI from load {since:g} on.",)
    table = watts_table(result)
    assert table is not None
    assert table.columns[-1].title == "Idle"
    assert crossover_lines(result)[0] in table.caption


def test_a_table_without_idle_power_has_no_idle_watts() -> None:
    text = HOT_SPOT.replace("alpha_max = 3 ", 'alpha_max = 2\ntable = "intel-48-core" ')
    result = power_answer(parse_noc(text, change=NocChange(load="0.4", routings="xy")))
    assert all(row.idle_w is None for row in result.rows)
    table = watts_table(result)
    assert table is not None
    assert "Idle" not in {column.title for column in table.columns}


def test_a_load_over_capacity_has_no_power_and_a_note_names_the_link() -> None:
    result = power_answer(parse_noc(HOT_SPOT, change=NocChange(load="1.2")))
    rows = {row.key: row for row in result.rows}
    assert rows["xy"].power is None
    assert rows["xy"].alphas == ()
    assert rows["xy"].to_json()["is_over_capacity"]
    # A greedy routing round the hot spot still carries it.
    assert rows["adaptive"].power is not None
    note = next(note for note in result.notes if note.startswith("XY at load 1.2"))
    assert "->(2, 2) is loaded 1.2 times its capacity" in note
    assert "latency is unbounded" in note


def test_planes_carry_together_what_one_carries_alone() -> None:
    case = read_noc(EXAMPLES / "mpeg4.noc.toml", change=NocChange(load="0.9"))
    result = power_answer(case)
    alone = result.of("xy")[0]
    for key in ("balance", "mini", "four_phase", "search"):
        row = result.of(key)[0]
        assert len(row.planes) == 2
        assert row.hop_flow == pytest.approx(alone.hop_flow)  # all of them take shortest paths
        assert all(
            alpha * bottleneck <= 1 + 1e-9 for alpha, bottleneck in zip(row.alphas, row.bottlenecks, strict=True)
        )
        assert row.power == pytest.approx(
            sum(loads.sum() / alpha**2 for loads, alpha in zip(row.link_loads, row.alphas, strict=True))
        )


def test_no_routing_and_no_allocation_is_below_the_proven_bound() -> None:
    case = parse_noc(HOT_SPOT, change=NocChange(load="0.2, 1"))
    result = optimum_answer(case)
    for row in result.rows:
        assert row.optimum.gap <= 1e-6
        for beside in result.power.at(row.load):
            assert result.above_bound_ratio(beside.power, row) >= -1e-6  # type: ignore[operator]  # all are carried
    # At load 1 the links into the hot spot are what limits it; at load 0.2 the slowest clock has room on every link.
    names = {case.topology.link_name(link)[-6:] for link in result.rows[-1].bottlenecks(0)}
    assert names == {"(2, 2)"}
    assert result.rows[0].bottlenecks(0) == ()


def test_the_time_limit_of_a_file_holds_for_one_plane() -> None:
    text = """
[topology]
columns = 12
rows = 12
[traffic]
pattern = "normal"
load = 1.0
[routing]
policies = ["xy"]
[optimum]
time_limit = 0.05
"""
    (row,) = optimum_answer(parse_noc(text)).rows
    # No program of 30 thousand columns is done in that time, and without a limit it comes within 1e-6.
    assert row.optimum.gap > 1e-3
    assert 0.0 < row.optimum.lower_bound < row.optimum.power


def test_no_allocation_of_whole_flows_is_below_their_bound() -> None:
    case = read_noc(EXAMPLES / "mpeg4.noc.toml", change=NocChange(load="0.6, 1"))
    result = optimum_answer(case)
    for row in result.rows:
        allocated = [item.power for item in result.power.at(row.load) if item.is_allocation]
        assert row.whole_flow_bound >= row.optimum.lower_bound
        assert all(power is not None and power >= row.whole_flow_bound * (1 - 1e-9) for power in allocated)
    # The largest flow fills its link, and a plane that holds it whole cannot slow down: splitting is worth a lot here.
    assert result.rows[-1].whole_flow_bound > 2 * result.rows[-1].optimum.power


def test_watts_follow_the_table_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "router.nocpower.toml").write_text(TABLE, encoding="utf-8")
    text = HOT_SPOT.replace("alpha_max = 3 ", 'alpha_max = 2\ntable = "router.nocpower.toml"\nclocks = "listed" ')
    result = power_answer(parse_noc(text, folder=tmp_path, change=NocChange(load="0.4", routings="xy")))
    table = router_table(tmp_path / "router.nocpower.toml")
    no_dvfs, xy = result.rows
    assert no_dvfs.watts is not None
    assert xy.watts is not None
    # Eq. 7.14 is linear in the load, so that the sum over 25 routers needs the sum of their loads alone.
    received = float(xy.link_loads[0].sum()) + float(xy.planes[0].demand.sum())
    for row, hertz in ((no_dvfs, 1e9), (xy, 0.5e9)):
        idle, full = table.idle_w(hertz), table.full_w(hertz)
        wanted = 25 * idle + received * (1e9 / hertz) / 5 * (full - idle)
        assert row.watts == pytest.approx((wanted, wanted))


def test_watts_that_a_table_cannot_give_are_left_out_with_the_reason() -> None:
    text = HOT_SPOT.replace("alpha_max = 3 ", 'alpha_max = 3\ntable = "intel-80-core" ')
    result = power_answer(parse_noc(text, change=NocChange(load="0.4", routings="xy")))
    assert all(row.watts is None for row in result.rows)
    assert any("watts are left out" in note for note in result.notes)
