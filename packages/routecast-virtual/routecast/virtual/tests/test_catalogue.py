"""Virtualisation techniques from files: what ships, what is refused, and what a table with a base says."""

from __future__ import annotations

import json
from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routecast.errors import FileProblem
from routecast.quantity.schema import adapter, keys_of
from routecast.router.model import ServiceCost
from routecast.virtual.catalogue import (
    TechnologyOrName,
    TechnologyTable,
    parse_technology,
    read_technology,
    technologies,
    technology,
    technology_from,
    technology_schema,
    technology_sources,
)
from routecast.virtual.technology import Technology

AGREED = {
    *("kvm-vhost-2012", "kvm-e1000-2012", "vmware-esxi-4.0", "xen-3.3-bridged", "container"),
    *("dpdk-vhost-user", "memif", "sr-iov", "physical-linux"),
}

OWN = """
name = "lab"
reference = "a machine"
receive = { per_packet = "1 us" }
queue = "100 frames"
functions = { forward = { per_packet = "2 us", per_byte = "0.5 ns/B" } }

[source]
receive = "measured"
queue = "configured"
functions = { forward = "measured" }
"""


def test_the_techniques_that_the_papers_need_ship() -> None:
    assert set(technologies()) >= AGREED


@pytest.mark.parametrize("name", sorted(AGREED))
def test_what_ships_is_read_and_can_forward_balance_and_return(name: str) -> None:
    item = technology(name)
    assert item.name == name
    assert item.title
    assert {"forward", "balance", "return"} <= set(item.functions)
    assert all(cost.mean_s(64) > 0.0 for cost in item.functions.values())


@pytest.mark.parametrize("name", sorted(AGREED))
def test_each_cost_of_what_ships_tells_its_source(name: str) -> None:
    texts = technology_sources(name)
    item = technology(name)
    costs = ("nic_receive", "nic_send", "receive", "send", "switch", "guest_driver")
    given_costs = {key for key in costs if getattr(item, key) != ServiceCost()}
    assert given_costs | {f"functions.{function}" for function in item.functions} <= set(texts)
    assert all(text.strip() for text in texts.values())


def test_texts_with_units_become_base_units() -> None:
    item = parse_technology(OWN)
    assert item.receive.per_packet_s == pytest.approx(1e-6)
    assert item.queue_frames == 100
    assert item.functions["forward"].mean_s(1000) == pytest.approx(2.5e-6)


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(FileProblem, match='did you mean "kvm-vhost-2012"'):
        technology("kvm-vhost-2021")
    with pytest.raises(FileProblem, match='did you mean "memif"'):
        parse_technology('name = "x"\nreference = "y"\nbase = "memf"')


def test_all_faults_of_a_file_come_at_once() -> None:
    text = OWN.replace('"1 us"', '"1 W"').replace('"100 frames"', '"0 frames"').replace("reference", "refernce")
    with pytest.raises(FileProblem) as caught:
        parse_technology(text)
    places = {problem.place for problem in caught.value.problems}
    assert places == {"receive.per_packet", "queue", "refernce", "reference"}


def test_a_value_without_a_source_and_a_source_without_a_value_are_refused() -> None:
    text = OWN.replace('queue = "configured"', 'quue = "configured"').replace('{ forward = "measured" }', "{}")
    with pytest.raises(FileProblem) as caught:
        parse_technology(text)
    texts = {problem.place: problem.message for problem in caught.value.problems}
    assert set(texts) == {"source.queue", "source.quue", "source.functions.forward"}
    assert 'did you mean "queue"' in texts["source.quue"]


def test_a_base_lies_beside_the_file_and_must_not_rest_on_itself(tmp_path) -> None:
    (tmp_path / "lab.virtualisation.toml").write_text(OWN)
    over = tmp_path / "fast.virtualisation.toml"
    over.write_text(
        'name = "fast"\nreference = "b"\nbase = "lab.virtualisation.toml"\nqueue = "7 frames"\n'
        '[source]\nqueue = "configured"\n'
    )
    fast = read_technology(over)
    assert (fast.name, fast.queue_frames, fast.receive.per_packet_s) == ("fast", 7, pytest.approx(1e-6))
    over.write_text('name = "fast"\nreference = "b"\nbase = "fast.virtualisation.toml"\n')
    with pytest.raises(FileProblem, match="rests on itself"):
        read_technology(over)


def test_files_that_cannot_be_read_are_refused(tmp_path) -> None:
    with pytest.raises(FileProblem, match="cannot be read"):
        read_technology(tmp_path / "none.virtualisation.toml")
    with pytest.raises(FileProblem, match="no TOML"):
        parse_technology("name =")


@given(
    name=st.sampled_from(sorted(AGREED)),
    key=st.sampled_from(["receive", "send", "nic_receive", "switch", "guest_driver"]),
    part=st.sampled_from(["per_packet", "per_batch"]),
    nanoseconds=st.integers(0, 10**6),
)
def test_what_a_table_leaves_out_is_as_its_base_says(name, key, part, nanoseconds) -> None:
    table = adapter(TechnologyOrName).validate_python({"base": name, key: {part: f"{nanoseconds} ns"}})
    base = technology(name)
    expected = replace(getattr(base, key), **{f"{part}_s": pytest.approx(nanoseconds * 1e-9)})
    varied = technology_from(table)
    assert getattr(varied, key) == expected
    for field in fields(base):
        if field.name != key:
            assert getattr(varied, field.name) == getattr(base, field.name)


def test_policies_contention_and_functions_are_varied_part_by_part() -> None:
    table = adapter(TechnologyOrName).validate_python(
        {
            "base": "kvm-vhost-2012",
            "policy": {"quantum": "7 ms"},
            "contention": {"sigma": 0.25},
            "functions": {"forward": {"per_byte": "1 ns/B"}},
            "guest_wakeup": {"mean": "5 us"},
        }
    )
    base, varied = technology("kvm-vhost-2012"), technology_from(table)
    assert varied.policy == replace(base.policy, quantum_s=pytest.approx(7e-3))
    assert varied.contention == replace(base.contention, sigma=0.25)
    assert varied.functions["forward"] == replace(base.functions["forward"], per_byte_s=pytest.approx(1e-9))
    assert varied.functions["balance"] == base.functions["balance"]
    assert varied.guest_wakeup is not None
    assert varied.guest_wakeup.mean_s == pytest.approx(5e-6)


def test_the_schema_describes_every_key() -> None:
    schema = technology_schema()
    json.dumps(schema)
    for table in (schema, *schema["$defs"].values()):
        assert table["additionalProperties"] is False
        for key, entry in table["properties"].items():
            assert entry.get("description"), key


ENTRIES = {
    **dict.fromkeys(("nic_interrupt", "nic_moderation", "backend_wake", "backend_moderation", "guest_wake"), "1 us"),
    **dict.fromkeys(("switch_cost", "migration_cost"), "1 us"),
    **dict.fromkeys(
        (
            "nic_ring",
            "nic_budget",
            "queue",
            "backend_budget",
            "guest_ring",
            "guest_queue",
            "guest_budget",
            "guest_backlog",
        ),
        "3 frames",
    ),
    **{
        key: {"per_packet": "1 us"}
        for key in ("nic_receive", "nic_send", "receive", "send", "switch", "guest_driver", "guest_interrupt")
    },
    "nic_queues": 2,
    "backend": "softirq",
    "backend_threads": "machine",
    "guest": "softirq",
    "guest_wakeup": {"mean": "1 us"},
    "guest_interrupt": {"per_packet": "1 us"},
    "guest_backlog": "3 frames",
    "interrupt_driven": ["balance"],
    "holds_back": False,
    "functions": {"forward": {"per_packet": "1 us"}},
    "policy": {"kind": "fair"},
    "contention": {"sigma": 0.1},
    "smp_factor": 1.5,
}


def test_files_can_say_everything_of_a_technique() -> None:
    keys = set(keys_of(TechnologyTable)) - {"base"}
    assert keys <= set(ENTRIES)
    table = adapter(TechnologyOrName).validate_python({key: ENTRIES[key] for key in keys})
    stated, default = technology_from(table, name="x"), Technology(name="y")
    same = {field.name for field in fields(Technology) if getattr(stated, field.name) == getattr(default, field.name)}
    assert same == {"title"}
