"""A router in service, watched: what a packet costs it, and at which load it will saturate."""

from routecast.lab.watch._cores import Core
from routecast.lab.watch._deferral import Deferral, NapiInstance, instances, restore
from routecast.lab.watch._looking import Look
from routecast.lab.watch._recording import LookRecord, read_recording, write_recording
from routecast.lab.watch._saturation import FullPolls, Saturation, saturation
from routecast.lab.watch._saved import points_of, points_table, router_text
from routecast.lab.watch._watcher import ProbeStep, Watched, answered, watch

__all__ = [
    "Core",
    "Deferral",
    "FullPolls",
    "Look",
    "LookRecord",
    "NapiInstance",
    "ProbeStep",
    "Saturation",
    "Watched",
    "answered",
    "instances",
    "points_of",
    "points_table",
    "read_recording",
    "restore",
    "router_text",
    "saturation",
    "watch",
    "write_recording",
]
