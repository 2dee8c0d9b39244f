"""``routecast import`` and ``routecast export`` as a user meets them."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import exchange_samples as samples

from routecast.cli.run import run
from routecast.evaluate.point_table import read_points
from routecast.lab.benchmark.exchange import read_many


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


def write_uti_folder(folder: Path) -> Path:
    """Write a series of CSIT over 1, 2 and 4 cores, in files of a call each, with a log beside them."""
    folder.mkdir()
    for cores, rate_pps in ((1, 9e6), (2, 17e6), (4, 32e6)):
        document = samples.uti_mrr()
        document["test_name_long"] = f"25ge2p1xxv710-64b-{2 * cores}t{cores}c-avf-ethip4-ip4base-mrr"
        document["test_id"] = (
            f"tests.vpp.perf.ip4.2n1l-25ge2p1xxv710-avf-ethip4-ip4base-mrr.64b-{2 * cores}t{cores}c-avf-ip4base-mrr"
        )
        document["result"]["receive_rate"]["rate"]["values"] = [rate_pps, 0.999 * rate_pps]
        (folder / f"{cores}.json").write_text(json.dumps(document), encoding="utf-8")
    (folder / "robot.log").write_text("nothing to read\n", encoding="utf-8")
    return folder


def test_files_of_a_folder_are_one_series_that_size_reads(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, points = write_uti_folder(tmp_path / "csit"), tmp_path / "points.csv"
    assert run(["import", str(folder), "--out", str(points)]) == 0
    assert "robot.log" in capsys.readouterr().err
    assert run(["size", str(points), "--target", "12 Mpps", "--cores", "1,2,4", "--json"]) == 0
    (sizing,) = json.loads(capsys.readouterr().out)["series"]
    assert sizing["series"] == "tests.vpp.perf.ip4.2n1l-25ge2p1xxv710-avf-ethip4-ip4base-mrr.avf-ip4base-mrr"
    assert sizing["least"]["cores"] == 2
    records = read_many([folder])
    assert {(record.link_bps, record.facts["nic"]) for record in records} == {(25e9, "xxv710")}


def test_named_files_and_folders_go_together_and_a_bad_named_file_is_an_error(
    trafficgen: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write_uti_folder(tmp_path / "csit")
    assert run(["import", str(trafficgen), str(folder), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["files"] == [str(trafficgen), str(folder)]
    assert len(document["trials"]) == 2 + 6
    assert run(["import", str(trafficgen), str(folder / "robot.log")]) == 2
    (folder / "robot.log").rename(tmp_path / "robot.log")
    (tmp_path / "none").mkdir()
    assert run(["import", str(tmp_path / "none")]) == 2
    assert "no result that can be read" in capsys.readouterr().err


def test_results_without_cores_are_given_them_and_a_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for cores, rate in ((1, 1e6), (2, 1.9e6)):
        document = samples.trex()
        document["results"] |= {"tx_pps": rate, "rx_pps": rate, "rate_tx_bps": rate * 512, "drop_rate_percentage": 0}
        (tmp_path / f"{cores}.json").write_text(json.dumps(document), encoding="utf-8")
        out = str(tmp_path / f"{cores}.csv")
        options = ["--cores", str(cores), "--frame", "64 B", "--series", "mine", "--link", "10 Gbit/s", "--out", out]
        assert run(["import", str(tmp_path / f"{cores}.json"), *options]) == 0
    points = str(tmp_path / "points.csv")
    assert run(["import", str(tmp_path / "1.csv"), str(tmp_path / "2.csv"), "--out", points]) == 0
    capsys.readouterr()
    assert run(["size", points, "--target", "1.5 Mpps", "--cores", "1,2", "--json"]) == 0
    (sizing,) = json.loads(capsys.readouterr().out)["series"]
    assert (sizing["series"], sizing["least"]["cores"]) == ("mine", 2)


def test_a_foreign_table_is_renamed_in_import_and_in_size(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = tmp_path / "mine.csv"
    table.write_text("n;size;rate\n1;64;1.9e6\n2;64;3.7e6\n4;64;7.2e6\n", encoding="utf-8")
    rename = [f"--rename={pair}" for pair in ("n=cores", "size=frame_bytes", "rate=throughput_pps")]
    assert run(["size", str(table), *rename, "--target", "3 Mpps", "--cores", "1,2,4", "--json"]) == 0
    first = json.loads(capsys.readouterr().out)["series"][0]["least"]["cores"]
    assert run(["import", str(table), *rename, "--out", str(tmp_path / "points.csv")]) == 0
    capsys.readouterr()
    arguments = ["size", str(tmp_path / "points.csv"), "--target", "3 Mpps", "--cores", "1,2,4", "--json"]
    assert run(arguments) == 0
    assert json.loads(capsys.readouterr().out)["series"][0]["least"]["cores"] == first == 2
    assert run(["validate", str(table), *rename, "--json"]) == 0
    assert run(["import", str(table), "--rename", "rate"]) == 2
    assert run(["size", str(table), "--rename", "speed=throughput_pps", "--target", "3 Mpps"]) == 2


def test_a_mix_of_nfvbench_stays_a_mix(tmp_path: Path) -> None:
    document = samples.nfvbench()
    result = document["benchmarks"]["network"]["service_chain"]["PVP"]["result"]["result"]
    result["IMIX"] = result.pop("64")
    (tmp_path / "nfv.json").write_text(json.dumps(document), encoding="utf-8")
    trials, points = tmp_path / "trials.csv", tmp_path / "points.csv"
    assert run(["import", str(tmp_path / "nfv.json"), "--cores", "2", "--out", str(trials)]) == 0
    assert run(["export", str(trials), "--format", "validate", "--goal", "ndr", "--out", str(points)]) == 0
    point, timed = read_points(points)
    assert timed.frame_mix == point.frame_mix
    assert "IMIX 594" in points.read_text(encoding="utf-8")
    assert point.frame_mix is not None
    assert point.frame_mix.share_by_bytes == pytest.approx({64: 7 / 12, 594: 4 / 12, 1518: 1 / 12})
