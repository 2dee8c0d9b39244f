"""``routecast power fit`` and ``show`` as a user meets them."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from routecast.cli.run import run
from routecast.power import OperatingPoint
from routecast.power.files import read_power_model


@pytest.fixture
def servers(tmp_path: Path) -> Path:
    """Two made-up servers, with watts at every tenth of load."""
    loads = [item / 10 for item in range(11)]
    rows = [
        ["lean", *(50.0 + 100.0 * load for load in loads)],
        ["bent", *(80.0 + 120.0 * math.sqrt(load) for load in loads)],
    ]
    file = tmp_path / "servers.csv"
    header = ",".join(["server", *(f"w_{round(100 * load)}" for load in loads)])
    file.write_text("\n".join([header, *(",".join(map(str, row)) for row in rows)]) + "\n", encoding="utf-8")
    return file


@pytest.fixture
def ports(tmp_path: Path) -> Path:
    """A made-up switch: 100 W, 0.5 W a transceiver, 1 W a port, 0.2 W a link, 4 pJ/bit, 20 nJ/packet."""
    rows = ["d,,0,0,0,0,0,100.0", "d,SFP/T/10G,8,0,0,0,0,104.0"]
    rows += [f"d,SFP/T/10G,8,{k},0,0,0,{104.0 + k}" for k in (1, 2, 4)]
    rows += [f"d,SFP/T/10G,8,{k},{k},0,0,{104.0 + 1.2 * k}" for k in (2, 4, 6, 8)]
    for size in (256, 1024, 4096):
        for bps in (20e9, 40e9, 80e9):
            watts = 104.0 + 1.2 * 8 + 4e-12 * bps + 20e-9 * bps / 8 / size
            rows.append(f"d,SFP/T/10G,8,8,8,{bps},{bps / 8 / size},{watts}")
    file = tmp_path / "ports.csv"
    text = "\n".join(["device,class,plugged,enabled,up,passed_bps,passed_pps,power_w", *rows]) + "\n"
    file.write_text(text, encoding="utf-8")
    return file


def test_errors_are_those_of_the_points_that_were_not_fitted(servers: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["power", "fit", str(servers), "--points", "0,20,50,100", "--between", "linear", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["model"] == "piecewise"
    lean, bent = result["devices"]["lean"], result["devices"]["bent"]
    assert lean["errors"]["count"] == 7
    assert lean["errors"]["max_ratio"] == pytest.approx(0.0, abs=1e-12)
    # The chord from 0 to 20 % of load lies farthest below the square root at 10 %.
    truth, chord = 80.0 + 120.0 * math.sqrt(0.1), 80.0 + 60.0 * math.sqrt(0.2)
    assert bent["errors"]["max_ratio"] == pytest.approx((truth - chord) / truth)
    assert result["errors"]["count"] == 14


def test_a_table_has_a_row_for_each_device_and_one_for_all(servers: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["power", "fit", str(servers)]) == 0
    printed = capsys.readouterr()
    for words in ("lean", "bent", "▸ all", "Fitted at 0, 10, 50, 100 % of load"):
        assert words in printed.out
    assert "--device NAME" in printed.err


def test_a_fitted_model_is_written_drawn_and_shown(
    servers: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, figure = tmp_path / "lean.power.toml", tmp_path / "lean.svg"
    command = ["power", "fit", str(servers), "--model", "linear", "--device", "lean"]
    assert run([*command, "--out", str(out), "--figure", str(figure)]) == 0
    assert read_power_model(out).power_w(OperatingPoint(load_ratio=0.25)) == pytest.approx(75.0)
    assert figure.read_text(encoding="utf-8").startswith("<svg")
    capsys.readouterr()
    assert run(["power", "show", str(out), "--loads", "0,25,100", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["power_w"] == pytest.approx([50.0, 75.0, 150.0])


def test_a_port_model_is_fitted_from_plain_columns_and_shown_from_netpowerbench_yaml(
    ports: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "d.yaml"
    assert run(["power", "fit", str(ports), "--out", str(out), "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["model"] == "port"
    parameters = result["devices"]["d"]["parameters"]
    truth = {"base_w": 100.0, "trx_in_w": 0.5, "port_w": 1.0, "trx_up_w": 0.2, "bit_j": 4e-12, "packet_j": 2e-8}
    for term, value in truth.items():
        assert parameters[f"SFP/T/10G {term}"]["value"] == pytest.approx(value, rel=1e-6)
    assert run(["power", "show", str(out)]) == 0
    assert "SFP/T/10G" in capsys.readouterr().out


def test_a_fit_that_its_file_has_no_place_for_is_shown_and_leaves_with_2(
    ports: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    renamed = tmp_path / "renamed.csv"
    renamed.write_text(ports.read_text(encoding="utf-8").replace("SFP/T/10G", "ten"), encoding="utf-8")
    out = tmp_path / "d.yaml"
    assert run(["power", "fit", str(renamed), "--out", str(out)]) == 2
    output = capsys.readouterr()
    assert "ten P_base" in output.out
    assert "PORT/TRX/SPEED" in output.err
    assert "write .toml or .json instead" in output.err
    assert not out.exists()
    assert run(["power", "fit", str(renamed), "--out", str(out), "--json"]) == 2
    result = json.loads(capsys.readouterr().out)["devices"]["d"]["parameters"]
    assert result["ten base_w"]["value"] == pytest.approx(100.0)


def test_a_fitted_switch_is_equipped_on_the_command_line_and_its_day_added_by_hand(
    ports: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "d.toml"
    assert run(["power", "fit", str(ports), "--out", str(file)]) == 0
    capsys.readouterr()
    day = ["power", "day", str(file), "--profile", "synthetic", "--peak", "10 Gbit/s", "--frame", "1000 B"]
    assert run(day) == 2
    output = capsys.readouterr().err
    assert '--equip "SFP/T/10G=4"' in output
    assert '[equipped."SFP/T/10G"]' in output

    assert run([*day, "--equip", "SFP/T/10G=8", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    # Each frame passes two ports; 8 ports with their transceivers, enabled and up, are 8 (0.5 + 1 + 0.2) W.
    by_hand = [100.0 + 8 * 1.7 + 2 * bps * (4e-12 + 20e-9 / 8000) for bps in result["l2_bps"]]
    assert result["power_w"] == pytest.approx(by_hand, rel=1e-6)
    assert any("8 x SFP/T/10G, as given" in note for note in result["notes"])

    # The table that the message proposes does the same; an option takes the place of the file's table.
    table = '\n[equipped."SFP/T/10G"]\nplugged = 8\nenabled = 8\nup = 8\n'
    file.write_text(file.read_text(encoding="utf-8") + table, encoding="utf-8")
    assert run([*day, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["power_w"] == pytest.approx(by_hand, rel=1e-6)
    assert run([*day, "--equip", "SFP/T/10G=2", "--json"]) == 0
    two = json.loads(capsys.readouterr().out)["power_w"]
    assert [more - less for more, less in zip(by_hand, two, strict=True)] == pytest.approx([6 * 1.7] * len(two))


def test_wrong_ports_are_all_named_with_the_nearest_and_only_models_of_ports_take_them(
    ports: Path, servers: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "d.toml"
    assert run(["power", "fit", str(ports), "--out", str(file)]) == 0
    capsys.readouterr()
    wrong = ["--equip", "SFP/T/1OG=8", "--equip", "SFP/T/10G=none", "--equip", "SFP/T/10G"]
    assert run(["power", "show", str(file), *wrong]) == 2
    output = capsys.readouterr().err
    assert 'did you mean "SFP/T/10G"?' in output
    assert 'got "SFP/T/10G=none": give a class and a number of ports, such as "SFP/T/10G=4"' in output
    assert 'got "SFP/T/10G"' in output
    assert run(["power", "show", str(file), "--equip", "SFP/T/10G=8", "--equip", "SFP/T/10G=9"]) == 2
    assert "appears twice" in capsys.readouterr().err
    assert run(["power", "show", "form", "--equip", "SFP/T/10G=8"]) == 2
    assert "--equip is for models of ports" in capsys.readouterr().err
    day = ["--profile", "synthetic", "--peak", "1 Gbit/s", "--equip", "SFP/T/10G=8"]
    router = Path(__file__).parents[3] / "examples" / "green.router.toml"
    assert run(["power", "day", str(router), *day]) == 2
    assert "--equip is of a power model of ports" in capsys.readouterr().err
    linear = tmp_path / "linear.toml"
    linear.write_text('model = "linear"\nidle = "50 W"\nfull = "100 W"\n', encoding="utf-8")
    assert run(["power", "day", str(linear), *day]) == 2
    assert "--equip is for models of ports" in capsys.readouterr().err


def test_an_equipped_switch_is_shown_over_load_as_its_ports_come_to(
    ports: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "d.toml"
    assert run(["power", "fit", str(ports), "--out", str(file)]) == 0
    capsys.readouterr()
    show = ["power", "show", str(file), "--equip", "SFP/T/10G=4"]
    assert run([*show, "--frame", "512 B", "--loads", "0,50", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    port_w = shown["port_power_w"]["SFP/T/10G"]
    assert shown["device_power_w"]["power_w"] == pytest.approx([100.0 + 4 * watts for watts in port_w])
    assert run(show) == 0
    # Without frames nothing passes: 100 W and 4 (0.5 + 1 + 0.2) W.
    assert "106.8" in capsys.readouterr().out


def test_a_router_is_fitted_and_shown_by_clock_and_cores(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = ["rate_pps,frequency_hz,cores,power_w"]
    for clock_hz, max_pps in ((2e9, 700e3), (3e9, 1000e3)):
        rows += [f"{t * max_pps},{clock_hz},1,{20 + 10 * t}" for t in (0.0, 0.25, 0.5, 0.75, 1.0)]
        rows += [f"{t * 1.5 * max_pps},{clock_hz},2,{20 + 20 * t}" for t in (0.0, 0.5, 1.0)]
    file = tmp_path / "router.csv"
    file.write_text("\n".join(rows) + "\n", encoding="utf-8")
    out = tmp_path / "router.json"
    assert run(["power", "fit", str(file), "--form", "monotone", "--out", str(out), "--json"]) == 0
    parameters = json.loads(capsys.readouterr().out)["devices"]["device"]["parameters"]
    assert parameters["gain of 2 cores"]["value"] == pytest.approx(1.5)
    assert parameters["max_pps at 2 GHz"]["value"] == 700e3
    assert run(["power", "show", str(out), "--loads", "100", "--json"]) == 0
    points = json.loads(capsys.readouterr().out)["points"]
    assert [(point["frequency_hz"], point["cores"]) for point in points] == [(2e9, 1), (2e9, 2), (3e9, 1), (3e9, 2)]
    assert [point["power_w"] for point in points] == pytest.approx([30.0, 40.0, 30.0, 40.0], abs=0.2)


def test_the_form_function_is_shown_beside_a_monotone_one_and_how_far_they_are_apart(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["power", "show", "--loads", "0,50,100", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["published"][0] == 0.0
    assert shown["published"][2] == pytest.approx(1.002, abs=5e-4)
    assert (shown["monotone"][0], shown["monotone"][2]) == (0.0, 1.0)
    gaps = [abs(a - b) for a, b in zip(shown["published"], shown["monotone"], strict=True)]
    assert max(gaps) <= shown["greatest_deviation"] < 0.01
    assert run(["power", "show", "form"]) == 0
    assert "deviates by at most" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--device", "leen"], 'did you mean "lean"'),
        (["--points", "0,15,100"], "no sample at 15 %"),
        (["--points", "0,ten"], 'got "ten": loads are percents'),
        (["--model", "router"], "needs rate_pps and frequency_hz"),
        (["--model", "port"], 'no column "power_w"'),
        (["--out", "model.xml"], 'ends in ".xml"'),
        (["--out", "model.toml"], "2 devices: name one with --device"),
    ],
)
def test_what_cannot_be_fitted_leaves_with_2_and_says_why(
    servers: Path, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["power", "fit", str(servers), *arguments]) == 2
    assert message in capsys.readouterr().err


def test_a_model_file_that_is_not_there_leaves_with_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["power", "show", str(tmp_path / "no.power.toml")]) == 2
    assert "cannot be read" in capsys.readouterr().err


def test_a_port_is_shown_over_load_with_a_frame_size(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "switch.power.toml"
    file.write_text(
        'model = "port"\n[ports."SFP/T/10G"]\nbase = "100 W"\nport = "1 W"\ntrx_in = "0.5 W"\noffset = "0.1 W"\n'
        'bit = "4 pJ/bit"\npacket = "20 nJ/packet"\n',
        encoding="utf-8",
    )
    assert run(["power", "show", str(file), "--frame", "64 B", "--loads", "0,100", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)["port_power_w"]
    # 10 Gbit/s carry 14.88 million frames of 64 bytes a second (RFC 2544 calls it line rate); both directions count.
    line_rate_pps = 10e9 / (8 * (64 + 20))
    full = 1.5 + 0.1 + 2 * line_rate_pps * (20e-9 + 4e-12 * 8 * 64)
    assert shown["SFP/T/10G"] == pytest.approx([1.5, full])
    assert run(["power", "show", str(file), "--frame", "64 B"]) == 0
    assert "Power of one port over load" in capsys.readouterr().out


def test_the_papers_machines_are_listed_with_what_is_stated_and_no_more(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["power", "show", "platforms", "--json"]) == 0
    machines = {machine["name"]: machine for machine in json.loads(capsys.readouterr().out)}
    assert list(machines) == ["X", "PD", "A", "PM", "O", "C2", "A2"]  # sec. IV-A
    assert (machines["X"]["max_pps"], machines["X"]["idle_zero_pps"]) == (1040e3, 700e3)  # sec. IV-B
    assert (machines["X"]["gain_of_two"], machines["O"]["gain_of_two"]) == (2.0, 1.5)  # sec. V-B
    assert machines["PM"]["least_w"] is None
    assert run(["power", "show", "platforms"]) == 0
    assert "Opteron 265" in capsys.readouterr().out


def test_the_schema_of_power_files_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["schema", "power"]) == 0
    assert "power model file" in json.loads(capsys.readouterr().out)["title"]


@pytest.mark.parametrize(
    ("head", "rows", "options", "known"),
    [
        ("Leistung,Last", ["100,0", "150,0.5", "200,1"], ["Leistung=power_w", "Last=load_ratio"], "power_w,load_ratio"),
        (
            "Klasse;gesteckt;Leistung",
            [";0;100", "SFP/T/10G;2;101", "SFP/T/10G;4;102", "SFP/T/10G;8;104"],
            ["Klasse=class", "gesteckt=plugged", "Leistung=power_w"],
            "class;plugged;power_w",
        ),
        (
            "Zeitpunkt,draw,in",
            [f"2026-01-01T00:0{minute}:00,{100 + 10 * minute},{minute}e9" for minute in range(1, 6)],
            ["Zeitpunkt=time", "draw=power_w", "in=in_bps"],
            "time,power_w,in_bps",
        ),
    ],
)
def test_a_table_with_other_heads_is_renamed(
    head: str, rows: list[str], options: list[str], known: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    documents = []
    for name, first, renames in (("own.csv", known, []), ("foreign.csv", head, options)):
        file = tmp_path / name
        file.write_text("\n".join([first, *rows]) + "\n", encoding="utf-8")
        arguments = [argument for rename in renames for argument in ("--rename", rename)]
        assert run(["power", "fit", str(file), "--json", *arguments]) == 0
        documents.append(json.loads(capsys.readouterr().out))
    assert documents[0] == documents[1]


def test_a_head_that_no_column_has_cannot_be_renamed(servers: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["power", "fit", str(servers), "--rename", "watts=power_w"]) == 2
    assert "no column 'watts' to rename" in " ".join(capsys.readouterr().err.split())
    yaml = servers.with_suffix(".yml")
    yaml.write_text("{}", encoding="utf-8")
    assert run(["power", "fit", str(yaml), "--rename", "watts=power_w"]) == 2
    assert "leave out --rename" in " ".join(capsys.readouterr().err.split())
