"""The simulator in a page beside the compiled core: frames per CPU second of both on the same work, in turns.

The page is a file, in Chromium without a window; its CPU time is that of the browser's processes that run pages, as the
browser counts it. The core's is this process's. Last comes how long a page waits for the outcome of a tiny scenario.
``--module`` compares other modules, such as those of other profiles.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from workloads import WORKLOADS, Variant, Workload

from routecast import _core
from routecast.evaluate.simulate.scenario import run_of, scenario_of
from routecast.explore.simulator import simulator_policy, simulator_script

__all__ = ["main"]

EXAMPLES = Path(__file__).parents[1] / "examples"
RATIO_TARGET = 0.55
LATENCY_TARGET_MS = 3.0
SHARE_OF_FRAMES = 1.0
"""Of those that benches/run.py simulates: about a tenth of a second natively."""

RUN = "async request => { window.outcome = await simulator.run(request); return outcome.offered_frames; }"
LATENCIES = """async request => {
  const times_ms = [];
  for (let i = 0; i < 200; i++) {
    const start_ms = performance.now();
    await simulator.run(request);
    times_ms.push(performance.now() - start_ms);
  }
  return times_ms;
}"""


def main() -> int:
    """Return 0, or 1 where the page counted other frames than the core."""
    arguments = _arguments()
    chromium = shutil.which("chromium")
    if chromium is None:
        print("SKIPPED: there is no Chromium. To install it: apt install chromium", file=sys.stderr)
        return 0
    from playwright.sync_api import sync_playwright

    wrong = 0
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, chromium_sandbox=os.geteuid() != 0)
        print(
            f"Chromium {browser.version}, {arguments.repetitions} repetitions in turns; million frames per CPU second\n"
        )
        session = browser.new_browser_cdp_session()

        def cpu_s() -> float:
            processes = session.send("SystemInfo.getProcessInfo")["processInfo"]
            return sum(float(process["cpuTime"]) for process in processes if process["type"] == "renderer")

        for module in arguments.module or [None]:
            path = Path(folder) / "page.html"
            path.write_text(_page(module), encoding="utf-8")
            context = browser.new_context(offline=True)
            page = context.new_page()
            page.goto(path.as_uri())
            print(f"module: {module or 'of the package'}")
            for workload in WORKLOADS:
                for variant in workload.variants:
                    wrong += _race(workload, variant, arguments.repetitions, partial(page.evaluate, RUN), cpu_s)
            tiny = _request(WORKLOADS[1], WORKLOADS[1].variants[0], 100, 1)
            latency_ms = statistics.median(page.evaluate(LATENCIES, tiny))
            met = "met" if latency_ms <= LATENCY_TARGET_MS else "MISSED"
            target = f"target <= {LATENCY_TARGET_MS:g} ms: {met}"
            print(f"  100 frames, from request to outcome: {latency_ms:.2f} ms, {target}\n")
            context.close()
        for router in arguments.router:
            _turn(browser, router, Path(folder) / "explorer.html", arguments.repetitions)
        browser.close()
    return 1 if wrong else 0


OPENED = """async () => {
  while (!globalThis.explorer) await new Promise(requestAnimationFrame);
  while (!explorer.point) await new Promise(requestAnimationFrame);
  return performance.now();
}"""
TURNED = """async () => {
  const times = [];
  for (let turn = 0; turn < 40; turn++) {
    const control = explorer.panel.controls[turn % explorer.panel.controls.length];
    const at = (explorer.positions[control.key] + 1) % control.values.length;
    const heard = what => new Promise(resolve => {
      explorer.root.addEventListener(what, () => resolve(performance.now()), {once: true});
    });
    const point = heard("point"), curve = heard("curve"), start_ms = performance.now();
    explorer.turn(control.key, at);
    times.push([await point - start_ms, await curve - start_ms]);
  }
  return times;
}"""


def _turn(browser: Any, router: Path, path: Path, repetitions: int) -> None:
    """Print how long the page of a router takes from its opening, and from the turn of a control, to the answer."""
    from routecast.explore.views import router_page
    from routecast.quantity.toml_file import parse_toml
    from routecast.show.page import render_page

    document = parse_toml(router.read_text(encoding="utf-8"), str(router))
    path.write_text(render_page(router_page(document, subject=str(router), folder=router.parent)), encoding="utf-8")
    opened, points, curves = [], [], []
    for _ in range(repetitions):
        context = browser.new_context(offline=True)
        page = context.new_page()
        page.goto(path.as_uri())
        opened.append(page.evaluate(OPENED))
        page.wait_for_timeout(1500)
        times = page.evaluate(TURNED)
        points += [point for point, _ in times]
        curves += [curve for _, curve in times]
        context.close()
    print(f"{router.name}: page of {path.stat().st_size / 1e6:.2f} MB")
    for what, result, target_ms in (
        ("from opening the file to the first answer", opened, 500.0),
        ("from a turn to the first point", points, 16.0),
        ("from a turn to the curves", curves, 100.0),
    ):
        median, late = statistics.median(result), sorted(result)[round(0.95 * (len(result) - 1))]
        met = "met" if median <= target_ms else "MISSED"
        print(f"  {what:<42} {median:6.1f} ms, 95 % within {late:6.1f}, target <= {target_ms:g}: {met}")


def _race(
    workload: Workload, variant: Variant, repetitions: int, in_page: Callable[[str], Any], cpu_s: Callable[[], float]
) -> int:
    """Run both in turns and print their speeds; return how often they counted other frames."""
    native, page, wrong = [], [], 0
    for seed in range(repetitions + 1):
        request = _request(workload, variant, round(variant.frames * SHARE_OF_FRAMES), seed)
        start_s = time.process_time()
        frames = json.loads(_core.simulate(json.dumps(json.loads(request)["scenario"])))["offered_frames"]
        native.append(frames / (time.process_time() - start_s) / 1e6)
        start_s = cpu_s()
        result = in_page(request)
        page.append(result / (cpu_s() - start_s) / 1e6)
        wrong += result != frames
    # The first run of each warms up.
    native, page = native[1:], page[1:]
    ratio = statistics.median(there / here for here, there in zip(native, page, strict=True))
    met = "met" if ratio >= RATIO_TARGET else "MISSED"
    medians = f"core {statistics.median(native):>6.2f}, page {statistics.median(page):>6.2f}"
    print(f"  {workload.name} {variant.name:<42} {medians}, ratio {ratio:.2f}, target >= {RATIO_TARGET:g}: {met}")
    if wrong:
        print(f"NOT THE SAME WORK {workload.name} {variant.name}", file=sys.stderr)
    return wrong


def _request(workload: Workload, variant: Variant, frames: int, seed: int) -> str:
    scenario = scenario_of(variant.model, workload.load)
    scenario["run"] = run_of(
        variant.model,
        frames / workload.load.rate_pps,
        seed=seed,
        path=variant.path,
        keep_frames=False,
        per_flow=False,
        over_time=False,
        message_limit=0,
        steady_state=False,
        is_whole=False,
        events=(),
    )
    return json.dumps({"scenario": scenario})


def _page(module: Path | None) -> str:
    return (
        f'<!doctype html><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" '
        f'content="{simulator_policy()}"><title>bench</title><script>{simulator_script(module)}</script>'
        "<script>const simulator = new Simulator(simulatorModule);</script>"
    )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=5, help="of each (default 5)")
    parser.add_argument(
        "--router",
        type=Path,
        nargs="*",
        default=[EXAMPLES / f"{name}.router.toml" for name in ("multicore", "green", "napi")],
        help="routers whose pages are opened and turned (default: three examples)",
    )
    parser.add_argument("--module", type=Path, nargs="+", help="modules to compare (default: that of the package)")
    return parser.parse_args()


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
