"""``routecast hardware list`` and ``show`` as a user meets them."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest

from routecast.cli.run import run
from routecast.hardware.catalogue import parse_hardware, read_hardware, shipped_hardware

XEON = "xeon-e5-2690v2"


@pytest.fixture(autouse=True)
def no_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROUTECAST_HOST_FILE", str(tmp_path / "host.hardware.toml"))


def test_the_list_names_what_ships_and_how_to_add_this_host(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["hardware", "list"]) == 0
    printed = capsys.readouterr()
    assert XEON in printed.out
    assert "routecast hardware probe" in printed.err
    assert run(["hardware", "list", "--json"]) == 0
    (item,) = (entry for entry in json.loads(capsys.readouterr().out) if entry["name"] == XEON)
    assert (item["cores"], item["frequency_hz"]) == (20, 3.6e9)


def test_a_host_is_shown_with_formulas_sources_and_what_it_does_not_map(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["hardware", "show", XEON]) == 0
    printed = capsys.readouterr().out
    for words in ("3.6 GHz", "256 KiB", "1333 MT/s", "Intel 82599ES", "7*ceil(b/2) + 8", "sec. 4.2"):
        assert words in printed
    assert re.search(r"No cost of: .*toeplitz_hash", printed)


def test_the_json_of_a_host_has_its_values_in_base_units(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["hardware", "show", XEON, "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["levels"][1]["size_bytes"] == 262144.0
    assert shown["operations"]["parse"]["cycles"] == "5*ceil(b/8)"
    assert shown["operations"]["io_mem"]["remote"]["accesses"][0]["of"] == "frame"
    assert "toeplitz_hash" in shown["unmapped"]
    assert shown["levels"][-1]["size_bytes"] is None


def test_a_name_that_is_none_and_a_file_that_is_wrong_leave_with_2(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert run(["hardware", "show", "xeon"]) == 2
    assert XEON in capsys.readouterr().err
    wrong = tmp_path / "wrong.hardware.toml"
    wrong.write_text('name = "x"\n[cpu]\nfrequency = "0 Hz"\n', encoding="utf-8")
    assert run(["hardware", "show", str(wrong)]) == 2
    error = capsys.readouterr().err
    assert "cpu.frequency" in error
    assert "cpu.cores_per_socket: is missing" in error


def test_the_hardware_file_of_the_documentation_can_be_read(capsys: pytest.CaptureFixture[str]) -> None:
    page = (Path(__file__).parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")
    example = page.partition("## Hardware files")[2].partition("```toml\n")[2].partition("```")[0]
    hardware = parse_hardware(example)
    assert hardware.operations["ht_lookup"].cycles.evaluate({"N": 2}) == 18.5 + 2 * 2.25
    assert tomllib.loads(example)["name"] == hardware.name


def test_the_schema_of_hardware_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["schema", "hardware"]) == 0
    assert json.loads(capsys.readouterr().out)["title"] == "routecast hardware file"
    assert read_hardware(XEON).name == XEON


def test_costs_that_no_function_can_use_are_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = shipped_hardware()[XEON].read_text(encoding="utf-8")
    own = tmp_path / "own.hardware.toml"
    own.write_text(
        text.replace('cycles = "31 + 9*ceil(hdr/64)"', 'cycles = "31 + tuples"')
        + '\n[operation.lpm_lokup]\ncycles = 8\nsource = "a guess"\n',
        encoding="utf-8",
    )
    assert run(["hardware", "show", str(own)]) == 0
    output = capsys.readouterr().err
    assert 'operation.mem_io: names "tuples", which is no parameter of mem_io' in output
    assert "operation.lpm_lokup: is no elementary operation" in output
    assert 'did you mean "lpm_lookup"?' in output
    assert run(["hardware", "show", XEON]) == 0
    assert capsys.readouterr().err == ""
