"""A router in service, watched: what a packet costs it, and at which load it will saturate."""

from routecast.lab.watch._alarm import Alarm, Verdict
from routecast.lab.watch._cores import Core
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
from routecast.lab.watch._looking import Look
from routecast.lab.watch._recording import LookRecord, read_recording, write_recording
from routecast.lab.watch._rounds import AlarmNow, LookRound, Rounds, repeated
from routecast.lab.watch._saturation import FullPolls, Saturation, saturation
from routecast.lab.watch._saved import points_of, points_table, router_text
from routecast.lab.watch._watcher import ProbeStep, Watched, answered, watch

__all__ = [
    "METRICS",
    "Alarm",
    "AlarmNow",
    "Core",
    "DailyPeak",
    "DayMemory",
    "DayProfile",
    "Deferral",
    "FullDate",
    "FullPolls",
    "Growth",
    "LatestRound",
    "Look",
    "LookRecord",
    "LookRound",
    "LossAtPeak",
    "NapiInstance",
    "ProbeStep",
    "Rounds",
    "Saturation",
    "Verdict",
    "Watched",
    "answered",
    "instances",
    "machine_identity",
    "parse_endpoint",
    "points_of",
    "points_table",
    "read_memory",
    "read_profile",
    "read_recording",
    "repeated",
    "restore",
    "router_text",
    "saturation",
    "serve",
    "watch",
    "write_recording",
]
