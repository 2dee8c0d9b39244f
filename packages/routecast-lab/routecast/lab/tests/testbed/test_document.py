from __future__ import annotations

import json
from pathlib import Path

import pytest

from routecast.errors import FileProblem
from routecast.lab.testbed.document import InterfacesFile, NamespacesFile
from routecast.lab.testbed.reading import bed_schema, parse_testbed, read_testbed

EXAMPLES = sorted((Path(__file__).parents[6] / "examples").glob("*.testbed.toml"))

INTERFACES = """
name = "lab"
kind = "interfaces"
[[port]]
interface = "eth1"
dut_mac = "02:00:00:00:01:01"
[[port]]
interface = "eth2"
dut_mac = "02:00:00:00:02:01"
"""


def places(text: str) -> dict[str, str]:
    with pytest.raises(FileProblem) as caught:
        parse_testbed(text)
    return {problem.place: problem.message for problem in caught.value.problems}


def test_the_test_bed_that_needs_no_file_is_called_namespaces() -> None:
    bed = read_testbed("namespaces")
    assert isinstance(bed, NamespacesFile)
    assert (bed.wire, bed.networks, bed.dut.device) == (10e9, 256, "linux")  # RFC 2544 sec. 12: 256 networks


def test_every_fault_of_a_file_is_reported_at_once_with_its_place() -> None:
    result = places(
        'name = "Bad Name"\nkind = "namespaces"\nwire = "64 B"\nwires = 1\nmtu = 20\nnetworks = 300\n'
        '[cores]\ntester = 1\nduty = 2\n[dut]\ndevice = "linux"\n'
    )
    assert set(result) == {"name", "wire", "wires", "mtu", "networks", "cores.duty"}
    assert "'wire'" in result["wires"] or '"wire"' in result["wires"]
    assert "dut" in result["cores.duty"]


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ('name = "a"\n', "kind", "namespaces"),
        ('name = "a"\nkind = "namespace"\n', "kind", "interfaces"),
        ('name = "a"\nkind = "namespaces"\n[dut]\ndevice = "linus"\n', "dut.device", "linux"),
        ('name = "a"\nkind = "namespaces"\n[dut]\nslowdwn = 3\n', "dut.slowdwn", "slowdown"),
        ('name = "a"\nkind = "namespaces"\n[dut]\nslowdown = -3\n', "dut.slowdown", "0"),
        ('name = "a"\nkind = "namespaces"\n[cores]\ntester = 0\ndut = 0\n', "cores.dut", "tester"),
        (INTERFACES.replace("eth2", "eth1"), "port[1].interface", "eth1"),
        (INTERFACES.replace("02:00:00:00:02:01", "03:00:00:00:02:01"), "port[1].dut_mac", "group"),
        (INTERFACES.replace("02:00:00:00:02:01", "x"), "port[1].dut_mac", "02:00:00:00:01:02"),
        (INTERFACES + 'ipv4 = "198.19.1.2/24"\n', "port[1].ipv4", "198.18.1.2"),
        (INTERFACES + 'dut_ipv4 = "198.19.1.1"\n', "port[1].dut_ipv4", "/24"),
        (INTERFACES + 'networks_ipv6 = ["198.18.64.0/24"]\n', "port[1].networks_ipv6[0]", "IPv6"),
        ("name = \n", "", "TOML"),
    ],
)
def test_a_fault_names_its_place_and_what_is_allowed(text: str, place: str, words: str) -> None:
    result = places(text)
    assert place in result
    assert words in result[place]


def test_a_third_port_needs_an_address_since_rfc2544_has_two_sides() -> None:
    third = '[[port]]\ninterface = "eth3"\ndut_mac = "02:00:00:00:03:01"\n'
    assert set(places(INTERFACES + third)) == {"port[2].ipv4"}
    assert isinstance(parse_testbed(INTERFACES + third + 'ipv4 = "198.18.9.2"\n'), InterfacesFile)


def test_options_of_the_command_line_go_before_the_file_and_another_device_starts_afresh() -> None:
    text = 'name = "a"\nkind = "namespaces"\n[dut]\ndevice = "linux"\nslowdown = 100\n'
    assert parse_testbed(text, options={"slowdown": "200"}).dut.options == {"slowdown": "200"}
    assert parse_testbed(text, device="linux").dut.options == {"slowdown": 100}
    assert parse_testbed(text, device="bridge").dut.options == {}


def test_a_missing_file_says_that_namespaces_needs_none() -> None:
    with pytest.raises(FileProblem, match="needs no file"):
        read_testbed("/nonexistent/lab.testbed.toml")


def test_the_schema_has_both_kinds_and_describes_every_field() -> None:
    schema = bed_schema()
    json.dumps(schema)
    assert {"NamespacesFile", "InterfacesFile"} <= set(schema["$defs"])
    for name in ("NamespacesFile", "InterfacesFile", "InterfacePort"):
        for field, entry in schema["$defs"][name]["properties"].items():
            assert "description" in entry or "$ref" in entry or field in {"kind", "port", "cores", "dut"}, field


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_the_examples_are_test_beds(path: Path) -> None:
    assert read_testbed(path).name


def test_there_are_examples_of_both_kinds() -> None:
    assert {read_testbed(path).kind for path in EXAMPLES} == {"namespaces", "interfaces"}
