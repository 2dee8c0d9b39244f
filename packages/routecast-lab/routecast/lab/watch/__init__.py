"""A router in service, watched: what a packet costs it, and at which load it will saturate."""

from routecast.lab.watch._deferral import Deferral, NapiInstance, instances, restore
from routecast.lab.watch._saturation import FullPolls, Saturation, saturation
from routecast.lab.watch._watcher import Look, ProbeStep, Watched, watch

__all__ = [
    "Deferral",
    "FullPolls",
    "Look",
    "NapiInstance",
    "ProbeStep",
    "Saturation",
    "Watched",
    "instances",
    "restore",
    "saturation",
    "watch",
]
