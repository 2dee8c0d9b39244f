"""Whether a pool makes sense: its units, their speeds, their scheduler, and how they slow each other down."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final, get_args

from routecast.router.check_numbers import (
    FREQUENCIES_HZ,
    MAX_UNITS,
    MOST_CONTENTION,
    SPEED_RATIOS,
    duration,
    known,
    not_negative,
    time_slice,
    whole,
    within,
)
from routecast.router.check_power import check_power
from routecast.router.check_time import check_interruptions
from routecast.router.model import Contention, Policy, PolicyKind, ResourcePool

__all__ = ["check_contention", "check_policy", "check_pool"]

_POLICIES: Final = get_args(PolicyKind)
Add = Callable[[str, str], None]


def check_pool(place: str, pool: ResourcePool, add: Add) -> None:
    """Report what is wrong with a pool."""
    if not whole(f"{place}.units", pool.units, MAX_UNITS, "a number of units", add):
        return
    if pool.frequency_hz is not None:
        within(f"{place}.frequency_hz", pool.frequency_hz, FREQUENCIES_HZ, "a frequency", "Hz", add)
    if pool.unit_speed_ratio:
        if len(pool.unit_speed_ratio) != pool.units:
            got = f"has {len(pool.unit_speed_ratio)} entries for {pool.units} units"
            add(f"{place}.unit_speed_ratio", f"{got}: give one for each unit, or none")
        for index, ratio in enumerate(pool.unit_speed_ratio):
            within(f"{place}.unit_speed_ratio[{index}]", ratio, SPEED_RATIOS, "a relative speed", "", add)
    check_policy(f"{place}.policy", pool.policy, add)
    duration(f"{place}.switch_cost_s", pool.switch_cost_s, add)
    duration(f"{place}.migration_cost_s", pool.migration_cost_s, add)
    check_contention(f"{place}.contention", pool.contention, pool.units, add)
    if pool.interruptions is not None:
        check_interruptions(f"{place}.interruptions", pool.interruptions, add)
    if pool.power is not None:
        check_power(f"{place}.power", pool.power, pool.frequency_hz, add)


def check_policy(place: str, policy: Policy, add: Add) -> None:
    """Report a scheduler that is not known, and times that it lacks, does not use or cannot keep."""
    known(f"{place}.kind", policy.kind, _POLICIES, add)
    sliced = policy.kind in {"round_robin", "fair", "linux"}
    if sliced and policy.quantum_s is None:
        add(
            f"{place}.quantum_s",
            f"is missing: {policy.kind} grants units for at most a time slice; give it",
        )
    elif sliced and policy.quantum_s is not None:
        time_slice(f"{place}.quantum_s", policy.quantum_s, add)
    elif policy.quantum_s is not None:
        add(f"{place}.quantum_s", f"is given, but {policy.kind} knows no time slice: leave it out")
    duration(f"{place}.wakeup_granularity_s", policy.wakeup_granularity_s, add)
    if policy.wakeup_granularity_s and policy.kind != "linux":
        add(
            f"{place}.wakeup_granularity_s",
            f"is given, but under {policy.kind} nobody is revoked for waking up: only linux uses it",
        )


def check_contention(place: str, contention: Contention, units: int, add: Add) -> None:
    """Report contention that is given twice, or slows so many units down by factors that cannot be."""
    not_negative(f"{place}.sigma", contention.sigma, add, most=MOST_CONTENTION)
    not_negative(f"{place}.kappa", contention.kappa, add, most=MOST_CONTENTION)
    for index, factor in enumerate(contention.table):
        factors = (1.0 / MOST_CONTENTION, MOST_CONTENTION)
        within(f"{place}.table[{index}]", factor, factors, "a factor on the service time", "", add)
    if contention.table and (contention.sigma or contention.kappa):
        add(place, "gives both a table and sigma or kappa: give one of the two")
    if len(contention.table) > MAX_UNITS:
        add(f"{place}.table", f"has {len(contention.table)} entries: at most {MAX_UNITS}")
    elif len(contention.table) > 1 and all(math.isfinite(entry) for entry in contention.table):
        last, before = contention.table[-1], contention.table[-2]
        if last + (last - before) * max(units - len(contention.table), 0) <= 0.0:
            add(f"{place}.table", f"falls to 0 or less before {units} busy units: give more entries")
