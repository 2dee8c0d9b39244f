"""What the protocol asks the process to do, and the events that it tells people."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = [
    "Action",
    "Activate",
    "Announce",
    "Audit",
    "Call",
    "Drain",
    "Event",
    "ForgetMac",
    "Probe",
    "ProbePaths",
    "Publish",
    "RemoveNeighbour",
    "Repair",
    "RepairBalancer",
    "SetNeighbour",
    "SetSilent",
    "Solicit",
    "Store",
]


@dataclass(frozen=True, slots=True)
class Action:
    """One thing to do; actions are carried out in their order."""


@dataclass(frozen=True, slots=True)
class Event(Action):
    """Something that people are told: ``element``: whom it is about, ``what``: in a word or two, ``detail``: why."""

    element: str
    what: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Solicit(Action):
    """Ask who has an address on an outside network: all of it, or only the ``mac`` that had it last.

    An ARP request, or a neighbour solicitation (RFC 826, RFC 4861 sec. 4.3).
    """

    segment: int
    address: str
    mac: str | None = None


@dataclass(frozen=True, slots=True)
class SetNeighbour(Action):
    """Give an entry to all elements: the address is behind this MAC address on this outside network."""

    segment: int
    address: str
    mac: str


@dataclass(frozen=True, slots=True)
class RemoveNeighbour(Action):
    """Take an entry from all elements."""

    segment: int
    address: str


@dataclass(frozen=True, slots=True)
class ForgetMac(Action):
    """No address has this MAC address any more: the load balancers forget it."""

    mac: str


@dataclass(frozen=True, slots=True)
class Announce(Action):
    """Announce the router's addresses outside (RFC 5227 sec. 3), and its neighbours' MACs to the switch inside.

    ``segment``: only on this network, and nothing inside; ``is_inside_only``: nothing outside.
    """

    segment: int | None = None
    is_inside_only: bool = False


@dataclass(frozen=True, slots=True)
class Probe(Action):
    """A load balancer sends its own frame to each of these members."""

    balancer: str
    numbers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ProbePaths(Action):
    """A load balancer sends its own frame to each member on each path, and ``paths`` names their destinations."""

    balancer: str
    numbers: tuple[int, ...]
    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Call(Action):
    """A load balancer calls another one on every interface."""

    balancer: str
    other: str


@dataclass(frozen=True, slots=True)
class SetSilent(Action):
    """All load balancers treat a member as dead, or no longer so; ``balancer``: only this one."""

    number: int
    is_silent: bool
    balancer: str = ""


@dataclass(frozen=True, slots=True)
class Activate(Action):
    """A load balancer becomes the active one, and all others stand by."""

    balancer: str


@dataclass(frozen=True, slots=True)
class Store(Action):
    """Write the membership to disk; what follows must not happen before it is there."""


@dataclass(frozen=True, slots=True)
class Publish(Action):
    """Put a table in force; ``balancer``: only in this one; ``weights``: number and weight of each member with rows."""

    balancer: str = ""
    epoch: int = 0
    weights: tuple[tuple[int, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Drain(Action):
    """A member keeps its rows that have frames, until they are idle or the deadline passes.

    ``balancer``: only those of this load balancer.
    """

    number: int
    idle_s: float
    deadline_s: float
    balancer: str = ""


@dataclass(frozen=True, slots=True)
class Audit(Action):
    """Read the tables of all elements and hand them to :meth:`Machine.read`."""


@dataclass(frozen=True, slots=True)
class Repair(Action):
    """Give a back-end router what it lacks, and take from it what it should not have."""

    member: str
    missing: tuple[str, ...]
    extra: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RepairBalancer(Action):
    """Set a load balancer's table (:meth:`Machine.republication`), neighbours and role again.

    And the addresses that its kernel needs for its role.
    """

    balancer: str
