"""Che's approximation against closed forms and an exact simulation of least-recently-used caches."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from routecast.errors import ModelProblem
from routecast.hardware.model import MemoryLevel
from routecast.hardware.residency import LINE_BYTES, Stream, distinct_lines, residency
from routecast.load.popularity import Popularity

PACKETS = 60_000
TOLERANCE = 0.012
"""Sampling error of 40,000 accesses, at most 0.0025 (one standard deviation), and the approximation's own, small from a
few hundred lines up (Fricker, Robert & Roberts 2012, "A versatile and accurate approximation for LRU caches")."""


def levels(*lines: float) -> list[MemoryLevel]:
    names = ("L1", "L2", "L3")
    caches = [
        MemoryLevel(name=name, size_bytes=size * LINE_BYTES)
        for name, size in zip(names[: len(lines)], lines, strict=True)
    ]
    return [*caches, MemoryLevel(name="DRAM")]


def table(name: str = "table", **changes: object) -> Stream:
    return Stream(**({"name": name, "kind": "table", "accesses": 1.0, "lines": 4096.0} | changes))


def ring(lines: float, accesses: float = 1.0) -> Stream:
    return Stream(name="frames", kind="frame", accesses=accesses, lines=lines)


class Lru:
    """A fully associative cache of ``lines`` lines that drops the least recently used one."""

    def __init__(self, lines: int) -> None:
        self.lines = lines
        self.held: OrderedDict[object, None] = OrderedDict()

    def holds(self, line: object) -> bool:
        result = line in self.held
        self.held[line] = None
        self.held.move_to_end(line)
        if len(self.held) > self.lines:
            self.held.popitem(last=False)
        return result


def lines_of(stream: Stream, seed: int) -> Callable[[int], Iterator[object]]:
    """Return what gives the lines that a packet uses, drawn as the stream says."""
    rng = np.random.default_rng(seed)
    whole = round(stream.accesses)
    if stream.kind == "frame":
        return lambda packet: iter((stream.name, (packet * whole + step) % int(stream.lines)) for step in range(whole))
    keys = stream.keys_used or int(stream.lines)
    weights = np.arange(1.0, keys + 1.0) ** (-stream.popularity.exponent if stream.popularity.kind == "zipf" else 0.0)
    drawn = rng.choice(keys, size=(PACKETS, whole), p=weights / weights.sum())
    where = rng.integers(int(stream.lines), size=keys) if stream.keys_used else np.arange(keys)
    return lambda packet: iter((stream.name, int(where[key])) for key in drawn[packet])


def simulated(sizes: Sequence[int], streams: Sequence[Stream]) -> dict[str, list[float]]:
    """Return the share of each stream's accesses that a cache of each size holds, after a third of the packets."""
    caches = [Lru(size) for size in sizes]
    draws = [lines_of(stream, seed) for seed, stream in enumerate(streams)]
    counted = {stream.name: np.zeros(len(sizes) + 1) for stream in streams}
    for packet in range(PACKETS):
        for stream, draw in zip(streams, draws, strict=True):
            for line in draw(packet):
                held = [cache.holds(line) for cache in caches]
                if packet >= PACKETS // 3:
                    counted[stream.name] += [*held, 1.0]
    return {name: list(counts[:-1] / counts[-1]) for name, counts in counted.items()}


CASES = {
    "uniform table": ([256, 1024], [table(lines=2048)]),
    "zipf table": ([256, 1024], [table(lines=4096, popularity=Popularity(kind="zipf"))]),
    "steep zipf": ([128, 512], [table(lines=8192, popularity=Popularity(kind="zipf", exponent=1.4))]),
    "frames fit, table does not": ([512, 2048], [table(lines=8192), ring(600)]),
    "frames come round too late": ([512, 2048], [table(lines=1024, accesses=2), ring(4096, accesses=3)]),
    "zipf table against frames": (
        [256, 2048],
        [table(lines=16384, popularity=Popularity(kind="zipf", exponent=0.9)), ring(700)],
    ),
    "two tables": (
        [300, 1500],
        [table("mac", lines=2000), table("routes", lines=3000, popularity=Popularity(kind="zipf")), ring(400)],
    ),
    "few flows in a large table": ([128, 1024], [table(lines=65536, popularity=Popularity(flows=700)), ring(200)]),
    "several keys on a line": ([256, 1024], [table(lines=1500, keys=3000)]),
    "zipf keys on shared lines": (
        [256, 1024],
        [table(lines=1500, keys=6000, popularity=Popularity(kind="zipf", exponent=0.8)), ring(100)],
    ),
}


@pytest.mark.parametrize(("sizes", "streams"), CASES.values(), ids=CASES)
@pytest.mark.slow
def test_shares_are_those_of_an_exact_lru_simulation(sizes: list[int], streams: list[Stream]) -> None:
    result = residency(levels(*sizes), streams)
    for name, held in simulated(sizes, streams).items():
        within = np.cumsum(list(result[name].values()))[:-1]
        assert within == pytest.approx(held, abs=TOLERANCE), name


@given(cached=st.integers(1, 4000), more=st.integers(1, 10**9))
def test_a_uniform_table_is_found_as_often_as_the_cache_holds_of_it(cached: int, more: int) -> None:
    # Closed form of LRU under uniform independent requests: hit ratio C / N.
    lines = cached + more
    result = residency(levels(cached), [table(lines=lines)])["table"]
    assert result["L1"] == pytest.approx(cached / lines, rel=1e-6)


def test_what_fits_is_always_found_in_the_smallest_level_that_holds_it_all() -> None:
    result = residency(levels(100, 1000, 10_000), [table(lines=500), ring(400)])
    assert result["table"]["L1"] < 1.0
    assert result["table"]["L1"] + result["table"]["L2"] == pytest.approx(1.0)
    assert result["frames"] == {"L1": 0.0, "L2": 1.0, "L3": 0.0, "DRAM": 0.0}


def test_a_ring_that_does_not_fit_is_never_found() -> None:
    # The known worst case of LRU: a cyclic sweep over one line more than the cache has.
    assert residency(levels(1000), [ring(1001)])["frames"]["L1"] == 0.0
    assert residency(levels(1000), [ring(1000)])["frames"]["L1"] == 1.0


def test_one_flow_needs_one_line_of_the_largest_table() -> None:
    result = residency(levels(512), [table(lines=2**24, popularity=Popularity(flows=1))])
    assert result["table"]["L1"] == 1.0


def test_streams_of_one_name_use_the_same_lines() -> None:
    twice = residency(levels(256), [table(), table()])
    assert twice["table"] == residency(levels(256), [table(accesses=2.0)])["table"]
    with pytest.raises(ModelProblem, match="occurs twice with different lines"):
        residency(levels(256), [table(), table(lines=10.0)])


popularities = st.builds(
    Popularity,
    kind=st.sampled_from(["uniform", "zipf"]),
    flows=st.none() | st.integers(1, 10**8),
    exponent=st.floats(0.0, 3.0),
)
streams = st.lists(
    st.builds(
        Stream,
        name=st.sampled_from(["a", "b", "c", "d"]),
        kind=st.sampled_from(["table", "frame"]),
        accesses=st.floats(0.0, 100.0),
        lines=st.floats(0.0, 1e9),
        popularity=popularities,
        keys=st.none() | st.floats(1.0, 1e9),
    ),
    max_size=4,
    unique_by=lambda stream: stream.name,
)


@given(streams=streams, sizes=st.lists(st.floats(1.0, 1e7), min_size=1, max_size=3, unique=True).map(sorted))
def test_shares_are_shares_and_sum_to_one(streams: list[Stream], sizes: list[float]) -> None:
    for item in residency(levels(*sizes), streams).values():
        assert all(-1e-9 <= share <= 1.0 + 1e-9 for share in item.values())
        assert math.fsum(item.values()) == pytest.approx(1.0)


@given(exponent=st.floats(0.1, 2.0), size=st.floats(10.0, 10_000.0))
def test_a_larger_cache_finds_more_and_a_steeper_law_too(exponent: float, size: float) -> None:
    def l1_share(size: float, exponent: float) -> float:
        stream = table(lines=100_000, popularity=Popularity(kind="zipf", exponent=exponent))
        return residency(levels(size), [stream])["table"]["L1"]

    assert l1_share(size, exponent) <= l1_share(1.5 * size, exponent) + 1e-9
    assert l1_share(size, exponent) <= l1_share(size, exponent + 0.2) + 1e-9


@given(keys=st.integers(1, 2000), lines=st.integers(1, 2000))
def test_distinct_lines_are_those_of_keys_thrown_at_random(keys: int, lines: int) -> None:
    # E[occupied] = M (1 - (1 - 1/M)^K), the classical occupancy problem.
    assert distinct_lines(keys, lines) == pytest.approx(lines * (1.0 - (1.0 - 1.0 / lines) ** keys), rel=1e-9)


def test_sixteen_million_keys_take_a_few_hundred_bins() -> None:
    counts, probabilities = Popularity(kind="zipf").bins(2**24)
    assert len(counts) < 1000
    assert counts.sum() == 2**24
    # Sum of 1/i: Euler-Mascheroni, ln n + 0.5772156649 + 1/(2n).
    harmonic = math.log(2**24) + 0.5772156649015329 + 0.5 / 2**24
    assert probabilities[0] == pytest.approx(1.0 / harmonic, rel=1e-6)


@pytest.mark.parametrize(("field", "value"), [("accesses", -1.0), ("lines", math.inf), ("keys", 0.0)])
def test_numbers_that_mean_nothing_are_refused(field: str, value: float) -> None:
    with pytest.raises(ModelProblem, match=field):
        table(**{field: value})
