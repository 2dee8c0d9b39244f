"""The members of a router of many machines, which are written to disk before a change takes effect."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING

from routecast.quantity.whole_file import write_whole

if TYPE_CHECKING:
    from routecast.multistage.reading import BackEndTable

MAX_MEMBERS = 64
_RULES = 24
"""RFC 2544 sec. 11.4: 25 conditions, of which the last lets the frames pass."""


@dataclass(slots=True, kw_only=True)
class Member:
    """A back-end router.

    ``number``: number in the tables; ``cap_pps``: emulated capacity, frames/s, 0 for none; ``queue_frames``: frames
    that the emulated machine queues; ``forwarding``: ``"linux"``, ``"nftables"`` or ``"xdp"``; ``rules``: number of
    nftables rules; ``takes``: whether it has rows of the table; ``drains_until_s``: monotonic time until which it keeps
    rows that have frames, 0 if it does not drain, and ``drain_idle_s`` after which a row without frames leaves it;
    ``fault``: injected fault, ``"link"``, ``"hang"``, ``"loss"`` or empty; ``loss_in`` and ``loss_out``: share of the
    frames to it and from it that a fault loses.
    """

    name: str
    number: int
    weight: float
    cap_pps: float = 0.0
    queue_frames: int = 256
    forwarding: str = "linux"
    rules: int = 0
    takes: bool = True
    drains_until_s: float = 0.0
    drain_idle_s: float = 0.0
    fault: str = ""
    loss_in: float = 0.0
    loss_out: float = 0.0

    @classmethod
    def of(cls, table: BackEndTable, number: int, *, takes: bool = True) -> Member:
        """Return the member that a file's table describes."""
        return cls(
            name=table.name,
            number=number,
            weight=table.weight,
            cap_pps=float(table.cap or 0.0),
            queue_frames=table.queue,
            forwarding=table.forwarding,
            rules=_RULES if table.rules is None else table.rules,
            takes=takes,
        )


@dataclass(slots=True, kw_only=True)
class Membership:
    """The members, the epoch of their table, and the active load balancer."""

    seed: int
    active: str
    epoch: int = 0
    members: dict[str, Member] = field(default_factory=dict)
    balancer_faults: dict[str, str] = field(default_factory=dict)

    def weights(self) -> list[tuple[int, float]]:
        """Return number and weight of each member that has rows."""
        return [(member.number, member.weight) for member in self.members.values() if member.takes]

    def free_number(self) -> int | None:
        """Return a free number; None if all are in use."""
        taken = {member.number for member in self.members.values()}
        return next((number for number in range(MAX_MEMBERS) if number not in taken), None)

    def by_number(self, number: int) -> Member | None:
        """Return a member by its number in the tables."""
        return next((member for member in self.members.values() if member.number == number), None)

    def become(self, other: Membership) -> None:
        """Hold what another membership holds; whoever knows this one sees it."""
        for name in (each.name for each in fields(self)):
            setattr(self, name, getattr(other, name))

    def write(self, path: Path) -> None:
        """Write the membership to disk, whole or not at all, before this returns."""
        write_whole(path, json.dumps(asdict(self), indent=1))

    @classmethod
    def read(cls, path: Path) -> Membership:
        """Return the membership on disk."""
        data = json.loads(path.read_text(encoding="utf-8"))
        members = {name: Member(**member) for name, member in data.pop("members").items()}
        return cls(**data, members=members)
