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
from routecast.router.network_processor import Engines, Link, Memory, NetworkProcessor
from routecast.router.network_processor.model import Block, Reference, Stage, State

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


def problem(processor, blocks, states, **more):
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
    return problem(processor, blocks, states)


def partitions(numbers):
    if not numbers:
        yield []
        return
    first, rest = numbers[0], numbers[1:]
    for size in range(len(rest) + 1):
        for others in itertools.combinations(rest, size):
            left = [item for item in rest if item not in others]
            for more in partitions(left):
                yield [[first, *others], *more]


def spans_of(crew):
    spans = []
    for number in crew:
        if spans and spans[-1][-1] == number - 1:
            spans[-1].append(number)
        else:
            spans.append([number])
    return spans


def every_mapping(one):
    """All mappings of a small problem, whether they fit or not."""
    count, hardware = one.processor.engines.count, one.processor.engines.threads
    names = [item.name for item in one.blocks]
    memories = [memory.name for memory in one.processor.memories]
    for crews in partitions(list(range(len(names)))):
        for sizes in itertools.product(range(1, count + 1), repeat=len(crews)):
            if sum(sizes) > count:
                continue
            spans = [(span, number) for number, crew in enumerate(crews) for span in spans_of(crew)]
            spans.sort()
            firsts = list(itertools.accumulate(sizes, initial=0))
            for threads in itertools.product(range(1, hardware + 1), repeat=len(spans)):
                on = [
                    sum(t for t, (_, crew) in zip(threads, spans, strict=True) if crew == k) for k in range(len(crews))
                ]
                if any(total > hardware for total in on):
                    continue
                for rings in itertools.product(one.rings, repeat=len(spans) - 1):
                    stages = tuple(
                        Stage(
                            blocks=tuple(names[n] for n in span),
                            engines=tuple(range(firsts[crew], firsts[crew] + sizes[crew])),
                            threads=t,
                            link=replace(one.ring, memory=ring),
                        )
                        for (span, crew), t, ring in zip(spans, threads, ("near", *rings), strict=True)
                    )
                    for places in itertools.product(memories, repeat=len(one.states)):
                        states = tuple(replace(s, memory=m) for s, m in zip(one.states, places, strict=True))
                        yield Mapping(name="brute force", problem=one, stages=stages, states=states)


def fits(mapping):
    """Whether control stores and memories hold what is put into them."""
    entry = mapping.problem
    words = dict.fromkeys(range(entry.processor.engines.count), 0)
    size = {memory.name: 0 for memory in entry.processor.memories}
    lengths = {item.name: item.code_words for item in entry.blocks}
    for number, stage in enumerate(mapping.stages):
        for engine in stage.engines:
            words[engine] += sum(lengths[name] for name in stage.blocks)
        if number:
            size[stage.link.memory] += stage.link.frames * stage.link.access_bytes
    for state in mapping.states:
        size[state.memory] += state.size_bytes
    store = entry.processor.engines.code_words
    return (not store or max(words.values()) <= store) and all(
        not memory.capacity_bytes or size[memory.name] <= memory.capacity_bytes for memory in entry.processor.memories
    )


@pytest.mark.parametrize("seed", range(14))
@pytest.mark.slow
def test_no_mapping_of_all_is_better_than_the_optimum(seed):
    item = drawn(seed)
    most = max((mapping.expectation().pps for mapping in every_mapping(item) if fits(mapping)), default=0.0)
    if not most:
        with pytest.raises(InfeasibleMapping):
            map_processor(item)
        return
    result = map_processor(item)
    assert fits(result.best)
    assert result.best.router().tasks
    assert result.is_optimal
    assert result.pps == pytest.approx(most, rel=2e-6)


def test_the_optimum_takes_no_more_engines_than_another_that_is_as_good():
    item = replace(drawn(3), processor=replace(drawn(3).processor, link_bps=1e9))
    result = map_processor(item)
    as_good = [m.engines for m in every_mapping(item) if fits(m) and m.expectation().pps >= result.pps * (1 - 1e-9)]
    assert result.best.engines == min(as_good)


def test_blocks_are_spread_over_engines_in_proportion_to_their_work():
    # 300 and 100 cycles without memories or rings to speak of: three engines and one.
    processor = chip(4, 8, code_words=100)
    blocks = [block("long", 300, words=60), block("short", 100, words=60)]
    item = problem(processor, blocks, [], ring=Link(memory="near"), rings=("near",))
    result = map_processor(item)
    engines = {stage.blocks: len(stage.engines) for stage in result.best.stages}
    assert engines == {("long",): 3, ("short",): 1}
    assert result.pps == pytest.approx(1e9 / 100, rel=1e-6)


def test_a_small_memory_takes_the_state_that_is_waited_for_most():
    states = [State(name="hot", memory="far", size_bytes=900), State(name="cold", memory="far", size_bytes=900)]
    processor = chip(1, 2, small_bytes=1000)
    blocks = [block("work", 10, ("hot", 4, 4), ("cold", 1, 1))]
    result = map_processor(problem(processor, blocks, states))
    assert {state.name: state.memory for state in result.best.states} == {"hot": "near", "cold": "far"}
    kept = map_processor(problem(processor, blocks, states, movable=frozenset()))
    assert {state.memory for state in kept.best.states} == {"far"}
    assert kept.pps < result.pps


def test_rings_of_registers_join_single_neighbouring_engines_only():
    processor = chip(2, 1, code_words=100)
    blocks = [block("first", 100, words=60), block("second", 100, words=60)]
    item = problem(processor, blocks, [], rings=("near", ""))
    stages = map_processor(item).best.stages
    assert stages[1].link.memory == ""
    assert (stages[0].engines, stages[1].engines) == ((0,), (1,))
    wide = problem(chip(4, 1, code_words=100), blocks, [], rings=("near", ""))
    stages = map_processor(wide).best.stages
    assert [len(stage.engines) for stage in stages] == [2, 2]
    assert stages[1].link.memory == "near"


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
def test_what_cannot_be_mapped_is_told_with_the_reason(processor, words, size, reason):
    blocks = [block("a", 10, ("table", 1, 1), words=words), block("b", 10, words=words)]
    states = [State(name="table", memory="far", size_bytes=size)]
    item = problem(processor, blocks, states, rings=("far",), ring=Link(memory="far", frames=4))
    with pytest.raises(InfeasibleMapping, match=reason):
        map_processor(item)


def test_the_mapping_forwards_in_simulation_what_the_program_predicts():
    item = replace(drawn(2), processor=chip(6, 8))
    result = map_processor(item)
    offered = OfferedLoad(rate_pps=2.0 * result.pps, frames=FrameMix.fixed(64), flows=FlowSet.meshed(4))
    trial = Simulate(model=result.best.router()).trial(offered, 50_000 / offered.rate_pps)
    assert trial.forwarded_pps <= result.pps * 1.01
    plain = [all_in_one(item), round_robin(item)]
    for mapping in plain:
        other = Simulate(model=mapping.router()).trial(offered, 50_000 / offered.rate_pps)
        assert other.forwarded_pps <= mapping.expectation().pps * 1.01
        assert mapping.expectation().pps <= result.pps * (1 + 1e-6)


def test_loads_add_up_to_the_work_that_the_blocks_ask_for():
    item = replace(drawn(2), processor=chip(6, 8))
    result = map_processor(item)
    for mapping in (result.best, round_robin(item)):
        pps = mapping.expectation().pps
        busy = {}
        for load in engine_loads(mapping, pps):
            busy[load.engine] = busy.get(load.engine, 0.0) + load.busy_ratio
        shares = [*busy.values(), *(load.busy_ratio for load in memory_loads(mapping, pps))]
        threads = [load.threads_ratio for load in engine_loads(mapping, pps)]
        assert max(*shares, *threads) == pytest.approx(1.0)


def test_a_search_without_time_says_how_far_from_the_best_it_can_be():
    result = map_processor(replace(drawn(2), processor=chip(6, 8)), seconds=0.0)
    assert not result.is_optimal
    assert result.gap_ratio > 0.0
    assert "the time was over" in result.notes[0]
