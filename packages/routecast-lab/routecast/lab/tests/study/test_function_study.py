"""Studies of functions: estimates beside runs, refined by a few of them."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path

import polars
import pytest

from routecast.errors import FileProblem
from routecast.function.catalogue import read_function
from routecast.function.estimate import estimate
from routecast.hardware.formula import Formula
from routecast.hardware.model import Access, CallCost, Cpu, Hardware, MemoryLevel, OperationCost
from routecast.lab.study.functions.document import FunctionStudy
from routecast.lab.study.functions.run import FunctionPoint, RepeatedRun, points
from routecast.load.popularity import Popularity
from routecast.study.engine import run_study
from routecast.study.reading import StudyFile, find_study, read_study

CLOCK_HZ = 2e9

STUDY = """
kind = "functions"
name = "toy"
title = "A toy"
[run]
repeats = 2
[[series]]
function = "l2_switch"
tables.small = { mac = 1024 }
tables.large = { mac = 16777216 }
frames = ["64 B", "512 B"]
traffic = ["uniform", "10"]
refine = [{ size = "small", traffic = "10" }, { size = "large", traffic = "uniform" }]
[[series]]
function = "mpls_switch"
tables.small = { label = 1024 }
tables.large = { label = 16777216 }
frames = ["64 B", "512 B"]
refine = [{ size = "large", traffic = "uniform" }]
[criteria]
estimate_median = 0.9
"""


def cost(name: str, cycles: str, table_lines: str = "") -> OperationCost:
    accesses = ()
    if table_lines:
        accesses = (Access(of="table", lines=Formula.constant(1.0), table_lines=Formula(table_lines)),)
    return OperationCost(operation=name, cycles=Formula(cycles), accesses=accesses, source="a toy")


def toy_host() -> Hardware:
    """Return a host with round numbers: 1 cycle for most operations, 10 and 60 cycles for lines in L2 and DRAM."""
    costs = (
        cost("io_mem", "4"),
        cost("mem_io", "4"),
        cost("parse", "ceil(b/8)"),
        cost("deparse", "ceil(b/8)"),
        cost("decrease", "1"),
        cost("check", "1"),
        cost("assemble", "ceil(b/8)"),
        cost("ht_lookup", "6 + N", "max/2"),
    )
    return Hardware(
        name="toy",
        title="A toy",
        cpu=Cpu(name="toy", sockets=1, cores_per_socket=2, frequency_hz=CLOCK_HZ),
        levels=(
            MemoryLevel(name="L1", size_bytes=32768.0),
            MemoryLevel(name="L2", size_bytes=2097152.0, batched_cycles=10.0),
            MemoryLevel(name="DRAM", batched_cycles=60.0),
        ),
        operations={item.operation: item for item in costs},
        stalls="added",
        call=CallCost(per_batch_cycles=32.0),
        source="made up for a test",
    )


class ToyBench:
    """A host whose lookups cost 1.4 times, and whose memory 0.8 times, what its probe said; runs scatter by 1 %."""

    def __init__(self, *, scatter: float = 0.01) -> None:
        self.runs: list[FunctionPoint] = []
        self.probes = 0
        self._scatter = scatter
        self._random = random.Random(5)

    def hardware(self, on_progress: object) -> Hardware:
        self.probes += 1
        return toy_host()

    def run(self, point: FunctionPoint, seed: int, *, hand_loop: bool) -> RepeatedRun:
        self.runs.append(point)
        host = toy_host()
        lookup = replace(host.operations["ht_lookup"], factor=1.4)
        levels = tuple(replace(level, batched_cycles=0.8 * level.batched_cycles) for level in host.levels)
        truth = replace(host, operations={**host.operations, "ht_lookup": lookup}, levels=levels)
        result = estimate(
            read_function(point.function),
            truth,
            frame_bytes=point.frame_bytes,
            popularity=Popularity.parse(point.traffic),
            tables=point.entries,
        )
        noise = self._random.uniform(1.0 - self._scatter, 1.0 + self._scatter)
        return RepeatedRun(
            cycles=result.packet_cycles * noise, core_hz=CLOCK_HZ, hand_frames_s=1e-9 if hand_loop else float("nan")
        )


def study_file(folder: Path, text: str = STUDY) -> StudyFile[FunctionStudy]:
    path = folder / "toy.study.toml"
    path.write_text(text)
    file = read_study(path)
    assert isinstance(file.study, FunctionStudy)
    return file


def test_refining_by_a_few_measurements_brings_the_others_closer(tmp_path: Path) -> None:
    study = study_file(tmp_path).study
    result = run_study(StudyFile(study=study, path=tmp_path / "x.study.toml"), tmp_path / "out", bench=ToyBench())
    before, after = result.errors(), result.refined_errors()
    assert before.median_abs_error_ratio > 0.08
    assert after.median_abs_error_ratio < 0.03
    assert after.points == before.points - 3


def test_a_study_writes_its_folder(tmp_path: Path) -> None:
    study = study_file(tmp_path).study
    out = tmp_path / "out"
    result = run_study(StudyFile(study=study, path=tmp_path / "x.study.toml"), out, bench=ToyBench())
    assert {path.name for path in out.iterdir()} == {
        "host.hardware.toml",
        "refined.hardware.toml",
        "results.parquet",
        "summary.json",
        "report.html",
        "figures",
    }
    summary = json.loads((out / "summary.json").read_text())
    assert summary["study"] == "toy"
    assert len(summary["rows"]) == len(result.rows) == 12
    assert {path.stem for path in (out / "figures").iterdir()} >= {"agreement", "throughput-l2_switch"}
    assert polars.read_parquet(out / "results.parquet").height == 24


def test_a_study_that_was_killed_goes_on_with_the_same_probe(tmp_path: Path) -> None:
    study = study_file(tmp_path).study
    out = tmp_path / "out"

    class Killed(ToyBench):
        def run(self, point: FunctionPoint, seed: int, *, hand_loop: bool) -> RepeatedRun:
            if len(self.runs) == 7:
                raise KeyboardInterrupt
            return super().run(point, seed, hand_loop=hand_loop)

    with pytest.raises(KeyboardInterrupt):
        run_study(StudyFile(study=study, path=tmp_path / "x.study.toml"), out, bench=Killed())
    bench = ToyBench()
    result = run_study(StudyFile(study=study, path=tmp_path / "x.study.toml"), out, bench=bench)
    assert result.provenance.resumed_trials == 7
    assert len(bench.runs) == 24 - 7
    assert bench.probes == 0


def test_the_named_points_refine_at_the_first_frame_size(tmp_path: Path) -> None:
    refining = [point for point in points(study_file(tmp_path).study) if point.refines]
    assert {(point.function, point.size, point.traffic) for point in refining} == {
        ("l2_switch", "small", "10"),
        ("l2_switch", "large", "uniform"),
        ("mpls_switch", "large", "uniform"),
    }
    assert all(point.frame_bytes == 64 for point in refining)


def test_the_shipped_study_names_functions_that_run_with_their_tables() -> None:
    file = read_study(find_study("host_functions"))
    assert isinstance(file.study, FunctionStudy)
    assert {series.function for series in file.study.series} >= {
        "l2_switch",
        "learning_switch",
        "mpls_switch",
        "ipv4_router",
        "bng",
        "nat44",
        "acl_firewall",
    }


@pytest.mark.parametrize(
    ("old", "new", "place"),
    [
        ('"l2_switch"', '"l2_swich"', "series[0].function"),
        ('"l2_switch"', '"ipv6_router"', "series[0].function"),
        ("{ mac = 1024 }", "{ mak = 1024 }", "series[0].tables.small.mak"),
        ("{ mac = 1024 }", "{ mac = 0 }", "series[0].tables.small.mac"),
        ('size = "small"', 'size = "smal"', "series[0].refine[0].size"),
        ('traffic = "10"', 'traffic = "11"', "series[0].refine[0].traffic"),
        ('["uniform", "10"]', '["unifrom", "10"]', "series[0].traffic"),
        ('["64 B", "512 B"]', '["63 B", "512 B"]', "series[0].frames[0]"),
    ],
)
def test_a_wrong_study_is_refused_with_the_place(tmp_path: Path, old: str, new: str, place: str) -> None:
    with pytest.raises(FileProblem) as refused:
        study_file(tmp_path, STUDY.replace(old, new, 1))
    assert place in {problem.place for problem in refused.value.problems}


@pytest.mark.parametrize("left", ["", "name = ", 'name = "toy"\n'])
def test_a_study_killed_before_its_first_run_probes_the_host_anew(left: str, tmp_path: Path) -> None:
    file, out, bench = study_file(tmp_path), tmp_path / "out", ToyBench()
    out.mkdir()
    (out / "host.hardware.toml").write_text(left)
    result = run_study(file, out, bench=bench)
    assert bench.probes == 1
    assert result.provenance.resumed_trials == 0


def test_a_hardware_file_of_another_machine_is_said_to_be_one(tmp_path: Path) -> None:
    named = STUDY.replace("[run]", '[host]\nhardware = "xeon-e5-2690v2"\n\n[run]') if "[host]" not in STUDY else STUDY
    result = run_study(study_file(tmp_path, named), tmp_path / "out", bench=ToyBench())
    assert any("no error of the estimates" in note for note in result.notes or ())
    probed = run_study(study_file(tmp_path), tmp_path / "probed", bench=ToyBench())
    assert not any("two machines" in note for note in probed.notes or ())
