"""Searches for the greatest rate that meets a goal: MLRsearch (RFC 9971), plain binary search, loss verification."""

from routecast.benchmark.search.binary import binary_search
from routecast.benchmark.search.bounds import Bounds, Probe
from routecast.benchmark.search.burst import longest_burst
from routecast.benchmark.search.mlr import mlr_search
from routecast.benchmark.search.verify import verified

__all__ = ["Bounds", "Probe", "binary_search", "longest_burst", "mlr_search", "verified"]
