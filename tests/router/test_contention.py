"""Contention in router files: laws by name, mixtures of them, and the table that both are to the evaluators."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from routecast.contention import LAWS, Law
from routecast.errors import FileProblem
from routecast.evaluate.simulate import Simulate
from routecast.evaluate.solve import Solve
from routecast.load import FlowSet, OfferedLoad
from routecast.router import Contention, RouterModel
from routecast.router.files import build_router, parse_router
from routecast.router.variants import vary

LAWS_IN_FILES = {
    "free": "",
    "serial": "sigma = 0.05",
    "coherent": "sigma = 0.05, kappa = 0.004",
    "power": "alpha = 0.1",
    "crowded": "sigma = 0.2",
    "ceiling": "top = 5.0, sharpness = 6.0",
    "lock": "share = 0.05, handover = 4.0",
    "kinked": "knee = 3.0, slope = 0.4, sharpness = 8.0",
}


def router(contention: str, cores: int = 6) -> RouterModel:
    return parse_router(
        f"""
builder = "multicore"
cores = {cores}
link = "100 Gbit/s"
service = {{ per_packet = "500 ns" }}
contention = {contention}
"""
    )[0]


def contention_of(model: RouterModel) -> Contention:
    return model.pools[0].contention


def named(law: str, more: str = "") -> str:
    parameters = f", {LAWS_IN_FILES[law]}" if LAWS_IN_FILES[law] else ""
    return f'{{ law = "{law}"{parameters}{more} }}'


@pytest.mark.parametrize("law", LAWS)
def test_every_law_of_the_registry_can_be_written_in_a_file_and_both_evaluators_run_it(law: str) -> None:
    model = router(named(law))
    values = np.array([contention_of(model).values])
    k = np.arange(1.0, 7.0)
    wanted = k / LAWS[law].growth(k[None], values)[0]
    assert contention_of(model).factors(6) == pytest.approx(tuple(wanted), rel=1e-12)
    load = OfferedLoad(rate_pps=30e6, flows=FlowSet.crafted(6))
    solved = Solve(model=model).trial(load, 1e-3).forwarded_pps
    assert solved == pytest.approx(6 / 500e-9 / wanted[5], rel=1e-9)
    assert Simulate(model=model).trial(load, 2e-3).forwarded_pps == pytest.approx(solved, rel=0.01)


def test_the_semantics_say_every_law_and_every_parameter() -> None:
    text = (Path(__file__).parents[2] / "docs" / "semantics.md").read_text(encoding="utf-8")
    section = text.partition("### Contention")[2].partition("(S6)=")[0]
    for law in LAWS.values():
        (row,) = (line for line in section.splitlines() if line.startswith(f"| `{law.name}`"))
        assert all(f"`{shape.name}`" in row for shape in law.shapes)


def test_a_mixture_is_the_weighted_geometric_mean_of_its_laws() -> None:
    mixed = contention_of(
        router(f"{{ mixture = [{named('serial', ', weight = 1')}, {named('power', ', weight = 3')}] }}")
    )
    serial, power = (contention_of(router(named(law))).factors(6) for law in ("serial", "power"))
    wanted = [
        math.exp(0.25 * math.log(item) + 0.75 * math.log(other)) for item, other in zip(serial, power, strict=True)
    ]
    assert mixed.factors(6) == pytest.approx(tuple(wanted))
    assert mixed.factor(2.5) == pytest.approx((wanted[1] + wanted[2]) / 2)
    assert mixed.factor(100.0) == pytest.approx(mixed.factors(100)[-1])


def test_what_strays_from_the_law_is_a_factor_on_top() -> None:
    law = contention_of(router(named("power"))).factors(6)
    strayed = contention_of(router(named("power", ", discrepancy = [1.0, 1.1, 0.9]"))).factors(6)
    assert strayed == pytest.approx(
        tuple(item * by for item, by in zip(law, (1.0, 1.1, 0.9, 0.9, 0.9, 0.9), strict=True))
    )


def test_experiments_may_vary_a_law_and_its_parameters() -> None:
    document = {"builder": "multicore", "cores": 6, "service": {"per_packet": "500 ns"}}
    varied = vary(document, {"contention.law": "power", "contention.alpha": 0.1})
    assert contention_of(build_router(varied)[0]) == contention_of(router(named("power")))


def test_sigma_and_kappa_are_the_law_that_is_not_named() -> None:
    short, long = (contention_of(router(text)) for text in ("{ sigma = 0.05, kappa = 0.004 }", named("coherent")))
    assert short == long
    assert short.is_usl
    assert short.factor(2.5) == pytest.approx(1.0 + 0.05 * 1.5 + 0.004 * 2.5 * 1.5)


@pytest.mark.parametrize(
    ("contention", "place", "what"),
    [
        ('{ law = "lok", share = 0.1, handover = 4 }', "contention.law", 'did you mean "lock"?'),
        ('{ law = "xyz" }', "contention.law", 'known are "free", "serial", "coherent"'),
        ('{ law = "lock", shar = 0.1, handover = 4 }', "contention.shar", 'did you mean "share"?'),
        ('{ law = "lock", share = 0.1 }', "contention.handover", "is missing: rate r"),
        ('{ law = "lock", share = 1.1, handover = 4 }', "contention.share", "allowed is 0 to 1"),
        ('{ law = "lock", share = 0.1, handover = 0 }', "contention.handover", "allowed is 0.001 to 1000000"),
        ('{ law = "serial", sigma = 0.1, alpha = 0.2 }', "contention.alpha", 'the law "serial" has sigma'),
        ('{ law = "serial", sigma = "a bit" }', "contention.sigma", "must be a number"),
        ('{ law = "power", alpha = 100 }', "contention", "slows 2 busy units down"),
        ('{ law = "serial", sigma = 0.1, table = [1, 1.1] }', "contention", "both a table and"),
        ('{ sigma = 0.1, mixture = [{ law = "free", weight = 1 }] }', "contention", "both a mixture and a law"),
        ("{ table = [1, 1.1], discrepancy = [1, 2] }", "contention", "both a table and"),
        ('{ law = "free", discrepancy = [1, -2] }', "contention.discrepancy[1]", "allowed is 1e-06 to 1000000"),
        ('{ mixture = [{ law = "free" }] }', "contention.mixture[0].weight", "is missing"),
        ('{ mixture = [{ law = "free", weight = 0 }] }', "contention.mixture[0].weight", "a finite number > 0"),
        ('{ mixture = [{ law = "powr", weight = 1 }] }', "contention.mixture[0].law", 'did you mean "power"?'),
        ('{ mixture = [{ law = "power", weight = 1 }] }', "contention.mixture[0].alpha", "is missing: exponent"),
    ],
)
def test_every_fault_of_contention_is_reported_at_its_place(contention: str, place: str, what: str) -> None:
    with pytest.raises(FileProblem) as problem:
        router(contention)
    places = {item.place.removeprefix("pool[0]."): item.message for item in problem.value.problems}
    assert what in places[place]


@pytest.mark.parametrize("law", LAWS.values(), ids=lambda law: law.name)
@given(data=st.data())
def test_no_law_takes_what_the_file_allows_for_a_number_that_is_none(law: Law, data: st.DataObject) -> None:
    values = [data.draw(st.floats(max(shape.minimum, 1e-9), min(shape.maximum, 1e3))) for shape in law.shapes]
    text = "".join(f", {item.name} = {value!r}" for item, value in zip(law.shapes, values, strict=True))
    try:
        factors = contention_of(router(f'{{ law = "{law.name}"{text} }}', cores=16)).factors(16)
    except FileProblem as problem:
        assert "slows" in str(problem)  # noqa: PT017 -- what is too slow is refused
    else:
        assert factors[0] == pytest.approx(1.0)
        assert all(1.0 - 1e-6 <= factor <= 1e6 for factor in factors)
