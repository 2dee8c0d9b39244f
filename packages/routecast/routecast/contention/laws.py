"""The built-in contention laws."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

from routecast.contention.law import Law, Shape

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]

    K = TypeVar("K", float, Floats)

__all__ = ["LAWS", "coherent_factor"]

_MIN_CORES = 1e-6
_STATES_MULTIPLE, _MAX_LOCK_STATES = 8, 48  # sums over a multiple of 8 states have the same last bit for any largest k
_MIN_RATE = 1e-300


def _free(k: Floats, values: Floats) -> Floats:
    return k


def _serial(k: Floats, values: Floats) -> Floats:
    return k / (1.0 + values[:, :1] * (k - 1.0))


def coherent_factor(k: K, sigma: K, kappa: K) -> K:
    """Return c(k) of the law ``coherent`` for a real k."""
    return 1.0 + sigma * (k - 1.0) + kappa * k * (k - 1.0)


def _coherent(k: Floats, values: Floats) -> Floats:
    return k / coherent_factor(k, values[:, :1], values[:, 1:2])


def _power(k: Floats, values: Floats) -> Floats:
    power: Floats = k ** (1.0 - values[:, :1])
    return power


def _crowded(k: Floats, values: Floats) -> Floats:
    return k / (1.0 + values[:, :1] * (k - 1.0) / k)


def _ceiling(k: Floats, values: Floats) -> Floats:
    import numpy as np  # heavy

    top, sharp = np.maximum(values[:, :1], _MIN_CORES), values[:, 1:2]
    return _smooth_minimum(k, top, sharp) / _smooth_minimum(np.ones_like(k), top, sharp)


def _kinked(k: Floats, values: Floats) -> Floats:
    import numpy as np  # heavy

    knee, slope, sharp = np.maximum(values[:, :1], _MIN_CORES), values[:, 1:2], values[:, 2:3]

    def smooth_kink(cores: Floats) -> Floats:
        return slope * cores + (1.0 - slope) * _smooth_minimum(cores, knee, sharp)

    return smooth_kink(k) / smooth_kink(np.ones_like(k))


def _lock(k: Floats, values: Floats) -> Floats:
    """Return the frames that k cores forward in the time in which one core forwards one frame, with a lock.

    The number i of cores at the lock is a birth and death process. Each of the other k - i cores reaches the lock after
    ``1 - share`` on average; the lock lets a core through after ``share + handover·(i - 1)/2``. A fraction of a core
    reaches the lock less often. Above 48 cores, a state stands for a group of several cores.
    """
    import numpy as np  # heavy

    share, handover = values[:, :1, None], 1.0 / values[:, 1:2, None]
    most = float(np.max(k))
    states = min(_STATES_MULTIPLE * math.ceil((most + 1.0) / _STATES_MULTIPLE), _MAX_LOCK_STATES)
    k = k[..., None]
    group = np.maximum(k / _MAX_LOCK_STATES, 1.0) if most > _MAX_LOCK_STATES else np.ones((1, 1, 1))
    waiting = np.arange(states) * group
    # Rates are those of cores by place, and of draws of the parameters: logarithms and sums are made of each alone.
    cores = np.maximum(k - waiting, _MIN_RATE)
    idle_time = np.maximum(1.0 - share, _MIN_CORES)
    hold_time = share + 0.5 * handover * waiting
    by_cores = np.cumsum(group * np.log(cores), axis=-1)
    by_values = np.cumsum(group * np.log(hold_time / idle_time), axis=-1)
    logs = np.zeros((len(values), k.shape[-2], states + 1))
    np.add(by_cores, by_values, out=logs[..., 1:])
    logs -= logs.max(axis=-1, keepdims=True)
    probability = np.exp(logs, out=logs)
    arrivals = (probability[..., :-1] * (cores / idle_time)).sum(axis=-1)
    # Arrivals and departures have the same rate in equilibrium; with groups of cores, one of the two is too low.
    departures = (probability[..., 1:] / hold_time).sum(axis=-1)
    throughput: Floats = np.maximum(arrivals, departures) / probability.sum(axis=-1)
    return throughput


def _smooth_minimum(values: Floats, other: Floats, sharp: Floats) -> Floats:
    """Return the smooth minimum ``(values^-p + other^-p)^(-1/p)``; logarithms prevent an overflow for large p."""
    import numpy as np  # heavy

    smooth: Floats = np.exp(-np.logaddexp(-sharp * np.log(values), -sharp * np.log(other)) / sharp)
    return smooth


LAWS: Final = (
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
            Shape(
                name="top", mean=17.5, sd=1.0, in_frames_per_s=True, unit="frames/s", meaning="ceiling G", minimum=1e-3
            ),
            Shape(name="sharpness", mean=2.0, sd=0.7, meaning="sharpness p of the knee", minimum=0.01),
        ),
        growth=_ceiling,
    ),
    Law(
        name="lock",
        formula="k cores at a lock of share q, handed over in r⁻¹ per waiting core",
        shapes=(
            Shape(
                name="share", mean=-3.5, sd=1.5, scale="share", meaning="share q of a frame under the lock", maximum=1.0
            ),
            Shape(
                name="handover",
                mean=16.1,
                sd=0.7,
                in_frames_per_s=True,
                unit="1/s",
                meaning="rate r at which a lock passes from core to core",
                minimum=1e-3,
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
                name="knee",
                mean=17.5,
                sd=1.0,
                in_frames_per_s=True,
                unit="frames/s",
                meaning="rate at the kink k*",
                minimum=1e-3,
            ),
            Shape(
                name="slope",
                mean=-0.54,
                sd=1.0,
                scale="share",
                unit="cores",
                meaning="growth s per core past the kink",
                maximum=1.0,
            ),
            Shape(name="sharpness", mean=2.0, sd=0.7, meaning="sharpness p of the kink", minimum=0.01),
        ),
        growth=_kinked,
    ),
)
