"""Benchmarks with mixes of frame sizes beside fixed sizes, or alone."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("routecast._core", reason="the extension is not built")

from benchmark_fakes import LINK_BPS, Faulty, Fluid, profile_with

from routecast.errors import FileProblem, QuantityProblem
from routecast.evaluate.point_table import points_text, read_points
from routecast.lab.benchmark import BenchmarkResult, PlainRig, Stream, plan_of, read_profile, run_benchmark
from routecast.lab.benchmark.exchange import read_records, uti_documents
from routecast.lab.benchmark.points import points_of
from routecast.lab.benchmark.streams import mix_refused, mixed
from routecast.load import FrameMix

IMIX_BYTES = (7 * 64 + 4 * 570 + 1518) / 12  # FD.io CSIT's IMIX_v4_1
IMIX_LINE_PPS = LINK_BPS / (8 * (IMIX_BYTES + 20))
CAPACITY_PPS = 1e6


def benchmark(*procedures: str, frames: tuple[int, ...] = (), mixes: tuple[str, ...] = ("IMIX",)) -> BenchmarkResult:
    plan = plan_of(profile_with(), procedures=procedures, frame_bytes=frames, mixes=mixes)
    rig = PlainRig(evaluator=Fluid(CAPACITY_PPS, 256), link=LINK_BPS)
    return run_benchmark(plan, rig)


def test_every_procedure_but_reset_runs_a_mix() -> None:
    result = benchmark(frames=(64,))
    for name in ("throughput", "latency", "frame_loss", "back_to_back", "recovery"):
        rows = [row for row in result.by_procedure[name].rows if row.stream == "IPv4, IMIX"]
        assert {row.frame_bytes for row in rows} == {FrameMix.imix().mean_bytes}, name
        assert {row.frame_bytes for row in result.by_procedure[name].rows if row.stream == "IPv4"} == {64}
    row = next(row for row in result.by_procedure["throughput"].rows if row.stream == "IPv4, IMIX")
    assert row.theoretical_pps == pytest.approx(IMIX_LINE_PPS)
    assert row.l1_bps == pytest.approx(8 * (IMIX_BYTES + 20) * row.throughput_pps)
    assert row.lower_pps <= CAPACITY_PPS * 1.01
    # Sec. 26.6: reset with the smallest frame only.
    reset = [item.what for item in result.not_run if "reset" in item.what and "B, IPv4" in item.what]
    assert reset == ["reset, 64 B, IPv4"]


def test_a_mix_alone_is_no_frame_size_of_the_rfc() -> None:
    result = benchmark("throughput")
    assert [stream.name for stream in result.setup.streams] == ["IPv4, IMIX"]
    assert result.setup.frame_bytes == ()
    done = {deviation.section: deviation.done for deviation in result.compliance.deviations}
    assert done["9"] == "a mix of sizes alone"
    assert done["9.1"] == "without 64, 128, 256, 512, 1024, 1280, 1518 B"
    assert "IMIX is beyond RFC 2544, whose frames have one size at a time (sec. 9)" in result.notes


def test_the_facts_of_a_mix_are_its_genome_and_its_sizes() -> None:
    imix, genome = benchmark("throughput", mixes=("7x64, 4x594, 1x1518", "genome aaafg")).setup.mixes
    assert (imix.name, imix.genome, imix.order) == ("7x64+4x594+1x1518", "a7A4g", "random")
    assert imix.custom_bytes == {"A": 594}
    assert imix.share_by_bytes == {"64": 7 / 12, "594": 4 / 12, "1518": 1 / 12}
    # RFC 6985 sec. 4: a = 64, f = 1280, g = 1518; all are its own letters.
    assert (genome.genome, genome.order, genome.custom_bytes) == ("a3fg", "sequence", {})
    assert genome.mean_bytes == (3 * 64 + 1280 + 1518) / 5


def test_mixes_and_a_fixed_size_of_the_same_mean_are_distinguished() -> None:
    # (64 + 128) / 2 = 96
    result = benchmark("throughput", frames=(96,), mixes=("1x64, 1x128", "2x64, 2x128"))
    rows = {row.stream: row.frame_bytes for row in result.by_procedure["throughput"].rows}
    assert rows == {"IPv4": 96, "IPv4, 1x64+1x128": 96, "IPv4, 2x64+2x128": 96}


def test_a_profile_names_mixes_among_its_sizes(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    text = (Path(__file__).parents[6] / "packages/routecast/routecast/data/benchmark/quick.toml").read_text()
    file.write_text(text.replace('frames = ["64 B"]', 'frames = ["64 B", "IMIX", "7x84, 4x594, 1x1518"]'))
    profile = read_profile(file)
    assert profile.frames == (64, "IMIX", "7x84+4x594+1x1518")
    names = [stream.name for stream in plan_of(profile).streams]
    assert names == ["IPv4", "IPv4, IMIX", "IPv4, 7x84+4x594+1x1518"]
    # Sizes of the command replace those of the profile, mixes with them.
    assert [stream.name for stream in plan_of(profile, frame_bytes=[128]).streams] == ["IPv4"]
    file.write_text(text.replace('frames = ["64 B"]', 'frames = ["IMAX"]'))
    with pytest.raises(FileProblem, match="IMAX"):
        read_profile(file)


@pytest.mark.parametrize("mix", ["IMAX", "IMIX 600", "genome aq", "7x32, 1x64", ""])
def test_a_mix_that_is_none_is_refused(mix: str) -> None:
    with pytest.raises(QuantityProblem):
        plan_of(profile_with(), mixes=[mix])


def test_a_mix_with_frames_too_small_for_its_protocol_is_refused() -> None:
    stream = mixed(Stream(name="IPv6", protocol="IPv6"), "IMIX")
    assert "smallest IPv6 test frame has 84 B" in mix_refused(stream, 84)
    assert '"7x84, 4x570, 1x1518"' in mix_refused(stream, 84)
    assert not mix_refused(mixed(Stream(name="IPv6", protocol="IPv6"), "7x84, 4x570, 1x1518"), 84)
    plan = plan_of(profile_with(), mixes=["IMIX"], frame_bytes=[84], streams=[Stream(name="IPv6", protocol="IPv6")])
    result = run_benchmark(plan, PlainRig(evaluator=Fluid(CAPACITY_PPS), link=LINK_BPS))
    assert [stream.name for stream in result.setup.streams] == ["IPv6"]
    (refused,) = [item for item in result.not_run if item.section == "RFC 6985"]
    assert refused.what == "stream IPv6, IMIX"


def test_points_name_the_mix_and_share_the_series(tmp_path: Path) -> None:
    result = benchmark("frame_loss", frames=(64,))
    device = {"name": "linux", "options": {}}
    measured = replace(result, setup=replace(result.setup, evaluator="measure", device=device))
    points, reasons = points_of(measured, cores=1)
    assert not reasons
    file = tmp_path / "points.csv"
    file.write_text(points_text(points))
    fixed, mix = read_points(file)
    assert fixed.frame_mix is None
    assert fixed.frame_bytes == 64.0
    assert mix.frame_mix == FrameMix.imix()
    assert mix.frame_bytes == pytest.approx(IMIX_BYTES)
    assert fixed.series == mix.series == "linux"


@pytest.mark.parametrize(("mix", "read_bytes"), [("IMIX", IMIX_BYTES), ("IMIX 594", None), ("1x64, 1x128", 96.0)])
def test_an_exchanged_mix_is_not_taken_for_a_fixed_size(mix: str, read_bytes: float | None, tmp_path: Path) -> None:
    file = tmp_path / "benchmark.json"
    file.write_text(json.dumps(benchmark("throughput", mixes=(mix,)).to_json()))
    records = read_records(file)
    assert records[0].frame_bytes == pytest.approx(FrameMix.parse(mix).mean_bytes)
    (document,) = uti_documents(records).values()
    again = tmp_path / "uti.json"
    again.write_text(json.dumps(document))
    (read, *_) = read_records(again)
    assert "imix" in (long_name := str(document["test_name_long"])) or "1x64" in long_name
    assert read.frame_bytes == pytest.approx(read_bytes if read_bytes is not None else float("nan"), nan_ok=True)


def test_a_tester_that_falls_short_of_a_mix_deviates_from_no_section() -> None:
    plan = plan_of(profile_with(), procedures=["throughput"], mixes=["IMIX"])
    rig = PlainRig(evaluator=Faulty(CAPACITY_PPS, reaches_pps=0.99 * IMIX_LINE_PPS), link=LINK_BPS)
    result = run_benchmark(plan, rig)
    assert any("IPv4, IMIX, 353.833 B: the tester reaches" in note for note in result.notes)
    # Sec. 20 is about frames of one size.
    assert "20" not in {deviation.section for deviation in result.compliance.deviations}
    assert max(record.rate_pps for record in result.trials[1:]) == pytest.approx(0.98 * 0.99 * IMIX_LINE_PPS, rel=1e-3)
