"""The compiled probe as Python calls it: refusals with their kind, interruption, progress."""

from __future__ import annotations

import json

import pytest

core = pytest.importorskip("routecast.lab._lab", reason="the extension is not built")


@pytest.mark.parametrize(
    ("call", "request_", "kind", "says"),
    [
        ("probe_host", "not JSON", "request", "line 1"),
        ("probe_host", '{"quik": true}', "request", "unknown field `quik`"),
        ("probe_host", '{"parts": ["disk"]}', "request", "disk"),
        ("probe_host", '{"parts": []}', "request", "parts: got none"),
        ("probe_host", '{"most_memory_bytes": 5}', "request", "most_memory_bytes: got 5"),
        ("probe_host", f'{{"most_memory_bytes": {1 << 60}}}', "memory", "available"),
        ("probe_host", '{"cpu": 100000}', "cpu", "may run on"),
        ("run_function", "{}", "request", "missing field `function`"),
        ("run_function", '{"function": "toaster"}', "function", "l2_switch"),
        ("run_function", '{"function": "l2_switch", "cores": [100000]}', "cpu", "may run on"),
    ],
)
def test_a_wrong_request_is_refused_with_its_kind_and_what_is_allowed(
    call: str, request_: str, kind: str, says: str
) -> None:
    with pytest.raises(core.ProbeError) as refusal:
        getattr(core, call)(request_)
    assert refusal.value.args[0] == kind
    assert says in refusal.value.args[1]


class _EnoughError(Exception):
    """Raised by a caller who has seen enough."""


@pytest.mark.parametrize(
    ("call", "request_"),
    [
        ("probe_host", {"quick": True, "most_memory_bytes": 1 << 24}),
        ("run_function", {"function": "l2_switch", "tables": {"mac": 1000}, "duration_s": 3600.0}),
    ],
)
def test_an_exception_in_progress_ends_the_work_and_is_raised(call: str, request_: dict[str, object]) -> None:
    shares: list[float] = []

    def progress(share: float) -> None:
        shares.append(share)
        raise _EnoughError

    with pytest.raises(_EnoughError):
        getattr(core, call)(json.dumps(request_), progress)
    assert len(shares) == 1
    assert 0.0 <= shares[0] <= 1.0


@pytest.mark.slow
def test_a_probe_of_the_clock_alone_measures_no_memory_and_no_operations() -> None:
    outcome = json.loads(core.probe_host('{"parts": ["clock"], "quick": true}'))
    assert outcome["latency"] == outcome["bandwidth"] == outcome["operations"] == []
    assert len(outcome["clock"]["core_hz"]) >= 5
    assert outcome["clock"]["tsc_hz"] > 0.0
