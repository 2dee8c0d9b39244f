"""Tables I and II of Meyer et al. 2014 as points."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from routecast.evaluate.points import Point
from routecast.replications.accuracy.packs import read_packs, split, table_points

sys.path.insert(0, str(Path(__file__).parents[1] / "corpus"))

Tables = tuple[list[Point], list[Point]]


@pytest.fixture(scope="session")
def tables() -> Tables:
    """Return the four calibration points of Table I and the sixteen other rows of Table II."""
    pack = next(pack for pack in read_packs() if pack.name == "meyer2014-table2")
    ((calibrating, held_out),) = split(pack, table_points(pack)).values()
    assert (len(calibrating), len(held_out)) == (4, 16)
    return calibrating, held_out
