"""The port model of network gear: its law, its fit, and NetPowerBench's files."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from routecast.errors import FileProblem, FitProblem, ModelProblem
from routecast.power import OperatingPoint, PowerModel
from routecast.power._netpowerbench import netpowerbench_text, parse_netpowerbench
from routecast.power.csv_file import PortSample, read_port_samples
from routecast.power.fits import TERMS, fit_ports
from routecast.power.port import Equipped, PortClass, PortPower, PortsInUse

# Made up for the tests, of the order of what switches draw.
TRUE = PortClass(base_w=250.0, port_w=0.9, trx_in_w=0.35, trx_up_w=0.2, offset_w=0.05, bit_j=3e-12, packet_j=13e-9)
SWITCH = PortPower(
    device="switch", classes={"QSFP/PCC/100G": TRUE}, equipped={"QSFP/PCC/100G": Equipped(plugged=32, enabled=16, up=8)}
)


def test_each_term_counts_the_ports_in_its_state() -> None:
    use = PortsInUse(plugged=4, enabled=3, up=2, forwarding=1, passed_bps=1e12, passed_pps=1e8)
    expected = 250.0 + 4 * 0.35 + 3 * 0.9 + 2 * 0.2 + 1 * 0.05 + 3.0 + 1.3
    assert SWITCH.use_power_w({"QSFP/PCC/100G": use}) == pytest.approx(expected)
    assert SWITCH.use_power_w({}) == 250.0


def test_a_forwarded_frame_passes_two_ports() -> None:
    assert isinstance(SWITCH, PowerModel)
    idle_w = SWITCH.power_w(OperatingPoint())
    busy_w = SWITCH.power_w(OperatingPoint(rate_pps=1e6, l2_bps=8e9))
    assert idle_w == pytest.approx(250.0 + 32 * 0.35 + 16 * 0.9 + 8 * 0.2)
    assert busy_w - idle_w == pytest.approx(8 * 0.05 + 2 * (1e6 * 13e-9 + 8e9 * 3e-12))


def test_traffic_through_no_port_and_ports_of_no_kind_are_refused() -> None:
    bare = PortPower(device="switch", classes=SWITCH.classes)
    with pytest.raises(
        ModelProblem, match=r'state the equipped ports with --equip "QSFP/PCC/100G=4" or in the file with'
    ):
        bare.power_w(OperatingPoint(rate_pps=1.0))
    with pytest.raises(ModelProblem, match='did you mean "QSFP/PCC/100G"'):
        bare.port_class("QSFP/PCC/10G")


def campaign(noise_w: float = 0.0, outliers: int = 0) -> list[PortSample]:
    """Measure the known switch in every experiment: bare, idle, ports, links, and traffic of five sizes."""
    noise = np.random.default_rng(11)
    uses = [PortsInUse(), PortsInUse(plugged=32)]
    uses += [PortsInUse(plugged=32, enabled=k) for k in range(1, 17)]
    uses += [PortsInUse(plugged=32, enabled=k, up=k) for k in range(2, 33, 2)]
    uses += [
        PortsInUse(
            plugged=32, enabled=32, up=32, forwarding=32, passed_bps=32 * g * 1e9, passed_pps=32 * g * 1e9 / 8 / size
        )
        for size in (256, 512, 1024, 2048, 4096)
        for g in (2.5, 10, 20, 40, 60, 80)
    ]
    results = []
    for number, use in enumerate(uses):
        wrong = 25.0 if number in range(20, 20 + outliers) else 0.0
        power = SWITCH.use_power_w({"QSFP/PCC/100G": use}) + noise.normal(0.0, noise_w) + wrong
        name = "QSFP/PCC/100G" if number else ""
        results.append(PortSample(port_class=name, use=use, power_w=float(power)))
    return results


@pytest.mark.parametrize("outliers", [0, 3])
def test_the_terms_of_a_known_switch_are_found_again_also_beside_bad_sessions(outliers: int) -> None:
    fit = fit_ports("switch", campaign(noise_w=0.02, outliers=outliers))
    result = fit.classes["QSFP/PCC/100G"]
    assert result.inseparable == ()
    assert result.model.bit_j == pytest.approx(TRUE.bit_j, rel=0.02)
    assert result.model.packet_j == pytest.approx(TRUE.packet_j, rel=0.02)
    assert result.model.port_w == pytest.approx(TRUE.port_w, rel=0.02)
    assert float(np.median(result.held_out_error_ratio)) < 2e-4


def test_intervals_are_as_wide_as_the_noise_makes_the_estimates_scatter() -> None:
    fit = fit_ports("switch", campaign(noise_w=0.05))
    interval = fit.classes["QSFP/PCC/100G"].interval
    assert set(interval) == set(TERMS)
    for term, (low, high) in interval.items():
        true = getattr(TRUE, term)
        middle, half = (low + high) / 2.0, (high - low) / 2.0
        # Twice the half width is four standard errors.
        assert abs(true - middle) < 2.0 * half
        assert half > 0.0


def test_terms_that_the_samples_do_not_separate_are_left_out_and_named() -> None:
    without_links = [item for item in campaign() if not (item.use.up and not item.use.passed_bps)]
    result = fit_ports("switch", without_links).classes["QSFP/PCC/100G"]
    assert result.inseparable == ("offset_w",)
    assert result.model.offset_w is None
    # The offset adds to the term from which it cannot be separated.
    assert result.model.trx_up_w == pytest.approx(0.25, abs=1e-6)


def test_too_few_samples_and_a_bare_device_are_refused() -> None:
    with pytest.raises(FitProblem, match="only samples of the bare device"):
        fit_ports("switch", campaign()[:1])
    with pytest.raises(FitProblem, match=r"3 samples are too few for 3 terms \(base_w, trx_in_w, port_w\)"):
        fit_ports("switch", campaign()[:3])


def test_a_netpowerbench_table_says_what_was_plugged_in_on_and_up(tmp_path: Path) -> None:
    file = tmp_path / "samples.csv"
    file.write_text(
        "device,path,n,mean_w\n"
        "d,base,3,250\n"
        "d,QSFP/PCC/idle/31,2,260\n"
        "d,QSFP/PCC/switch/100G/4,5,262\n"
        "d,QSFP/PCC/trx/100G/8,5,264\n"
        "d,QSFP/PCC/snake-test/100G/32/1024/10.0,7,300\n"
        "d,QSFP/PCC/snake-test/100G/32/256/0.5,7,290\n",
        encoding="utf-8",
    )
    base, idle, port, trx, fast, slow = read_port_samples(file)["d"]
    assert base.port_class == ""
    assert {item.port_class for item in (idle, port, trx, fast, slow)} == {"QSFP/PCC/100G"}
    assert idle.use == PortsInUse(plugged=31)
    assert port.use == PortsInUse(plugged=32, enabled=4)
    assert trx.use == PortsInUse(plugged=32, enabled=8, up=8)
    assert fast.use.passed_bps == 320e9
    # RDMA packets are 58 bytes longer than their payload, iperf3's 42 (NetPowerBench, model_derivation/main.py).
    assert fast.use.passed_pps == pytest.approx(320e9 / (8 * (1024 + 58)))
    assert slow.use.passed_pps == pytest.approx(16e9 / (8 * (256 + 42)))
    assert fast.samples == 7


def test_plain_columns_say_the_same(tmp_path: Path) -> None:
    file = tmp_path / "samples.csv"
    file.write_text(
        "device,class,plugged,enabled,up,passed_bps,passed_pps,power_w\nd,,,,,,,250\nd,SFP/T/1G,4,4,4,1e9,1e5,255\n",
        encoding="utf-8",
    )
    bare, full = read_port_samples(file)["d"]
    assert bare.use == PortsInUse()
    assert full.use == PortsInUse(plugged=4, enabled=4, up=4, forwarding=4, passed_bps=1e9, passed_pps=1e5)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("device,path,n,mean_w\nd,QSFP/PCC/loop/3,1,5\n", "it must be base"),
        ("device,path,n,mean_w\nd,QSFP/PCC/idle/x,1,5\n", "must be numbers"),
        ("device,path,n,mean_w\nd,base,1,-5\n", "watts, not negative"),
        ("device,path,n,mean_w\nd,A/B/snake-test/1G/4/-64/1,1,5\n", "not negative"),
        ("class,plugged,power_w\nSFP,1e30,5\n", "0 to 1000000"),
        ("device,path,watts\nd,base,5\n", 'no column "mean_w"'),
        ("class,up,power_w\nSFP,1.5,5\n", "whole number"),
        ("class,up,power_w\n,1,5\n", "name their class"),
    ],
)
def test_a_table_of_ports_that_is_wrong_says_where(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "samples.csv"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(FileProblem, match=message):
        read_port_samples(file)


WATTS = st.none() | st.floats(-5.0, 50.0)
JOULES = st.none() | st.floats(-1e-7, 1e-7)


@given(
    st.dictionaries(
        st.from_regex(r"[A-Z]{3,5}/[A-Z0-9]{1,4}/[0-9]{1,3}G", fullmatch=True),
        st.builds(
            PortClass,
            base_w=st.floats(0.0, 1e4),
            port_w=WATTS,
            trx_in_w=WATTS,
            trx_up_w=WATTS,
            offset_w=WATTS,
            bit_j=JOULES,
            packet_j=JOULES,
        ),
        min_size=1,
        max_size=4,
    )
)
def test_a_port_model_written_for_netpowerbench_reads_back_as_it_was(classes: dict[str, PortClass]) -> None:
    text = netpowerbench_text(PortPower(device="d", classes=classes))
    result = parse_netpowerbench(text)
    assert result.device == "d"
    assert result.classes == classes


TERMS_TEXT = """\
P_BASE: 250.0
P_PORT: 0.9
P_TRX: 0.55
P_TRX_IN: 0.35
P_TRX_UP: 0.2
E_BIT: 3.0e-12
E_PKT: 1.3e-08
P_OFFSET: 0.05
"""
ARGUMENTS_TEXT = "Device: d\nPort_type: QSFP\nPort_speed: 100G\nTransceivers: PCC\nTraffic_generator: RDMA\n"


def indented(text: str, steps: int) -> str:
    return "".join(f"{'  ' * steps}{line}\n" for line in text.splitlines())


@pytest.mark.parametrize(
    "text",
    [
        ARGUMENTS_TEXT + TERMS_TEXT,
        f"Arguments:\n{indented(ARGUMENTS_TEXT, 1)}Power_model:\n{indented(TERMS_TEXT, 1)}",
        f"metadata:\n  device_id: d\n  connected_PSUs: 2\nQSFP:\n  PCC:\n    100G:\n{indented(TERMS_TEXT, 3)}",
    ],
)
def test_the_three_layouts_of_netpowerbench_say_the_same(text: str) -> None:
    result = parse_netpowerbench(text)
    assert result.device == "d"
    assert result.classes == {"QSFP/PCC/100G": TRUE}


def test_a_default_points_to_the_numbers_of_another_kind() -> None:
    tree = {
        "metadata": {"device_id": "d"},
        "QSFP": {
            "PCC": {"100G": yaml.safe_load(TERMS_TEXT)},
            "LR4": {"100G": {"default": {"port_type": "QSFP", "trx_phy": "PCC", "trx_speed": "100G"}}},
        },
    }
    assert parse_netpowerbench(yaml.safe_dump(tree)).classes["QSFP/LR4/100G"] == TRUE
    tree["QSFP"]["LR4"]["100G"]["default"]["trx_phy"] = "PC"
    with pytest.raises(FileProblem, match="did you mean"):
        parse_netpowerbench(yaml.safe_dump(tree))


def test_what_was_not_measured_is_nan_there_and_none_here() -> None:
    text = netpowerbench_text(PortPower(device="d", classes={"SFP/T/1G": PortClass(base_w=33.0)}))
    assert math.isnan(yaml.safe_load(text)["SFP"]["T"]["1G"]["E_BIT"])
    assert parse_netpowerbench(text).classes["SFP/T/1G"].bit_j is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (ARGUMENTS_TEXT + TERMS_TEXT + "P_FAN: 3\n", "P_FAN: is an unknown key"),
        (ARGUMENTS_TEXT + "P_BASE: warm\n", "it must be a number, or .nan"),
        (ARGUMENTS_TEXT + "P_PORT: 1.0\n", "P_BASE: must be given"),
        (TERMS_TEXT, "Device: is missing"),
        (ARGUMENTS_TEXT + TERMS_TEXT.replace("0.55", "0.9"), r"0\.9 is not P_TRX_IN \+ P_TRX_UP"),
        ("[1, 2]", "give a table"),
        ("a: [", "is no YAML"),
        ("metadata: {device_id: d}\nQSFP: {PCC: 3}\n", "give a table of speeds"),
        ("metadata: {device_id: d}\n", "holds no ports"),
        ("!!python/object/apply:os.getcwd []", "is no YAML"),
    ],
)
def test_yaml_that_is_no_port_model_says_what_is_wrong(text: str, message: str) -> None:
    with pytest.raises(FileProblem, match=message):
        parse_netpowerbench(text)


def test_a_class_without_three_names_has_no_place_in_netpowerbench() -> None:
    with pytest.raises(ModelProblem, match="PORT/TRX/SPEED"):
        netpowerbench_text(PortPower(device="d", classes={"any": TRUE}))


def test_netpowerbenchs_own_measurements_are_read_as_the_same_samples(tmp_path: Path) -> None:
    data = {
        "device": "d",
        "base": {"power": [249.0, 251.0], "ts": ["a", "b"]},
        "QSFP": {
            "PCC": {
                "idle": {31: {"power": [260.0], "ts": ["c"]}},
                "snake-test": {"100G": {32: {1024: {10.0: {"power": [299.0, 300.0, 301.0], "ts": ["d", "e", "f"]}}}}},
            }
        },
    }
    (tmp_path / "power_data.yml").write_text(yaml.safe_dump(data), encoding="utf-8")
    (tmp_path / "samples.csv").write_text(
        "device,path,n,mean_w\nd,base,2,250\nd,QSFP/PCC/idle/31,1,260\nd,QSFP/PCC/snake-test/100G/32/1024/10.0,3,300\n",
        encoding="utf-8",
    )
    from_yaml, from_csv = (read_port_samples(tmp_path / name)["d"] for name in ("power_data.yml", "samples.csv"))
    assert sorted(from_yaml, key=lambda entry: entry.power_w) == sorted(from_csv, key=lambda item: item.power_w)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("device: d\nbase: {power: [-1.0]}\n", "base: got"),
        ("device: d\nbase: {power: warm}\n", "list of watts"),
        ("device: d\nbase: 5\n", "list of watts"),
        ("device: d\n", "holds no measurements"),
        ("[1]", "is no NetPowerBench"),
        ("device: d\nQSFP: {PCC: {loop: {3: {power: [1.0]}}}}\n", "it must be base"),
    ],
)
def test_measurements_in_yaml_that_are_none_say_where(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "power_data.yml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(FileProblem, match=message):
        read_port_samples(file)
