"""The built-in laws of contention, in the order of their numbers of parameters."""

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

_LEAST_CORES = 1e-6
_EIGHT, _LOCK_STATES = 8, 48  # of whole eights, sums of more states are the same to the last bit
_NOBODY = 1e-300


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

    top, sharp = np.maximum(values[:, :1], _LEAST_CORES), values[:, 1:2]
    return _least(k, top, sharp) / _least(np.ones_like(k), top, sharp)


def _kinked(k: Floats, values: Floats) -> Floats:
    import numpy as np  # heavy

    knee, slope, sharp = np.maximum(values[:, :1], _LEAST_CORES), values[:, 1:2], values[:, 2:3]

    def soft(cores: Floats) -> Floats:
        return slope * cores + (1.0 - slope) * _least(cores, knee, sharp)

    return soft(k) / soft(np.ones_like(k))


def _lock(k: Floats, values: Floats) -> Floats:
    """Frames of k cores in the time of one core for one frame, with a lock that one core holds at a time.

    A birth and death process: of the k - i cores that do not wait each comes to the lock after ``1 - share``; it lets a
    core through after ``share + handover·(i - 1)/2``. Between whole numbers of cores the last comes less often; of many
    cores several come at once.
    """
    import numpy as np  # heavy

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


def _least(floats: Floats, other: Floats, sharp: Floats) -> Floats:
    """Return the smooth minimum ``(one^-p + other^-p)^(-1/p)``, in logarithms so that large p does not overflow."""
    import numpy as np  # heavy

    smooth: Floats = np.exp(-np.logaddexp(-sharp * np.log(floats), -sharp * np.log(other)) / sharp)
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
                name="top", mean=17.5, sd=1.0, in_frames_per_s=True, unit="frames/s", meaning="ceiling G", least=1e-3
            ),
            Shape(name="sharpness", mean=2.0, sd=0.7, meaning="sharpness p of the knee", least=0.01),
        ),
        growth=_ceiling,
    ),
    Law(
        name="lock",
        formula="k cores at a lock of share q, handed over in r⁻¹ per waiting core",
        shapes=(
            Shape(
                name="share", mean=-3.5, sd=1.5, scale="share", meaning="share q of a frame under the lock", most=1.0
            ),
            Shape(
                name="handover",
                mean=16.1,
                sd=0.7,
                in_frames_per_s=True,
                unit="1/s",
                meaning="rate r at which a lock passes from core to core",
                least=1e-3,
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
                least=1e-3,
            ),
            Shape(
                name="slope",
                mean=-0.54,
                sd=1.0,
                scale="share",
                unit="cores",
                meaning="growth s per core past the kink",
                most=1.0,
            ),
            Shape(name="sharpness", mean=2.0, sd=0.7, meaning="sharpness p of the kink", least=0.01),
        ),
        growth=_kinked,
    ),
)
