"""Files of monitoring tools in ``routecast power day`` and ``power fit``, without an option."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tool_series import CASES, Case, exposition, rapl, written

from routecast.cli.run import run


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """50 W without load and 100 W at the peak of the day."""
    path = tmp_path / "line.power.toml"
    path.write_text('model = "linear"\nidle = "50 W"\nfull = "100 W"\n')
    return path


@pytest.mark.parametrize("case", CASES, ids=[case[0] for case in CASES])
def test_a_day_of_a_tools_file_has_its_energy(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], case: Case
) -> None:
    name, text, expected, said = case
    path = written(tmp_path, name, text())
    assert run(["power", "day", str(model), "--profile", str(path), "--json"]) == 0
    day = json.loads(capsys.readouterr().out)
    mean_ratio = sum(expected) / len(expected) / max(expected)
    assert day["energy_j"] == pytest.approx(86_400.0 * (50.0 + 50.0 * mean_ratio), rel=1e-6)
    assert all(words in " | ".join(day["notes"]) for words in said)


def test_the_energy_of_a_machine_is_fitted_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts = {"rapl.csv": rapl(), "kepler.prom": exposition(kepler=True, stamped=True)}
    for name, text in texts.items():
        path = written(tmp_path, name, text)
        assert run(["power", "fit", str(path), "--out", str(tmp_path / "model.power.toml")]) == 0
        assert "mean watts at every load" in capsys.readouterr().err
