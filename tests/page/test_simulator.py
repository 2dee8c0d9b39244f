"""The simulator in a page: what the compiled core says, from a file, without a network, under a strict policy."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opened import Opened, PageOf
from scenarios import random_scenarios

from routecast import _core
from routecast.explore.simulator import simulator_policy, simulator_script

RELATIVE = 1e-9
"""Logarithms and powers come from other libraries there and may differ in the last place; sums carry that on."""

MD1 = random_scenarios(1, seed=3, frames=2000)[0][1]
LONG_S = 3600.0


@pytest.fixture
def page_file(tmp_path: Path) -> Path:
    path = tmp_path / "page.html"
    path.write_text(
        f'<!doctype html><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{simulator_policy()}"><title>page</title>'
        f"<script>{simulator_script()}</script><script>const simulator = new Simulator(simulatorModule);</script>",
        encoding="utf-8",
    )
    return path


@pytest.fixture
def opened(page_of: PageOf, page_file: Path) -> Iterator[Opened]:
    result = page_of(page_file)
    yield result
    assert result.console == []
    assert [url for url in result.requests if not url.startswith(("blob:", "data:"))] == [page_file.as_uri()]


ASK = """async ([request, stop_after_ms]) => {
  const shares = [];
  try {
    const run = simulator.run(request, {onProgress: share => shares.push(share)});
    if (stop_after_ms !== null) setTimeout(() => simulator.cancel(), stop_after_ms);
    return JSON.stringify({outcome: await run, shares});
  } catch (error) {
    const {name, kind, message, duration_s, needed_s} = error;
    return JSON.stringify({error: {name, kind, message, duration_s, needed_s}, shares});
  }
}"""


def ask(opened: Opened, scenario: str, *, stop_after_ms: float | None = None, **plan: object) -> dict[str, Any]:
    request = f'{{"scenario": {scenario}' + "".join(f', "{key}": {json.dumps(plan[key])}' for key in plan) + "}"
    answer: dict[str, Any] = json.loads(opened.page.evaluate(ASK, [request, stop_after_ms]))
    return answer


def differences(native: object, page: object, place: str = "") -> list[str]:
    """Return where two outcomes differ: whole numbers and texts at all, others by more than ``RELATIVE``."""
    if isinstance(native, dict) and isinstance(page, dict):
        missing = [f"{place}: {sorted(native.keys() ^ page.keys())}"] if native.keys() != page.keys() else []
        both = native.keys() & page.keys()
        return missing + [
            difference for key in both for difference in differences(native[key], page[key], f"{place}.{key}")
        ]
    if isinstance(native, list) and isinstance(page, list) and len(native) == len(page):
        pairs = enumerate(zip(native, page, strict=True))
        return [
            item for i, (one_native, one_page) in pairs for item in differences(one_native, one_page, f"{place}[{i}]")
        ]
    if isinstance(native, float) and isinstance(page, int | float):
        same = math.isclose(native, page, rel_tol=RELATIVE, abs_tol=1e-300)
    else:
        same = native == page
    return [] if same else [f"{place}: {native} natively, {page} in the page"]


def with_run(scenario: str, **run: object) -> str:
    read = json.loads(scenario)
    read["run"] |= run
    return json.dumps(read)


def compared(opened: Opened, count: int, seed: int) -> list[str]:
    results = []
    for number, (builder, scenario) in enumerate(random_scenarios(count, seed=seed, frames=3000)):
        # JSON takes doubles for whole numbers beyond 2^53: seeds go as text.
        page = ask(opened, scenario)
        assert "error" not in page, (builder, page["error"])
        native = json.loads(_core.simulate(scenario))
        assert native["offered_frames"] > 0
        results += [f"{number} ({builder}){difference}" for difference in differences(native, page["outcome"])]
    return results


@pytest.mark.slow
def test_random_routers_have_the_same_outcome_in_a_page(opened: Opened) -> None:
    assert compared(opened, 200, seed=1) == []


@pytest.mark.slow
def test_replications_and_their_target_are_those_of_the_core(opened: Opened) -> None:
    plan: dict[str, Any] = {"replications": 3, "target_relative_half_width": 0.2, "most": 8}
    native = json.loads(_core.simulate(MD1, **plan))
    page = ask(opened, MD1, **plan)["outcome"]
    assert native["replications"] >= 3
    assert differences(native, page) == []


def test_a_difference_is_reported() -> None:
    native = {"frames": 3, "mean_s": 1.0, "rows": [{"at": 1}], "none": None}
    assert differences(native, native | {"mean_s": 1}) == []
    assert differences(native, native | {"mean_s": 1.0 + 1e-12}) == []
    for other in ({"frames": 4}, {"mean_s": 1.0 + 1e-8}, {"rows": []}, {"rows": [{"at": 2}]}, {"none": 0.0}, {"x": 1}):
        assert len(differences(native, native | other)) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "run", [{"duration_ps": 1_000_000, "need_steady_state": True}, {"seed": -1}], ids=["transient", "scenario"]
)
def test_a_refusal_has_the_kind_and_the_words_of_the_core(opened: Opened, run: dict[str, object]) -> None:
    scenario = with_run(MD1, **run)
    with pytest.raises(_core.SimulationError) as native:
        _core.simulate(scenario)
    page = ask(opened, scenario)["error"]
    kind, message, duration_s, needed_s = native.value.args
    # The place in the text is another one in a request.
    words = re.sub(r" at line \d+ column \d+", "", message)
    assert re.sub(r" at line \d+ column \d+", "", page.pop("message")) == words
    assert page == {
        "name": "SimulationError",
        "kind": kind,
        "duration_s": pytest.approx(duration_s, rel=RELATIVE),
        "needed_s": pytest.approx(needed_s, rel=RELATIVE),
    }


@pytest.mark.slow
def test_a_long_run_reports_progress_and_can_be_stopped(opened: Opened) -> None:
    long = with_run(MD1, duration_ps=round(LONG_S * 1e12), record_frames=False, over_time=False, events=[])
    stopped = ask(opened, long, stop_after_ms=1000)
    assert stopped["error"]["kind"] == "interrupted"
    assert stopped["shares"]
    assert stopped["shares"] == sorted(stopped["shares"])
    assert all(0.0 <= share < 1.0 for share in stopped["shares"])
    assert differences(json.loads(_core.simulate(MD1)), ask(opened, MD1)["outcome"]) == []


@pytest.mark.slow
def test_runs_wait_for_each_other_and_a_closed_simulator_starts_anew(opened: Opened) -> None:
    seeds = [
        opened.page.evaluate(
            """async scenarios => {
              const outcomes = await Promise.all(scenarios.map(scenario => simulator.run(`{"scenario": ${scenario}}`)));
              return outcomes.map(outcome => outcome.latency.mean_s);
            }""",
            [with_run(MD1, seed=seed) for seed in (1, 2, 3)],
        )
        for _ in range(2)
        if opened.page.evaluate("() => { simulator.close(); return true; }")
    ]
    native = [json.loads(_core.simulate(with_run(MD1, seed=seed)))["latency"]["mean_s"] for seed in (1, 2, 3)]
    assert seeds == [pytest.approx(native, rel=RELATIVE)] * 2


@pytest.mark.slow
def test_a_run_after_one_that_trapped_has_a_fresh_module(opened: Opened) -> None:
    # The list of so many replications is larger than the memory that a module can have.
    trapped = ask(opened, MD1, replications=4_000_000_000)["error"]
    assert trapped["kind"] == "panic"
    assert "unreachable" in trapped["message"]
    assert differences(json.loads(_core.simulate(MD1)), ask(opened, MD1)["outcome"]) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", ["WebAssembly", "DecompressionStream", "Worker"])
def test_a_browser_that_cannot_simulate_says_what_it_lacks(opened: Opened, name: str) -> None:
    refusal = opened.page.evaluate(
        f"""async () => {{
          globalThis.{name} = undefined;
          const missing = Simulator.missing();
          try {{ await new Simulator(simulatorModule).run({{}}); }} catch (error) {{
            return [missing.length, error.kind, error.message];
          }}
        }}"""
    )
    shown = {"Worker": "Web Workers"}.get(name, name)
    assert refusal == [1, "unsupported", f"this browser cannot simulate: it has no {shown}"]
