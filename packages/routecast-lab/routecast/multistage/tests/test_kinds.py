"""Back-end routers of Linux, nftables and XDP, and the schemes: each is one router, and forwards what it should."""

from __future__ import annotations

import json
import re
import shutil
import subprocess

import pytest

from routecast.errors import FileProblem
from routecast.multistage.appliance import Appliance
from routecast.multistage.reading import parse_multistage
from routecast.multistage.tests.multistage_hosts import HOST, HOST_MAC, ROUTER_MAC, flows, hosts_of, icmp_errors, states

pytestmark = pytest.mark.wire

HOST_IPV6 = ("2001:2:0:1::2", "2001:2:0:8001::2")
ROUTER_IPV6 = "2001:2:0:1::1"
TIME_EXCEEDED, UNREACHABLE, TOO_BIG = 3, 1, 2


needs_nft = pytest.mark.skipif(shutil.which("nft") is None, reason="needs nft: apt install nftables")


def made_of(text: str, forwarding: str, more: str = "") -> str:
    return re.sub(r'(\[\[router\]\]\nname = "br\d"\n)', rf'\1forwarding = "{forwarding}"\n{more}', text)


@pytest.mark.parametrize("forwarding", ["linux", pytest.param("nftables", marks=needs_nft), "xdp"])
def test_whatever_forwards_it_is_one_router(text: str, forwarding: str) -> None:
    with Appliance(made_of(text, forwarding)) as router, hosts_of(router) as hosts:
        for version in (4, 6):
            source, destination = HOST if version == 4 else HOST_IPV6
            stream = flows(source_address=source, destination_address=destination)
            result = hosts.send(0.2, rate_pps=5e3, sizes=[{"bytes": 84}], flows=stream)
            assert result["received_frames"] == result["sent_frames"], result
        routers = router.status()["routers"]
        assert all(row["returned_frames"] and bool(row["in_xdp"]) == (forwarding == "xdp") for row in routers)
        # One hop for IPv6, too: it, then the host; errors carry its address; a path MTU is found.
        assert icmp_errors(router, HOST_IPV6[1], limit=1) == [(ROUTER_IPV6, TIME_EXCEEDED, 0)]
        assert icmp_errors(router, HOST_IPV6[1], limit=2) == [(HOST_IPV6[1], UNREACHABLE, 4)]
        assert icmp_errors(router, "2001:db8::1") == [(ROUTER_IPV6, UNREACHABLE, 0)]
        assert icmp_errors(router, HOST_IPV6[1], octets=1400) == [(ROUTER_IPV6, TOO_BIG, 0)]
        # A death is found whatever forwards.
        router.fail("br1", "hang")
        hosts.send(0.4)
        assert states(router)["br1"] == "dead"


@needs_nft
def test_rules_of_nftables_stand_before_what_is_forwarded(text: str) -> None:
    with Appliance(made_of(text, "nftables", "rules = 5\n")) as router, hosts_of(router) as hosts:
        hosts.send(0.1)
        command = ["ip", "netns", "exec", router.layout.netns("br0"), "nft", "--json", "list", "ruleset"]
        rules = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["nftables"]
        assert sum(rule.get("rule", {}).get("family") == "ip" for rule in rules) == 6
        accepted = sum(
            rule["counter"]["packets"] for rule in rules if rule.get("counter", {}).get("name") == "accepted"
        )
        returned = next(row["returned_frames"] for row in router.status()["routers"] if row["name"] == "br0")
        assert accepted >= returned > 0
        router.add("br7", forwarding="xdp", cap="5 kpps")
        assert next(row for row in router.status()["routers"] if row["name"] == "br7")["cap_pps"] == 5e3


def test_round_robin_spreads_one_flow_over_all(text: str) -> None:
    with Appliance('scheme = "round_robin"\n' + text) as router, hosts_of(router) as hosts:
        result = hosts.send(0.3, rate_pps=10e3, flows=flows(1))
        assert result["lost_frames"] == 0
        sent = [row["sent_frames"] for row in router.status()["routers"]]
        weights = [table.weight for table in router.file.router]
        assert [n / sum(sent) for n in sent] == pytest.approx([w / sum(weights) for w in weights], abs=0.03)


def test_local_only_goes_by_the_network_that_a_frame_came_from(text: str) -> None:
    head, *segments = text.split("[[segment]]")
    local = "[[segment]]".join([head, *(f'\nlocal = "br{n}"{item}' for n, item in enumerate(segments))])
    with Appliance('scheme = "local_only"\n' + local) as router, hosts_of(router) as hosts:
        assert hosts.send(0.1)["lost_frames"] == 0
        sent = {row["name"]: row["sent_frames"] for row in router.status()["routers"]}
        assert sent["br0"] > 0
        assert sent["br1"] == sent["br2"] == 0
        back = flows(
            source_mac=HOST_MAC[1], destination_mac=ROUTER_MAC[1], source_address=HOST[1], destination_address=HOST[0]
        )
        assert hosts.send(0.1, port=1, to_port=0, flows=back)["lost_frames"] == 0
        assert {row["name"]: row["sent_frames"] for row in router.status()["routers"]}["br1"] > 0


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("rules = 5\n", r"router\[0\]\.rules: is for forwarding = \"nftables\""),
        ('forwarding = "vpp"\n', r"router\[0\]\.forwarding"),
        ('forwarding = "nftables"\nrules = -1\n', r"router\[0\]\.rules"),
    ],
)
def test_a_wrong_router_is_refused(text: str, more: str, message: str) -> None:
    with pytest.raises(FileProblem, match=message):
        parse_multistage(text.replace('[[router]]\nname = "br0"\n', f'[[router]]\nname = "br0"\n{more}'))
