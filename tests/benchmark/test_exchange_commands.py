"""``routecast import`` and ``routecast export`` as a user meets them."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import exchange_samples as samples

from routecast.cli.run import run


@pytest.fixture
def trafficgen(tmp_path: Path) -> Path:
    path = tmp_path / "binary-search.json"
    path.write_text(json.dumps(samples.trafficgen()), encoding="utf-8")
    return path


def test_trials_are_printed_with_what_the_reader_must_know(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = samples.trex()
    document["results"] |= {"drop_rate_percentage": -1.0, "queue_full_percentage": 9.0}
    (tmp_path / "ndr.json").write_text(json.dumps(document), encoding="utf-8")
    assert run(["import", str(tmp_path / "ndr.json")]) == 0
    printed = capsys.readouterr().out
    assert "pdr lower ✗" in printed
    assert "1 trial, 1 of them invalid" in printed
    assert "results.drop_rate_percentage is -1" in printed
    assert "queues were full" in printed


def test_json_is_one_document(trafficgen: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["import", str(trafficgen), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [trial["goal"] for trial in document["trials"]] == ["search", "pdr"]
    assert document["trials"][0]["trial"]["loss_ratio"] == pytest.approx(0.1)


@pytest.mark.parametrize("name", ["trials.csv", "trials.parquet"])
def test_what_is_written_is_read_again(
    name: str, trafficgen: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["import", str(trafficgen), "--json", "--out", str(tmp_path / name)]) == 0
    first = json.loads(capsys.readouterr().out)
    assert run(["import", str(tmp_path / name), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["trials"] == first["trials"]


def test_a_folder_takes_a_file_for_each_test_case(
    trafficgen: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["export", str(trafficgen), "--format", "uti"]) == 2
    assert "--out FOLDER" in capsys.readouterr().err
    assert run(["export", str(trafficgen), "--format", "uti", "--out", str(tmp_path / "uti")]) == 0
    documents = [json.loads(path.read_text(encoding="utf-8")) for path in (tmp_path / "uti").iterdir()]
    assert [document["version"] for document in documents] == ["1.5.1", "1.5.1"]


def test_a_table_for_validate_goes_through_validate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = "title,goal,frame_bytes,cores,offered_pps,forwarded_pps,loss_ratio\n"
    for size in (64, 256, 1024):
        rate = 1.0 / (500e-9 + 0.1e-9 * size)  # 500 ns a frame, 0.1 ns a byte
        table += f"router,ndr,{size},1,{rate},{rate},0\n"
    (tmp_path / "trials.csv").write_text(table, encoding="utf-8")
    points = tmp_path / "points.csv"
    arguments = ["export", str(tmp_path / "trials.csv"), "--format", "validate", "--out", str(points)]
    assert run([*arguments, "--link", "10 Gbit/s"]) == 0
    assert run(["validate", str(points), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["summary"]["mean_abs_error_ratio"] < 0.001  # the law is exact for such a router


def test_a_frame_size_that_the_file_does_not_say_can_be_given(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "ndr.json").write_text(json.dumps(samples.trex()), encoding="utf-8")
    assert run(["import", str(tmp_path / "ndr.json"), "--frame", "IMIX", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)["trials"][0]
    assert record["frame_bytes"] == pytest.approx(353.83, abs=0.01)
    assert record["trial"]["l1_bps"] == pytest.approx(999_500 * 8 * 373.83, rel=1e-4)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["import", "nowhere.json"], "nowhere.json"),
        (["import", "{file}", "--format", "trex"], "results"),
        (["import", "{file}", "--format", "wireshark"], "wireshark"),
        (["import", "{file}", "--out", "trials.xlsx"], ".parquet or .csv"),
        (["import", "{file}", "--frame", "64"], "unit"),
        (["export", "{file}"], "--format"),
        (["export", "{file}", "--format", "validate"], "--cores"),
        (["export", "{file}", "--format", "validate", "--cores", "1", "--goal", "ndr"], "goals in it: pdr, search"),
    ],
)
def test_wrong_arguments_are_usage_errors_that_say_what_to_do(
    arguments: list[str], message: str, trafficgen: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([str(trafficgen) if argument == "{file}" else argument for argument in arguments]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert message in " ".join(printed.err.replace("│", " ").split())
