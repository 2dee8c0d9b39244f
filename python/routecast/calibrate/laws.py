"""Contention laws: how the speed of a machine grows with its working cores.

A few points cannot tell these laws apart, and which one is right depends on what the cores share. routecast therefore
keeps all of them, weighs them by how well they explain the points (:mod:`routecast.calibrate.posterior`) and lets
their disagreement widen the intervals.

Every law gives the number of *effective cores* ``g(k)`` of k working ones, ``g(1) = 1``: the router forwards
``g(k)/x(S)`` frames a second, and the factor on the service time of semantics S5 is ``c(k) = k/g(k)``. Parameters are
real numbers with independent normal priors; the functions below map them to their physical ranges. The priors are
weak and the same for every machine: they say what is possible, not what was measured. They were settled with the
accuracy board in view (docs/validation.md says which), so the board is no blind test of them.

=============  ==============================  =====================================================================
law            factor c(k) or growth g(k)      what the cores share
=============  ==============================  =====================================================================
``free``       c = 1                           nothing
``serial``     c = 1 + σ(k-1)                  a part of the work that only one core does at a time (Amdahl 1967)
``coherent``   c = 1 + σ(k-1) + κk(k-1)        the same, and state exchanged between all pairs (Gunther 1993, USL)
``power``      c = k^α                         a cache or memory whose cost per access grows with its users
``crowded``    c = 1 + σ(k-1)/k                every line of shared state is elsewhere with chance (k-1)/k
``ceiling``    g = (k^-p + G^-p)^(-1/p)        a device with a limit of its own (PCIe, memory, a descriptor ring)
``kinked``     g = k to k*, then slope s       cache that suffices for k* cores' buffers; beyond, memory (DDIO)
``lock``       g of a queue of cores           a lock that takes longer to hand over the more cores wait for it
=============  ==============================  =====================================================================
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]

__all__ = ["LAWS", "Law", "Shape"]

_LEAST_CORES = 1e-6
_EIGHT, _LOCK_STATES = 8, 48  # of whole eights, sums of more states are the same to the last bit
_NOBODY = 1e-300
_LEAST_LOG, _MOST_LOG = -60.0, 40.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """One parameter of a law: prior mean and standard deviation of ``ln value``.

    ``scale`` says of what instead: ``linear`` of the value itself, ``share`` of ``ln(value/(1 - value))``, so that the
    value stays between 0 and 1. A shape ``in_frames_per_s`` is a packet rate; the law's ``growth`` gets it divided by
    the rate of a single core.
    """

    name: str
    mean: float
    sd: float
    scale: Literal["log", "linear", "share"] = "log"
    in_frames_per_s: bool = False
    unit: str = "1"
    meaning: str = ""

    def value(self, raw: Floats) -> Floats:
        """Return the physical value of what the prior is on."""
        if self.scale == "linear":
            return raw
        grown: Floats = np.exp(np.clip(raw, _LEAST_LOG, _MOST_LOG))
        return grown if self.scale == "log" else grown / (1.0 + grown)


@dataclass(frozen=True, slots=True, kw_only=True)
class Law:
    """A contention law; ``growth(k, values)`` is g(k), vectorised over parameter sets in the leading axis.

    A law that ``collapses`` may fall to a fraction within a few cores.
    """

    name: str
    formula: str
    shapes: tuple[Shape, ...]
    growth: Callable[[Floats, Floats], Floats]
    collapses: bool = False


def _free(k: Floats, values: Floats) -> Floats:
    return k


def _serial(k: Floats, values: Floats) -> Floats:
    return k / (1.0 + values[:, :1] * (k - 1.0))


def _coherent(k: Floats, values: Floats) -> Floats:
    return k / (1.0 + values[:, :1] * (k - 1.0) + values[:, 1:2] * k * (k - 1.0))


def _power(k: Floats, values: Floats) -> Floats:
    power: Floats = k ** (1.0 - values[:, :1])
    return power


def _crowded(k: Floats, values: Floats) -> Floats:
    return k / (1.0 + values[:, :1] * (k - 1.0) / k)


def _ceiling(k: Floats, values: Floats) -> Floats:
    top, sharp = np.maximum(values[:, :1], _LEAST_CORES), values[:, 1:2]
    return _least(k, top, sharp) / _least(np.ones_like(k), top, sharp)


def _kinked(k: Floats, values: Floats) -> Floats:
    knee, slope, sharp = np.maximum(values[:, :1], _LEAST_CORES), values[:, 1:2], values[:, 2:3]

    def soft(cores: Floats) -> Floats:
        return slope * cores + (1.0 - slope) * _least(cores, knee, sharp)

    return soft(k) / soft(np.ones_like(k))


def _lock(k: Floats, values: Floats) -> Floats:
    """Frames that k cores pass in the time that one needs for one, where i cores at a lock let one through per time.

    A birth and death process: of the k - i cores that do not wait each comes to the lock after ``1 - share``; it lets a
    core through after ``share + handover·(i - 1)/2``. Between whole numbers of cores the last comes less often; of many
    cores several come at once.
    """
    share, handover = values[:, :1, None], 1.0 / values[:, 1:2, None]
    states = min(_EIGHT * math.ceil((float(np.max(k)) + 1.0) / _EIGHT), _LOCK_STATES)
    k = np.broadcast_to(k, (len(values), k.shape[-1]))[..., None]
    at_once = np.maximum(k / _LOCK_STATES, 1.0)
    waiting = np.arange(states) * at_once
    come = np.maximum(k - waiting, _NOBODY) / np.maximum(1.0 - share, _LEAST_CORES)
    stay = share + 0.5 * handover * waiting
    logs = np.zeros((*k.shape[:2], states + 1))
    np.cumsum(at_once * np.log(come * stay), axis=-1, out=logs[..., 1:])
    chance = np.exp(logs - logs.max(axis=-1, keepdims=True))
    arrivals, total = (chance[..., :-1] * come).sum(axis=-1), chance[..., :-1].sum(axis=-1) + chance[..., -1]
    # Both are the rate of the process; where several come at once, one of them is too low.
    passed: Floats = np.maximum(arrivals, (chance[..., 1:] / stay).sum(axis=-1)) / total
    return passed


def _least(one: Floats, other: Floats, sharp: Floats) -> Floats:
    """Return the smooth minimum ``(one^-p + other^-p)^(-1/p)``, in logarithms so that large p does not overflow."""
    smooth: Floats = np.exp(-np.logaddexp(-sharp * np.log(one), -sharp * np.log(other)) / sharp)
    return smooth


LAWS: Final[Mapping[str, Law]] = {
    law.name: law
    for law in (
        Law(name="free", formula="c(k) = 1", shapes=(), growth=_free),
        Law(
            name="serial",
            formula="c(k) = 1 + σ(k−1)",
            shapes=(Shape(name="sigma", mean=-3.5, sd=1.5, meaning="contention σ"),),
            growth=_serial,
        ),
        Law(
            name="coherent",
            formula="c(k) = 1 + σ(k−1) + κk(k−1)",
            shapes=(
                Shape(name="sigma", mean=-3.5, sd=1.5, meaning="contention σ"),
                Shape(name="kappa", mean=-7.0, sd=1.5, meaning="coherence κ"),
            ),
            growth=_coherent,
        ),
        Law(
            name="power",
            formula="c(k) = k^α",
            shapes=(Shape(name="alpha", mean=-2.5, sd=1.5, meaning="exponent α"),),
            growth=_power,
        ),
        Law(
            name="crowded",
            formula="c(k) = 1 + σ(k−1)/k",
            shapes=(Shape(name="sigma", mean=-3.0, sd=1.5, meaning="cost σ of remote state"),),
            growth=_crowded,
        ),
        Law(
            name="ceiling",
            formula="g(k) = (k^-p + G^-p)^(-1/p)",
            shapes=(
                Shape(name="top", mean=17.5, sd=1.0, in_frames_per_s=True, unit="frames/s", meaning="ceiling G"),
                Shape(name="sharpness", mean=2.0, sd=0.7, meaning="sharpness p of the knee"),
            ),
            growth=_ceiling,
        ),
        Law(
            name="lock",
            formula="k cores at a lock of share q, handed over in r⁻¹ per waiting core",
            shapes=(
                Shape(name="share", mean=-3.5, sd=1.5, scale="share", meaning="share q of a frame under the lock"),
                Shape(
                    name="handover",
                    mean=16.1,
                    sd=0.7,
                    in_frames_per_s=True,
                    unit="1/s",
                    meaning="rate r at which a lock passes from core to core",
                ),
            ),
            growth=_lock,
            collapses=True,
        ),
        Law(
            name="kinked",
            formula="g(k) = min(k, k*) + s·max(k−k*, 0)",
            shapes=(
                Shape(
                    name="knee", mean=17.5, sd=1.0, in_frames_per_s=True, unit="frames/s", meaning="rate at the kink k*"
                ),
                Shape(
                    name="slope",
                    mean=-0.54,
                    sd=1.0,
                    scale="share",
                    unit="cores",
                    meaning="growth s per core past the kink",
                ),
                Shape(name="sharpness", mean=2.0, sd=0.7, meaning="sharpness p of the kink"),
            ),
            growth=_kinked,
        ),
    )
}
"""Every law by name, in the order of their numbers of parameters."""
