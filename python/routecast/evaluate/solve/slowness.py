"""Contention factors of all threads of a router at once (S5): :func:`share.mean_contention` in arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from routecast.evaluate.solve.flow import Vector
from routecast.router.model import RouterModel, TaskUnit

__all__ = ["Contended", "contended"]

Index = NDArray[np.intp]


@dataclass(frozen=True, slots=True, kw_only=True)
class Contended:
    """Who slows whom: one entry for each thread and each of its pools whose units slow each other.

    Parameters
    ----------
    thread, pool : array of int
    together : array
        Units that the thread can occupy.
    least : array
        Units of a grant.
    sigma, kappa : array
        Of the pool, by entry.
    table : array
        Factors for 1, 2, … busy units by entry, the last step continued; shape (entries, most units + 2).
    has_table : array of bool
    """

    thread: Index
    pool: Index
    units: Vector
    together: Vector
    least: Vector
    sigma: Vector
    kappa: Vector
    table: Vector
    has_table: NDArray[np.bool_]
    threads: int

    def factor(self, busy: Vector) -> Vector:
        """Return the factor on each thread's work when it keeps ``busy`` units busy."""
        factor = np.ones(self.threads)
        if not self.thread.size:
            return factor
        mine = busy[self.thread] * self.least
        total = np.bincount(self.pool, weights=mine)[self.pool]
        own = np.minimum(mine / self.together, 1.0)
        scatter = mine * np.maximum(1.0 - own, 0.0)
        spread = np.maximum(np.bincount(self.pool, weights=scatter)[self.pool] - own * (1.0 - own), 0.0)
        k = np.maximum(np.maximum(np.minimum(1.0 + total - own, self.units), self.least), 1.0)
        low = np.maximum(k, 2.0)
        bend = self._at(low + 1.0) - 2.0 * self._at(low) + self._at(low - 1.0)
        np.multiply.at(factor, self.thread, np.maximum(self._at(k) + 0.5 * spread * bend, 1e-9))
        return factor

    def _at(self, k: Vector) -> Vector:
        law: Vector = 1.0 + self.sigma * (k - 1.0) + self.kappa * k * (k - 1.0)
        if not self.has_table.any():
            return law
        step = np.minimum(k.astype(np.intp) - 1, self.table.shape[1] - 2)
        rows = np.arange(len(k))
        below, above = self.table[rows, step], self.table[rows, step + 1]
        read: Vector = np.where(self.has_table, below + (k - 1.0 - step) * (above - below), law)
        return read


def contended(model: RouterModel, firsts: list[TaskUnit], most: Vector) -> Contended:
    """Find the threads that slow each other; ``firsts`` has one task unit of each."""
    pools = {pool.name: number for number, pool in enumerate(model.pools) if not pool.contention.is_none}
    entries = [
        (number, pools[need.pool], float(need.units))
        for number, task in enumerate(firsts)
        for need in task.needs
        if need.pool in pools
    ]
    widest = max((model.pools[pool].units for pool in pools.values()), default=1) + 2
    used = [model.pools[pool] for _, pool, _ in entries]
    steps = {
        number: [model.pools[number].contention.factor(k + 1.0) for k in range(widest)]
        if model.pools[number].contention.table
        else [1.0] * widest
        for number in pools.values()
    }
    return Contended(
        thread=np.array([thread for thread, _, _ in entries], dtype=np.intp),
        pool=np.array([pool for _, pool, _ in entries], dtype=np.intp),
        units=np.array([float(pool.units) for pool in used]),
        together=np.array([max(float(most[thread]) * units, 1.0) for thread, _, units in entries]),
        least=np.array([units for _, _, units in entries]),
        sigma=np.array([pool.contention.sigma for pool in used]),
        kappa=np.array([pool.contention.kappa for pool in used]),
        table=np.array([steps[pool] for _, pool, _ in entries]).reshape(len(entries), widest),
        has_table=np.array([bool(pool.contention.table) for pool in used], dtype=bool),
        threads=len(firsts),
    )
