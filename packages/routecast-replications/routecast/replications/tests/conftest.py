"""Lets the test of the accuracy board read the corpus."""

from __future__ import annotations

import sys
from pathlib import Path

import routecast

sys.path.insert(0, str(Path(routecast.__file__).parents[3] / "tests" / "corpus"))
