"""Facts that no rate tells are asked for by name, with what each answer would do."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from routecast.calibration import fit
from routecast.calibration.facts import open_facts, with_shared_queue
from routecast.cli.run import run
from routecast.evaluate.points import Point

POINTS = [Point(cores=k, frame_bytes=64.0, throughput_pps=1.7e6 * k**0.95, calibrate=True) for k in (1, 2, 4)]
ASKED = [replace(POINTS[0], cores=8, throughput_pps=math.nan)]


def test_the_sharing_of_a_queue_is_requested_where_no_one_states_it() -> None:
    fitted = fit(POINTS)
    (fact,) = open_facts(fitted, ASKED)
    assert (fact.name, fact.cores) == ("shared_queue", 8)
    now, no = fact.interval_pps, fact.intervals_pps["no"]
    # Cores that cannot collapse forward at least what fewer did: the interval loses its lower part.
    assert no[0] > now[0]
    (prediction,) = fit(with_shared_queue(POINTS, False)).predict(ASKED)
    assert no == pytest.approx((prediction.low_pps, prediction.high_pps))
    assert all(part in fact.text for part in ("shared_queue = no", "shared_queue = yes", "8 cores forward"))


def test_stated_or_irrelevant_facts_are_not_requested() -> None:
    assert open_facts(fit(with_shared_queue(POINTS, False)), ASKED) == ()
    assert open_facts(fit(POINTS), []) == ()
    assert open_facts(fit(POINTS), POINTS[:1]) == ()  # that rate was measured


def test_validate_asks_for_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = tmp_path / "points.csv"
    table.write_text("cores,throughput\n1,1.7 Mpps\n2,3.3 Mpps\n4,6.4 Mpps\n8,\n")
    assert run(["validate", str(table)]) == 0
    assert "Ask first: do several cores use one queue" in " ".join(capsys.readouterr().out.split())
    assert run(["validate", str(table), "--json"]) == 0
    (fact,) = json.loads(capsys.readouterr().out)["facts"]
    assert fact["name"] == "shared_queue"
    assert set(fact["intervals_pps"]) == {"no", "yes"}
