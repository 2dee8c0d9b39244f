"""Lets the tests of this folder import what they share: rapl_trees, power_fakes, redfish_mock, and testbed_fakes."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1]))
