"""A router in service, watched: what a packet costs it, and at which load it will saturate."""

from routecast.lab.watch._alarm import Alarm, Verdict
from routecast.lab.watch._day import (
    DailyPeak,
    DayMemory,
    DayProfile,
    FullDate,
    Growth,
    LossAtPeak,
    machine_identity,
    read_memory,
    read_profile,
)
from routecast.lab.watch._deferral import Deferral, NapiInstance, instances, restore
from routecast.lab.watch._exporter import METRICS, LatestRound, parse_endpoint, serve
from routecast.lab.watch._rounds import AlarmNow, LookRound, Rounds, repeated
from routecast.lab.watch._saturation import FullPolls, Saturation, saturation
from routecast.lab.watch._watcher import Look, ProbeStep, Watched, watch

__all__ = [
    "METRICS",
    "Alarm",
    "AlarmNow",
    "DailyPeak",
    "DayMemory",
    "DayProfile",
    "Deferral",
    "FullDate",
    "FullPolls",
    "Growth",
    "LatestRound",
    "Look",
    "LookRound",
    "LossAtPeak",
    "NapiInstance",
    "ProbeStep",
    "Rounds",
    "Saturation",
    "Verdict",
    "Watched",
    "instances",
    "machine_identity",
    "parse_endpoint",
    "read_memory",
    "read_profile",
    "repeated",
    "restore",
    "saturation",
    "serve",
    "watch",
]
