"""Studies that run without calibration and without the extension."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import fakes

from routecast.study.tables import run as study_run


@pytest.fixture
def fake_laws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let studies use the paper's law and a router that is served flow by flow."""
    monkeypatch.setattr(study_run, "fit_law", lambda study, points: fakes.PaperLaw())
    monkeypatch.setattr(study_run, "fit_baseline", lambda study, points: fakes.PaperLaw(name="eq5"))
    monkeypatch.setattr(study_run, "_evaluator", lambda task: fakes.FlowByFlow(task.model))
