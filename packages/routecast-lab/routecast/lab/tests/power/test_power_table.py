"""The power benchmark's table on a fake router whose watts are known in closed form."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routecast.errors import ModelProblem
from routecast.evaluate.trial import Bottleneck, Trial, TrialPower
from routecast.lab.power.table import PowerTable, PowerTableSettings, power_table
from routecast.load import FrameMix, OfferedLoad

MAX_PPS = 2 * 10e9 / (8 * (FrameMix.imix().mean_bytes + 20))


@dataclass(slots=True)
class Heater:
    """Forwards at most ``capacity_pps`` and draws idle watts, and joules for each frame that it forwards."""

    capacity_pps: float = 3e6
    idle_w: float = 80.0
    packet_j: float = 20e-6
    has_meter: bool = True
    rates_pps: list[float] = field(default_factory=list)

    def trial(self, load: OfferedLoad, duration_s: float) -> Trial:
        self.rates_pps.append(load.rate_pps)
        forwarded = min(load.rate_pps, self.capacity_pps)
        l2_bps = forwarded * 8 * load.frames.mean_bytes
        mean_w = self.idle_w + self.packet_j * forwarded
        power = TrialPower(
            mean_w=mean_w,
            scope="wall",
            energy_j=mean_w * duration_s,
            packet_j=mean_w / forwarded,
            bit_j=mean_w / l2_bps,
            source="a fake",
        )
        return Trial(
            evaluator="fake",
            duration_s=duration_s,
            intended_pps=load.rate_pps,
            offered_pps=load.rate_pps,
            forwarded_pps=forwarded,
            loss_ratio=1.0 - forwarded / load.rate_pps,
            l1_bps=forwarded * 8 * (load.frames.mean_bytes + 20),
            l2_bps=l2_bps,
            bottleneck=Bottleneck(name="fake", kind="pool", reason="it is one"),
            power=power if self.has_meter else None,
        )


def table_of(router: Heater, settings: PowerTableSettings | None = None) -> PowerTable:
    load = OfferedLoad(rate_pps=1.0, frames=FrameMix.imix())
    return power_table(router, load, router="fake", ports=2, max_pps=MAX_PPS, settings=settings)


def test_the_lines_stand_in_the_order_of_the_draft_and_base_is_not_made_up() -> None:
    table = table_of(Heater())
    assert [row.name for row in table.rows] == ["base", "idle", "idle+", "typical", "loaded"]
    assert math.isnan(table.rows[0].power_w)
    assert "transceivers" in table.rows[0].not_measured
    assert table.scope == "wall"


def test_watts_of_every_line_are_those_of_the_router_at_its_load() -> None:
    table = table_of(Heater())
    # The search ends at most one goal width below the capacity.
    assert 3e6 * (1 - 0.005) <= table.throughput_pps <= 3e6
    _, idle, plus, typical, loaded = table.rows
    assert idle.power_w == pytest.approx(80.0, abs=1e-6)
    assert plus.intended_pps == 2.0
    assert plus.power_w == pytest.approx(80.0 + 2 * 20e-6)
    assert typical.power_w == pytest.approx(80.0 + 20e-6 * 0.3 * table.throughput_pps)
    assert loaded.power_w == pytest.approx(80.0 + 20e-6 * table.throughput_pps)


@given(st.floats(1e5, 5e6), st.floats(1.0, 500.0), st.floats(0.0, 1e-4))
def test_metrics_follow_from_the_routers_two_constants(capacity: float, idle_w: float, packet_j: float) -> None:
    table = table_of(Heater(capacity_pps=capacity, idle_w=idle_w, packet_j=packet_j))
    frame_bits = 8 * FrameMix.imix().mean_bytes
    full_w = idle_w + packet_j * table.throughput_pps
    typical_w = idle_w + 0.3 * packet_j * table.throughput_pps
    full_bps = frame_bits * table.throughput_pps
    mean_w = 0.1 * full_w + 0.8 * typical_w + 0.1 * idle_w
    # A search trial of 0.1 s at a rate above the capacity loses nothing as long as it is less than half a frame.
    half_frame = 0.5 / (0.1 * capacity)
    assert table.eer_bit_per_j == pytest.approx((0.1 + 0.8 * 0.3) * full_bps / mean_w, rel=1e-6 + half_frame)
    assert table.eer_unweighted_bit_per_j == pytest.approx(full_bps / mean_w, rel=1e-6 + half_frame)
    assert table.ecr_w_per_bps == pytest.approx(full_w / full_bps, rel=1e-6 + half_frame)
    assert table.proportionality_ratio == pytest.approx(1.0 - idle_w / full_w, abs=1e-6 + half_frame)


def test_an_access_routers_loads_get_a_line_of_their_own() -> None:
    table = table_of(Heater(), PowerTableSettings(load_ratios=(1.0, 0.1, 0.0)))
    assert [row.load_ratio for row in table.rows if row.name == "loaded"] == [0.1, 1.0]


def test_full_load_comes_last_so_that_the_router_is_seen_to_return_to_it() -> None:
    router = Heater()
    table = table_of(router)
    assert router.rates_pps[-1] == table.throughput_pps


def test_every_line_is_stabilised_before_it_counts_on_request() -> None:
    router = Heater()
    table = table_of(router, PowerTableSettings(stabilise_s=5.0))
    assert router.rates_pps[-2:] == [table.throughput_pps] * 2
    assert (table.stabilise_s, table.measure_s) == (5.0, 1.0)
    assert "energy over the length of the trial" in table.averaging


def test_a_router_without_power_states_is_refused_before_the_search_with_what_to_add() -> None:
    router = Heater(has_meter=False)
    with pytest.raises(ModelProblem, match="power = "):
        table_of(router)
    assert len(router.rates_pps) == 1


def test_a_router_that_loses_at_every_rate_has_no_table() -> None:
    with pytest.raises(ModelProblem, match="no rate without loss"):
        table_of(Heater(capacity_pps=10.0))


def test_an_invalid_trial_is_no_line() -> None:
    class Broken(Heater):
        def trial(self, load: OfferedLoad, duration_s: float) -> Trial:
            return replace(Heater.trial(self, load, duration_s), invalid=("the link went down",))

    with pytest.raises(ModelProblem, match="link went down"):
        table_of(Broken())


@pytest.mark.parametrize(
    "wrong",
    [
        {"weights": (0.1, 0.8, 0.2)},
        {"weights": (0.5, 0.5)},
        {"weights": (1.2, -0.1, -0.1)},
        {"load_ratios": (2.0, 0.3, 0.0)},
        {"measure_s": 0.0},
    ],
)
def test_settings_that_make_no_sense_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ModelProblem):
        PowerTableSettings(**wrong)  # type: ignore[arg-type]  # one wrong field at a time


def test_the_document_brings_the_definition_of_every_metric_and_no_nan() -> None:
    document = json.loads(json.dumps(table_of(Heater()).to_json(), allow_nan=False))
    assert document["rows"][0]["power_w"] is None
    assert "sum B_i T_i" in document["metrics"]["eer"]["formula"]
    assert "ES 203 136" in document["metrics"]["eer"]["source"]
