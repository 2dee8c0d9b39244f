"""Queueing results against textbook values, against each other, and against simple simulation."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import simpson
from scipy.stats import lognorm, poisson

from routecast.errors import ModelProblem
from routecast.evaluate._general_queues import DD1, MD1, MG1, MG1K, Completion, ServiceMix
from routecast.evaluate._queue import MMc, MMcK, Tandem, erlang_b, erlang_c
from routecast.evaluate._two_moment_queues import DM1K, GIG1K, GIGc
from routecast.router.model import Interruptions, RandomTime

CONSTANT = ServiceMix(shares=(1.0,), times_s=(1.0,))
EXPONENTIAL = ServiceMix(shares=(1.0,), times_s=(1.0,), scv=1.0, law="exponential")
LOADS = st.floats(0.05, 0.97)


def test_erlangs_formulas_give_tabled_values():
    # Erlang B tables: 10 erlangs on 15 circuits block 3.65 %; 1 erlang on 5 blocks 0.307 %.
    assert erlang_b(10.0, 15) == pytest.approx(0.0365, abs=5e-5)
    assert erlang_b(1.0, 5) == pytest.approx(1.0 / 326.0)
    # C(2, 1) = a^2/(2 + a) = 1/3 for a = 1: Kleinrock, Queueing Systems 1, sec. 3.5.
    assert erlang_c(1.0, 2) == pytest.approx(1.0 / 3.0)


def test_mm1_is_kleinrocks():
    # Kleinrock sec. 3.2: T = 1/(mu - lambda), exponentially distributed.
    queue = MMc(arrival_pps=0.8, service_s=1.0)
    delay = queue.sojourn()
    assert delay.mean_s == pytest.approx(5.0)
    assert delay.p50_s == pytest.approx(5.0 * math.log(2.0), rel=1e-6)
    assert delay.p99_s == pytest.approx(5.0 * math.log(100.0), rel=1e-6)
    assert queue.waiting().p50_s == pytest.approx(5.0 * math.log(0.8 / 0.5), rel=1e-6)


@given(load=st.floats(0.1, 3.0), room=st.integers(1, 60))
def test_mm1k_is_the_geometric_formula(load, room):
    # Kleinrock eq. 3.27: P_K = (1 - rho) rho^K/(1 - rho^(K+1)).
    loss = 1.0 / (room + 1) if load == 1.0 else (1.0 - load) * load**room / (1.0 - load ** (room + 1))
    if abs(load - 1.0) > 1e-3 or load == 1.0:
        assert MMcK(arrival_pps=load, service_s=1.0, capacity_frames=room).loss_ratio == pytest.approx(loss, rel=1e-6)


def test_mm1k_has_its_percentiles():
    # Independent computation by Erlang tails: lambda 0.9, mu 1, K 50: P_K 5.1778e-4, L 8.76234, W 9.74098, p99 42.0320.
    queue = MMcK(arrival_pps=0.9, service_s=1.0, capacity_frames=50)
    assert queue.loss_ratio == pytest.approx(5.177791865e-4)
    assert queue.mean_frames == pytest.approx(8.762339353)
    assert queue.sojourn().mean_s == pytest.approx(9.740976290)
    assert queue.sojourn().p99_s == pytest.approx(42.03200645, rel=1e-6)


@given(load=LOADS, servers=st.integers(1, 8))
def test_a_long_finite_queue_is_an_infinite_one(load, servers):
    rate = load * servers
    finite = MMcK(arrival_pps=rate, service_s=1.0, servers=servers, capacity_frames=1500)
    infinite = MMc(arrival_pps=rate, service_s=1.0, servers=servers)
    assert finite.sojourn_mean_s == pytest.approx(infinite.sojourn_mean_s, rel=1e-6)
    assert finite.waiting_tail(2.0) == pytest.approx(infinite.waiting_tail(2.0), rel=1e-6, abs=1e-12)


def test_a_queue_close_to_saturation_has_its_percentiles():
    # Kleinrock sec. 3.2: exponential with mean 1/(mu - lambda), here a million services; of two servers half as much.
    for servers in (1, 2):
        queue = MMc(arrival_pps=servers * (1.0 - 1e-6), service_s=1.0, servers=servers)
        assert queue.sojourn().p999_s == pytest.approx(1e6 * math.log(1000.0) / servers, rel=1e-3)
    assert MMc(arrival_pps=1.0 - 1e-6, service_s=1.0, servers=1).sojourn_tail(1e6) == pytest.approx(math.exp(-1.0))


def test_mmc_sojourn_tail_is_continuous_where_its_formula_divides_by_zero():
    near = [MMc(arrival_pps=rate, service_s=1.0, servers=3).sojourn_tail(1.5) for rate in (2.0 - 1e-7, 2.0, 2.0 + 1e-7)]
    assert near[0] == pytest.approx(near[1], rel=1e-6) == pytest.approx(near[2], rel=1e-6)


@given(load=LOADS)
def test_md1_means_are_half_of_mm1_waits(load):
    # Pollaczek-Khinchine with c_s = 0: half of M/M/1's wait.
    assert MD1(arrival_pps=load, service_s=1.0).waiting_mean_s == pytest.approx(
        0.5 * MMc(arrival_pps=load, service_s=1.0).waiting_mean_s
    )


def test_md1_waits_are_distributed_as_crommelins_series():
    # Crommelin/Erlang: P(W <= t) = (1-rho) sum_{j<=t} exp(lambda(t-j)) (lambda(j-t))^j/j! (D = 1), fine for small t.
    load = 0.7
    for time in (0.0, 0.3, 1.0, 1.5, 2.7, 4.2):
        series = (1 - load) * sum(
            math.exp(load * (time - j)) * (load * (j - time)) ** j / math.factorial(j) for j in range(int(time) + 1)
        )
        assert MD1(arrival_pps=load, service_s=1.0).waiting_tail(time) == pytest.approx(1.0 - series, abs=1e-12)


@given(load=LOADS)
@pytest.mark.slow
def test_md1_tail_integrates_to_the_mean(load):
    queue = MD1(arrival_pps=load, service_s=1.0)
    step, end = 0.05, 60.0 / (1.0 - load)
    count = min(int(end / step), 6000)
    step = end / count
    total = sum(queue.waiting_tail((i + 0.5) * step) for i in range(count)) * step
    assert total == pytest.approx(queue.waiting_mean_s, rel=0.02, abs=1e-4)


def test_md1k_has_the_values_of_its_small_cases():
    # K = 1 is Erlang loss, insensitive: rho/(1 + rho). K = 2: pi_0 = e^-rho, loss = 1 - 1/(e^-rho + rho).
    for load in (0.3, 0.9, 1.7):
        item = MG1K(arrival_pps=load, service=CONSTANT, capacity_frames=1)
        assert item.loss_ratio == pytest.approx(load / (1.0 + load))
        two = MG1K(arrival_pps=load, service=CONSTANT, capacity_frames=2)
        assert two.loss_ratio == pytest.approx(1.0 - 1.0 / (math.exp(-load) + load))


@given(load=st.floats(0.1, 3.0), room=st.integers(1, 80))
def test_mg1k_with_exponential_service_is_mm1k(load, room):
    general = MG1K(arrival_pps=load, service=EXPONENTIAL, capacity_frames=room)
    exact = MMcK(arrival_pps=load, service_s=1.0, capacity_frames=room)
    assert general.loss_ratio == pytest.approx(exact.loss_ratio, rel=1e-6, abs=1e-12)
    assert general.sojourn_mean_s == pytest.approx(exact.sojourn_mean_s, rel=1e-6)


@given(st.floats(-250.0, 6.0))
def test_how_much_service_varies_does_not_depend_on_the_unit_of_time(exponent):
    # Half the frames take thrice as long: mean 2, second moment 5, so 5 / 4 - 1.
    mix = ServiceMix(shares=(0.5, 0.5), times_s=(10.0**exponent, 3.0 * 10.0**exponent))
    assert mix.squared_cv == pytest.approx(0.25)


@given(load=st.floats(0.05, 0.9))
def test_mg1k_with_a_long_queue_is_mg1(load):
    mix = ServiceMix(shares=(0.5, 0.5), times_s=(0.5, 1.5), scv=0.5, law="gamma")
    finite = MG1K(arrival_pps=load, service=mix, capacity_frames=1000)
    assert finite.loss_ratio == pytest.approx(0.0, abs=1e-9)
    assert finite.sojourn_mean_s == pytest.approx(MG1(arrival_pps=load, service=mix).sojourn_mean_s, rel=1e-6)


@given(load=st.floats(2.0, 40.0), room=st.integers(2, 600))
def test_a_drowned_queue_loses_what_exceeds_its_server(load, room):
    queue = MG1K(arrival_pps=load, service=CONSTANT, capacity_frames=room)
    assert queue.loss_ratio >= 1.0 - 1.0 / load - 1e-12
    assert queue.mean_frames <= room


def test_md1k_agrees_with_a_simulation():
    load, room, frames = 0.9, 5, 200_000
    draw, now, lost, ends = random.Random(5), 0.0, 0, []
    for _ in range(frames):
        now += draw.expovariate(load)
        ends = [end for end in ends if end > now]
        if len(ends) >= room:
            lost += 1
        else:
            ends.append(max(now, ends[-1] if ends else now) + 1.0)
    queue = MG1K(arrival_pps=load, service=CONSTANT, capacity_frames=room)
    # Standard error of the loss ratio is about 0.001 (losses come in clusters).
    assert lost / frames == pytest.approx(queue.loss_ratio, abs=0.004)


@given(load=LOADS)
def test_gig1_is_exact_where_it_must_be(load):
    # Kraemer and Langenbach-Belz reduce to Pollaczek-Khinchine for c_a = 1.
    for scv in (0.0, 0.5, 1.0, 3.0):
        mix = ServiceMix(shares=(1.0,), times_s=(1.0,), scv=scv, law="gamma" if scv else "deterministic")
        approximation = GIGc(arrival_pps=load, arrival_scv=1.0, service_s=1.0, service_scv=scv)
        assert approximation.waiting_mean_s == pytest.approx(MG1(arrival_pps=load, service=mix).waiting_mean_s)
        # Kingman's bound (Biometrika 49, 1962; Kleinrock, Volume 2, sec. 2.2), here with gaps of mean 1/load, scv 1.
        bound_s = load * (1.0 / load**2 + scv) / (2.0 * (1.0 - load))
        assert approximation.waiting_mean_s <= bound_s * (1.0 + 1e-9)
    assert GIGc(arrival_pps=load, arrival_scv=0.0, service_s=1.0, service_scv=0.0).waiting_mean_s == 0.0
    common = GIGc(arrival_pps=4 * load, arrival_scv=1.0, service_s=1.0, service_scv=1.0, servers=4)
    assert common.waiting_mean_s == pytest.approx(MMc(arrival_pps=4 * load, service_s=1.0, servers=4).waiting_mean_s)


def test_equal_gaps_never_wait_until_the_server_is_full():
    assert DD1(arrival_pps=1.0, service_s=1.0, capacity_frames=10).waiting_mean_s == 0.0
    over = DD1(arrival_pps=2.0, service_s=1.0, capacity_frames=10)
    assert over.loss_ratio == pytest.approx(0.5)
    assert 9.0 <= over.sojourn_mean_s <= 10.0


def test_a_jackson_tandem_adds_up_and_two_equal_stations_make_erlang_2():
    stations = (MMc(arrival_pps=0.5, service_s=1.0), MMc(arrival_pps=0.5, service_s=1.0))
    tandem = Tandem(stations=stations)
    assert tandem.sojourn_mean_s == pytest.approx(4.0)
    # Erlang-2 with rate 1/2: P(T > t) = e^{-t/2}(1 + t/2).
    for time in (0.0, 1.0, 5.0, 20.0):
        assert tandem.sojourn_tail(time) == pytest.approx(math.exp(-time / 2) * (1 + time / 2), rel=1e-6)
    assert math.isnan(Tandem(stations=(*stations, MMc(arrival_pps=0.5, service_s=1.0, servers=2))).sojourn_tail(1.0))


@pytest.mark.parametrize("load", [1.0, 1.5])
def test_unlimited_queues_refuse_overload(load):
    with pytest.raises(ModelProblem, match="not stable"):
        MMc(arrival_pps=load, service_s=1.0)
    with pytest.raises(ModelProblem, match="not stable"):
        MD1(arrival_pps=load, service_s=1.0)


@given(load=LOADS, times=st.tuples(st.floats(0.0, 50.0), st.floats(0.0, 50.0)))
def test_tails_fall_from_at_most_one(load, times):
    early, late = sorted(times)
    for queue in (
        MMc(arrival_pps=load, service_s=1.0),
        MD1(arrival_pps=load, service_s=1.0),
        MMc(arrival_pps=3 * load, service_s=1.0, servers=3),
        MMcK(arrival_pps=load, service_s=1.0, capacity_frames=20),
    ):
        assert 0.0 <= queue.sojourn_tail(late) <= queue.sojourn_tail(early) + 1e-9 <= 1.0 + 2e-9
        assert 0.0 <= queue.waiting_tail(late) <= queue.waiting_tail(early) + 1e-9 <= 1.0 + 2e-9


@pytest.mark.parametrize("load", [0.5, 0.9, 1.0, 1.1, 2.0])
@pytest.mark.parametrize("capacity", [9, 65])
def test_two_moments_are_near_the_exact_finite_queue_with_poisson_arrivals(load, capacity):
    near = GIG1K(arrival_pps=load, arrival_scv=1.0, service_s=1.0, service_scv=1.0, capacity_frames=capacity)
    exact = MMcK(arrival_pps=load, service_s=1.0, capacity_frames=capacity)
    assert near.sojourn_mean_s == pytest.approx(exact.sojourn_mean_s, rel=0.08)
    # As a share of all frames, as in the range of validity.
    assert near.loss_ratio == pytest.approx(exact.loss_ratio, abs=0.007)


@given(load=st.floats(0.05, 0.9), arrival_scv=st.floats(0.0, 2.0), service_scv=st.floats(0.1, 2.0))
def test_a_long_queue_has_no_end(load, arrival_scv, service_scv):
    moments = {"arrival_pps": load, "arrival_scv": arrival_scv, "service_s": 1.0, "service_scv": service_scv}
    long, endless = GIG1K(**moments, capacity_frames=100_000), GIGc(**moments)
    assert long.waiting_mean_s == pytest.approx(endless.waiting_mean_s, rel=1e-6, abs=1e-12)
    assert long.loss_ratio < 1e-12


@given(load=st.floats(0.1, 5.0), capacity=st.integers(1, 3000), service_scv=st.floats(1e-3, 3.0))
def test_a_finite_queue_bounds_waiting_and_loses_no_less_than_the_server_cannot_carry(load, capacity, service_scv):
    queue = GIG1K(arrival_pps=load, arrival_scv=0.0, service_s=1.0, service_scv=service_scv, capacity_frames=capacity)
    assert 0.0 <= queue.waiting_mean_s <= capacity
    assert max(1.0 - 1.0 / load, 0.0) - 1e-9 <= queue.loss_ratio <= 1.0


def mg1k_by_quadrature(density, load, room):
    """Loss and mean wait of M/G/1/K from arrivals counted by quadrature, with a dense linear solver."""
    x = np.exp(np.linspace(-60.0, math.log(300.0), 20_001))
    weights = density(x) * x
    counts = [simpson(weights * poisson.pmf(n, load * x), np.log(x)) for n in range(room)]
    moves = np.zeros((room, room))
    for left in range(room):
        first = max(left - 1, 0)
        moves[left, first : room - 1] = counts[: room - 1 - first]
        moves[left, room - 1] = 1.0 - moves[left, : room - 1].sum()
    equations = np.vstack([moves.T - np.eye(room), np.ones(room)])
    behind = np.linalg.lstsq(equations, np.append(np.zeros(room), 1.0), rcond=None)[0]
    loss = 1.0 - 1.0 / (behind[0] + load)
    frames = np.arange(room + 1) @ np.append(behind / (behind[0] + load), loss)
    return loss, frames / (load * (1.0 - loss)) - 1.0


@pytest.mark.parametrize("load", [0.5, 0.95, 1.5])
@pytest.mark.parametrize("law", ["lognormal", "hyperexponential"])
def test_mg1k_is_exact_for_the_laws_with_a_name(law, load):
    spread = math.sqrt(math.log(3.0))
    share = 0.5 * (1.0 + math.sqrt(1.0 / 3.0))

    def two_phases(x):
        return sum(2.0 * part**2 * np.exp(-2.0 * part * x) for part in (share, 1.0 - share))

    density = lognorm(spread, scale=math.exp(-0.5 * spread**2)).pdf if law == "lognormal" else two_phases
    service = ServiceMix(shares=(1.0,), times_s=(1.0,), scv=2.0, law=law)
    queue = MG1K(arrival_pps=load, service=service, capacity_frames=9)
    loss, wait = mg1k_by_quadrature(density, load, 9)
    assert queue.loss_ratio == pytest.approx(loss, rel=1e-5)
    assert queue.waiting_mean_s == pytest.approx(wait, rel=1e-5)


def test_uniform_times_count_arrivals_as_their_integral():
    # M/U/1/2 with times 0.4 to 1.6: nobody comes with probability (e^{-0.4λ} - e^{-1.6λ})/(1.2λ), Gross et al. 5.1.7.
    load = 0.9
    queue = MG1K(
        arrival_pps=load, service=ServiceMix(shares=(1.0,), times_s=(1.0,), scv=0.12, law="uniform"), capacity_frames=2
    )
    nobody = (math.exp(-0.4 * load) - math.exp(-1.6 * load)) / (1.2 * load)
    assert queue.loss_ratio == pytest.approx(1.0 - 1.0 / (nobody + load), rel=1e-12)


@pytest.mark.parametrize("load", [0.3, 0.8, 1.0, 2.0])
def test_dm1k_is_the_chain_of_what_arrivals_find(load):
    room = 6
    queue = DM1K(arrival_pps=load, service_s=1.0, capacity_frames=room)
    moves = np.zeros((room + 1, room + 1))
    for found in range(room + 1):
        inside = min(found + 1, room)
        moves[found, 1 : inside + 1] = poisson(1.0 / load).pmf(inside - np.arange(1, inside + 1))
        moves[found, 0] = 1.0 - moves[found].sum()
    state = np.linalg.matrix_power(moves, 4096)[0]
    assert queue.loss_ratio == pytest.approx(state[-1], rel=1e-9)
    assert queue.waiting_mean_s == pytest.approx(np.arange(room) @ state[:-1] / (1.0 - state[-1]), rel=1e-9)
    times = np.linspace(0.0, 60.0, 6001)
    tail = [queue.waiting_tail(time) for time in times]
    assert simpson(tail, times) == pytest.approx(queue.waiting_mean_s, rel=1e-3)
    assert queue.sojourn_mean_s == pytest.approx(simpson([queue.sojourn_tail(time) for time in times], times), rel=1e-3)


def test_a_long_dm1k_is_dm1():
    # D/M/1: σ = e^{-(1-σ)/0.8}; W = σ/(1-σ).
    sigma = 0.5
    for _ in range(200):
        sigma = math.exp(-(1.0 - sigma) / 0.8)
    queue = DM1K(arrival_pps=0.8, service_s=1.0, capacity_frames=400)
    assert queue.loss_ratio < 1e-30
    assert queue.waiting_mean_s == pytest.approx(sigma / (1.0 - sigma), rel=1e-9)


@pytest.mark.parametrize("capacity", [1, 9, 40])
@pytest.mark.parametrize("arrival", [0.2, 0.7, 1.5])
def test_an_interrupted_exponential_server_is_the_markov_chain_of_its_breakdowns(capacity: int, arrival: float) -> None:
    # A server that breaks down at work (rate r, repair rate d) is a Markov chain of frames and of up or down
    # (Avi-Itzhak and Naor, Operations Research 11(3), 1963, model B).
    service, broken, repaired = 1.0, 0.05, 0.1
    states = [(0, True), *((frames, up) for frames in range(1, capacity + 1) for up in (True, False))]
    rates = np.zeros((len(states), len(states)))
    for number, (frames, up) in enumerate(states):
        to = {(frames + 1, up): arrival} if frames < capacity else {}
        if frames and up:
            to |= {(frames - 1, True): service, (frames, False): broken}
        elif frames:
            to[frames, True] = repaired
        for state, rate in to.items():
            rates[number, states.index(state)] += rate
            rates[number, number] -= rate
    balance = np.vstack([rates.T, np.ones(len(states))])
    chances = np.linalg.lstsq(balance, np.append(np.zeros(len(states)), 1.0), rcond=None)[0]
    loss = sum(chance for chance, (frames, _) in zip(chances, states, strict=True) if frames == capacity)
    frames_inside = sum(chance * frames for chance, (frames, _) in zip(chances, states, strict=True))
    interruptions = Interruptions(rate_hz=broken, duration=RandomTime(mean_s=1.0 / repaired, variation="exponential"))
    mix = ServiceMix(
        shares=(1.0,),
        times_s=(interruptions.stretch / service,),
        scv=1.0 + interruptions.scatter_s / interruptions.stretch**2,
        law="other",
        completion=Completion(law="exponential", scv=1.0, interruptions=interruptions),
    )
    queue = MG1K(arrival_pps=arrival, service=mix, capacity_frames=capacity)
    assert queue.loss_ratio == pytest.approx(loss, rel=1e-6, abs=1e-9)
    assert queue.mean_frames == pytest.approx(frames_inside, rel=1e-6)


@pytest.mark.parametrize(
    ("law", "scv"), [("gamma", 0.3), ("uniform", 0.2), ("lognormal", 2.0), ("hyperexponential", 4.0)]
)
def test_hardly_ever_interrupted_services_lose_what_uninterrupted_ones_lose(law, scv) -> None:
    plain = ServiceMix(shares=(0.5, 0.5), times_s=(1.2, 0.6), scv=scv, law=law)
    rare = Interruptions(rate_hz=1e-9, duration=RandomTime(quantiles_s=(0.1, 0.5, 2.0)))
    interrupted = ServiceMix(
        shares=plain.shares,
        times_s=plain.times_s,
        scv=scv,
        law="other",
        completion=Completion(law=law, scv=scv, interruptions=rare),
    )
    losses = [MG1K(arrival_pps=0.9, service=mix, capacity_frames=17).loss_ratio for mix in (plain, interrupted)]
    assert losses[1] == pytest.approx(losses[0], rel=1e-6)
