"""Whether the tables of all elements are as they should be."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from routecast.multistage.protocol.actions import Action, Event, Repair, RepairBalancer
from routecast.multistage.protocol.neighbours import NeighbourTable
from routecast.multistage.protocol.verdicts import DIFFERENCES, Verdicts

if TYPE_CHECKING:
    from routecast.multistage._membership import Membership

__all__ = ["BalancerReading", "TableAudit"]

_LEARNS_ROUNDS = 10
"""Rounds after the start in which unknown neighbours that elements have are looked up instead of removed."""
_TOLD_DIFFERENCES = 3


@dataclass(frozen=True, slots=True)
class BalancerReading:
    """The tables of a load balancer: whether its rows are those of its epoch, the epoch, and its neighbours.

    ``macs``: the neighbours' MAC addresses, each with the number of the outside network behind which it is.

    ``is_set_up``: whether its kernel has the addresses of its role.
    """

    has_its_rows: bool
    epoch: int
    macs: frozenset[tuple[str, int]] | None = None
    is_set_up: bool = True


class TableAudit:
    """The comparison of the elements' tables with what they should have.

    ``configured``: lines that the back-end routers' tables have beside their neighbours.
    """

    def __init__(
        self, configured: frozenset[str], membership: Membership, neighbours: NeighbourTable, verdicts: Verdicts
    ) -> None:
        self._configured, self._membership = configured, membership
        self._neighbours, self._verdicts = neighbours, verdicts
        self._learns_rounds = 0

    def start(self) -> None:
        """Begin to learn what the elements have."""
        self._learns_rounds = _LEARNS_ROUNDS

    def pass_round(self) -> bool:
        """Note that a round passed; return whether learning ends with it."""
        was_learning = self.is_learning
        self.pass_rounds(1)
        return was_learning and not self.is_learning

    def pass_rounds(self, rounds: int) -> None:
        """Note that rounds passed."""
        self._learns_rounds = max(self._learns_rounds - rounds, 0)

    @property
    def is_learning(self) -> bool:
        """Whether the process has just begun, so that what it does not know may be right."""
        return self._learns_rounds > 0

    def expected_lines(self) -> frozenset[str]:
        """Return the lines that every back-end router's tables should have."""
        neighbours = (
            f"neighbour {address} lladdr {entry.mac} dev b0" for address, entry in self._neighbours.entries.items()
        )
        return self._configured | frozenset(neighbours)

    def known_macs(self) -> frozenset[tuple[str, int]]:
        """Return the MAC addresses of the neighbours that are known, each with its outside network."""
        return frozenset({entry.mac: entry.segment for entry in self._neighbours.entries.values()}.items())

    def difference_of(self, name: str, reading: BalancerReading) -> str:
        """Return in what a load balancer's tables are not what they should be; empty if in nothing."""
        differences = []
        if not reading.has_its_rows:
            differences.append("its table has other rows than its members give")
        if reading.epoch != self._membership.epoch:
            differences.append(f"its table is of epoch {reading.epoch}, not {self._membership.epoch}")
        macs = self.known_macs()
        if reading.macs is not None and reading.macs != macs and not self.is_learning:
            differences.append("its neighbours are not those that are known")
        if not reading.is_set_up:
            is_active = name == self._membership.active
            differences.append(f"its kernel {'lacks' if is_active else 'has'} the router's addresses")
        return "; ".join(differences)

    def differences_of(self, lines: Iterable[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the lines that a back-end router's tables lack, and those that they should not have."""
        present, expected = frozenset(lines), self.expected_lines()
        return tuple(sorted(expected - present)), tuple(sorted(present - expected))

    def read_router(self, name: str, lines: Iterable[str] | None, now_s: float) -> Iterator[Action]:
        """Take in the tables of a back-end router; None where they cannot be read."""
        watch = self._verdicts.members[name]
        if lines is None:
            return
        lines = frozenset(lines)
        if "link b0 down" in lines:  # a dead machine, which verdicts are about
            return
        missing, extra = self.differences_of(lines)
        if self.is_learning:
            for line in extra:
                if line.startswith("neighbour "):
                    yield from self._neighbours.want(line.split()[1], now_s)
            extra = tuple(line for line in extra if not line.startswith("neighbour "))
        if missing or extra:
            watch.differences += 1
            words = [f"lacks {_some(missing)}"] if missing else []
            words += [f"should not have {_some(extra)}"] if extra else []
            if watch.differences in {1, DIFFERENCES}:
                yield Event(name, "differs", "; ".join(words))
            yield Repair(name, missing, extra)
        elif watch.differences:
            watch.differences = 0
            yield Event(name, "repaired", "its tables are as they should be")

    def read_balancer(self, name: str, reading: BalancerReading | None) -> Iterator[Action]:
        """Take in the tables of a load balancer; None where they cannot be read."""
        why = "" if reading is None else self.difference_of(name, reading)
        if why:
            yield RepairBalancer(name)
            yield Event(name, "repaired", why)
            self._verdicts.forget_balancer(name)


def _some(lines: Sequence[str]) -> str:
    rest = len(lines) - _TOLD_DIFFERENCES
    return "; ".join(lines[:_TOLD_DIFFERENCES]) + (f" and {rest} more" if rest > 0 else "")
