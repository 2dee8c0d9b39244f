"""Contention laws, which describe how the speed of a machine grows with the number of working cores.

A few measured points cannot distinguish these laws, and the right law depends on what the cores share. routecast
therefore keeps all of them, weights them by how well they explain the points (:mod:`routecast.calibration._posterior`),
and lets their disagreement widen the intervals.

Every law gives the number of *effective cores* ``g(k)`` of k working cores, with ``g(1) = 1``. The router forwards
``g(k)/x(S)`` frames per second, and the factor on the service time (semantics S5) is ``c(k) = k/g(k)``. Parameters are
real numbers with independent normal priors; the functions below map them to their physical ranges. The priors are weak
and the same for every machine: they describe what is possible, not what was measured. They were chosen with knowledge
of the accuracy board (docs/validation.md gives details), so the board is no blind test of them.

=============  ==============================  =====================================================================
law            factor c(k) or growth g(k)      what the cores share
=============  ==============================  =====================================================================
``free``       c = 1                           nothing
``serial``     c = 1 + σ(k-1)                  a part of the work that only one core does at a time (Amdahl 1967)
``coherent``   c = 1 + σ(k-1) + κk(k-1)        the same, and state exchanged between all pairs (Gunther 1993, USL)
``power``      c = k^α                         a cache or memory whose cost per access grows with its users
``crowded``    c = 1 + σ(k-1)/k                shared state, in another core's cache with probability (k-1)/k
``ceiling``    g = (k^-p + G^-p)^(-1/p)        a device with a limit of its own (PCIe, memory, a descriptor ring)
``kinked``     g = k to k*, then slope s       cache for the buffers of k* cores; more cores use memory (DDIO)
``lock``       g of a queue of cores           a lock that takes longer to hand over the more cores wait for it
=============  ==============================  =====================================================================

Calibration, router files and the closed form use this registry. The simulator uses a table of the factors for 1, 2, …
busy units. To add a law, write a file in this folder with ``LAWS = (Law(…),)`` and add its name to ``_FILES``. Router
files and :func:`routecast.calibration.fit` can then name the law. Calibrations average over it after
``python -m routecast.replications.accuracy.board --learn`` has estimated its weight.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from importlib import import_module
from typing import Final

from routecast.contention.law import Law, Shape

__all__ = ["LAWS", "PARAMETERS", "Law", "Shape", "mixed_factors"]

_FILES: Final = ("laws",)
"""Files of this folder with laws."""

LAWS: Final[Mapping[str, Law]] = {law.name: law for file in _FILES for law in import_module(f"{__name__}.{file}").LAWS}
"""Every law by name."""

PARAMETERS: Final = tuple(dict.fromkeys(shape.name for law in LAWS.values() for shape in law.shapes))
"""The names of all parameters; laws may share a name."""


@lru_cache(maxsize=256)
def mixed_factors(
    parts: tuple[tuple[float, str, tuple[float, ...]], ...], units: int, discrepancy: tuple[float, ...] = ()
) -> tuple[float, ...]:
    """Return c(k) for 1 to ``units`` busy units, averaged over laws: weight, name and parameters of each.

    The average is geometric, as in calibrations: ``c = d·Π c_i^(w_i/Σw)``. ``discrepancy`` holds the factors d for
    1, 2, … busy units; the last factor also applies to more units.

    Examples
    --------
    >>> mixed_factors(((1.0, "serial", (0.1,)),), 3)
    (1.0, 1.1, 1.2)
    """
    import numpy as np  # heavy

    k, total = np.arange(1.0, units + 1.0)[None], sum(weight for weight, _, _ in parts)
    with np.errstate(all="ignore"):  # the caller handles NaN and infinity
        factors = [k / LAWS[name].growth(k, np.array([values])) for _, name, values in parts]
        logs = sum(weight / total * np.log(factor) for (weight, _, _), factor in zip(parts, factors, strict=True))
        averaged = factors[0] if len(parts) == 1 else np.exp(logs)
    if discrepancy:
        averaged = averaged * np.array(discrepancy)[np.minimum(k - 1.0, len(discrepancy) - 1.0).astype(int)]
    return tuple(averaged[0].tolist())
