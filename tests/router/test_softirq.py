"""The builder of Linux forwarders: what it puts together, what it refuses, how files say it."""

from __future__ import annotations

from pathlib import Path

import pytest

from routecast.errors import FileProblem, ModelProblem
from routecast.router import Interruptions, RandomTime, softirq
from routecast.router.files import parse_router, read_router_and_load, router_schema

EXAMPLE = Path(__file__).parents[2] / "examples" / "softirq.router.toml"


def test_the_work_for_a_frame_is_the_sum_of_its_parts():
    router = softirq(
        per_packet_s=0.8e-6, per_byte_s=1e-10, work_iterations=500, work_s_per_iteration=2.4e-9, rules=100, rule_s=10e-9
    )
    # 0.8 us + 64 · 0.1 ns + 500 · 2.4 ns + 100 · 10 ns
    assert router.task("core 0").service.mean_s(64) == pytest.approx(3.0064e-6)
    assert router.task("core 0").queue_frames == 256
    assert router.task("core 0").activation.budget_frames == 64
    assert router.task("core 0").activation.discipline == "exhaustive"


def test_every_core_has_a_ring_and_flows_choose_among_them():
    router = softirq(per_packet_s=1e-6, cores=3, distribution="per_flow", ring_frames=1024)
    assert [router.task(f"core {index}").pin for index in range(3)] == [(0,), (1,), (2,)]
    assert router.task("distributor").route.kind == "per_flow"
    assert {router.task(f"core {index}").queue_frames for index in range(3)} == {1024}


def test_all_faults_come_at_once_with_their_places():
    with pytest.raises(ModelProblem) as caught:
        softirq(
            per_packet_s=-1.0,
            rules=-2,
            distribution="rs",
            wakeup=RandomTime(quantiles_s=(3e-6, 1e-6)),
            interruptions=Interruptions(rate_hz=0.0, duration=RandomTime(mean_s=1e-6)),
        )
    assert [problem.place for problem in caught.value.problems] == [
        *("per_packet_s", "rules", "interruptions.rate_hz", "distribution", "wakeup.quantiles_s[1]")
    ]


def test_a_file_says_the_same_as_the_builder():
    model, load = read_router_and_load(EXAMPLE)
    assert load is not None
    core, cpu = model.task("core 0"), model.pool("cpu")
    assert core.service.mean_s(64) == pytest.approx(3.2e-6)
    assert core.activation.wakeup is not None
    assert core.activation.wakeup.quantiles_s[4] == pytest.approx(20e-6)
    assert cpu.interruptions is not None
    assert cpu.interruptions.rate_hz == 300.0
    assert cpu.interruptions.duration.mean_s == pytest.approx(40e-6)
    assert (cpu.interruptions.duration.variation, cpu.interruptions.duration.scv) == ("lognormal", 3.0)


FILES = {
    "wakup": ('wakup = { mean = "20 us" }', "wakeup"),
    "wakeup.mean": ('wakeup = { mean = "20 MB" }', "MB"),
    "wakeup.variation": ('wakeup = { mean = "20 us", variation = "gama" }', "gamma"),
    "wakeup.quantiles[1]": ('wakeup = { quantiles = ["2 us", "1 us"] }', "rise"),
    "interruptions.duration": ('interruptions = { rate = "300 Hz" }', "is missing"),
    "per_byte": ('per_byte = "2 cycles/B"', "time per byte"),
}


@pytest.mark.parametrize("place", FILES)
def test_a_wrong_line_is_named_with_its_place_and_what_is_allowed(place):
    line, hint = FILES[place]
    with pytest.raises(FileProblem) as caught:
        parse_router(f'builder = "softirq"\nper_packet = "1 us"\n{line}\n')
    assert [problem.place for problem in caught.value.problems] == [place]
    assert hint in caught.value.problems[0].message


def test_pools_and_activations_of_explicit_files_know_both():
    model, _ = parse_router("""
[[port]]
name = "a"
link = "10 Gbit/s"
entry = "napi"
[[pool]]
name = "cpu"
interruptions = { rate = "1 kHz", duration = { mean = "10 us" } }
[[task]]
name = "napi"
needs = [{ pool = "cpu" }]
service = { per_packet = "1 us" }
activation = { kind = "interrupt", wakeup = { mean = "20 us", variation = "exponential" }, discipline = "exhaustive" }
""")
    interruptions, wakeup = model.pool("cpu").interruptions, model.task("napi").activation.wakeup
    assert interruptions is not None
    assert wakeup is not None
    assert (interruptions.rate_hz, interruptions.duration.mean_s) == (1000.0, pytest.approx(10e-6))
    assert (wakeup.mean_s, wakeup.variation) == (pytest.approx(20e-6), "exponential")


def test_the_schema_describes_the_builder():
    tables = router_schema()["$defs"]
    assert {"Softirq", "RandomTime", "Interruptions"} <= set(tables)
    assert "quantiles" in tables["RandomTime"]["properties"]
