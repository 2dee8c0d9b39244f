"""Random times: their moments and quantiles are those of the law or of the table."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routecast.errors import ModelProblem
from routecast.router import Activation, Interruptions, RandomTime, ResourcePool, RouterModel, station
from routecast.router.model import Need, Port, TaskUnit

LAWS = [
    RandomTime(mean_s=20e-6),
    RandomTime(mean_s=20e-6, variation="exponential"),
    RandomTime(mean_s=20e-6, variation="uniform", scv=0.3),
    RandomTime(mean_s=20e-6, variation="gamma", scv=0.4),
    RandomTime(mean_s=20e-6, variation="hyperexponential", scv=3.0),
    RandomTime(mean_s=20e-6, variation="lognormal", scv=1.5),
    RandomTime(quantiles_s=(5e-6, 12e-6, 20e-6, 20e-6, 40e-6, 400e-6)),
    RandomTime(quantiles_s=(7e-6,)),
]


@pytest.mark.parametrize("time", LAWS, ids=lambda time: time.variation if time.mean_s else "table")
@pytest.mark.slow
def test_moments_are_those_of_the_quantiles(time):
    # E[X^n] is the integral of q(u)^n; 3 %: the last of 20,000 points stands for a long tail.
    points = [time.quantile_s((number + 0.5) / 20_000) for number in range(20_000)]
    assert points == sorted(points)
    assert math.fsum(points) / len(points) == pytest.approx(time.average_s, rel=2e-3)
    squares = math.fsum(point**2 for point in points) / len(points)
    assert squares == pytest.approx(time.second_moment_s2, rel=0.03)
    assert time.second_moment_s2 == pytest.approx((1 + time.squared_cv) * time.average_s**2, rel=1e-9)


@given(st.lists(st.floats(0.0, 1e-3), min_size=2, max_size=30).map(sorted), st.floats(0.0, 1.0))
def test_a_table_is_linear_between_its_quantiles(table, ratio):
    time = RandomTime(quantiles_s=tuple(table))
    place = ratio * (len(table) - 1)
    low = min(int(place), len(table) - 2)
    assert time.quantile_s(ratio) == pytest.approx(
        table[low] + (place - low) * (table[low + 1] - table[low]), abs=1e-15
    )
    assert table[0] <= time.average_s * (1 + 1e-9) + 1e-300
    assert time.average_s <= table[-1] * (1 + 1e-9) + 1e-300


def test_interruptions_stretch_service_by_their_share():
    taken = Interruptions(rate_hz=500.0, duration=RandomTime(mean_s=40e-6, variation="exponential"))
    assert taken.stretch == pytest.approx(1.02)
    assert taken.scatter_s == pytest.approx(500.0 * 2.0 * 40e-6**2)


def _model(pool: ResourcePool, activation: Activation) -> RouterModel:
    return RouterModel(
        name="r",
        ports=(Port(name="p", link_bps=1e9, entry="t"),),
        tasks=(TaskUnit(name="t", needs=(Need(pool="cpu"),), activation=activation),),
        pools=(pool,),
    )


WRONG = {
    "task[0].activation.wakeup.mean_s": Activation(kind="interrupt", wakeup=RandomTime(mean_s=-1.0)),
    "task[0].activation.wakeup.variation": Activation(
        kind="interrupt", wakeup=RandomTime(mean_s=1.0, variation="lognormall")
    ),
    "task[0].activation.wakeup.quantiles_s[1]": Activation(
        kind="interrupt", wakeup=RandomTime(quantiles_s=(2e-6, 1e-6))
    ),
    "task[0].activation.wakeup": Activation(wakeup=RandomTime(mean_s=1e-6)),
    "task[0].activation.discipline": Activation(kind="interrupt", discipline="exhaustiv"),
}


@pytest.mark.parametrize("place", WRONG)
def test_a_wrong_activation_is_named_with_its_place(place):
    with pytest.raises(ModelProblem) as caught:
        _model(ResourcePool(name="cpu"), WRONG[place])
    assert [problem.place for problem in caught.value.problems] == [place]
    if place.endswith(("variation", "discipline")):
        assert "did you mean" in caught.value.problems[0].message.lower()


@pytest.mark.parametrize("rate_hz", [0.0, -1.0, math.nan, math.inf, 1e12])
def test_interruptions_that_never_or_always_strike_are_refused(rate_hz):
    pool = ResourcePool(name="cpu", interruptions=Interruptions(rate_hz=rate_hz, duration=RandomTime()))
    with pytest.raises(ModelProblem) as caught:
        _model(pool, Activation())
    assert [problem.place for problem in caught.value.problems] == ["pool[0].interruptions.rate_hz"]


def test_both_a_mean_and_quantiles_are_one_too_many():
    both = RandomTime(mean_s=1e-6, quantiles_s=(1e-6, 2e-6))
    with pytest.raises(ModelProblem, match="both quantiles and a mean"):
        _model(ResourcePool(name="cpu"), Activation(kind="interrupt", wakeup=both))


def test_a_model_without_them_is_as_before():
    assert station(TaskUnit(name="x").service).pools[0].interruptions is None
