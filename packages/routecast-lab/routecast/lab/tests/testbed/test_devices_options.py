"""Messages about unknown devices and options; no test here needs root."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

from routecast.errors import EnvironmentProblem, FileProblem
from routecast.lab.testbed.devices import DEVICES, make_device
from routecast.lab.testbed.devices.nftables import NftablesOptions
from routecast.lab.testbed.devices.options import read_options
from routecast.lab.testbed.devices.processes import check_socket_path
from routecast.lab.testbed.dut_host import Device, DeviceSite

DOCUMENTATION = Path(__file__).parents[6] / "docs" / "devices.md"
NAMES = ("linux", "bridge", "xdp", "nftables", "openvswitch", "testpmd", "frr", "external", "multistage")


def test_devices_are_known_by_the_names_that_their_classes_bear() -> None:
    assert tuple(DEVICES) == NAMES
    assert {name: DEVICES[name].name for name in DEVICES} == {name: name for name in NAMES}


@pytest.mark.parametrize("name", NAMES)
def test_every_device_offers_what_a_test_bed_asks_for(name: str) -> None:
    device = make_device(name, {})
    assert isinstance(device, Device)
    assert device.layer in {2, 3}
    assert device.data_path in {"kernel", "process"}
    assert device.title
    device.stop()  # never started: does nothing


@pytest.mark.parametrize("name", NAMES)
def test_every_option_tells_its_meaning_in_its_messages(name: str) -> None:
    kind = DEVICES[name].options
    for option in fields(kind):
        assert option.metadata["text"]
        with pytest.raises(FileProblem, match=re.escape(option.metadata["text"])):
            read_options("device", kind, {option.name: object()})


@pytest.mark.parametrize("name", NAMES)
def test_every_option_stands_in_the_documentation(name: str) -> None:
    rows = [line for line in DOCUMENTATION.read_text(encoding="utf-8").splitlines() if line.startswith("|")]
    for declared in fields(DEVICES[name].options):
        assert [row for row in rows if f"`{declared.name}`" in row and f"`{name}`" in row], f"{declared.name} of {name}"


def test_an_unknown_device_is_answered_with_the_nearest() -> None:
    with pytest.raises(FileProblem, match='there is no "nftable"; did you mean "nftables"'):
        make_device("nftable", {})


def test_texts_and_values_of_files_mean_the_same() -> None:
    from_texts = make_device("nftables", {"rules": "1_000", "conntrack": "yes"})
    from_file = make_device("nftables", {"rules": 1000, "conntrack": True})
    expected = NftablesOptions(rules=1000, conntrack=True)
    assert from_texts.chosen == from_file.chosen == expected  # type: ignore[attr-defined]  # of routecast's devices


def test_all_wrong_options_are_named_at_once() -> None:
    with pytest.raises(FileProblem) as raised:
        make_device("nftables", {"ruls": 3, "slowdown": -1, "conntrack": "perhaps", "ipv6": 2})
    assert [problem.place for problem in raised.value.problems] == ["ruls", "slowdown", "conntrack", "ipv6"]
    text = str(raised.value)
    assert text.startswith("device nftables: 4 problems")
    assert 'did you mean "rules"?' in text
    assert "-1 is below 0" in text
    assert "'perhaps' is not true or false" in text


def test_a_choice_is_answered_with_the_nearest() -> None:
    with pytest.raises(FileProblem, match="'afxpd' is not allowed; did you mean \"afxdp\""):
        make_device("openvswitch", {"ports": "afxpd"})


def test_options_made_in_code_are_held_to_the_same_ranges() -> None:
    with pytest.raises(FileProblem, match="rules: 20001 is above 20000"):
        NftablesOptions(rules=20_001)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("linux", "needs ip: apt install iproute2"),
        ("nftables", "needs nft: apt install nftables"),
        ("openvswitch", "needs ovs-vswitchd: apt install openvswitch-switch"),
        ("testpmd", "needs dpdk-testpmd: apt install dpdk-dev"),
    ],
)
def test_a_missing_program_is_reported_with_its_package(
    name: str, message: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", "")
    device = make_device(name, {})
    assert device.missing()
    ports = tuple(_Port() for _ in range(2))
    site = DeviceSite(netns="rc-d-none", ports=ports, cpu=None, priority=0, folder=tmp_path)  # type: ignore[arg-type]  # never looked at
    with pytest.raises(EnvironmentProblem) as raised:
        device.start(site)
    assert message in str(raised.value)


@pytest.mark.parametrize(("name", "options"), [("testpmd", {}), ("openvswitch", {"ports": "afxdp"})])
def test_a_device_that_never_sleeps_is_refused_on_the_generators_core(
    name: str, options: dict[str, object], tmp_path: Path
) -> None:
    ports = tuple(_Port() for _ in range(2))
    site = DeviceSite(netns="rc-d-none", ports=ports, cpu=0, priority=41, shares_core=True, folder=tmp_path)  # type: ignore[arg-type]  # never looked at
    with pytest.raises(EnvironmentProblem, match=r"no time on core 0; let routecast use another core"):
        make_device(name, options).start(site)


class _Port:
    """A port that nothing reads."""


def test_an_external_device_is_described_by_its_owner_and_not_touched(tmp_path: Path) -> None:
    device = make_device("external", {"product": "Router 9000", "version": "7.2"})
    device.start(DeviceSite(netns=None, ports=(), cpu=None, priority=0, folder=tmp_path))
    facts = device.facts()
    assert (facts["product"], facts["version"]) == ("Router 9000", "7.2")
    assert (device.reset_kinds, device.counters(), device.missing()) == ((), {}, ())
    with pytest.raises(FileProblem, match="cannot reset a device that it did not start"):
        device.restart("process")
    device.stop()


def test_a_path_that_no_socket_can_have_is_refused() -> None:
    with pytest.raises(EnvironmentProblem, match="too long for a socket"):
        check_socket_path(Path("/" + "a" * 107))
    check_socket_path(Path("/" + "a" * 106))
