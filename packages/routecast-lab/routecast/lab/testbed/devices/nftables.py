"""An nftables firewall: Linux IP forwarding behind filter rules that match no test frame (RFC 2544 sec. 11.4)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from routecast.lab.testbed.devices.linux import KernelRouter, SteeredOptions, abridged
from routecast.lab.testbed.devices.options import option
from routecast.lab.testbed.dut_host import DeviceSite, Missing

__all__ = ["Nftables", "NftablesOptions", "rule_set"]

_MAX_RULES = 20_000
_TABLE = "routecast"
_END = "    counter name accepted accept"


@dataclass(frozen=True, kw_only=True)
class NftablesOptions(SteeredOptions):
    """Options of the firewall.

    A rule that accepts follows the ``rules``, so that ``rules = 0`` and ``rules = 24`` are the 1 and 25 conditions of
    RFC 2544 sec. 11.4. ``conntrack`` also drops frames that belong to no connection.
    """

    rules: int = option(24, "filter rules that match no test frame", minimum=0, maximum=_MAX_RULES)
    conntrack: bool = option(False, "track connections; every frame still passes the rules")


class Nftables(KernelRouter[NftablesOptions]):
    """Linux IP forwarding whose forward hook holds a linear list of rules, for IPv4 and IPv6 alike.

    ::

        forward hook: [ct state invalid drop]  ip saddr A1 drop … ip saddr An drop  accept
    """

    name = "nftables"
    title = "nftables firewall"
    options = NftablesOptions
    programs = (Missing(program="nft", package="nftables"),)

    def counters(self) -> Mapping[str, int]:
        """Return the counts of the router and of the rules: ``nft_accepted`` and ``nft_filtered``."""
        counts = {**super().counters(), "nft_accepted": 0, "nft_filtered": 0}
        for entry in json.loads(self.site.run("nft", "--json", "list", "counters"))["nftables"]:
            counter = entry.get("counter", {})
            if counter.get("table") == _TABLE:
                counts[f"nft_{counter['name']}"] += counter["packets"]
        counts["drop"] += counts["nft_filtered"]
        return counts

    def _configure(self, site: DeviceSite) -> None:
        super()._configure(site)
        self._load_rules(site)
        for family in self._families():
            lines = rule_set(family, self.chosen.rules, conntrack=self.chosen.conntrack)
            rules = [line for line in lines if " saddr " in line]
            end = lines.index(_END)
            self._configuration += [*lines[: end - len(rules)], *abridged(rules), *lines[end:]]

    def _end(self, site: DeviceSite) -> None:
        self._remove_rules(site)
        super()._end(site)

    def _reset_process(self, site: DeviceSite) -> None:
        self._switch_forwarding(site, on=False)
        self._load_rules(site)
        self._switch_forwarding(site, on=True)

    def _load_rules(self, site: DeviceSite) -> None:
        self._remove_rules(site)
        for family in self._families():
            rules = rule_set(family, self.chosen.rules, conntrack=self.chosen.conntrack)
            site.run("nft", "--file", "-", stdin="\n".join(rules))

    def _families(self) -> tuple[str, ...]:
        return ("ip", "ip6") if self.chosen.ipv6 else ("ip",)

    def _remove_rules(self, site: DeviceSite) -> None:
        for family in ("ip", "ip6"):
            site.run("nft", "delete", "table", family, _TABLE, check=False)

    def _version(self) -> str:
        return f"{self.site.run('nft', '--version').strip()}, {super()._version()}"


def rule_set(family: str, rules: int, *, conntrack: bool = False) -> list[str]:
    """Return the lines of a table for nft: a chain of rules that match no test frame, for ``ip`` or ``ip6``."""
    tracking = ["    ct state invalid counter name filtered drop"] if conntrack else []
    return [
        f"table {family} {_TABLE} {{",
        "  counter accepted {}",
        "  counter filtered {}",
        "  chain forward {",
        "    type filter hook forward priority filter; policy drop;",
        *tracking,
        *(
            f"    {family} saddr {_unused_address(family, number)} counter name filtered drop"
            for number in range(rules)
        ),
        _END,
        "  }",
        "}",
    ]


def _unused_address(family: str, number: int) -> str:
    """Return an address that is no source of test frames: of 10.0.0.0/8 (RFC 1918) or 2001:db8::/32 (RFC 3849)."""
    if family == "ip6":
        return f"2001:db8::{number:x}"
    high, low = divmod(number, 250)
    return f"10.1.{high}.{low + 1}"
