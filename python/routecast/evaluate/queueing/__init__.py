"""Queueing theory: results that are exact or well known, each with its range of validity and its source."""

from routecast.evaluate.queueing.general import DD1, MD1, MG1, MG1K, GIGc, ServiceMix, kingman_bound_s
from routecast.evaluate.queueing.markov import (
    MM1,
    MM1K,
    MMc,
    MMcK,
    Queue,
    Tandem,
    erlang_b,
    erlang_c,
    quantile_s,
    require_range,
)

__all__ = [
    "DD1",
    "MD1",
    "MG1",
    "MG1K",
    "MM1",
    "MM1K",
    "GIGc",
    "MMc",
    "MMcK",
    "Queue",
    "ServiceMix",
    "Tandem",
    "erlang_b",
    "erlang_c",
    "kingman_bound_s",
    "quantile_s",
    "require_range",
]
