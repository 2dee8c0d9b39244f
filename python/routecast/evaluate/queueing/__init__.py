"""Queueing theory: results that are exact or well known, each with its range of validity and its source."""

from routecast.evaluate.queueing.general import DD1, MD1, MG1, MG1K, DD1Interrupted, ServiceMix
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
from routecast.evaluate.queueing.set_up import DD1SetUp, MG1SetUp, SetUpAdded
from routecast.evaluate.queueing.two_moments import GIG1K, GIGc, kingman_bound_s

__all__ = [
    "DD1",
    "GIG1K",
    "MD1",
    "MG1",
    "MG1K",
    "MM1",
    "MM1K",
    "DD1Interrupted",
    "DD1SetUp",
    "GIGc",
    "MG1SetUp",
    "MMc",
    "MMcK",
    "Queue",
    "ServiceMix",
    "SetUpAdded",
    "Tandem",
    "erlang_b",
    "erlang_c",
    "kingman_bound_s",
    "quantile_s",
    "require_range",
]
