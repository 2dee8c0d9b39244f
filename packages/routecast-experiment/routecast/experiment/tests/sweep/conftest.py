"""Modules that stand beside the tests, so that workers can import them; the command on a PATH, for scripts."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest


@pytest.fixture
def path_with_routecast(tmp_path: Path) -> str:
    """Return a PATH on which the command routecast is the one that is tested."""
    commands = tmp_path / "bin"
    commands.mkdir()
    script = commands / "routecast"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m routecast "$@"\n')
    script.chmod(0o755)
    return f"{commands}:{os.environ['PATH']}"
