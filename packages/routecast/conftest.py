"""Tests of wings have the fixtures of tests/shared_fixtures.py; a conftest.py serves only the folder that it is in."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

import shared_fixtures


def pytest_configure(config: pytest.Config) -> None:
    """Register the plugin that both folders of tests share once."""
    if not config.pluginmanager.is_registered(shared_fixtures):
        config.pluginmanager.register(shared_fixtures)
