"""What router files offer to choose from, and the routers that settings make."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from routecast.errors import ModelProblem
from routecast.evaluate.simulate import Simulate
from routecast.evaluate.solve import Solve
from routecast.load.frames import FrameMix
from routecast.plan.power.operating._setting import UNCHANGED
from routecast.plan.power.operating.optimise import tunable_router
from routecast.plan.tests.operating_machine import document, load_at, machine
from routecast.quantity.toml_file import parse_toml

EXPLICIT: dict[str, Any] = parse_toml(
    """
    [[port]]
    name = "eth0"
    link = "10 Gbit/s"
    entry = "work"
    [[pool]]
    name = "cpu"
    units = 3
    power = { active = "5 W", idle = "2 W" }
    [[task]]
    name = "work"
    needs = [{ pool = "cpu" }]
    parallel = 3
    service = { per_packet = "1 us" }
    """,
    "test",
)


def test_every_combination_is_there_once_and_polling_only_awake() -> None:
    settings = [candidate.setting for candidate in machine().candidates]
    # 2 numbers of cores, 2 clocks, polling without sleep, interrupt and lingering with 3 depths of sleep.
    assert len(settings) == len(set(settings)) == 2 * 2 * (1 + 2 * 3)
    assert all(not setting.sleep for setting in settings if setting.activation == "polling")


def test_a_setting_makes_the_router_that_it_says() -> None:
    for candidate in machine().candidates:
        pool, setting = candidate.model.pool("cpu"), candidate.setting
        assert pool.power is not None
        assert pool.units == setting.cores
        assert pool.frequency_hz == setting.frequency_hz
        assert pool.power.active_w == {1e9: 2.5, 2e9: 6.0}[setting.frequency_hz or 0.0]
        assert [state.name for state in pool.power.sleep] == {"": [], "C1": ["C1"], "C6": ["C1", "C6"]}[setting.sleep]
        for core in range(setting.cores):
            activation = candidate.model.task(f"core {core}").activation
            assert (activation.kind, activation.linger_s) == (setting.activation, setting.linger_s)


def test_parked_cores_draw_their_deepest_state_in_every_evaluator() -> None:
    load = load_at(1e5)
    candidate = next(entry for entry in machine().candidates if entry.setting.cores == 1 and not entry.setting.sleep)
    for trial in (Simulate(candidate.model, seed=1).trial(load, 0.02), Solve(model=candidate.model).trial(load, 0.02)):
        parked = sum(trial.energy_j["cpu parked"].values())
        assert parked == pytest.approx(0.1 * 0.02), trial.evaluator


def test_the_message_says_what_to_add_to_a_file_without_power_states() -> None:
    bare = document()
    del bare["power"]
    with pytest.raises(ModelProblem, match=r'pool "cpu" has no power states.*add to it power = \{ active') as raised:
        tunable_router(bare)
    assert raised.value.exit_code == 2


def test_a_dedicated_router_is_offered_polling_and_no_interrupts_of_unknown_cost() -> None:
    choices = machine({"activation": {"kind": "dedicated"}}).choices
    assert choices.activations == (("dedicated", 0.0), ("polling", 0.0))
    assert "lacks the cost of an interrupt" in choices.notes[0]


def test_costs_as_times_offer_no_clocks() -> None:
    choices = machine({"service": {"per_packet": "1 us"}}).choices
    assert choices.frequencies_hz == (None,)
    assert "give them in cycles" in choices.notes[0]


def test_an_explicit_router_with_a_common_queue_runs_on_fewer_cores() -> None:
    result = tunable_router(EXPLICIT)
    assert result.choices.cores == (1, 2, 3)
    tasks = {candidate.setting.cores: candidate.model.task("work").parallel for candidate in result.candidates}
    assert tasks == {1: 1, 2: 2, 3: 3}


def test_pinned_task_units_keep_all_their_cores() -> None:
    pinned = {**EXPLICIT, "task": [{**EXPLICIT["task"][0], "parallel": 1, "pin": [0]}]}
    choices = tunable_router(pinned).choices
    assert choices.cores == (3,)
    assert any("pinned" in note for note in choices.notes)


def test_task_units_of_several_kinds_stay_as_they_are() -> None:
    first = {**EXPLICIT["task"][0], "parallel": 1, "route": {"to": ["more"]}}
    second = {**first, "name": "more", "activation": {"kind": "interrupt"}, "route": {}}
    choices = tunable_router({**EXPLICIT, "task": [first, second]}).choices
    assert choices.activations == ((UNCHANGED, 0.0),)


def test_a_softirq_router_is_run_on_fewer_cores_too() -> None:
    softirq = {
        "builder": "softirq",
        "cores": 2,
        "per_packet": "1 us",
        "interrupt_cost": "2 us",
        "wakeup": {"mean": "20 us"},
        "power": {"active": "5 W", "idle": "2 W"},
    }
    result = tunable_router(softirq)
    modes = {(item.setting.cores, item.setting.mode) for item in result.candidates}
    assert modes == {(cores, mode) for cores in (1, 2) for mode in ("polling", "interrupt", "adaptive")}
    # To linger for as long as waking up takes, interrupt and wake-up, and five times.
    assert {candidate.setting.linger_s for candidate in result.candidates} == {0.0, 22e-6, 110e-6}


def test_several_pools_with_watts_need_a_name() -> None:
    two = {**EXPLICIT, "pool": [*EXPLICIT["pool"], {**EXPLICIT["pool"][0], "name": "gpu"}]}
    with pytest.raises(ModelProblem, match="several pools have power states"):
        tunable_router(two)
    assert tunable_router(two, pool="cpu").choices.pool == "cpu"
    with pytest.raises(ModelProblem, match='did you mean "cpu"'):
        tunable_router(two, pool="cpuu")


def test_states_that_look_exchanged_are_noted_and_tried_all_the_same() -> None:
    usual = machine().choices
    assert not any("exchanged" in note for note in usual.notes)
    swapped = copy.deepcopy(document())
    power = swapped["power"]
    power["performance"][0].update(active="7 W")  # the next, faster one draws 6 W
    power["sleep"][0].update(exit="60 us")
    power["sleep"][1].update(exit="2 us")
    result = tunable_router(swapped).choices
    clock, sleep = (note for note in result.notes if "exchanged" in note)
    assert "1 GHz is slower than 2 GHz and draws more when active, 7 W against 6 W" in clock
    assert "C6 is deeper than C1 and is left sooner, in 2 us against 60 us" in sleep
    assert (result.frequencies_hz, result.sleeps) == (usual.frequencies_hz, usual.sleeps)


def test_a_load_in_bit_s_is_of_the_frames_that_are_offered() -> None:
    in_bits = EXPLICIT | {"load": {"rate": "1 Gbit/s", "frames": "64 B"}}
    for frames, wire_bytes in ((None, 84), (FrameMix.fixed(512), 532)):
        load = tunable_router(in_bits, frames=frames).load
        assert load is not None
        # 20 B of gap and preamble a frame (S1).
        assert load.rate_pps == pytest.approx(1e9 / (8 * wire_bytes))
