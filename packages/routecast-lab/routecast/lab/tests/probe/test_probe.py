"""From an outcome to a host's file, and a real quick probe: the hierarchy is ordered and the file reads back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import typer
from probe_sample import CLOCK_HZ, sample
from typer.testing import CliRunner

from routecast.errors import CriterionFailed, EnvironmentProblem, ModelProblem
from routecast.hardware.catalogue import read_hardware, write_hardware
from routecast.hardware.model import Hardware
from routecast.hardware.probe_facts import native
from routecast.lab import probe as probing
from routecast.lab.cli import hardware_probe
from routecast.lab.probe import Probed, hardware_of, probe

core = pytest.importorskip("routecast.lab._lab", reason="the extension is not built")


def dependent_s(hardware: Hardware) -> list[float]:
    hz = hardware.cpu.frequency_hz
    return [level.dependent_s + level.dependent_cycles / hz for level in hardware.levels]


def test_the_file_of_a_probed_host_reads_back(tmp_path: Path) -> None:
    hardware = hardware_of(sample(), duration_s=30.0).hardware
    write_hardware(hardware, tmp_path / "own.hardware.toml")
    assert read_hardware(tmp_path / "own.hardware.toml") == hardware


def test_cycles_are_of_the_cores_clock_and_stalls_add_to_them() -> None:
    hardware = hardware_of(sample(), duration_s=30.0).hardware
    assert hardware.cpu.frequency_hz == CLOCK_HZ
    assert hardware.stalls == "added"
    assert dependent_s(hardware) == sorted(dependent_s(hardware))
    assert dependent_s(hardware)[0] == 0.0  # operations' cycles hold for L1
    assert hardware.call.per_batch_cycles == pytest.approx(20.0, rel=0.02)


@pytest.mark.thorough
def test_a_real_quick_probe_finds_an_ordered_hierarchy_and_a_readable_file(tmp_path: Path) -> None:
    heard: list[float] = []
    probed = probe(quick=True, on_progress=heard.append)
    levels = dependent_s(probed.hardware)
    assert levels == sorted(levels)
    assert levels[-1] > 0.0
    assert 1e8 < probed.hardware.cpu.frequency_hz < 1e10
    assert "ht_lookup" in probed.hardware.operations
    assert probed.noise.verdict == "quiet" or probed.noise.verdict.startswith("noisy: ")
    assert heard
    assert all(0.0 <= share <= 1.0 for share in heard)
    write_hardware(probed.hardware, tmp_path / "own.hardware.toml")
    assert read_hardware(tmp_path / "own.hardware.toml") == probed.hardware


def test_a_processor_that_is_not_there_is_refused() -> None:
    with pytest.raises(ModelProblem, match="cpu"):
        probe(quick=True, cpu=100_000)


def test_errors_of_the_core_are_distinguished(monkeypatch: pytest.MonkeyPatch) -> None:
    class ProbeError(Exception):
        pass

    def failing(kind: str) -> Any:
        def call(request: str, on_progress: object) -> str:
            raise ProbeError(kind, "what is wrong")

        return call

    monkeypatch.setattr(core, "ProbeError", ProbeError, raising=False)
    for kind, error in (
        ("memory", EnvironmentProblem),
        ("system", EnvironmentProblem),
        ("cpu", ModelProblem),
        ("request", ModelProblem),
        ("interrupted", KeyboardInterrupt),
    ):
        monkeypatch.setattr(core, "run_function", failing(kind), raising=False)
        with pytest.raises(error):
            native("run_function", {})


class TestCommand:
    """``routecast hardware probe`` on a sample instead of this host."""

    @pytest.fixture
    def probed_sample(self, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
        outcome = sample()

        def sampled(**_: object) -> Probed:
            return hardware_of(outcome, duration_s=30.0)

        monkeypatch.setattr(probing, "probe", sampled)
        return outcome

    @staticmethod
    def run(*arguments: str) -> Any:
        app = typer.Typer()
        app.command()(hardware_probe.probe)
        return CliRunner().invoke(app, arguments, env={"COLUMNS": "100"})

    def test_it_writes_the_hosts_own_file(
        self, probed_sample: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("ROUTECAST_HOST_FILE", str(tmp_path / "deep" / "host.hardware.toml"))
        result = self.run()
        assert result.exit_code == 0, result.output
        assert read_hardware("host").stalls == "added"
        for text in ("2.5 GHz", "DRAM", "ht_lookup", "quiet"):
            assert text in result.stdout

    def test_json_is_one_document(self, probed_sample: dict[str, Any], tmp_path: Path) -> None:
        result = self.run("--json", "--out", str(tmp_path / "a.hardware.toml"))
        document = json.loads(result.stdout)
        assert [level["name"] for level in document["levels"]] == ["L1", "L2", "L3", "DRAM"]
        assert document["operations"]["ht_lookup"]["samples"] == 15
        assert document["measured"]["clock"] == probed_sample["clock"]

    def test_a_noisy_host_is_flagged_and_under_strict_refused(
        self, probed_sample: dict[str, Any], tmp_path: Path
    ) -> None:
        probed_sample["steal_ratio"] = 0.3
        out = tmp_path / "noisy.hardware.toml"
        strict = self.run("--strict", "--out", str(out))
        assert isinstance(strict.exception, CriterionFailed)  # exit code 1
        assert not out.exists()
        flagged = self.run("--out", str(out))
        assert flagged.exit_code == 0
        assert "noisy" in flagged.stdout
        assert str(read_hardware(out).facts["noise"]).startswith("noisy: the hypervisor took 30.0%")

    def test_a_place_that_cannot_be_written_is_refused_before_the_probe(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def probed(**_: object) -> Probed:
            raise AssertionError("measured for nothing")

        monkeypatch.setattr(probing, "probe", probed)
        file = tmp_path / "file"
        file.touch()
        refused = self.run("--out", str(file / "own.hardware.toml")).exception
        assert isinstance(refused, EnvironmentProblem)
        assert "cannot be written" in str(refused)
        assert list(tmp_path.iterdir()) == [file]

    def test_an_interrupted_probe_leaves_the_file_that_was_there(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def interrupted(**_: object) -> Probed:
            raise KeyboardInterrupt

        monkeypatch.setattr(probing, "probe", interrupted)
        out = tmp_path / "own.hardware.toml"
        out.write_text("before", encoding="utf-8")
        self.run("--out", str(out))
        assert out.read_text(encoding="utf-8") == "before"
        assert list(tmp_path.iterdir()) == [out]
