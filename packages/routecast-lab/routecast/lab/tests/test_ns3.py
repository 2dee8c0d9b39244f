"""The export for ns-3: the same times, or a refusal with the place. What ns-3 makes of it, `make ns3` compares."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import routecast
from routecast.contention import LAWS
from routecast.errors import ModelProblem
from routecast.lab.ns3 import ns3_document
from routecast.router.files import parse_router, read_router
from routecast.router.model import (
    Activation,
    Contention,
    Interruptions,
    Policy,
    PowerDraw,
    RandomTime,
    Route,
    RouterModel,
    ServiceCost,
    SleepState,
)
from routecast.router.multicore import multicore

EXAMPLES = sorted((Path(routecast.__file__).parents[3] / "examples").glob("*.router.toml"))
EXPORTED = {"bus", "multicore", "napi", "shared_core", "two_pools"}


def router(*, pool: dict[str, Any] | None = None, task: dict[str, Any] | None = None) -> RouterModel:
    """Return a router with two cores; of its pool and its first core something is changed."""
    plain = multicore(2, ServiceCost(per_packet_s=1e-6))
    pools = tuple(replace(item, **(pool or {})) for item in plain.pools)
    tasks = tuple(replace(entry, **(task or {})) if entry.name == "core 0" else entry for entry in plain.tasks)
    return replace(plain, pools=pools, tasks=tasks)


def core(document: dict[str, Any]) -> dict[str, Any]:
    result: dict[str, Any] = next(task for task in document["tasks"] if task["name"] == "core 0")
    return result


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name.removesuffix(".router.toml"))
def test_an_example_is_exported_or_refused_with_places_in_it(path: Path) -> None:
    model = read_router(path)
    name = path.name.removesuffix(".router.toml")
    try:
        document = ns3_document(model)
    except ModelProblem as refused:
        assert name not in EXPORTED
        for place, _ in refused.problems:
            kind, number = re.match(r"(pool|task)\[(\d+)\]", place).groups()  # type: ignore[union-attr]
            assert int(number) < len(model.pools if kind == "pool" else model.tasks)
    else:
        assert name in EXPORTED
        assert json.loads(json.dumps(document, allow_nan=False)) == document
        assert [task["name"] for task in document["tasks"]] == [task.name for task in model.tasks]


costs = st.floats(0.0, 1e4)


@given(
    cost=st.builds(
        ServiceCost,
        per_packet_cycles=costs,
        per_byte_cycles=costs,
        per_batch_cycles=costs,
        per_packet_s=st.floats(0.0, 1e-5),
        per_byte_s=st.floats(0.0, 1e-8),
        memory_accesses=st.floats(0.0, 10.0),
        memory_latency_s=st.floats(0.0, 1e-7),
    ),
    frame_bytes=st.integers(64, 9000),
    batch=st.integers(1, 64),
)
def test_a_frame_takes_what_its_costs_say(cost: ServiceCost, frame_bytes: int, batch: int) -> None:
    model = router(pool={"frequency_hz": 2.5e9}, task={"service": cost, "batch_frames": batch})
    task = core(ns3_document(model))
    found_s = task["per_packet_s"] + task["per_byte_s"] * frame_bytes + task["per_batch_s"] / task["batch"]
    assert found_s == pytest.approx(cost.mean_s(frame_bytes, frequency_hz=2.5e9, batch_frames=batch), rel=1e-12)


@pytest.mark.parametrize("law", LAWS)
def test_every_law_of_contention_is_a_table_of_factors(law: str) -> None:
    values = {"sharpness": 2.0, "top": 3.0, "knee": 2.0, "share": 0.1, "handover": 10.0}
    parameters = {shape.name: values.get(shape.name, 0.1) for shape in LAWS[law].shapes}
    contention = Contention(law=law, **parameters)
    (pool,) = ns3_document(router(pool={"contention": contention}))["pools"]
    if law == "free":
        assert pool["contention"] == []
    else:
        assert pool["contention"] == [contention.factor(1), contention.factor(2)]


@pytest.mark.parametrize("scv", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("kind", ["gamma", "lognormal", "uniform"])
def test_a_variation_has_mean_one_and_the_same_scatter(kind: str, scv: float) -> None:
    from scipy import stats

    if kind == "uniform" and scv > 1 / 3:
        scv = 0.3
    cost = ServiceCost(per_packet_s=1e-6, variation=kind, scv=scv)  # type: ignore[arg-type]
    text = core(ns3_document(router(task={"service": cost})))["variation"]
    values = {name: float(number) for name, number in re.findall(r"(\w+)=([-+.e\d]+)", text)}
    # What the documentation of ns-3 says of its parameters.
    drawn = {
        "gamma": lambda: stats.gamma(values["Alpha"], scale=values["Beta"]),
        "lognormal": lambda: stats.lognorm(values["Sigma"], scale=math.exp(values["Mu"])),
        "uniform": lambda: stats.uniform(values["Min"], values["Max"] - values["Min"]),
    }[kind]()
    assert drawn.mean() == pytest.approx(1.0)
    assert drawn.var() == pytest.approx(scv)


@pytest.mark.parametrize(
    ("pool", "task", "place"),
    [
        ({"units": 65}, {}, "pool[0].units"),
        ({"policy": Policy(kind="linux", quantum_s=1e-3)}, {}, "pool[0].policy"),
        ({"unit_speed_ratio": (1.0, 0.5)}, {}, "pool[0].unit_speed_ratio"),
        ({"interruptions": Interruptions(rate_hz=10.0, duration=RandomTime(mean_s=1e-6))}, {}, "pool[0].interruptions"),
        (
            {"power": PowerDraw(active_w=9.0, idle_w=2.0, sleep=(SleepState(name="C1", power_w=1.0),))},
            {},
            "pool[0].power.sleep",
        ),
        ({}, {"activation": Activation(kind="thread")}, "task[1].activation.kind"),
        ({}, {"activation": Activation(kind="interrupt", linger_s=1e-6)}, "task[1].activation.linger"),
        ({}, {"activation": Activation(kind="interrupt", wakeup=RandomTime(mean_s=1e-6))}, "task[1].activation.wakeup"),
        ({}, {"activation": Activation(kind="interrupt", discipline="exhaustive")}, "task[1].activation.discipline"),
        ({}, {"holds_back": True, "activation": Activation(kind="thread")}, "task[1].holds_back"),
        (
            {},
            {"service": ServiceCost(per_packet_s=1e-6, variation="hyperexponential", scv=4.0)},
            "task[1].service.variation",
        ),
        ({}, {"route": Route(to=("port 1",))}, "task[1].route.to"),
        ({}, {"route": Route(kind="by_egress", to=("port 0", "port 1"))}, "task[1].route.kind"),
    ],
)
def test_what_ns3_cannot_express_is_refused_with_its_place(
    pool: dict[str, Any], task: dict[str, Any], place: str
) -> None:
    with pytest.raises(ModelProblem) as refused:
        ns3_document(router(pool=pool, task=task))
    assert place in [problem.place for problem in refused.value.problems]


def test_where_frames_ask_for_themselves_as_many_ask_as_can_wait_and_be_served() -> None:
    task = core(ns3_document(router(task={"request": "frame", "queue_frames": 100})))
    assert task["parallel"] == 102


def test_the_command_writes_the_document_or_says_why_not(command: Callable[..., Any], tmp_path: Path) -> None:
    example = EXAMPLES[0].parent / "multicore.router.toml"
    out = tmp_path / "router.json"
    assert command("export", example, "--format", "ns3", "--out", out).returncode == 0
    assert json.loads(out.read_text()) == ns3_document(read_router(example))
    printed = command("export", example, "--format", "ns3")
    assert printed.stdout == out.read_text()
    refused = command("export", EXAMPLES[0].parent / "green.router.toml", "--format", "ns3")
    assert refused.returncode == 2
    assert "pool[0].power.sleep" in refused.stderr
    assert command("export", tmp_path / "none.router.toml", "--format", "ns3").returncode == 2


def test_pools_and_ports_of_a_file_are_those_of_the_document() -> None:
    model, _ = parse_router(
        """
        [[port]]
        name = "a"
        link = "10 Gbit/s"
        entry = "work"
        [[pool]]
        name = "cpu"
        units = 3
        policy = { kind = "fair", quantum = "50 us" }
        switch_cost = "200 ns"
        power = { active = "12 W", idle = "2 W", base = "1 W" }
        [[task]]
        name = "work"
        needs = [{ pool = "cpu", units = 2 }]
        pin = [0, 2]
        route = { kind = "egress", to = ["a"] }
        """
    )
    document = ns3_document(model)
    assert document["pools"] == [
        {
            "name": "cpu",
            "units": 3,
            "policy": "fair",
            "quantum_s": pytest.approx(50e-6),
            "switch_cost_s": pytest.approx(200e-9),
            "migration_cost_s": 0.0,
            "contention": [],
            "active_w": 12.0,
            "idle_w": 2.0,
            "base_w": 1.0,
        }
    ]
    assert document["tasks"][0]["needs"] == [{"pool": "cpu", "units": 2, "pin": [0, 2]}]
    assert document["tasks"][0]["route"]["kind"] == "out"
    assert document["ports"] == [{"name": "a", "link_bps": 1e10, "tx_ring": 512, "entry": "work"}]
