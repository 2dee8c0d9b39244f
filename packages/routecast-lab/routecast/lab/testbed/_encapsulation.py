"""VLAN tags and tunnels between the Ethernet addresses of a test frame and its IP packet."""

from __future__ import annotations

import re
from typing import Any, Literal

from routecast.errors import QuantityProblem
from routecast.quantity.schema import field, value

_TAG_BYTES = 4
_MAX_VLAN_ID = 4094
_MAX_VNI = 2**24 - 1
_IP_BYTES = {4: 20, 6: 40}
_TUNNEL_BYTES = {"": 0, "gre": 4, "vxlan": 8 + 8 + 14}
"""Behind the outer IP header: GRE (RFC 2784); UDP, VXLAN (RFC 7348) and the inner Ethernet header."""

_PART = re.compile(r"(?P<kind>vlan|vxlan|gre)(?::(?P<ids>[0-9.]+))?")
_ALLOWED = "vlan:ID, vlan:OUTER.INNER, vxlan:VNI, gre, or tags and a tunnel joined by +, such as vlan:10+gre"


@value
class Encapsulation:
    """VLAN tags and a tunnel between the Ethernet addresses of a test frame and its IP packet; none by default."""

    vlan_ids: tuple[int, ...] = field(
        "VLAN tags, the outer one first (IEEE 802.1Q; of two, the outer one is a service tag of 802.1ad)", default=()
    )
    tunnel: Literal["", "gre", "vxlan"] = field(
        "GRE (RFC 2784) or VXLAN (RFC 7348), between the addresses of the tester's ports", default=""
    )
    vni: int = field("VXLAN network identifier", default=0)

    def __str__(self) -> str:
        """Return the text that :func:`parse_encapsulation` reads; empty for plain frames."""
        tags = [f"vlan:{'.'.join(map(str, self.vlan_ids))}"] if self.vlan_ids else []
        tunnel = {"": [], "gre": ["gre"], "vxlan": [f"vxlan:{self.vni}"]}[self.tunnel]
        return "+".join([*tags, *tunnel])

    @property
    def title(self) -> str:
        """The encapsulation as reports write it: ``"VLAN 100.10, VXLAN 42"``; empty for plain frames."""
        return str(self).replace("+", ", ").replace(":", " ").upper()

    @property
    def tags_bytes(self) -> int:
        """Bytes that the VLAN tags add to a frame."""
        return _TAG_BYTES * len(self.vlan_ids)

    def added_bytes(self, version: Literal[4, 6]) -> int:
        """Return the bytes that tags and tunnel add to a frame whose outer IP header is of this version."""
        return self.tags_bytes + _TUNNEL_BYTES[self.tunnel] + (_IP_BYTES[version] if self.tunnel else 0)

    def request(self) -> dict[str, Any]:
        """Return the encapsulation in the form of the tester's requests."""
        vxlan = {"vni": self.vni} if self.tunnel == "vxlan" else {}
        return {"vlan_ids": list(self.vlan_ids), "tunnel": {"kind": self.tunnel, **vxlan} if self.tunnel else None}


def parse_encapsulation(text: str) -> Encapsulation:
    """Read tags and a tunnel.

    Raises QuantityProblem: the text is malformed, or an identifier is out of range.

    Examples
    --------
    >>> parse_encapsulation("vlan:100.10+vxlan:42").added_bytes(4)
    58
    """
    tags: tuple[int, ...] = ()
    tunnel: Literal["", "gre", "vxlan"] = ""
    vni = 0
    if not isinstance(text, str):
        raise QuantityProblem(repr(text), f"got {text!r}: write a text, {_ALLOWED}")
    for part in text.replace(" ", "").lower().split("+"):
        match = _PART.fullmatch(part)
        ids = [int(tag) for tag in (match["ids"] or "").split(".") if tag] if match else []
        kind = match["kind"] if match else ""
        if kind == "vlan" and not tags and not tunnel and len(ids) in {1, 2} and _all_within(ids, 1, _MAX_VLAN_ID):
            tags = tuple(ids)
        elif kind == "vxlan" and not tunnel and len(ids) == 1 and _all_within(ids, 0, _MAX_VNI):
            tunnel, vni = "vxlan", ids[0]
        elif kind == "gre" and not tunnel and not ids:
            tunnel = "gre"
        else:
            limits = f"VLAN identifiers are 1 to {_MAX_VLAN_ID}, VXLAN identifiers 0 to {_MAX_VNI}"
            raise QuantityProblem(text, f"encapsulation {text!r}: write {_ALLOWED}; {limits}")
    return Encapsulation(vlan_ids=tags, tunnel=tunnel, vni=vni)


def _all_within(ids: list[int], minimum: int, maximum: int) -> bool:
    return all(minimum <= number <= maximum for number in ids)
