"""How well rows of other frames or cores, at the same share of the capacity, tell a latency (CSIT 17.01).

The same suite, direction and share of the load. Two devices are in series there, and the tester adds 4 us: as in the
product, one device's share is carried. Rows of the smallest frames (64 B, or 78 B) and of a core are what is known.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final, Literal

from routecast.calibration.latency import LatencyRow, fit_curve, prior_of
from routecast.calibration.latency.carried import ByteTime, SizedLatency, byte_time, noise_of_cores
from routecast.replications.latency.scores import Score, Tally
from routecast.replications.latency.tables import published_rows

__all__ = ["CARRIED", "CarriedQuestion", "SizedRouter", "scored_carried", "sized_routers"]

_SOURCE: Final = "csit1701"
_TESTER_S: Final = 4e-6
_DEVICES: Final = 2
_SMALL: Final = 100.0
_LARGE: Final = 9000.0
_LOADS: Final = (0.1, 0.5)

Known = Literal["no other size", "another size", "the card"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CarriedQuestion:
    """What is carried, to frames of ``to_bytes`` (1518: of 1,460 to 1,518 B) or ``to_cores``, at a share of the load.

    ``known`` besides the smallest frames: no other size; rows of a third size, with the same cores; or what a byte
    takes with the same card, from other suites (a median).
    """

    load_ratio: float
    to_bytes: float = 64.0
    to_cores: int = 1
    known: Known = "no other size"

    def __str__(self) -> str:
        at = f"at {100.0 * self.load_ratio:g} %"
        if self.to_cores > 1:
            return f"1 -> {self.to_cores} cores {at}"
        return f"64 -> {self.to_bytes:g} B {at}, known: {self.known}"


CARRIED: Final = (
    *(
        CarriedQuestion(load_ratio=load, to_bytes=size, known=known)
        for load in _LOADS
        for size in (1518.0, _LARGE)
        for known in ("no other size", "another size", "the card")
    ),
    *(CarriedQuestion(load_ratio=load, to_cores=count) for load in _LOADS for count in (2, 4)),
)


@dataclass(frozen=True, slots=True)
class SizedRouter:
    """A suite with a number of cores in one direction: its mean latencies below the full load, by frame size."""

    suite: str
    cores: int
    direction: str
    frame_s: float
    rows: Mapping[float, tuple[SizedLatency, ...]]

    @property
    def card(self) -> str:
        """The card that the suite's name has."""
        return self.suite.removeprefix("DPDK-testpmd-").partition("-")[0]

    @property
    def link_bps(self) -> float:
        """Rate of a link of the card."""
        return 40e9 if self.card.startswith("40ge") else 10e9

    @property
    def small(self) -> tuple[SizedLatency, ...]:
        """The rows of the smallest frames, if they are small."""
        size = min(self.rows)
        return self.rows[size] if size < _SMALL else ()


def sized_routers() -> tuple[SizedRouter, ...]:
    """Return the routers of CSIT 17.01, with the share of one device of two."""
    routers: dict[tuple[str, int, str], dict[float, list[SizedLatency]]] = {}
    times: dict[tuple[str, int, str], float] = {}
    noise = prior_of("mean", _SOURCE).noise
    for row in published_rows(_SOURCE):
        load_ratio = float(row["latency_load_ratio"])
        if load_ratio not in _LOADS:
            continue
        key = row["series"], int(row["cores"]), row["direction"]
        times[key] = float(row["frame_s"])
        size = float(row["frame_bytes"])
        latency = SizedLatency(
            frame_bytes=size,
            load_ratio=load_ratio,
            latency_s=(float(row["latency_mean_us"]) * 1e-6 - _TESTER_S) / _DEVICES,
            noise_ratio=noise,
            cores=key[1],
            devices=_DEVICES,
        )
        routers.setdefault(key, {}).setdefault(size, []).append(latency)
    return tuple(
        SizedRouter(*key, times[key], {size: tuple(rows) for size, rows in sizes.items()})
        for key, sizes in routers.items()
    )


def scored_carried(question: CarriedQuestion, routers: Sequence[SizedRouter]) -> Score | None:
    """Return the score of what is carried, beside a latency that is the same for all frames; None without any row."""
    tally = Tally()
    for router in routers:
        pairs = _other_cores(question, router, routers) if question.to_cores > 1 else _other_size(question, router)
        for known, truth in pairs:
            time = byte_time(known, link_bps=router.link_bps)
            if question.known == "the card":
                card_s = _card_s(router, routers)
                if math.isnan(card_s):
                    continue
                time = ByteTime(link_s=time.link_s, card_s=card_s, spread_s=0.1 * time.spread_s, is_measured=True)
            rows = []
            for row in known:
                seconds, noise = time.carried(row, truth.frame_bytes)
                noise = math.hypot(noise, noise_of_cores(row.load_ratio, row.cores, truth.cores))
                rows.append(LatencyRow(load_ratio=row.load_ratio, latency_s=seconds, noise_ratio=noise))
            curve = fit_curve(rows, prior_of("mean", _SOURCE, rate_kind="no_loss"), frame_s=router.frame_s)
            same = next(row for row in known if row.load_ratio == truth.load_ratio)
            tally.add(
                curve,
                LatencyRow(load_ratio=truth.load_ratio, latency_s=truth.latency_s),
                {"the same": math.log(same.latency_s)},
            )
    return tally.score(_SOURCE)


def _other_size(
    question: CarriedQuestion, router: SizedRouter
) -> Iterator[tuple[tuple[SizedLatency, ...], SizedLatency]]:
    """Yield what is known of a router, the smallest frames first, and a row of other frames."""
    for size, rows in router.rows.items():
        if size < _SMALL or (size == _LARGE) != (question.to_bytes == _LARGE) or not router.small:
            continue
        known = router.small
        if question.known == "another size":
            third = [
                row
                for other, of_other in router.rows.items()
                if other not in {size, min(router.rows)}
                for row in of_other
            ]
            if not third:
                continue
            known = (*known, *third)
        yield from ((known, row) for row in rows if row.load_ratio == question.load_ratio)


def _other_cores(
    question: CarriedQuestion, router: SizedRouter, routers: Sequence[SizedRouter]
) -> Iterator[tuple[tuple[SizedLatency, ...], SizedLatency]]:
    """Yield the rows of a router with a core, and that of the same frames with more."""
    if router.cores != 1:
        return
    for more in routers:
        if (more.suite, more.direction, more.cores) == (router.suite, router.direction, question.to_cores):
            for size in router.rows.keys() & more.rows.keys():
                known = router.rows[size]
                yield from ((known, row) for row in more.rows[size] if row.load_ratio == question.load_ratio)


def _card_s(router: SizedRouter, routers: Sequence[SizedRouter]) -> float:
    """Return what a byte takes in other suites with the card of a router, s: the median; NaN without any."""
    slopes = [
        (row.latency_s - small.latency_s) / (row.frame_bytes - small.frame_bytes) - row.links * 8.0 / other.link_bps
        for other in routers
        if other.card == router.card and other.suite != router.suite and other.small
        for small in other.small
        for rows in other.rows.values()
        for row in rows
        if row.frame_bytes > _SMALL and row.load_ratio == small.load_ratio == _LOADS[0]
    ]
    return median(slopes) if slopes else math.nan
