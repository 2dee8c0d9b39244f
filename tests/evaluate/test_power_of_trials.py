"""Watts of trials: conservation, bounds, and theory against simulation (S6, S11)."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routecast.evaluate import Simulate, Solve
from routecast.evaluate.trial import Trial
from routecast.load import Arrivals, FlowSet, OfferedLoad
from routecast.router import (
    Activation,
    Policy,
    PowerDraw,
    RandomTime,
    ResourcePool,
    RouterModel,
    ServiceCost,
    SleepState,
    multicore,
)
from routecast.router.model import ActivationKind, PolicyKind, PollDiscipline

US = 1e-6
DEDICATED = Activation()
LIGHT = SleepState(name="C1", power_w=1.0, exit_s=1 * US, after_s=0.0)
DEEP = SleepState(name="C6", power_w=0.2, exit_s=20 * US, after_s=50 * US, wake_energy_j=1e-5)
DRAW = PowerDraw(active_w=10.0, idle_w=2.0, base_w=5.0)


def core(
    *sleep: SleepState, activation: Activation = DEDICATED, cores: int = 1, cost: ServiceCost | None = None
) -> RouterModel:
    return multicore(
        cores,
        cost or ServiceCost(per_packet_s=1 * US),
        power=replace(DRAW, sleep=sleep),
        activation=activation,
        link_bps=1e12,
    )


def napi(
    linger_s: float = 0.0,
    moderation_s: float = 0.0,
    discipline: PollDiscipline = "gated",
    wakeup: RandomTime | None = None,
) -> Activation:
    return Activation(
        kind="interrupt",
        interrupt_cost_s=2 * US,
        linger_s=linger_s,
        moderation_s=moderation_s,
        discipline=discipline,
        wakeup=wakeup,
    )


def at(rate_pps: float, arrivals: str = "poisson", flows: int = 1) -> OfferedLoad:
    process = Arrivals.poisson() if arrivals == "poisson" else Arrivals.cbr()
    return OfferedLoad(rate_pps=rate_pps, arrivals=process, flows=FlowSet.crafted(flows))


def simulated(model: RouterModel, load: OfferedLoad, duration_s: float = 0.5) -> Trial:
    return Simulate(model, seed=3, steady_state=False).trial(load, duration_s)


def watts(trial: Trial) -> float:
    assert trial.power is not None
    return trial.power.mean_w


def times_s(trial: Trial) -> dict[str, float]:
    """Seconds of the core in each state, from the joules."""
    powers = {"active": 10.0, "idle": 2.0, "C1": 1.0, "C6": 0.2, "waking": 10.0}
    return {state: joules / powers[state] for state, joules in trial.energy_j["cpu"].items() if state in powers}


@pytest.mark.parametrize("evaluator", [Simulate, Solve])
def test_a_trial_of_a_model_with_power_states_carries_watts_joules_per_packet_and_their_scope(
    evaluator: type[Simulate] | type[Solve],
) -> None:
    trial = evaluator(core()).trial(at(0.5e6), 2.0)
    power = trial.power
    assert power is not None
    # One core that works half of the time: 5 W of the board, 5 W of work, 1 W of idling.
    assert power.mean_w == pytest.approx(11.0, rel=0.01)
    assert power.energy_j == pytest.approx(2.0 * power.mean_w)
    assert power.packet_j == pytest.approx(power.mean_w / trial.forwarded_pps)
    assert power.bit_j == pytest.approx(power.packet_j / (8 * 64))
    assert power.scope == "package"
    assert math.fsum(trial.energy_j["cpu"].values()) == pytest.approx(power.energy_j)


def test_a_model_without_power_states_carries_none() -> None:
    trial = Solve(multicore(1, ServiceCost(per_packet_s=1 * US))).trial(at(0.5e6), 1.0)
    assert trial.power is None
    assert trial.energy_j == {}


@pytest.mark.parametrize("evaluator", [Simulate, Solve])
def test_scopes_are_not_mixed_silently_and_what_has_no_watts_is_named(evaluator: type[Simulate] | type[Solve]) -> None:
    model = multicore(1, ServiceCost(per_packet_s=1 * US), power=DRAW, bus_bytes_per_s=1e9)
    trial = evaluator(model).trial(at(0.1e6), 0.1)
    assert any('"bus"' in note and "watts" in note for note in trial.notes)
    other = PowerDraw(active_w=3.0, idle_w=1.0, scope="server")
    mixed = replace(model, pools=(model.pools[0], replace(model.pools[1], power=other)))
    trial = evaluator(mixed).trial(at(0.1e6), 0.1)
    assert trial.power is not None
    assert trial.power.scope == "package + server"
    assert any("different scopes" in note for note in trial.notes)


def test_a_wake_up_costs_its_energy_each_time() -> None:
    # A frame every 100 us, 1 us of work, 20 us out of C6: 79 us idle, of which 50 us in C1 and 29 us in C6.
    trial = simulated(core(LIGHT, DEEP), at(1e4, "cbr"), 0.2)
    joules = trial.energy_j["cpu"]
    assert joules["waking"] / trial.duration_s == pytest.approx(10.0 * 0.20 + 1e4 * 1e-5)
    assert joules["C1"] / trial.duration_s == pytest.approx(0.50 * 1.0)
    assert joules["C6"] / trial.duration_s == pytest.approx(0.29 * 0.2)
    assert joules["idle"] == 0.0
    assert trial.latency is not None
    assert trial.latency.mean_s == pytest.approx(21 * US)


@given(
    rate=st.floats(1e3, 1.5e6),
    linger=st.sampled_from([0.0, 5 * US, 1e-3]),
    kind=st.sampled_from(["dedicated", "interrupt", "polling"]),
    arrivals=st.sampled_from(["cbr", "poisson"]),
    states=st.sampled_from([(), (LIGHT,), (LIGHT, DEEP), (DEEP,)]),
)
def test_the_states_fill_the_time_and_the_watts_lie_between_sleep_and_work(
    rate: float, linger: float, kind: ActivationKind, arrivals: str, states: tuple[SleepState, ...]
) -> None:
    activation = napi(linger_s=linger) if kind == "interrupt" else replace(Activation(), kind=kind)
    model = core(*(replace(state, wake_energy_j=0.0) for state in states), activation=activation)
    for trial in (simulated(model, at(rate, arrivals), 0.02), Solve(model).trial(at(rate, arrivals), 0.02)):
        assert math.fsum(times_s(trial).values()) == pytest.approx(trial.duration_s, rel=1e-9)
        least_w = min((state.power_w for state in states), default=DRAW.idle_w)
        assert least_w - 1e-9 <= watts(trial) - DRAW.base_w <= DRAW.active_w + 1e-9
        assert all(joules >= 0.0 for joules in trial.energy_j["cpu"].values())


@pytest.mark.parametrize("evaluator", [Simulate, Solve])
def test_a_polling_core_burns_its_active_power_at_any_load(evaluator: type[Simulate] | type[Solve]) -> None:
    model = core(LIGHT, DEEP, activation=Activation(kind="polling"), cores=2)
    for rate in (1e4, 1e6, 3e6):
        trial = evaluator(model).trial(at(rate, flows=2), 0.05)
        assert watts(trial) == pytest.approx(5.0 + 2 * 10.0)


@pytest.mark.parametrize("activation", [Activation(), napi(), napi(linger_s=5 * US)])
@pytest.mark.slow
def test_racing_to_idle_the_power_falls_with_the_load(activation: Activation) -> None:
    model = core(LIGHT, DEEP, activation=activation)
    for evaluator in (Simulate(model, seed=1), Solve(model)):
        powers = [watts(evaluator.trial(at(rate), 0.5)) for rate in (0.9e6, 0.5e6, 0.2e6, 0.05e6, 0.005e6)]
        assert powers == sorted(powers, reverse=True)
        assert powers[-1] < 0.6 * powers[0]


def test_units_that_nobody_needs_sleep_through_the_trial() -> None:
    used, whole = core(DEEP), core(DEEP)
    whole = replace(whole, pools=(replace(whole.pools[0], units=4),))
    pinned = simulated(whole, at(0.2e6), 0.05)
    alone = simulated(used, at(0.2e6), 0.05)
    # Asleep but for the time until they fall asleep, which lies before the part that is evaluated.
    assert watts(pinned) - watts(alone) == pytest.approx(3 * DEEP.power_w)
    lazy = replace(used, pools=(*used.pools, ResourcePool(name="spare", power=replace(DRAW, sleep=(DEEP,)))))
    assert watts(simulated(lazy, at(0.2e6), 0.05)) - watts(alone) == pytest.approx(5.0 + DEEP.power_w)


def test_no_lingering_is_napi_and_endless_lingering_is_polling() -> None:
    load = at(0.3e6)
    plain = simulated(core(LIGHT, activation=napi()), load)
    assert simulated(core(LIGHT, activation=napi(linger_s=0.0)), load) == plain
    endless = simulated(core(LIGHT, activation=napi(linger_s=10.0)), load)
    polling = simulated(core(LIGHT, activation=Activation(kind="polling")), load)
    assert endless.latency == polling.latency
    assert watts(endless) == pytest.approx(watts(polling), rel=1e-9)
    # Between the two, lingering buys latency with watts.
    some = simulated(core(LIGHT, activation=napi(linger_s=3 * US)), load)
    assert plain.latency is not None
    assert some.latency is not None
    assert polling.latency is not None
    assert plain.latency.mean_s > some.latency.mean_s > polling.latency.mean_s
    assert watts(some) < watts(polling)


def test_interrupts_per_packet_fall_with_load_and_vanish_in_overload() -> None:
    # Bolla et al. 2009, fig. 6: batches grow with the load, until polls find enough to go on without interrupts.
    model = core(activation=napi())
    shares = []
    for rate in (0.05e6, 0.3e6, 0.6e6, 0.9e6, 1.3e6):
        trial = simulated(model, at(rate), 0.2)
        shares.append(trial.activity[1].interrupts_per_s / trial.forwarded_pps)
    assert shares == sorted(shares, reverse=True)
    assert shares[0] > 0.9
    assert shares[-1] == 0.0


@pytest.mark.parametrize("arrivals", ["cbr", "poisson"])
def test_idle_time_ends_well_below_the_maximum_rate(arrivals: str) -> None:
    # Bolla 2009, fig. 6: with interrupts that cost, no idle time is left at 700 of 1040 kpps; here at 0.75 of 1 Mpps.
    model, load = core(activation=napi()), at(0.75e6, arrivals)
    for trial in (Solve(model).trial(load, 1.0), simulated(model, load)):
        assert trial.loss_ratio == pytest.approx(0.0, abs=1e-6)
        assert trial.activity[1].busy_ratio > 0.98
        assert trial.activity[1].interrupts_per_s > 1e4
    nearly = Solve(model).trial(at(0.975e6, arrivals), 1.0)
    assert nearly.activity[1].busy_ratio == pytest.approx(1.0)
    theirs = simulated(model, at(0.975e6, arrivals)).activity[1]
    assert theirs.busy_ratio == pytest.approx(1.0, abs=1e-3)
    # Interrupts fill what full polls leave: (1 - 0.975) s of 2 us each.
    assert nearly.activity[1].interrupts_per_s == pytest.approx(12_500, rel=1e-6)
    assert theirs.interrupts_per_s == pytest.approx(12_500, rel=0.1)


def test_even_frames_may_wake_a_core_every_other_time() -> None:
    # At 320 kpps a core that was late to wake has no time to sleep before the next frame, and sleeps after that.
    model = core(replace(LIGHT, after_s=0.08 * US), activation=napi())
    load = at(0.32e6, "cbr")
    assert watts(Solve(model).trial(load, 1.0)) == pytest.approx(watts(simulated(model, load)), rel=2e-3)


@pytest.mark.parametrize("arrivals", ["cbr", "poisson"])
@pytest.mark.parametrize(
    "activation",
    [
        Activation(),
        napi(),
        napi(moderation_s=20 * US),
        napi(discipline="exhaustive", wakeup=RandomTime(mean_s=5 * US)),
        napi(linger_s=20 * US),
    ],
    ids=["dedicated", "NAPI", "moderated", "exhaustive", "lingering"],
)
@pytest.mark.parametrize("sleep", [(), (replace(LIGHT, after_s=1 * US), DEEP)], ids=["awake", "asleep"])
@pytest.mark.slow
def test_closed_form_and_simulation_draw_the_same_watts(
    sleep: tuple[SleepState, ...], activation: Activation, arrivals: str
) -> None:
    model = core(*sleep, activation=activation)
    for rate in (1e4, 1e5, 4e5, 8e5):
        load = at(rate, arrivals)
        formula, simulation = Solve(model).trial(load, 1.0), simulated(model, load)
        # Exact but where batches are taken at their mean size; the simulation's spread is 0.3 % here.
        assert watts(formula) == pytest.approx(watts(simulation), rel=0.015)
        mine, theirs = formula.activity[1], simulation.activity[1]
        assert mine.busy_ratio == pytest.approx(theirs.busy_ratio, abs=0.02)
        # Long before their mean is long, some batches are; and of rare interrupts a trial sees few.
        if theirs.interrupts_per_s > 1e3 and mine.busy_ratio < 0.9:
            assert mine.interrupts_per_s == pytest.approx(theirs.interrupts_per_s, rel=0.12)


@pytest.mark.parametrize("rate", [1e4, 1e5, 6e5])
@pytest.mark.parametrize("activation", [Activation(), napi(linger_s=15 * US)], ids=["dedicated", "lingering"])
@pytest.mark.slow
def test_latency_of_a_core_that_sleeps_is_that_with_set_up_times(activation: Activation, rate: float) -> None:
    model = core(replace(LIGHT, after_s=1 * US), DEEP, activation=activation)
    formula = Solve(model).trial(at(rate), 1.0).latency
    simulation = simulated(model, at(rate), 3.0).latency
    assert formula is not None
    assert simulation is not None
    assert formula.mean_s == pytest.approx(simulation.mean_s, rel=0.03)
    assert formula.p99_s == pytest.approx(simulation.p99_s, rel=0.05)


def test_units_of_one_queue_and_shared_units_are_approximate_and_say_so() -> None:
    item = core(LIGHT)
    twin = replace(item.tasks[1], name="core 1", pin=(0,))
    shared = replace(
        item,
        tasks=(
            replace(item.tasks[0], route=replace(item.tasks[0].route, to=("core 0", "core 1"))),
            item.tasks[1],
            twin,
        ),
    )
    load = at(0.2e6, flows=2)
    formula, simulation = Solve(shared).trial(load, 1.0), simulated(shared, load)
    assert any("is shared" in note for note in formula.notes)
    assert watts(formula) == pytest.approx(watts(simulation), rel=0.03)


@pytest.mark.parametrize("kind", ["preemptive", "round_robin"])
def test_states_fill_the_time_where_units_are_revoked(kind: PolicyKind) -> None:
    item = core(LIGHT, DEEP)
    quantum = 3 * US if kind == "round_robin" else None
    policy = replace(Policy(), kind=kind, quantum_s=quantum)
    urgent = replace(item.tasks[1], name="urgent", priority=1, batch_frames=8)
    model = replace(
        item,
        tasks=(
            replace(item.tasks[0], route=replace(item.tasks[0].route, to=("core 0", "urgent"))),
            item.tasks[1],
            urgent,
        ),
        pools=(replace(item.pools[0], policy=policy),),
    )
    trial = simulated(model, at(0.4e6, flows=2), 0.1)
    wakes = trial.energy_j["cpu"]["waking"]
    assert wakes > 0.0
    # The energy of wake-ups from C6 comes on top of the time; at this load nobody idles for 50 us.
    assert math.fsum(times_s(trial).values()) == pytest.approx(trial.duration_s, rel=1e-6)


def test_one_seed_gives_one_trace_of_a_core_that_sleeps() -> None:
    model = core(
        LIGHT, DEEP, activation=napi(linger_s=5 * US, wakeup=RandomTime(mean_s=3 * US, variation="exponential"))
    )
    first, again = simulated(model, at(1e5), 0.1), simulated(model, at(1e5), 0.1)
    other = Simulate(model, seed=4, steady_state=False).trial(at(1e5), 0.1)
    assert first.to_json() == again.to_json()
    assert first.power != other.power
