"""Columns of a table of points: their heads, the units of their numbers, and what their cells may hold."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal, NamedTuple

from routecast.evaluate.points import LATENCY_STATISTICS, RateKind


class Unit(NamedTuple):
    """The unit of plain numbers in a column: its number of base units, and the layer of bits (S1)."""

    factor: float = 1.0
    # "": no bits; "l1": with gap and preamble; "l2": without; "l3": without the header and FCS of Ethernet, too;
    # "bits": not stated, read as "l1".
    layer: Literal["", "bits", "l1", "l2", "l3"] = ""


_PREFIXES: Final = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12}
FRAME_RATES: Final = {
    **{f"{prefix}{unit}": Unit(factor) for unit in ("pps", "fps") for prefix, factor in _PREFIXES.items()},
    "frames/s": Unit(),
    "packets/s": Unit(),
}
BIT_RATES: Final = {
    f"{prefix}{unit}": Unit(bits * factor, "bits")
    for unit, bits in (("bps", 1.0), ("bit/s", 1.0), ("bytes/s", 8.0))
    for prefix, factor in _PREFIXES.items()
}
_LAYERED: Final = {
    **{f"l1_{unit}": Unit(size.factor, "l1") for unit, size in BIT_RATES.items()},
    **{f"l2_{unit}": Unit(size.factor, "l2") for unit, size in BIT_RATES.items()},
    **{f"l3_{unit}": Unit(size.factor, "l3") for unit, size in BIT_RATES.items()},
}
RATES: Final = {**FRAME_RATES, **BIT_RATES, **_LAYERED}
LAYERS: Final[tuple[Literal["l1", "l2", "l3"], ...]] = ("l1", "l2", "l3")
_BYTES: Final = {"bytes": Unit(), "b": Unit()}
_TIMES: Final = {"us": Unit(1e-6), "ns": Unit(1e-9), "ms": Unit(1e-3), "s": Unit()}
_SHARE: Final = {"%": Unit(0.01), "percent": Unit(0.01), "ratio": Unit()}
KIND_OF_STEM: Final[Mapping[str, RateKind]] = {
    **dict.fromkeys(("forwarding_rate", "maximum_forwarding_rate", "max_forwarding_rate", "mrr"), "overload"),
    **dict.fromkeys(("lossless", "lossless_rate", "lossless_throughput", "no_loss_rate", "ndr"), "no_loss"),
}
"""Stems of heads of rates that name their kind; FD.io CSIT calls them MRR and NDR."""
_RATE_STEMS: Final = ("rate", "rates", "measured_rate", "frame_rate", "packet_rate", "durchsatz")


class PointColumn(NamedTuple):
    """A column of a table of points.

    Its head is its key in :data:`COLUMNS`, a stem alone, or a stem and a unit: ``throughput_mpps``,
    ``Throughput (Mpps)``. Bare numbers have that unit, without it the one of the key; cells may name their own. Where
    numbers below a stem alone are too small for the unit of the key (:data:`ASKED_BELOW`), the reader asks.
    """

    meaning: str
    stems: tuple[str, ...] = ()
    units: Mapping[str, Unit] = MappingProxyType({})


COLUMNS: Final[Mapping[str, PointColumn]] = {
    "cores": PointColumn(
        "cores that process frames, a whole number from 1 to 4096",
        ("kerne", "cpus", "cpu", "core_count", "n_cores", "num_cores", "number_of_cores"),
    ),
    "frame_bytes": PointColumn(
        "frame size with its FCS, 64 or more, or a mix such as IMIX; without this column 64 B",
        ("frame", "frames", "frame_size", "frame_sizes"),
        _BYTES,
    ),
    "throughput_pps": PointColumn(
        'measured maximum throughput over all ports, > 0, in frames/s or with a unit such as "1.9 Mpps" or '
        '"12 Gbit/s" (with 20 bytes of gap and preamble per frame, S1); empty: to be predicted; as forwarding_rate or '
        "lossless the head also names the kind of the rate (rate_kind)",
        ("throughput", *_RATE_STEMS, *KIND_OF_STEM),
        RATES,
    ),
    "rate_kind": PointColumn(
        "overload (forwarding rate at the maximum offered load, RFC 2285 sec. 3.6.2) or no_loss (throughput, RFC "
        "1242); empty: as the head of the rates says"
    ),
    "disturbed": PointColumn(
        "yes, or the reasons, where other work disturbed the measurement; no or empty: nothing is known to have"
    ),
    "flows": PointColumn(
        "flows crafted to fall on the cores in turn, a whole number >= 1; empty: enough for every core"
    ),
    "link_bps": PointColumn(
        'rate of one port in one direction, > 0, in bit/s or with a unit such as "10 Gbit/s"; empty: no link limits',
        ("link",),
        BIT_RATES,
    ),
    "ports": PointColumn("number of ports, a whole number >= 1; empty: 2"),
    "nic_cap_pps": PointColumn(
        "frames per second that the network cards take in together, > 0; empty: no known limit",
        ("nic_cap",),
        FRAME_RATES,
    ),
    "shared_queue": PointColumn("yes or no: whether several cores use one queue under a lock; empty: not known"),
    "queues": PointColumn(
        "receive queues that are dealt to the cores in turn, a whole number >= 1; empty: not known, or one a core"
    ),
    "transmit_ring": PointColumn("modulo (the driver picks hash % rings) or own (each core has its own); empty: own"),
    "series": PointColumn("name of the machine and function that the point belongs to; empty: one series"),
    "calibrate": PointColumn("true or false; empty: false; without this column all rows with a rate calibrate"),
    **{
        f"latency_{statistic}_us": PointColumn(
            f"{statistic} of the latency at the row's load, > 0, in us or with a unit; empty: not measured",
            (f"latency_{statistic}",),
            _TIMES,
        )
        for statistic in LATENCY_STATISTICS
    },
    "latency_load_pps": PointColumn(
        "rate over all ports at which the latency was measured, > 0, in frames/s or with a unit",
        ("latency_rate",),
        FRAME_RATES,
    ),
    "latency_load_ratio": PointColumn(
        "rate at which the latency was measured over the row's throughput, > 0 and at most 10, instead of "
        "latency_load_pps",
        ("latency_load",),
        _SHARE,
    ),
    "latency_load_of": PointColumn(
        "what latency_load_ratio is a share of: overload or no_loss; empty: the kind of the row's rate"
    ),
    "latency_arrivals": PointColumn("cbr, poisson, on_off or trace; empty: not stated"),
    "latency_samples": PointColumn("frames that were timed, a whole number >= 1; empty: not stated"),
    "latency_devices": PointColumn(
        "devices in series that the latency is of, a whole number >= 1; empty: 1; a prediction is of one of them"
    ),
    "latency_tester_us": PointColumn(
        "the tester's own delay, which the latencies contain and the prediction does not, >= 0 and below the "
        "latencies, in us or with a unit; empty: 0",
        ("latency_tester",),
        _TIMES,
    ),
    "latency_resolution_us": PointColumn(
        "step in which the tester counts time, >= 0, in us or with a unit; empty: not stated",
        ("latency_resolution",),
        _TIMES,
    ),
    "latency_ring_frames": PointColumn(
        "frames that wait for one core at most, its receive ring, a whole number >= 1; empty: not stated"
    ),
    "latency_batch_frames": PointColumn(
        "frames that a core takes in one poll at most, a whole number >= 1; empty: not stated"
    ),
    "repeat": PointColumn("number of the repetition, not used: rows with equal conditions are repetitions"),
    "standard_error_ratio": PointColumn(
        "standard error of the rate over the rate, more than 0 and less than 1; empty: not known",
        ("standard_error",),
        {"%": Unit(0.01), "percent": Unit(0.01)},
    ),
    "encapsulation_bytes": PointColumn(
        "bytes that a tunnel or tag adds to each frame on the link; empty: 0", ("encapsulation",), _BYTES
    ),
    "source": PointColumn("source of the row; not used"),
    "reported_l1_bps": PointColumn(
        "throughput by another model, bit/s with gap and preamble, or with a unit; not used; empty: not known",
        ("reported",),
        RATES,
    ),
}
"""Columns of a table of points and what their cells may hold; ``cores`` and ``throughput_pps`` are required."""
SPELLINGS: Final[Mapping[str, tuple[str, Unit]]] = {
    **{name: (name, Unit()) for name in COLUMNS},
    **{
        stem: (name, column.units.get(name.removeprefix(f"{column.stems[0]}_"), Unit()))
        for name, column in COLUMNS.items()
        for stem in column.stems
    },
    **{
        f"{stem}_{suffix}": (name, unit)
        for name, column in COLUMNS.items()
        for stem in column.stems
        for suffix, unit in column.units.items()
    },
    **{
        f"{stem}_{layer}": ("throughput_pps", Unit(1.0, layer))
        for stem in COLUMNS["throughput_pps"].stems
        for layer in LAYERS
    },
}
"""Column and unit of its bare numbers, by head in lower case with ``_`` for spaces and brackets."""
HEAD_OF_KIND: Final[Mapping[str, str]] = {"overload": "forwarding_rate_pps", "no_loss": "lossless_pps"}
SUGGESTED_HEADS: Final = [
    head
    for head, (name, _) in SPELLINGS.items()
    if (name != "reported_l1_bps" or head == name)
    and (not head.startswith((*KIND_OF_STEM, *_RATE_STEMS)) or head in HEAD_OF_KIND.values())
    and head not in COLUMNS["cores"].stems
]
ASKED_BELOW: Final[Mapping[str, float]] = {"throughput_pps": 1e5, "link_bps": 1e8, "nic_cap_pps": 1e5}
"""Least credible value of a bare number: a rate per core in frames/s, bit/s of a link, frames/s of the cards.

A smaller one is more likely in Mpps or Gbit/s: the reader asks where the head names no unit, and remarks where it does.
"""
ASKED_ABOVE: Final[Mapping[str, float]] = {"throughput_pps": 2e8, "link_bps": math.inf, "nic_cap_pps": math.inf}
"""Greatest credible value: no core forwards a frame in 15 cycles, so the rate is more likely in bit/s."""
POSSIBLE: Final[Mapping[str, tuple[float, float]]] = {
    "throughput_pps": (1e5, 4e7),
    "link_bps": (1e8, 1e12),
    "nic_cap_pps": (1e6, 1e10),
}
"""Values in whose range a unit must bring a number before the reader names the unit in its question."""
POSSIBLE_UNITS: Final[Mapping[str, tuple[str, ...]]] = {
    "throughput_pps": ("mpps", "kpps", "gbps", "mbps", "bps"),
    "link_bps": ("gbps", "mbps", "kbps", "tbps"),
    "nic_cap_pps": ("mpps", "kpps"),
}
USED: Final = [name for name in COLUMNS if name != "reported_l1_bps"]
REQUIRED: Final = ("cores", "throughput_pps")
REQUIRED_FOR_ROUTER: Final = ("flows", "frame_bytes", "throughput_pps")
RATE_COLUMNS: Final = ("throughput_pps", "reported_l1_bps")
BASE_UNIT: Final = {"throughput_pps": "frames/s", "link_bps": "bit/s", "nic_cap_pps": "frames/s"}
