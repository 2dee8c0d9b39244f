"""Routers on network processors from files: presets and their sources, what experiments vary, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routecast.errors import FileProblem, ModelProblem
from routecast.evaluate import Simulate
from routecast.load import FrameMix
from routecast.plan.network_processor import expectation
from routecast.plan.network_processor.catalogue import (
    processor,
    processor_schema,
    processor_sources,
    processors,
    read_preset,
    read_processor,
)
from routecast.plan.network_processor.reading import Parts, parts_of
from routecast.quantity.toml_file import parse_toml, validated
from routecast.router.files import build_router, parse_router, read_router_and_load, router_table
from routecast.router.variants import vary

EXAMPLES = Path(__file__).parents[1] / "data" / "examples"
SIX_LINES = """
builder = "network_processor"
processor = "ixp2850"
organisation = "parallel"
engines = 4
load = { rate = "7 Mpps", frames = "78 B", flows = { count = 25 } }
"""
PIPELINED = """
builder = "network_processor"
processor = { base = "ixp2850" }
block = [{ name = "parse" }, { name = "lookup" }, { name = "queue manager" }]
load = { rate = "7 Mpps", frames = "78 B", flows = { count = 25 } }
"""


def parts(text: str, **overrides: object) -> Parts:
    document = vary(parse_toml(text, "test"), overrides)
    return parts_of(validated(router_table(document), document, "test"))


def bound_pps(of: Parts) -> float:
    return expectation(of.processor, of.blocks, of.states, of.stages, frame_bytes=of.frame_bytes).pps


def test_six_lines_are_a_router() -> None:
    model, load = parse_router(SIX_LINES)
    assert load is not None
    assert len(model.ports) == 5
    assert {flow.egress for flow in load.flows.flows} == {0, 1, 2, 3, 4}
    entered = [task.name for task in model.tasks if task.name.endswith("thread")]
    assert "engine 2: parse to header format thread" in entered
    assert len(entered) == 2 + 4 + 2
    trial = Simulate(model, seed=1).trial(load, 3e-3)
    assert trial.forwarded_pps == pytest.approx(bound_pps(parts(SIX_LINES)), rel=0.02)


@pytest.mark.parametrize("engines", range(1, 9))
def test_one_path_varies_the_engines_of_the_parallel_stage(engines) -> None:
    several = parts(SIX_LINES, engines=engines, block=[{"name": "queue manager", "stub": True}])
    stage = next(stage for stage in several.stages if len(stage.blocks) > 1)
    assert stage.blocks == ("parse", "lookup", "header format")
    assert len(stage.engines) == engines


@pytest.mark.parametrize(
    ("path", "value", "reached"),
    [
        ("processor.engines.threads", 4, lambda p: p.processor.engines.threads == 4),
        ("processor.engines.frequency", "700 MHz", lambda p: p.processor.engines.frequency_hz == 700e6),
        ("processor.ports", 10, lambda p: p.processor.ports == 10),
        ("block[parse].threads", 4, lambda p: p.stages[2].threads == 4),
        ("block[parse].engines", 2, lambda p: p.stages[2].engines == (2, 3)),
        ("block[queue manager].cycles", 77, lambda p: p.blocks[5].cycles == 77),
        ("block[queue manager].queue", "100 frames", lambda p: p.port_queue_frames == 100),
        ("block[lookup].references", [], lambda p: p.blocks[3].references == ()),
        ("block[parse].present", False, lambda p: "parse" not in [block.name for block in p.blocks]),
        ("ring.frames", "64 frames", lambda p: p.stages[1].link.frames == 64),
        ("load.frames", "1500 B", lambda p: p.frame_bytes == 1500),
    ],
)
def test_experiments_reach_each_part_by_its_path(path, value, reached) -> None:
    assert not reached(parts(PIPELINED))
    assert reached(parts(PIPELINED, **{path: value}))


def test_the_name_of_a_processor_opens_as_a_table() -> None:
    assert parts(SIX_LINES, **{"processor.engines.threads": 4}).processor.engines.threads == 4


def test_a_stub_neither_works_nor_queues() -> None:
    """Heller 2006, sec. 5.2: the full queue manager, or a simple stub. One path takes its work and the deep queues."""
    document = parse_toml(PIPELINED, "test")
    full, _ = build_router(document)
    stub, _ = build_router(vary(document, {"block[queue manager].stub": True}))
    assert full.ports[0].tx_ring_frames == 512 + 8192 // (5 * 78)
    assert stub.ports[0].tx_ring_frames == 8192 // (5 * 78)
    left = [task.name for task in stub.tasks if task.name.startswith("engine 5:")]
    assert left[0] == "engine 5: queue manager thread"
    assert not [name for name in left if "sram" in name]
    assert "engine 5: queue manager, scratch" in left  # from ring to ring


def test_fewer_threads_have_more_registers() -> None:
    """32 registers for each of 8 threads, 64 for each of 4 (Heller 2006, sec. 5.2): parse wants 40."""
    many = build_router(parse_toml(PIPELINED, "test"))[0]
    few = build_router(vary(parse_toml(PIPELINED, "test"), {"block[parse].threads": 4}))[0]
    cycles = [
        sum(
            task.service.per_packet_cycles
            for task in model.tasks
            if task.name.startswith("engine 2:") and task.service.per_packet_cycles
        )
        for model in (many, few)
    ]
    assert cycles[0] - cycles[1] == pytest.approx((40 - 32) * 6)


def test_stages_of_ones_own_may_share_engines() -> None:
    text = """
        builder = "network_processor"
        processor = "ixp2850"
        organisation = "staged"
        stage = [
            { name = "in", blocks = ["receive", "demultiplex"], engines = 2 },
            { name = "work", blocks = ["parse", "lookup", "header format"], engines = [4, 5], threads = 4 },
            { name = "out", blocks = ["queue manager", "transmit"], engines = [5, 6], threads = 4 },
        ]
    """
    own = parts(text, **{"stage[work].threads": 3})
    assert [stage.engines for stage in own.stages] == [(0, 1), (4, 5), (5, 6)]
    assert own.stages[1].threads == 3
    model, _ = parse_router(text)
    assert {pool.name for pool in model.pools} >= {"engine 5 parse to header format threads", "engine 6 threads"}


def test_a_block_of_ones_own_says_where_it_stands() -> None:
    cipher = '{ name = "cipher", after = "header format", cycles = 100, cycles_per_byte = 4 }'
    text = PIPELINED.replace("block = [", f"block = [{cipher}, ")
    names = [block.name for block in parts(text).blocks]
    assert names.index("cipher") == names.index("header format") + 1
    assert bound_pps(parts(text)) == pytest.approx(1.4e9 / (100 + 4 * 78 + 20))


def test_the_mean_size_of_the_load_sizes_the_buffers() -> None:
    imix = parts(PIPELINED, **{"load.frames": "imix"})
    assert imix.frame_bytes == pytest.approx(FrameMix.imix().mean_bytes)


def test_frames_that_are_offered_instead_of_the_files_size_the_buffers(tmp_path) -> None:
    file = tmp_path / "few.router.toml"
    file.write_text(PIPELINED)
    large, load = read_router_and_load(file, frames=FrameMix.fixed(1500))
    assert load is not None
    assert load.frames == FrameMix.fixed(78)
    assert (
        large == build_router(vary(parse_toml(PIPELINED, str(file)), {"load.frames": "1500 B"}), subject=str(file))[0]
    )
    assert large != read_router_and_load(file)[0]


@pytest.mark.parametrize("name", processors())
def test_every_value_of_a_processor_that_ships_has_its_source(name) -> None:
    sources = processor_sources(name)
    assert len(sources) > 20
    assert all(len(source) > 5 for source in sources.values())
    assert processor(name) == read_processor(name)
    preset = read_preset(name)
    assert {reference.state for block in preset.blocks for reference in block.references} <= {
        state.name for state in preset.states
    }


def test_a_value_without_a_source_is_refused(tmp_path) -> None:
    file = tmp_path / "own.processor.toml"
    text = 'name = "own"\ntitle = "own"\nbase = "ixp2850"\nlink = "10 Gbit/s"\n[engines]\nthreads = 4\n'
    file.write_text(text + 'source = { threads = "measured" }\n')
    with pytest.raises(FileProblem, match=r"source\.link: is missing"):
        read_processor(file)
    file.write_text(text + 'source = { threads = "measured" }\n[source]\nlink = "measured"\n')
    own = read_processor(file)
    assert (own.engines.threads, own.engines.count, own.link_bps) == (4, 16, 10e9)
    model, _ = parse_router('builder = "network_processor"\nprocessor = "own.processor.toml"\n', folder=tmp_path)
    assert model.ports[0].link_bps == 10e9


def test_what_is_known_of_the_ixp2850_is_what_its_manual_says() -> None:
    """HRM p. 33, 35, 37, 51, 187, 249: engines, contexts, registers, control store, memories, buffers."""
    chip = processor("ixp2850")
    engines = chip.engines
    assert (engines.count, engines.threads, engines.registers, engines.code_words) == (16, 8, 256, 8192)
    assert engines.frequency_hz == 1.4e9
    assert (chip.receive_buffer_bytes, chip.transmit_buffer_bytes) == (128 * 64, 8192)
    least = {memory.name: memory.least_bytes for memory in chip.memories}
    assert least == {"scratch": 4, "sram": 4, "dram": 16}


@pytest.mark.parametrize(
    ("cores", "memory", "measured_pps", "within"),
    [
        (1, "l3", 9669047.375, 0.001),  # calibrated
        (1, "dram", 8052380.75, 0.001),  # calibrated
        (2, "l3", 20523809.0, 0.06),
        (2, "dram", 16366666.25, 0.03),
    ],
)
def test_run_to_completion_follows_csit_from_one_core_to_two(cores, memory, measured_pps, within) -> None:
    """FD.io CSIT rls1701, 10ge2p1x520-ethip4-ip4base and -ip4scale2m, 64 bytes (measured/csit1701.csv)."""
    text = 'builder = "network_processor"\nprocessor = "xeon-dpdk"\norganisation = "parallel"\n'
    own = parts(text, engines=cores, state=[{"name": "routes", "memory": memory}])
    assert bound_pps(own) == pytest.approx(measured_pps, rel=within)


@pytest.mark.parametrize(
    "name", ["ixp2850-pipelined", "ixp2850-parallel", "smartnic", "dpdk-run-to-completion", "dpdk-pipeline"]
)
def test_examples_forward_what_their_bound_says(name) -> None:
    file = EXAMPLES / f"{name}.router.toml"
    model, load = read_router_and_load(file)
    assert load is not None
    expected_pps = min(bound_pps(parts(file.read_text())), load.rate_pps)
    assert Simulate(model, seed=1).trial(load, 3e-3).forwarded_pps == pytest.approx(expected_pps, rel=0.02)


def test_the_greedy_slice_of_the_example_costs_the_modest_one_nothing() -> None:
    model, load = read_router_and_load(EXAMPLES / "slices.router.toml")
    assert load is not None
    trial = Simulate(model, seed=1, per_flow=True).trial(load, 3e-3)
    route = model.task("slices").route.to
    rates = {"modest": 0.0, "greedy": 0.0}
    for flow in trial.flows:
        owner = "greedy" if "greedy" in route[flow.number % len(route)] else "modest"
        rates[owner] += flow.forwarded_pps
    assert rates["modest"] == pytest.approx(3e6, rel=0.005)
    assert rates["greedy"] == pytest.approx(5 * 200e6 / (8 * 98), rel=0.02)


def test_all_faults_of_a_file_come_at_once() -> None:
    text = """
        builder = "network_processor"
        processor = "ixp2850"
        organisation = "pipelined"
        engines = 4
        block = [
            { name = "prase" },
            { name = "parse", after = "receive" },
            { name = "police", after = "lokup", cycles = 10 },
        ]
        stage = [{ blocks = ["parse"] }]
        load = { rate = "1 Mpps", arrivals = { kind = "on_off", peak = 0.5 } }
    """
    with pytest.raises(FileProblem) as caught:
        parse_router(text)
    messages = {problem.place: problem.message for problem in caught.value.problems}
    assert set(messages) == {
        "engines",
        "block[0].name",
        "block[1].after",
        "block[2].after",
        "stage",
        "load.arrivals.peak",
    }
    assert 'did you mean "parse"?' in messages["block[0].name"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('processor = "ixp2580"', 'did you mean "ixp2850"?'),
        ("processor = { engines = { threads = 4 } }", "processor: base: is missing"),
        ("processor = 5", "give a name or a file in quotes"),
        ('processor = { base = "ixp2850", engines = { threads = 0 } }', "processor.engines.threads: got 0"),
        (
            'processor = { base = "ixp2850", engines = { count = 4 } }',
            "block: the stages need 7 engines, but ixp2850 has 4",
        ),
        (
            'processor = "ixp2850"\norganisation = "parallel"\nengines = 13',
            "engines: the stages need 17 engines, but ixp2850 has 16",
        ),
        ('processor = { base = "ixp2850", memory = [{ name = "dram", capacity = "1 MiB" }] }', '"dram" is too small'),
        (  # six rings of 128 handles of 12 bytes
            'processor = { base = "ixp2850", memory = [{ name = "scratch", capacity = "1 KiB" }] }',
            'ring.memory: "scratch" is too small: 0 bytes of states and 9,216 of rings in 1,024 bytes',
        ),
        (
            'processor = { base = "ixp2850", memory = [{ name = "drma", latency = "5 ns" }] }',
            'did you mean "dram"? A new memory needs bandwidth',
        ),
    ],
)
def test_a_processor_that_cannot_be_is_refused(line, message) -> None:
    with pytest.raises(FileProblem) as caught:
        parse_router(f'builder = "network_processor"\n{line}\n')
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("lines", "place"),
    [
        ('block = [{ name = "lookup", cycles = -1 }]', "block[0].cycles"),
        ('block = [{ name = "parse" }, { name = "lookup", threads = 9 }]', "block[1].threads"),
        ('block = [{ name = "lookup", references = [{ state = "rout" }] }]', "block[0].references[0].state"),
        ('state = [{ name = "routes", memory = "rom" }]', "state[0].memory"),
        ('ring = { memory = "rom" }', "ring.memory"),
        ('organisation = "parallel"\nthreads = 9', "threads"),
        ('slice = [{ name = "a", bandwidth = "1 Gbit/s", share = 0.5 }]', "slice"),
        (
            'slice = [{ name = "a", bandwidth = "1 Gbit/s", share = 1.0 }]\nload = { rate = "1 Mpps" }',
            "load.flows.count",
        ),
        ('block = [{ name = "parse" }, { name = "lookup" }, { name = "parse" }]', "block[2].name"),
        ('state = [{ name = "routes" }, { name = "routes" }]', "state[1].name"),
        (
            'slice = [{ name = "a", bandwidth = "1 Gbit/s", share = 1.0, cycles_ratio = { parze = 2.0 } }]',
            "slice[0].cycles_ratio.parze",
        ),
        (
            'processor = { base = "ixp2850", memory = [{ name = "drma", latency = "5 ns" }] }',
            "processor.memory[0].name",
        ),
        (
            'processor = { base = "ixp2850", memory = [{ name = "dram" }, { name = "dram" }] }',
            "processor.memory[1].name",
        ),
        (
            'processor = { base = "ixp2850", memory = [{ name = "dram", latency = "0 s" }] }',
            "processor.memory[0].latency",
        ),
    ],
)
def test_faults_have_the_places_of_the_file(lines, place) -> None:
    text = lines if "base" in lines else f'processor = "ixp2850"\n{lines}'
    with pytest.raises(FileProblem) as caught:
        parse_router(f'builder = "network_processor"\n{text}\n')
    assert {problem.place for problem in caught.value.problems} == {place}


STRANGE = st.one_of(
    st.integers(-2, 10**12),
    st.floats(-1.0, 1e30),
    st.booleans(),
    st.sampled_from(["", "parse", "ixp2850", "0 B", "1 ps", "9999 TiB", "1 Hz", "staged", "parallel", "dram"]),
    st.just([]),
    st.just({}),
    st.just([{"name": "parse"}, {"name": "parse"}]),
    st.just([{"blocks": ["parse", "parse"], "engines": [0, -1]}]),
)
PATHS = [
    "engines",
    "threads",
    "parallel",
    "organisation",
    "burst",
    "stage",
    "slice",
    "state",
    "block",
    "ring.frames",
    "ring.memory",
    "ring.put",
    "processor.ports",
    "processor.link",
    "processor.receive_buffer",
    "processor.engines.count",
    "processor.engines.threads",
    "processor.engines.frequency",
    "processor.engines.registers",
    "processor.memory",
    "block[parse].cycles",
    "block[parse].engines",
    "block[parse].threads",
    "block[parse].queue",
    "block[parse].references",
    "block[queue manager].stub",
    "block[lookup].present",
    "line_card",
    "line_card.queue",
    "line_card.per_packet",
]


@given(changes=st.dictionaries(st.sampled_from(PATHS), STRANGE, min_size=1, max_size=3))
def test_whatever_a_file_says_it_is_a_router_or_a_fault_with_its_place(changes) -> None:
    messages: list[str] = []
    try:
        model, _ = build_router(vary(parse_toml(PIPELINED, "test"), changes))
        messages = [task.name for task in model.tasks]
    except (FileProblem, ModelProblem) as problem:  # ModelProblem: a path that another change took away
        messages = [item.place or item.message for item in problem.problems]
    assert all(messages)
    assert messages


def test_the_schema_of_processor_files_has_a_meaning_for_every_key() -> None:
    schema = processor_schema()
    assert schema["title"] == "routecast processor file"
    for table in (schema, *schema["$defs"].values()):
        assert all("description" in key or "$ref" in key for key in table["properties"].values())
