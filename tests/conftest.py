"""Tests here have the fixtures of shared_fixtures.py, as those of wings have (packages/routecast/conftest.py)."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import shared_fixtures


def pytest_configure(config: pytest.Config) -> None:
    """Register the plugin that both folders of tests share once."""
    if not config.pluginmanager.is_registered(shared_fixtures):
        config.pluginmanager.register(shared_fixtures)
