"""Cores that poll an interface: what each carries, and which of them limits first.

An interface saturates when the fullest of its cores does. With a share w of the packets and a saturation load c of its
own, a core limits the interface to c / w. Packets find their queue by a hash of their flow, so shares move: how much
they did during the look is part of the interval, as is which of several cores that are about equally full is first.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import stdev
from typing import Final, Literal

import numpy as np

from routecast.lab.watch._looking import Look, Part, Poller, Records
from routecast.lab.watch._saturation import FULL_PACKETS, NORMAL_95, WIDEST, FullPolls, Saturation, saturation, too_wide

__all__ = ["BatchCurve", "Core", "PollTimes", "cores_of", "of_interface", "polls_seen"]

_CALLS_OF_A_FULL_POLL: Final = 3.0
_BORROWED_SPREAD: Final = 0.05
"""Spread of ln(cycle) between cores of one interface: assumed, not measured."""
_FEWEST_CHUNKS: Final = 4
_DRAWS: Final = 4000
_FEWEST_SHORT: Final = 100
_BUSY_ENOUGH: Final = 0.05
"""A core with less than this share of the packets of the fullest one is not asked for its own polls."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PollTimes:
    """First and later polls of an episode by their packets, 0 to 64: how many, and their time, s, 65 numbers each."""

    first: tuple[float, ...] = field(repr=False)
    first_s: tuple[float, ...] = field(repr=False)
    later: tuple[float, ...] = field(repr=False)
    later_s: tuple[float, ...] = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchCurve:
    """What a poll costs, s: ``per_batch_s``, ``per_packet_s``, and ``waking_s`` more if it is first after waking."""

    per_packet_s: float
    per_batch_s: float
    waking_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Core:
    """A core that polls, and what it did during a look.

    ``name``: its processor, or the thread that polls where it may run on several; ``napi_ids``: the instances that it
    polls; ``share_ratio``: share of the core that its pollers had of what they wanted; ``spread``: standard deviation
    of the logarithm of its share of the packets over parts of the look; ``saturation``: of the core alone.
    """

    name: str
    napi_ids: tuple[int, ...]
    pollers: tuple[Poller, ...]
    rate_pps: float
    busy_ratio: float
    packets_per_poll: float
    full_polls: int
    share_ratio: float
    spread: float
    saturation: Saturation
    polls: PollTimes

    @property
    def by_busy_share_pps(self) -> float:
        """What the busy share alone would say, which is too little at low loads; for comparison."""
        return self.rate_pps / self.busy_ratio if self.busy_ratio else math.nan

    def curve(self, cycle_s: float) -> BatchCurve | None:
        """Return the costs of a poll: a line that is ``cycle_s`` for 64 packets, and the best for fewer.

        None where fewer than :data:`_FEWEST_SHORT` polls with a packet were short.
        """
        packets = np.arange(FULL_PACKETS + 1.0)
        counted, spent_s = np.array(self.polls.later), np.array(self.polls.later_s)
        counted[[0, FULL_PACKETS]] = 0.0
        below = FULL_PACKETS - packets
        if counted.sum() < _FEWEST_SHORT:
            # No poll followed another: those after waking are all that tell.
            counted, spent_s = np.array(self.polls.first), np.array(self.polls.first_s)
            counted[[0, FULL_PACKETS]] = 0.0
        if counted.sum() < _FEWEST_SHORT:
            return None
        per_packet_s = float(
            (below * (counted * cycle_s - spent_s * (counted > 0.0))).sum() / (counted * below**2).sum()
        )
        per_packet_s = min(max(per_packet_s, 0.0), cycle_s / FULL_PACKETS)
        per_batch_s = cycle_s - FULL_PACKETS * per_packet_s
        waking_s = 0.0
        woken = np.array(self.polls.first)
        if woken.sum() > 0.0:
            lines_s = (woken * (per_batch_s + packets * per_packet_s)).sum()
            waking_s = max(float((sum(self.polls.first_s) - lines_s) / woken.sum()), 0.0)
        return BatchCurve(per_packet_s=per_packet_s, per_batch_s=per_batch_s, waking_s=waking_s)


def cores_of(
    look: Look, gathered: Mapping[Poller, FullPolls], names: Mapping[int, str] | None = None
) -> tuple[Core, ...]:
    """Return the cores of a look, the fullest first.

    Parameters
    ----------
    look : Look
    gathered : mapping
        Full polls of a probe, by poller; those of the look count where they are more.
    names : mapping or None
        Names of threads by their number.
    """
    together: dict[str, list[Part]] = {}
    for part in look.parts:
        together.setdefault(_name_of(look, part.of_poller, names or {}), []).append(part)
    own_s = look.own_ns * 1e-9 / look.own_runs if look.own_runs else 0.0
    cores = [_core(name, parts, look, gathered, own_s) for name, parts in together.items()]
    return tuple(sorted(cores, key=lambda core: -core.rate_pps))


def _name_of(look: Look, poller: Poller, names: Mapping[int, str]) -> str:
    is_thread, number = poller
    if not is_thread:
        return f"processor {number}"
    thread = look.threads.get(number)
    if thread is not None and thread.processor is not None:
        return f"processor {thread.processor}"
    return names.get(number) or f"thread {number}"


def _core(name: str, parts: Sequence[Part], look: Look, gathered: Mapping[Poller, FullPolls], own_s: float) -> Core:
    pollers = tuple(dict.fromkeys(part.of_poller for part in parts))
    packets, polls, empty, busy_ns, paused_ns = (
        sum(int(part.counts[key]) for part in parts)
        for key in ("packets", "polls", "empty_polls", "busy_ns", "paused_ns")
    )
    threads = [look.threads[number] for is_thread, number in pollers if is_thread and number in look.threads]
    run_s, waited_s = sum(thread.run_s for thread in threads), sum(thread.waited_s for thread in threads)
    if not threads or not run_s > 0.0:
        run_s, waited_s = busy_ns * 1e-9, paused_ns * 1e-9
    share_ratio = run_s / (run_s + waited_s) if run_s > 0.0 else 1.0
    all_polls = sum(int(part.counts["polls"]) for part in look.parts)
    full, source = _most(polls_seen(look.records_of(poller) for poller in pollers), gathered, pollers)
    return Core(
        name=name,
        napi_ids=tuple(dict.fromkeys(part.napi_id for part in parts)),
        pollers=pollers,
        rate_pps=packets / look.duration_s,
        busy_ratio=run_s / look.duration_s,
        packets_per_poll=packets / (polls - empty) if polls > empty else math.nan,
        full_polls=sum(int(part.counts["full_polls"]) for part in parts),
        share_ratio=share_ratio,
        spread=_spread(look, pollers),
        saturation=saturation(
            full,
            own_s=own_s,
            calls=_CALLS_OF_A_FULL_POLL,
            share_ratio=share_ratio,
            # Some of what it waited for the core it would wait in overload, too; whether all of it is not known.
            share_spread=-0.5 * math.log(share_ratio),
            source=source,
        ),
        polls=_poll_times(parts, own_s * look.own_runs / max(all_polls, 1)),
    )


def _poll_times(parts: Sequence[Part], own_s: float) -> PollTimes:
    """Return the polls of parts, of whose times ``own_s`` a poll is the watch's own."""
    first, first_ns, later, later_ns = (
        np.sum([part.counts[key] for part in parts], axis=0, dtype=float)
        for key in ("first_polls", "first_ns", "later_polls", "later_ns")
    )
    return PollTimes(
        first=tuple(first.tolist()),
        first_s=tuple(np.maximum(first_ns * 1e-9 - own_s * first, 0.0).tolist()),
        later=tuple(later.tolist()),
        later_s=tuple(np.maximum(later_ns * 1e-9 - own_s * later, 0.0).tolist()),
    )


def polls_seen(records: Iterable[Records]) -> FullPolls:
    """Return the full polls of records, by poller: each poller's own run."""
    full = FullPolls(second_s=(), later_s=())
    for of_poller in records:
        full += FullPolls.of(of_poller)
    return full


def _most(
    seen: FullPolls, gathered: Mapping[Poller, FullPolls], pollers: Sequence[Poller]
) -> tuple[FullPolls, Literal["passive", "probe"]]:
    probed = [gathered[poller] for poller in pollers if poller in gathered]
    made = sum(probed, FullPolls(second_s=(), later_s=()))
    return (made, "probe") if probed and len(made) >= len(seen) else (seen, "passive")


def _spread(look: Look, pollers: Sequence[Poller]) -> float:
    """Return how much a core's share of the packets moved between parts of the look; 0 where it has all of them."""
    shares = []
    for chunk in look.chunks:
        whole = sum(chunk.values())
        if whole:
            shares.append(sum(chunk.get(poller, 0) for poller in pollers) / whole)
    if len(shares) < _FEWEST_CHUNKS or min(shares) == max(shares):
        return 0.0
    return stdev(math.log(max(share, 1e-3)) for share in shares)


def of_interface(cores: Sequence[Core]) -> tuple[Saturation, str, tuple[str, ...]]:
    """Return the load at which an interface saturates, the core that is full first, and sentences on how it is known.

    ``cores``: the fullest first. A core whose own full polls are too few has the mean cycle of the others, less
    certainly.
    """
    busy = [core for core in cores if core.rate_pps > _BUSY_ENOUGH * cores[0].rate_pps]
    if not busy:
        return Saturation(reason="no packet came in: look longer"), "", ()
    if len(busy) == 1:
        return busy[0].saturation, busy[0].name, ()
    rate_pps = sum(core.rate_pps for core in cores)
    known = [core.saturation for core in busy if not core.saturation.reason]
    if not known:
        return busy[0].saturation, busy[0].name, ()
    centres, spreads, notes = [], [], []
    cycle_s = math.exp(sum(math.log(each.cycle_s) for each in known) / len(known))
    widest = max(math.log(each.high_pps / each.low_pps) for each in known)
    for core in busy:
        own_pps, width, borrowed = core.saturation.pps, widest, 0.0
        if core.saturation.reason:
            own_pps, borrowed = core.share_ratio * FULL_PACKETS / cycle_s, _BORROWED_SPREAD
            notes.append(f"{core.name}: too few full polls of its own, taken to cost what those of the others do")
        else:
            width = math.log(core.saturation.high_pps / core.saturation.low_pps)
        centres.append(math.log(own_pps * rate_pps / core.rate_pps))
        spreads.append(math.hypot(0.5 * width / NORMAL_95, borrowed, core.spread))
    first = int(np.argmin(centres))
    drawn = np.random.default_rng(0).standard_normal((_DRAWS, len(centres))) * spreads + centres
    low, middle, high = np.exp(np.quantile(drawn.min(axis=1), (0.025, 0.5, 0.975))).tolist()
    limiting = busy[first].saturation
    answer = replace(
        limiting if not limiting.reason else known[0],
        pps=middle,
        low_pps=low,
        high_pps=high,
        polls=sum(each.polls for each in known),
        source="probe" if any(each.source == "probe" for each in known) else "passive",
    )
    if high > WIDEST * low:
        answer = replace(answer, pps=math.nan, low_pps=math.nan, high_pps=math.nan, reason=too_wide(low, high))
    return answer, busy[first].name, tuple(notes)
