"""Variants of router documents: what a path reaches, what stays, and the messages for wrong paths."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from routecast.errors import FileProblem, ModelProblem
from routecast.quantity.toml_file import parse_toml
from routecast.router.files import build_router
from routecast.router.variants import vary

MULTICORE = parse_toml(
    """
    builder = "multicore"
    cores = 4
    frequency = "3 GHz"
    service = { per_packet = "1800 cycles" }
    """,
    "test",
)
EXPLICIT = parse_toml(
    """
    [[port]]
    name = "eth0"
    link = "10 Gbit/s"
    entry = "rx"
    [[pool]]
    name = "cpu"
    units = 4
    frequency = "3 GHz"
    [[task]]
    name = "rx"
    route = { kind = "random", to = ["core 0", "core 1.5"], weights = [0.5, 0.5] }
    [[task]]
    name = "core 0"
    needs = [{ pool = "cpu" }]
    service = { per_packet = "1800 cycles" }
    [[task]]
    name = "core 1.5"
    needs = [{ pool = "cpu" }]
    service = { per_packet = "1800 cycles" }
    """,
    "test",
)


def test_a_variant_is_what_the_file_would_be_with_that_line_changed() -> None:
    varied, _ = build_router(vary(MULTICORE, {"cores": 2, "service.per_packet": "900 cycles"}))
    written, _ = build_router({**MULTICORE, "cores": 2, "service": {"per_packet": "900 cycles"}})
    assert varied == written
    assert sum(task.name.startswith("core") for task in varied.tasks) == 2


def test_the_document_itself_stays_as_it_is() -> None:
    before = copy.deepcopy(EXPLICIT)
    vary(EXPLICIT, {"task[*].queue": "64 frames", "pool[cpu].units": 8, "task[rx].route.weights[1]": 0.7})
    assert before == EXPLICIT


def test_entries_are_found_by_name_with_dots_and_spaces_by_number_and_all() -> None:
    model, _ = build_router(
        vary(
            EXPLICIT,
            {
                "task[*].queue": "64 frames",
                "task[core 1.5].queue": "32 frames",
                "pool[0].frequency": "1 GHz",
                "task[rx].route.weights[1]": 0.25,
                "task[core 0].needs[0].units": 2,
            },
        )
    )
    assert [task.queue_frames for task in model.tasks] == [64, 64, 32]
    assert model.pool("cpu").frequency_hz == 1e9
    assert model.task("rx").route.weights == (0.5, 0.25)
    assert model.task("core 0").needs[0].units == 2


def test_tables_that_the_file_leaves_out_are_opened() -> None:
    varied = vary(MULTICORE, {"activation.kind": "polling", "load.rate": "1 Mpps"})
    model, load = build_router(varied)
    assert model.task("core 3").activation.kind == "polling"
    assert load is not None
    assert load.rate_pps == 1e6


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("coers", '"cores"'),
        ("service.per_paket", '"per_packet"'),
        ("service.per_packet.mean", '"per_packet" is no table'),
        ("pool[cpu].units", "is no key that is known here"),
        ("", "is empty"),
        ("service.", "is no path"),
        ("service..per_packet", "is no path"),
        ("contention.table[0]", 'has no entry "0"'),
        ("cores[0]", '"cores" is no list'),
        ("router.cores", 'leave out "router.": "cores"'),
    ],
)
def test_a_wrong_path_is_reported_with_the_nearest_names(path: str, message: str) -> None:
    with pytest.raises(ModelProblem) as raised:
        vary(MULTICORE, {path: 1})
    assert message in str(raised.value)


def test_a_list_that_the_file_leaves_out_is_reported_with_how_to_write_the_entry() -> None:
    short = {"builder": "network_processor", "processor": {"base": "ixp2850"}}
    with pytest.raises(ModelProblem) as raised:
        vary(short, {"block[queue manager].stub": True, "processor.memory[dram].latency": "100 ns"})
    assert 'write block = [{ name = "queue manager" }] into it' in str(raised.value)
    assert 'write memory = [{ name = "dram" }] into it' in str(raised.value)


def test_an_unknown_entry_is_reported_with_the_names_that_there_are() -> None:
    with pytest.raises(ModelProblem) as raised:
        vary(EXPLICIT, {"task[core 2].queue": "8 frames", "pool[cpuu].units": 2})
    assert [problem.place for problem in raised.value.problems] == ["task[core 2].queue", "pool[cpuu].units"]
    assert 'did you mean "core 0"?' in str(raised.value)
    assert 'did you mean "cpu"?' in str(raised.value)


def test_a_wrong_value_is_found_when_the_variant_is_built() -> None:
    varied: dict[str, Any] = vary(MULTICORE, {"frequency": "3 MB"})
    with pytest.raises(FileProblem, match="frequency"):
        build_router(varied)
