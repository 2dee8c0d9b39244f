"""Virtual and parallel routers from files: what is read, what a study can vary, and what is refused."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routecast.errors import FileProblem
from routecast.quantity.toml_file import parse_toml
from routecast.router.files import build_router, parse_router, router_schema
from routecast.router.variants import vary
from routecast.virtual.catalogue import technology

VIRTUAL = """
builder = "virtual"
technology = "kvm-vhost-2012"

[[server]]
name = "host"
cores = 4
interrupt_cores = [0, 1]

[[machine]]
name = "vm"
vcpu_cores = [[2]]
backend_cores = [[3]]
vcpu_priority = 98
backend_priority = 99

[load]
rate = "100 kpps"
"""
PARALLEL = VIRTUAL.replace('"virtual"', '"parallel"').replace("[[server]]", "machines = 3\n\n[[server]]")


def test_a_virtual_router_is_read_with_its_pins_and_priorities() -> None:
    model, load = parse_router(VIRTUAL)
    assert load is not None
    assert model.pool("host").units == 4
    vcpu, backend = model.task("vm forward"), model.task("vm receive 0")
    assert (vcpu.pin, vcpu.priority, vcpu.thread) == ((2,), 98, "vm vcpu 0")
    assert (backend.pin, backend.priority, backend.thread) == ((3,), 99, "vm backend 0")
    assert model.task("vm send 0").thread == backend.thread
    for port in model.ports:  # a card with a queue for each core that it may interrupt
        queues = [model.task(name) for name in model.task(port.entry).route.to]
        assert {queue.pin for queue in queues} == {(0,), (1,)}
    assert vcpu.service == technology("kvm-vhost-2012").functions["forward"]


def test_a_table_of_a_technique_differs_from_its_base() -> None:
    inline = 'technology = { base = "kvm-vhost-2012", receive = { per_packet = "0.5 us" } }'
    model, _ = parse_router(VIRTUAL.replace('technology = "kvm-vhost-2012"', inline))
    assert model.task("vm receive 0").service.per_packet_s == pytest.approx(0.5e-6)
    assert model.task("vm send 0").service == technology("kvm-vhost-2012").send


def test_a_technique_of_ones_own_is_looked_for_beside_the_router_file(tmp_path) -> None:
    own = 'name = "own"\nreference = "lab"\nbase = "kvm-vhost-2012"\nsend = { per_packet = "9 us" }\n'
    (tmp_path / "own.virtualisation.toml").write_text(own + '[source]\nsend = "measured"\n')
    text = VIRTUAL.replace('"kvm-vhost-2012"', '"own.virtualisation.toml"')
    model, _ = parse_router(text, folder=tmp_path)
    assert model.task("vm send 0").service.per_packet_s == pytest.approx(9e-6)


@pytest.mark.parametrize(
    ("path", "value", "reached"),
    [
        ("technology.receive.per_packet", "3 us", lambda m: m.task("vm receive 0").service.per_packet_s == 3e-6),
        ("technology.policy.quantum", "9 ms", lambda m: m.pool("host").policy.quantum_s == 9e-3),
        (
            "technology.functions.forward.per_packet",
            "4 us",
            lambda m: m.task("vm forward").service.per_packet_s == 4e-6,
        ),
        (
            "machine[vm].functions.forward.per_packet",
            "5 us",
            lambda m: m.task("vm forward").service.per_packet_s == 5e-6,
        ),
        ("machine[vm].vcpu_cores", [[0, 1]], lambda m: m.task("vm forward").pin == (0, 1)),
        ("machine[vm].backend_cores", [], lambda m: m.task("vm send 0").pin == ()),
        ("machine[vm].vcpu_priority", 0, lambda m: m.task("vm forward").priority == 0),
        ("server[host].cores", 6, lambda m: m.pool("host").units == 6),
        ("server[host].interrupt_cores", [3], lambda m: m.task("port 1 to vm softirq").pin == (3,)),
        ("interfaces", 2, lambda m: m.task("vm receive 1").thread == "vm backend 1"),
    ],
)
def test_studies_reach_each_part_by_its_path(path, value, reached) -> None:
    document = parse_toml(VIRTUAL, "test")
    model, _ = build_router(vary(document, {path: value}))
    assert reached(model)
    assert document == parse_toml(VIRTUAL, "test")


def test_all_faults_of_a_virtual_router_come_at_once() -> None:
    text = (
        VIRTUAL.replace("kvm-vhost-2012", "kvm-vhost-2021")
        .replace("[[2]]", "[[7]]")
        .replace(
            '"100 kpps"', '"100 kpps"\nflows = { count = 1, seed = 1 }\narrivals = { kind = "on_off", peak = 0.5 }'
        )
    )
    with pytest.raises(FileProblem) as caught:
        parse_router(text)
    problems = {problem.place: problem.message for problem in caught.value.problems}
    assert set(problems) == {"technology", "machine[0].vcpu_cores[0]", "load.arrivals.peak"}
    assert 'did you mean "kvm-vhost-2012"' in problems["technology"]
    with pytest.raises(FileProblem) as caught:
        parse_router(text.replace("vcpu_priority = 98", "vcpu_priority = 120").replace("cores = 4", "cores = 4000"))
    assert {problem.place for problem in caught.value.problems} == {"server[0].cores", "machine[0].vcpu_priority"}


@pytest.mark.parametrize(
    ("old", "new", "place", "says"),
    [
        ('technology = "kvm-vhost-2012"', "", "technology", "say what the machines run on"),
        ('technology = "kvm-vhost-2012"', "technology = 3", "technology", "give a name or a file"),
        ('technology = "kvm-vhost-2012"', "technology = { recieve = {} }", "technology.recieve", '"receive"'),
        ('name = "vm"', 'name = "vm"\nserver = "hots"', "machine[0].server", 'did you mean "host"'),
        ("[[server]]", '[[server]]\nname = "b"\ncores = 1\n[[server]]', "server", '"virtual" takes one'),
        ("[[machine]]", '[[machine]]\nname = "b"\n[[machine]]', "machine", '"parallel" several'),
        ("cores = 4", "cores = 4\nswitch_cores = [0]", "server[0].switch_cores", "no vSwitch"),
        ("vcpu_priority", "vcpu_prioriti", "machine[0].vcpu_prioriti", '"vcpu_priority"'),
        ("[load]", "ports = 0\n[load]", "machine[0].ports", "no key"),
    ],
)
def test_each_fault_has_its_place_and_its_reason(old: str, new: str, place: str, says: str) -> None:
    with pytest.raises(FileProblem) as caught:
        parse_router(VIRTUAL.replace(old, new, 1))
    problems = {problem.place: problem.message for problem in caught.value.problems}
    assert place in problems
    assert says in problems[place]


def test_a_number_of_machines_copies_the_one_that_is_given() -> None:
    model, _ = parse_router(PARALLEL)
    names = [f"vm {number} forward" for number in range(3)]
    assert {model.task(name).pin for name in names} == {(2,)}
    with pytest.raises(FileProblem, match="beside 2 machines"):
        parse_router(PARALLEL.replace("[[machine]]", '[[machine]]\nname = "b"\n[[machine]]', 1))
    with pytest.raises(FileProblem, match="say how many machines"):
        parse_router(PARALLEL.replace("machines = 3", "").split("[[machine]]")[0])


def test_the_schema_knows_the_builders_of_virtual_routers() -> None:
    tables = router_schema()["$defs"]
    assert {"VirtualRouter", "ParallelRouter", "TechnologyTable", "Machine", "Server"} <= set(tables)
    technology_key = tables["VirtualRouter"]["properties"]["technology"]["anyOf"]
    assert {"type": "string"} in technology_key


LINES = [line for line in PARALLEL.splitlines() if line]
WORDS = st.sampled_from(
    [
        *("0", "-1", "1", "7", "1000000000", "1.5", "nan", "inf", "true", "[]", "{}", "[[]]", "[[0], []]"),
        *('""', '"vm"', '"host"', '"memif"', '"sr-iov"', '"x.virtualisation.toml"', '"1 us"', '"1 Mpps"'),
        *("[0, 1]", "[[9]]", "[[-1]]", '["a"]', '{ base = "memif" }', '{ base = "container", queue = "0 frames" }'),
        *('{ backend = "polling" }', '{ base = "kvm-vhost-2012", guest = "polling" }'),
    ]
)


@given(
    changes=st.lists(
        st.tuples(st.integers(0, len(LINES) - 1), WORDS, st.sampled_from(["value", "drop", "double"])), max_size=4
    )
)
def test_any_change_to_a_file_is_read_or_refused(changes) -> None:
    lines = list(LINES)
    for number, value, kind in changes:
        line = lines[number]
        if kind == "drop":
            lines[number] = ""
        elif kind == "double":
            lines[number] = f"{line}\n{line}"
        elif "=" in line and not line.startswith("["):
            lines[number] = f"{line.split('=')[0]}= {value}"
    with contextlib.suppress(FileProblem):
        model, _ = parse_router("\n".join(lines))
        assert model.tasks


def test_a_servers_speed_and_watts_are_those_of_its_cores() -> None:
    watts = 'speed = 0.5\npower = { active = "10 W", idle = "4 W" }'
    pool = parse_router(VIRTUAL.replace("cores = 4", f"cores = 4\n{watts}"))[0].pool("host")
    assert pool.unit_speed_ratio == (0.5,) * 4
    assert pool.power is not None
    assert (pool.power.active_w, pool.power.idle_w) == (10.0, 4.0)


def refused(text: str) -> dict[str, str]:
    with pytest.raises(FileProblem) as caught:
        parse_router(text)
    return dict(caught.value.problems)


def test_a_technique_that_does_not_ship_is_named_once() -> None:
    assert refused(VIRTUAL.replace("kvm-vhost-2012", "kvm-vhost")) == {
        "technology": '"kvm-vhost": is no virtualisation technique that ships: did you mean "kvm-vhost-2012"?'
    }


def test_a_function_that_no_builder_lays_and_the_base_does_not_know_is_refused_with_the_nearest() -> None:
    table = '{ base = "kvm-vhost-2012", functions = { forwrd = { per_packet = "1 us" } } }'
    assert refused(VIRTUAL.replace('"kvm-vhost-2012"', table)) == {
        "technology.functions.forwrd": 'is no function that builders use or the base knows: did you mean "forward"?'
    }


def test_a_function_of_ones_own_technique_may_cost_something_else(tmp_path) -> None:
    (tmp_path / "own.virtualisation.toml").write_text("""
name = "own"
base = "kvm-vhost-2012"
reference = "none"
functions = { nat = { per_packet = "1 us" } }
source = { functions = { nat = "by hand" } }
""")
    table = '{ base = "own.virtualisation.toml", functions = { nat = { per_packet = "2 us" } } }'
    model, _ = parse_router(VIRTUAL.replace('"kvm-vhost-2012"', table), folder=tmp_path)
    assert model.task("vm forward").service == technology("kvm-vhost-2012").functions["forward"]
