"""Mapping onto a network processor: the optimum beside brute force, its limits, its simulation."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace

import pytest

pytest.importorskip("routecast._core", reason="the extension is not built")

from routecast.evaluate.simulate import Simulate
from routecast.load import FlowSet, FrameMix, OfferedLoad
from routecast.plan.mapping import Mapping, MappingProblem, map_processor
from routecast.plan.mapping.answer import InfeasibleMapping, all_in_one, round_robin
from routecast.plan.mapping.model import engine_loads, memory_loads
from routecast.plan.network_processor import Engines, Link, Memory, NetworkProcessor
from routecast.plan.network_processor.model import Block, Reference, Stage, State

NS = 1e-9


def chip(engines=3, threads=2, *, code_words=0, small_bytes=0, link_bps=1e12, ports=2):
    return NetworkProcessor(
        name="chip",
        engines=Engines(count=engines, threads=threads, frequency_hz=1e9, switch_cycles=2, code_words=code_words),
        memories=(
            Memory(name="near", latency_s=40 * NS, bandwidth_bytes_per_s=0.4e9, capacity_bytes=small_bytes),
            Memory(name="far", channels=2, latency_s=150 * NS, bandwidth_bytes_per_s=2e9),
        ),
        ports=ports,
        link_bps=link_bps,
    )


def block(name, cycles, *references, words=0):
    return Block(
        name=name,
        cycles=cycles,
        references=tuple(Reference(state=state, accesses=n, waits=waits) for state, n, waits in references),
        code_words=words,
    )


def mapping_problem(processor, blocks, states, **more):
    more.setdefault("ring", Link(memory="near", put_cycles=6, get_cycles=6))
    more.setdefault("rings", ("near", "far"))
    more.setdefault("movable", frozenset(state.name for state in states))
    return MappingProblem(name="test", processor=processor, blocks=tuple(blocks), states=tuple(states), **more)


def drawn(seed):
    chance = random.Random(seed)
    states = [State(name="table", memory="far", size_bytes=400), State(name="frames", memory="far", size_bytes=800)]
    blocks = [
        block(
            name,
            chance.randint(20, 150),
            ("table", chance.randint(0, 3), chance.randint(1, 2)),
            ("frames", chance.randint(0, 2), 1),
            words=chance.choice([300, 500, 800]),
        )
        for name in ("a", "b", "c")
    ]
    processor = chip(
        chance.randint(1, 3),
        chance.choice([2, 3, 4]),
        code_words=chance.choice([0, 1000, 1400]),
        small_bytes=chance.choice([0, 600, 1000, 5000]),
    )
    return mapping_problem(processor, blocks, states)


def partitions(numbers):
    if not numbers:
        yield []
        return
    first, rest = numbers[0], numbers[1:]
    for size in range(len(rest) + 1):
        for others in itertools.combinations(rest, size):
            left = [number for number in rest if number not in others]
            for more in partitions(left):
                yield [[first, *others], *more]


def spans_of(blocks):
    spans = []
    for number in blocks:
        if spans and spans[-1][-1] == number - 1:
            spans[-1].append(number)
        else:
            spans.append([number])
    return spans


def every_mapping(problem):
    """All mappings of a small problem, whether they fit or not."""
    count, hardware = problem.processor.engines.count, problem.processor.engines.threads
    names = [block.name for block in problem.blocks]
    memories = [memory.name for memory in problem.processor.memories]
    for engine_groups in partitions(list(range(len(names)))):
        for sizes in itertools.product(range(1, count + 1), repeat=len(engine_groups)):
            if sum(sizes) > count:
                continue
            spans = [(span, number) for number, group in enumerate(engine_groups) for span in spans_of(group)]
            spans.sort()
            firsts = list(itertools.accumulate(sizes, initial=0))
            for threads in itertools.product(range(1, hardware + 1), repeat=len(spans)):
                on = [
                    sum(t for t, (_, group) in zip(threads, spans, strict=True) if group == k)
                    for k in range(len(engine_groups))
                ]
                if any(total > hardware for total in on):
                    continue
                for rings in itertools.product(problem.rings, repeat=len(spans) - 1):
                    stages = tuple(
                        Stage(
                            blocks=tuple(names[n] for n in span),
                            engines=tuple(range(firsts[group], firsts[group] + sizes[group])),
                            threads=t,
                            link=replace(problem.ring, memory=ring),
                        )
                        for (span, group), t, ring in zip(spans, threads, ("near", *rings), strict=True)
                    )
                    for places in itertools.product(memories, repeat=len(problem.states)):
                        states = tuple(replace(s, memory=m) for s, m in zip(problem.states, places, strict=True))
                        yield Mapping(name="brute force", problem=problem, stages=stages, states=states)


def fits(mapping):
    """Whether control stores and memories hold what is put into them."""
    problem = mapping.problem
    words = dict.fromkeys(range(problem.processor.engines.count), 0)
    size = {memory.name: 0 for memory in problem.processor.memories}
    lengths = {block.name: block.code_words for block in problem.blocks}
    for number, stage in enumerate(mapping.stages):
        for engine in stage.engines:
            words[engine] += sum(lengths[name] for name in stage.blocks)
        if number:
            size[stage.link.memory] += stage.link.frames * stage.link.access_bytes
    for state in mapping.states:
        size[state.memory] += state.size_bytes
    store = problem.processor.engines.code_words
    return (not store or max(words.values()) <= store) and all(
        not memory.capacity_bytes or size[memory.name] <= memory.capacity_bytes for memory in problem.processor.memories
    )


@pytest.mark.parametrize("seed", range(14))
@pytest.mark.slow
def test_no_mapping_of_all_is_better_than_the_optimum(seed):
    problem = drawn(seed)
    most = max((mapping.expectation().pps for mapping in every_mapping(problem) if fits(mapping)), default=0.0)
    if not most:
        with pytest.raises(InfeasibleMapping):
            map_processor(problem)
        return
    result = map_processor(problem)
    assert fits(result.best)
    assert result.best.router().tasks
    assert result.is_optimal
    assert result.pps == pytest.approx(most, rel=2e-6)


def test_the_optimum_takes_no_more_engines_than_another_that_is_as_good():
    problem = replace(drawn(3), processor=replace(drawn(3).processor, link_bps=1e9))
    result = map_processor(problem)
    as_good = [m.engines for m in every_mapping(problem) if fits(m) and m.expectation().pps >= result.pps * (1 - 1e-9)]
    assert result.best.engines == min(as_good)


def test_blocks_are_spread_over_engines_in_proportion_to_their_work():
    # 300 and 100 cycles without memories or rings to speak of: three engines and one.
    processor = chip(4, 8, code_words=100)
    blocks = [block("long", 300, words=60), block("short", 100, words=60)]
    problem = mapping_problem(processor, blocks, [], ring=Link(memory="near"), rings=("near",))
    result = map_processor(problem)
    engines = {stage.blocks: len(stage.engines) for stage in result.best.stages}
    assert engines == {("long",): 3, ("short",): 1}
    assert result.pps == pytest.approx(1e9 / 100, rel=1e-6)


def test_a_small_memory_takes_the_state_that_is_waited_for_most():
    states = [State(name="hot", memory="far", size_bytes=900), State(name="cold", memory="far", size_bytes=900)]
    processor = chip(1, 2, small_bytes=1000)
    blocks = [block("work", 10, ("hot", 4, 4), ("cold", 1, 1))]
    result = map_processor(mapping_problem(processor, blocks, states))
    assert {state.name: state.memory for state in result.best.states} == {"hot": "near", "cold": "far"}
    kept = map_processor(mapping_problem(processor, blocks, states, movable=frozenset()))
    assert {state.memory for state in kept.best.states} == {"far"}
    assert kept.pps < result.pps


def test_rings_of_registers_join_single_neighbouring_engines_only():
    processor = chip(2, 1, code_words=100)
    blocks = [block("first", 100, words=60), block("second", 100, words=60)]
    problem = mapping_problem(processor, blocks, [], rings=("near", ""))
    stages = map_processor(problem).best.stages
    assert stages[1].link.memory == ""
    assert (stages[0].engines, stages[1].engines) == ((0,), (1,))
    wide = mapping_problem(chip(4, 1, code_words=100), blocks, [], rings=("near", ""))
    stages = map_processor(wide).best.stages
    assert [len(stage.engines) for stage in stages] == [2, 2]
    assert stages[1].link.memory == "near"
    registers_only = mapping_problem(chip(4, 1, code_words=100), blocks, [], rings=("",))
    stages = map_processor(registers_only).best.stages
    assert [len(stage.engines) for stage in stages] == [1, 1]


@pytest.mark.parametrize(
    ("processor", "words", "size", "reason"),
    [
        (chip(2, 2, code_words=100), 120, 10, 'code store: "a" has 120 instructions'),
        (chip(1, 2, code_words=100), 60, 10, "code store: 2 blocks of 120 instructions do not fit into 1 engines"),
        (
            replace(chip(), memories=(replace(chip().memories[1], capacity_bytes=100),)),
            1,
            200,
            'memory: "table" has 200',
        ),
    ],
)
def test_a_problem_without_mapping_is_refused_with_the_reason(processor, words, size, reason):
    blocks = [block("a", 10, ("table", 1, 1), words=words), block("b", 10, words=words)]
    states = [State(name="table", memory="far", size_bytes=size)]
    problem = mapping_problem(processor, blocks, states, rings=("far",), ring=Link(memory="far", frames=4))
    with pytest.raises(InfeasibleMapping, match=reason):
        map_processor(problem)


def test_the_mapping_forwards_in_simulation_what_the_program_predicts():
    problem = replace(drawn(2), processor=chip(6, 8))
    result = map_processor(problem)
    offered = OfferedLoad(rate_pps=2.0 * result.pps, frames=FrameMix.fixed(64), flows=FlowSet.meshed(4))
    trial = Simulate(model=result.best.router()).trial(offered, 50_000 / offered.rate_pps)
    assert trial.forwarded_pps <= result.pps * 1.01
    plain = [all_in_one(problem), round_robin(problem)]
    for mapping in plain:
        other = Simulate(model=mapping.router()).trial(offered, 50_000 / offered.rate_pps)
        assert other.forwarded_pps <= mapping.expectation().pps * 1.01
        assert mapping.expectation().pps <= result.pps * (1 + 1e-6)


def test_loads_add_up_to_the_work_that_the_blocks_ask_for():
    problem = replace(drawn(2), processor=chip(6, 8))
    result = map_processor(problem)
    for mapping in (result.best, round_robin(problem)):
        pps = mapping.expectation().pps
        busy = {}
        for load in engine_loads(mapping, pps):
            busy[load.engine] = busy.get(load.engine, 0.0) + load.busy_ratio
        shares = [*busy.values(), *(load.busy_ratio for load in memory_loads(mapping, pps))]
        threads = [load.threads_ratio for load in engine_loads(mapping, pps)]
        assert max(*shares, *threads) == pytest.approx(1.0)


def test_a_search_without_time_bounds_its_distance_to_the_optimum():
    result = map_processor(replace(drawn(2), processor=chip(6, 8)), seconds=0.0)
    assert not result.is_optimal
    assert result.gap_ratio > 0.0
    assert "time limit" in result.notes[0]
