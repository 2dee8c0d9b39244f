"""Router power by clock and load: eq. 7.14, the figures of the sources, and messages about missing figures."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routecast.errors import FileProblem, ModelProblem, RoutecastError
from routecast.noc.router_table import ROUTER_TABLES, Clocks, RouterPoint, RouterTable, read_router_table, router_table

GHZ = 1e9

# Round figures made for these tests; no router's.
MADE_UP = RouterTable(
    name="made up",
    points=(
        RouterPoint(frequency_hz=1 * GHZ, voltage_v=0.8, idle_w=0.1, full_w=0.2, static_w=0.05),
        RouterPoint(frequency_hz=2 * GHZ, voltage_v=1.0, idle_w=0.3, full_w=0.7, static_w=0.08),
        RouterPoint(frequency_hz=3 * GHZ, voltage_v=1.2, idle_w=0.6, full_w=1.8, static_w=0.12),
    ),
)

loads = st.floats(min_value=0, max_value=1)
clocks_hz = st.floats(min_value=1 * GHZ, max_value=3 * GHZ)


@given(load=loads, frequency_hz=clocks_hz)
def test_power_is_linear_in_load_between_idle_and_full(load: float, frequency_hz: float) -> None:
    idle, full = MADE_UP.idle_w(frequency_hz), MADE_UP.full_w(frequency_hz)
    assert MADE_UP.power_w(0, frequency_hz) == pytest.approx(idle)
    assert MADE_UP.power_w(1, frequency_hz) == pytest.approx(full)
    # Eq. 7.14.
    assert MADE_UP.power_w(load, frequency_hz) == pytest.approx(idle + load * (full - idle))


@given(load=loads, slow_hz=clocks_hz, fast_hz=clocks_hz)
def test_power_does_not_fall_with_the_clock(load: float, slow_hz: float, fast_hz: float) -> None:
    slow_hz, fast_hz = sorted((slow_hz, fast_hz))
    assert MADE_UP.power_w(load, slow_hz) <= MADE_UP.power_w(load, fast_hz) + 1e-12
    assert MADE_UP.voltage_v(slow_hz) <= MADE_UP.voltage_v(fast_hz) + 1e-12


def test_stated_clocks_give_back_what_is_stated_and_the_middle_the_mean() -> None:
    for point in MADE_UP.points:
        assert MADE_UP.voltage_v(point.frequency_hz) == pytest.approx(point.voltage_v)
        assert MADE_UP.full_w(point.frequency_hz) == pytest.approx(point.full_w)
        assert MADE_UP.static_w(point.frequency_hz) == pytest.approx(point.static_w)
    assert MADE_UP.full_w(2.5 * GHZ) == pytest.approx((0.7 + 1.8) / 2)


@given(bottleneck=loads)
def test_the_clock_carries_the_bottleneck_and_no_listed_one_below_does(bottleneck: float) -> None:
    needed_hz = bottleneck * 3 * GHZ
    any_clock = MADE_UP.clock_hz(bottleneck)
    listed = MADE_UP.clock_hz(bottleneck, Clocks.LISTED)
    assert any_clock == pytest.approx(max(needed_hz, 1 * GHZ))
    assert listed in (1 * GHZ, 2 * GHZ, 3 * GHZ)
    assert listed >= needed_hz * (1 - 1e-8)
    assert listed == 1 * GHZ or listed - 1 * GHZ < needed_hz
    assert any_clock <= listed * (1 + 1e-9)


@pytest.mark.parametrize("bottleneck", [1.01, -0.1, float("nan")])
def test_no_clock_carries_more_than_the_fastest(bottleneck: float) -> None:
    with pytest.raises(RoutecastError, match="lower the load"):
        MADE_UP.clock_hz(bottleneck)


def test_a_load_over_one_flit_per_port_and_cycle_is_refused() -> None:
    with pytest.raises(RoutecastError, match=r"load 1\.2 flits per port and cycle"):
        MADE_UP.power_w(1.2, 2 * GHZ)


def test_the_48_core_router_has_the_power_and_efficiency_that_its_abstract_states() -> None:
    # P. Salihundam et al., IEEE JSSC 46(4), 2011: 550 mW at 2 GHz and 1.1 V, 1.28 Tb/s, 1.3 Tb/s/W at the highest
    # voltage; Li 2012, sec. 7.5: 2.35 GHz at 1.25 V.
    table = router_table("intel-48-core")
    assert table.full_w(2 * GHZ) == pytest.approx(0.55)
    assert table.voltage_v(2 * GHZ) == pytest.approx(1.1)
    assert table.voltage_v(2.35 * GHZ) == pytest.approx(1.25)
    bits_per_cycle = 1.28e12 / (2 * GHZ)
    assert bits_per_cycle * 2.35 * GHZ / table.full_w(2.35 * GHZ) == pytest.approx(1.3e12, rel=1e-3)


def test_the_80_core_router_has_the_clocks_that_li_2012_and_its_abstract_state() -> None:
    # Li 2012, sec. 7.5: 5.6 GHz at 1.3 V; S. Vangal et al., IEEE JSSC 43(1), 2008: 4.27 GHz at 1.07 V.
    table = router_table("intel-80-core")
    assert table.voltage_v(5.6 * GHZ) == pytest.approx(1.3)
    assert table.voltage_v(4.27 * GHZ) == pytest.approx(1.07)


@pytest.mark.parametrize(
    ("name", "missing"), [("intel-48-core", ("idle power",)), ("intel-80-core", ("idle power", "full power"))]
)
def test_figures_that_no_source_states_are_reported_as_missing(name: str, missing: tuple[str, ...]) -> None:
    table = router_table(name)
    assert table.missing == missing
    with pytest.raises(RoutecastError, match="states idle power nowhere"):
        table.power_w(0.5, table.fastest_hz)


def test_without_idle_power_the_power_is_bounded_by_none_and_by_full() -> None:
    table = router_table("intel-48-core")
    least, greatest = table.power_bounds_w(0.25, 2 * GHZ)
    assert (least, greatest) == (pytest.approx(0.25 * 0.55), pytest.approx(0.55))
    assert MADE_UP.power_bounds_w(0.25, 2 * GHZ) == (pytest.approx(0.4), pytest.approx(0.4))


def test_a_clock_outside_the_stated_ones_is_refused_with_their_range() -> None:
    with pytest.raises(
        RoutecastError, match=r"states full power from 2 to 2\.35 GHz only: give a table that states it at 1 GHz"
    ):
        router_table("intel-48-core").full_w(1 * GHZ)


@pytest.mark.parametrize("name", ROUTER_TABLES)
def test_every_point_that_ships_has_a_source(name: str) -> None:
    table = router_table(name)
    assert table.source
    assert all(point.source for point in table.points)


def test_csv_and_toml_give_the_same_table(tmp_path: Path) -> None:
    toml = tmp_path / "own.nocpower.toml"
    toml.write_text(
        'name = "own"\npoint = [{ frequency = "1 GHz", voltage = "0.8 V", idle = "100 mW", full = "200 mW" },'
        ' { frequency = "2 GHz", full = "700 mW" }]\n',
        encoding="utf-8",
    )
    table = tmp_path / "own.csv"
    table.write_text("frequency_hz,voltage_v,idle_w,full_w\n1e9,0.8,0.1,0.2\n2e9,,,0.7\n", encoding="utf-8")
    assert read_router_table(toml).points == read_router_table(table).points
    assert router_table(str(table)).name == "own"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("frequency_hz,full_w\n1e9,-1\n", 'row 1, column full_w: got "-1"'),
        ("frequency_hz,full_w\n,1\n", 'row 1, column frequency_hz: got ""'),
        ("frequency_hz,full_v\n1e9,1\n", 'column full_v: is not known: did you mean "full_w"'),
        ("voltage_v\n1\n", "has no column frequency_hz"),
        ("frequency_hz,full_w\n1e9\n", "row 1: has 1 cells and the header 2"),
        ("frequency_hz,full_w\n2e9,1\n1e9,1\n", "give clocks in rising order"),
        ("frequency_hz,idle_w,full_w\n1e9,2,1\n", "2 W is more than full power, 1 W"),
        ("frequency_hz,static_w,idle_w\n1e9,2,1\n", "2 W is more than idle power, 1 W"),
        ("frequency_hz,voltage_v\n1e9,1.2\n2e9,1.1\n", "a faster clock needs at least as much"),
        ("frequency_hz\n", "got none: give at least one clock"),
    ],
)
def test_a_wrong_table_is_refused_with_place_and_fault(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "own.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(FileProblem) as refused:
        read_router_table(path)
    assert words in str(refused.value)


def test_an_unknown_table_is_answered_with_the_nearest() -> None:
    with pytest.raises(RoutecastError, match='did you mean "intel-48-core"'):
        router_table("intel48core")


def test_a_router_has_a_port() -> None:
    with pytest.raises(ModelProblem, match="at least 1 port"):
        RouterTable(name="none", points=MADE_UP.points, ports=0)
