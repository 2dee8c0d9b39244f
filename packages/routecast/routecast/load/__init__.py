"""Offered load: the frames that arrive at the ports of a router. This package does not depend on router models."""

from routecast.load.arrivals import Arrivals
from routecast.load.flows import MICROSOFT_KEY, SYMMETRIC_KEY, Flow, FlowSet, rss_hash, rss_index, toeplitz
from routecast.load.frames import GENOME_BYTES, RFC2544_FRAME_BYTES, FrameMix
from routecast.load.offered import WIRE_OVERHEAD_BYTES, IntendedRate, OfferedLoad, RateStep, line_rate_pps
from routecast.load.trace import RecordedFrames

__all__ = [
    "GENOME_BYTES",
    "MICROSOFT_KEY",
    "RFC2544_FRAME_BYTES",
    "SYMMETRIC_KEY",
    "WIRE_OVERHEAD_BYTES",
    "Arrivals",
    "Flow",
    "FlowSet",
    "FrameMix",
    "IntendedRate",
    "OfferedLoad",
    "RateStep",
    "RecordedFrames",
    "line_rate_pps",
    "rss_hash",
    "rss_index",
    "toeplitz",
]
