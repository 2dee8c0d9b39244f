r"""Latencies carried to frames of another size, and to other cores.

Each byte takes its time on the links, and on cards and buses:

.. code-block:: text

    T(bytes, r) = T(64, r) + c (bytes - 64)       c = links · 8 / link rate + card;   card = 0.5 ns/B unless measured

A device stores a frame before it forwards it, so a frame takes its time on the link into it and on that out of it; the
share of each of n devices in series has 1 + 1 / n links. Where rows of several sizes at about the same low share of the
capacity are there, c is their least-squares slope, with the law above as one more row that is known within a factor of
1.3. The law holds at low load; waiting is taken as equal at an equal share of the capacity, and the more of it there
is, the less a carried row counts. Cards of CSIT 17.01 took 1.0 (X520), 0.5 (X710) and 0.4 ns/B (XL710) a device
besides the links (``data/latency/csit1701.csv``, medians of 64 to 9,000 B, or to 1,518 B, at 10 % of the load).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import median, stdev
from typing import Final

__all__ = ["ByteTime", "SizedLatency", "byte_time", "noise_of_cores", "noise_when_carried"]

_CARD_S: Final = 0.5e-9
"""What a byte takes besides the links, s: cards and buses, between X710 and XL710 cards of CSIT 17.01."""
_FACTOR: Final = math.log(1.3)
"""Standard deviation of the logarithm of c by the law: an X520 takes 1.3 times as long."""
_UNKNOWN_LINK_S: Final = 2 * 8.0 / 10e9
"""Where no link is stated, c may be longer by two links of 10 Gbit/s."""
_LOW_LOAD: Final = 0.3
"""Slopes of higher loads are those of the waiting, too: from rows at 50 % of CSIT 17.01 they miss twice as much."""
_ONE_LOAD: Final = 0.03
_AT_REST: Final = 0.1
_WAITING: Final = 0.9
"""Standard deviation of the logarithm of a latency carried to other frames: at rest, and over the share of the load."""
_OVERLOAD: Final = 0.95
_FULL_RING: Final = math.log(3.0)
"""The same near the capacity and beyond: a ring of other frames takes another time."""
_LEAST_SHARE: Final = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class SizedLatency:
    """What one device takes for frames of a size at a share of the capacity, s.

    ``noise_ratio``: standard deviation of the logarithm; ``devices``: devices in series, of which this is a share.
    """

    frame_bytes: float
    load_ratio: float
    latency_s: float
    noise_ratio: float
    cores: int = 1
    devices: int = 1

    @property
    def links(self) -> float:
        """Links in the share of a device."""
        return 1.0 + 1.0 / self.devices


@dataclass(frozen=True, slots=True, kw_only=True)
class ByteTime:
    """What a byte takes: ``link_s`` on each link (0 if unknown) and ``card_s`` in a device, s.

    ``spread_s`` is the standard deviation of their sum; ``is_measured`` tells whether rows of several sizes gave it.
    """

    link_s: float
    card_s: float
    spread_s: float
    is_measured: bool

    def of_s(self, row: SizedLatency) -> float:
        """Return the time of a byte on the links and in the device of a row, s: no less than a link's.

        A device stores a frame before it forwards it; a tester that times the beginnings of frames counts no more.
        """
        return max(row.links * self.link_s + self.card_s, self.link_s, 0.0)

    def carried(self, row: SizedLatency, frame_bytes: float) -> tuple[float, float]:
        """Return the latency for frames of another size, s, and the standard deviation of its logarithm.

        A latency is carried to a tenth of itself at least. Frames of the row's own size, within 2 %, stay as they are.
        """
        if math.isclose(row.frame_bytes, frame_bytes, rel_tol=0.02):
            return row.latency_s, row.noise_ratio
        more_bytes = frame_bytes - row.frame_bytes
        carried_s = max(row.latency_s + self.of_s(row) * more_bytes, _LEAST_SHARE * row.latency_s)
        return carried_s, math.hypot(
            row.noise_ratio * row.latency_s / carried_s,
            self.spread_s * more_bytes / carried_s,
            noise_when_carried(row.load_ratio),
        )


def noise_when_carried(load_ratio: float) -> float:
    """Return the standard deviation of the logarithm of a latency carried to other frames or cores at an equal share.

    Below 95 % of the capacity it grows with the load; beyond, two directions of a test already differ by half of it.
    """
    return math.hypot(_AT_REST, _WAITING * load_ratio) if load_ratio <= _OVERLOAD else _FULL_RING


def noise_of_cores(load_ratio: float, cores: int, of_cores: int) -> float:
    """Return that of a latency with some cores carried to other cores: less where they are not twice as many or half.

    It is in proportion to the logarithm of their ratio up to two, and the same beyond.
    """
    return noise_when_carried(load_ratio) * min(abs(math.log2(of_cores / cores)), 1.0)


def byte_time(rows: Sequence[SizedLatency], *, link_bps: float | None) -> ByteTime:
    """Return what a byte takes on the links and in a device, from rows of several sizes where they tell it.

    Rows of the same cores at about the same share of the capacity, 30 % at most, give a slope each; the median of
    them counts.

    Parameters
    ----------
    rows : sequence of SizedLatency
    link_bps : float or None
        Rate of a link; None: not stated.

    Examples
    --------
    >>> row = SizedLatency(frame_bytes=64, load_ratio=0.1, latency_s=8e-6, noise_ratio=0.04)
    >>> law = byte_time([row], link_bps=10e9)
    >>> round(1e9 * law.of_s(row), 3), law.is_measured  # two links of 0.8 ns/B, and 0.5 ns/B
    (2.1, False)
    >>> round(1e6 * law.carried(row, 1518)[0], 2)
    11.05
    """
    link_s = 8.0 / link_bps if link_bps else 0.0
    slopes = [slope for group in _alike(rows) if (slope := _slope(group, link_s)) is not None]
    if not slopes:
        links = rows[0].links if rows else 2.0
        spread_s = math.hypot(_FACTOR * (links * link_s + _CARD_S), 0.0 if link_bps else _UNKNOWN_LINK_S)
        return ByteTime(link_s=link_s, card_s=_CARD_S, spread_s=spread_s, is_measured=False)
    cards_s = [card_s for card_s, _ in slopes]
    law_s = _FACTOR * (rows[0].links * link_s + _CARD_S)
    spread_s = max(law_s, median(spread for _, spread in slopes), stdev(cards_s) if len(cards_s) > 1 else 0.0)
    return ByteTime(link_s=link_s, card_s=median(cards_s), spread_s=spread_s, is_measured=True)


def _alike(rows: Sequence[SizedLatency]) -> Iterator[list[SizedLatency]]:
    """Yield groups of rows of the same cores and devices at about the same low load."""
    low = sorted(
        (row for row in rows if row.load_ratio <= _LOW_LOAD), key=lambda row: (row.cores, row.devices, row.load_ratio)
    )
    for _, of_cores in groupby(low, key=lambda row: (row.cores, row.devices)):
        group: list[SizedLatency] = []
        for row in of_cores:
            if group and row.load_ratio - group[0].load_ratio > _ONE_LOAD:
                yield group
                group = []
            group.append(row)
        yield group


def _slope(rows: Sequence[SizedLatency], link_s: float) -> tuple[float, float] | None:
    """Return what a byte takes in the device, s, and its standard deviation; None for frames of a single size.

    Weighted least squares with a free level; the law is a further row, known within its factor.
    """
    smallest = min(row.frame_bytes for row in rows)
    if all(math.isclose(row.frame_bytes, smallest, rel_tol=0.02) for row in rows):
        return None
    weights = [(row.noise_ratio * row.latency_s) ** -2 for row in rows]
    in_device_s = [row.latency_s - row.links * link_s * row.frame_bytes for row in rows]
    mean_bytes = sum(w * row.frame_bytes for w, row in zip(weights, rows, strict=True)) / sum(weights)
    precision = sum(w * (row.frame_bytes - mean_bytes) ** 2 for w, row in zip(weights, rows, strict=True))
    moment = sum(
        w * (row.frame_bytes - mean_bytes) * seconds for w, row, seconds in zip(weights, rows, in_device_s, strict=True)
    )
    of_law = (_FACTOR * (rows[0].links * link_s + _CARD_S)) ** -2 if link_s else _UNKNOWN_LINK_S**-2
    return (moment + of_law * _CARD_S) / (precision + of_law), (precision + of_law) ** -0.5
