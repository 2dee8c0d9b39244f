"""Windows as limits: how much their units let through, where the time inside goes, and how late frames are."""

from __future__ import annotations

import numpy as np

from routecast.evaluate.queueing.markov import Queue
from routecast.evaluate.queueing.two_moments import GIGc
from routecast.evaluate.solve.arrivals import Arriving
from routecast.evaluate.solve.flow import Vector
from routecast.evaluate.solve.fluid import Fluid
from routecast.evaluate.solve.limits import Found
from routecast.evaluate.solve.windows import Inside, Windows
from routecast.evaluate.trial import Resource
from routecast.quantity import format_duration, format_ratio
from routecast.quantity.schema import field, value

__all__ = ["InWindow", "limits_of_windows", "queue_in_window", "window_notes"]

_MOST_ROUNDS = 10
_ROUGHLY = 1e-3
_TOLERANCE = 1e-7
_NOTABLE = 0.05


@value
class InWindow(Queue):
    """A task unit inside a window, or the wait for one: means alone."""

    service_s: float
    waiting_s: float
    lost_ratio: float = field("Of the frames that come", default=0.0)

    @property
    def method(self) -> str:
        """What it comes from."""
        return "mean values of windows"

    @property
    def loss_ratio(self) -> float:
        """What the fluid state loses."""
        return self.lost_ratio

    @property
    def waiting_mean_s(self) -> float:
        """Mean wait."""
        return self.waiting_s

    @property
    def sojourn_mean_s(self) -> float:
        """Wait and service."""
        return self.waiting_s + self.service_s


def queue_in_window(fluid: Fluid, index: int, arriving: Arriving, rate_pps: float) -> InWindow | None:
    """Return a task unit inside a window, or where one begins, as a queue; None where it is neither."""
    windows, inside = fluid.windows, fluid.inside
    if windows is None or inside is None:
        return None
    service_s = float(fluid.service_s[index])
    if index in windows.enter:
        place = windows.enter.index(index)
        most, units = float(inside.most_pps[place]), float(windows.units[place])
        lost = max(1.0 - float(inside.pps[place]) / rate_pps, 0.0)
        frames = fluid.graph.tasks[index].queue_frames
        if lost > _TOLERANCE or rate_pps >= most:
            waiting_s = frames / max(float(inside.pps[place]), 1e-300)
        else:
            scv = arriving.scv if arriving.kind != "regular" else 0.0
            waits = GIGc(
                arrival_pps=rate_pps,
                arrival_scv=scv,
                service_s=units / most,
                service_scv=0.0,
                servers=max(int(units), 1),
            )
            waiting_s = min(waits.waiting_mean_s, frames / rate_pps)
        return InWindow(service_s=service_s, waiting_s=waiting_s, lost_ratio=lost if lost > _TOLERANCE else 0.0)
    if index in windows.inside:
        station = windows.station.get(index, -1)
        waiting_s = float(inside.wait_s[station]) if station >= 0 else 0.0
        return InWindow(service_s=service_s, waiting_s=waiting_s)
    return None


def limits_of_windows(fluid: Fluid, visits: Vector) -> list[Found]:
    """Return the windows with what their units could carry if no station were full.

    The waits inside are those at the greatest rate of this load that all windows and the stations in them let through.

    Parameters
    ----------
    visits : array
        Frames by node for each frame of the intended load.
    """
    windows, now = fluid.windows, fluid.inside
    if windows is None or now is None:
        return []
    share = visits[list(windows.enter)]
    critical = _critical(windows, share)
    found = []
    for place, enter in enumerate(windows.enter):
        task = fluid.graph.tasks[enter]
        used = min(float(now.pps[place] * now.residence_s[place] / windows.units[place]), 1.0)
        resource = Resource(
            name=windows.pools[place],
            kind="pool",
            utilisation_ratio=used,
            capacity_pps=float(critical.alone_pps[place] / share[place]),
        )
        found.append((resource, _why(windows, critical, place, task.name)))
    return found


def _critical(windows: Windows, share: Vector) -> Inside:
    """Return the state at the greatest rate that nobody cuts."""
    work = share @ windows.demand_s
    full = np.divide(windows.servers, work, out=np.full(len(work), np.inf), where=work > 0.0)
    own_s = windows.demand_s.sum(axis=1) + windows.delay_s
    highest = min(float(np.min(windows.units / np.maximum(own_s * share, 1e-300))), float(full.min(initial=np.inf)))
    rate = highest
    inside = windows.passing(share * rate)
    for _ in range(_MOST_ROUNDS):
        reached = min(float(np.min(inside.most_pps / share)), highest)
        if abs(reached - rate) <= _ROUGHLY * rate:
            break
        rate = 0.5 * (rate + reached)
        inside = windows.passing(share * rate)
    return inside


def _why(windows: Windows, state: Inside, place: int, name: str) -> str:
    """Say that all units are in use, and where the frames that have them are."""
    residence_s = float(state.residence_s[place])
    parts: dict[str, float] = {}
    for station, often in enumerate(windows.visits[place]):
        if often > 0.0:
            time_s = float(windows.demand_s[place, station] + often * state.wait_s[station])
            what = f'"{windows.names[station]}"'
            parts[what] = parts.get(what, 0.0) + time_s / residence_s
    parts["delays that nobody shares"] = float(windows.delay_s[place]) / residence_s
    told = [
        f"{format_ratio(share)} at {what}" if what.startswith('"') else f"{format_ratio(share)} in {what}"
        for what, share in sorted(parts.items(), key=lambda one: -one[1])
        if share >= _NOTABLE
    ]
    units = round(float(windows.units[place]))
    have = f"all {units} units of pool" if units > 1 else "the only unit of pool"
    return (
        f'{have} "{windows.pools[place]}" {"are" if units > 1 else "is"} with frames that came through "{name}", '
        f"{format_duration(residence_s)} each: {', '.join(told)}"
    )


def window_notes(fluid: Fluid) -> list[str]:
    """Say where the answer for windows is an approximation."""
    windows = fluid.windows
    if windows is None:
        return []
    notes = []
    shared = [
        name
        for station, name in enumerate(windows.names)
        if windows.inner[station] < 0 and int((windows.visits[:, station] > 0.0).sum()) > 1
    ]
    if shared:
        names = ", ".join(f'"{name}"' for name in dict.fromkeys(shared))
        notes.append(
            f"{names}: what frames of several windows wait for each other is that of approximate mean value analysis"
        )
    if fluid.load.arrivals.kind != "cbr":
        notes.append(
            "the wait for units of windows is that of frames that come to each as irregularly as to the first, an "
            "approximation; percentiles are not known"
        )
    if any(not way for way in windows.ways):
        notes.append(
            "windows inside which ways part: what their own frames wait for each other is left out below overload"
        )
    return notes
