"""A ``*.multistage.toml``: what is read, and what is said of each fault with its place."""

from __future__ import annotations

import tomllib
from pathlib import Path

import jsonschema
import pytest

import routecast
from routecast.errors import FileProblem
from routecast.multistage.prediction import predicted_death
from routecast.multistage.reading import multistage_schema, parse_multistage

EXAMPLE = (Path(routecast.__file__).parents[3] / "examples" / "demo.multistage.toml").read_text()


def test_the_example_has_two_balancers_and_three_routers() -> None:
    file = parse_multistage(EXAMPLE)
    assert [entry.name for entry in file.balancer] == ["lb0", "lb1"]
    assert [item.name for item in file.router] == ["br0", "br1", "br2"]
    assert file.detector.silence == 0.05


def test_the_example_keeps_the_schema() -> None:
    jsonschema.validate(tomllib.loads(EXAMPLE), multistage_schema())


@pytest.mark.parametrize(
    ("text", "instead", "place", "message"),
    [
        ('name = "br2"', 'name = "br0"', "router[2].name", "br0 is router[0].name already"),
        ('name = "br2"', 'name = "lb1"', "router[2].name", "lb1 is balancer[1].name already"),
        ("198.18.1.2", "198.18.1.1", "segment[0].host_ipv4", "198.18.1.1 is segment[0].ipv4 already"),
        ("198.19.1.1/24", "198.18.1.9/16", "segment[1].ipv4", "overlaps 198.18.1.0/24"),
        ("198.19.1.1/24", "100.127.255.9/24", "segment[1].ipv4", "the load balancer's own network"),
        ('"198.19.1.2"', '"198.19.2.2"', "segment[1].host_ipv4", "is not in 198.19.1.0/24"),
        ('host_ipv6 = "2001:2:0:1::2"\n', "", "segment[0].host_ipv6", "is missing"),
        ("mtu = 1400", "mtu = 60", "segment[1].mtu", "got 60"),
        ("mtu = 1400", 'local = "br9"', "segment[1].local", "there are: br0, br1, br2"),
        ("mtu = 1400", 'local = "br1"', "segment[1].local", 'is for scheme = "local_only"'),
        ('"50 ms"', '"50 frames"', "detector.silence", "50 frames"),
        ("weight = 2.0", "weight = 0", "router[2].weight", "got 0"),
        ("[detector]", '[[route]]\nto = "203.0.113.0/24"\nvia = "192.0.2.1"\n[detector]', "route[0].via", "no segment"),
        ("[detector]", '[[route]]\nto = "::/0"\nvia = "198.18.1.2"\n[detector]', "route[0].via", "other version"),
    ],
)
def test_a_fault_is_reported_with_its_place(text: str, instead: str, place: str, message: str) -> None:
    assert text in EXAMPLE
    with pytest.raises(FileProblem) as caught:
        parse_multistage(EXAMPLE.replace(text, instead))
    result = {problem.place: problem.message for problem in caught.value.problems}
    assert message in result[place]


def test_without_routers_or_balancers_nothing_is_made() -> None:
    for table in ("balancer", "router"):
        text = EXAMPLE.replace(f"[[{table}]]", f"[[{table}x]]")
        with pytest.raises(FileProblem, match=table):
            parse_multistage(text)


def test_the_scheme_of_networks_needs_a_router_for_each() -> None:
    text = EXAMPLE.replace('name = "demo"', 'name = "demo"\nscheme = "local_only"')
    with pytest.raises(FileProblem, match="needs the back-end router of each segment"):
        parse_multistage(text)


def test_a_death_costs_what_comes_until_it_is_seen() -> None:
    slow = predicted_death(rate_pps=1_000.0, silence_s=0.05, unanswered_frames=64)
    fast = predicted_death(rate_pps=1e6, silence_s=0.05, unanswered_frames=64)
    assert slow.detection_s > fast.detection_s > 0.05
    assert fast.lost_frames == pytest.approx(1e6 * fast.detection_s)
