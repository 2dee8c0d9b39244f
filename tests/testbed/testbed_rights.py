"""What tests need of the machine; without it they are skipped and say what is missing."""

from __future__ import annotations

import shutil

import pytest

from routecast.testbed.capabilities import FOR_NAMESPACES, missing


def _lacking() -> str:
    lacking = missing(FOR_NAMESPACES)
    if lacking:
        return f"needs root: this process lacks {', '.join(lacking)}"
    if shutil.which("ip") is None:
        return "needs iproute2: apt install iproute2"
    return ""


def _no_tester() -> str:
    if lacking := _lacking():
        return lacking
    from routecast import _core

    if not hasattr(_core, "Tester"):
        return "needs the compiled tester: build the extension anew"
    return ""


needs_namespaces = pytest.mark.skipif(bool(_lacking()), reason=_lacking() or "can run")
needs_tester = pytest.mark.skipif(bool(_no_tester()), reason=_no_tester() or "can run")
