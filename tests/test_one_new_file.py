"""What is one thing is one file: the package takes a new one with at most one line elsewhere."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import routecast

PACKAGE = Path(routecast.__file__).parent


def test_a_new_contention_law_is_one_file(tmp_path: Path) -> None:
    copy = tmp_path / "routecast"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    (copy / "contention" / "staircase.py").write_text(
        """
from routecast.contention.law import Law, Shape

LAWS = (
    Law(
        name="staircase",
        formula="c(k) = 1 + h*floor((k-1)/2)",
        shapes=(Shape(name="step_height", mean=-3.0, sd=1.0, meaning="slower by h for every two cores"),),
        growth=lambda k, values: k / (1.0 + values[:, :1] * ((k - 1.0) // 2.0)),
    ),
)
""",
        encoding="utf-8",
    )
    registry = copy / "contention" / "__init__.py"
    text = registry.read_text(encoding="utf-8")
    registry.write_text(text.replace('_FILES: Final = ("laws",)', '_FILES: Final = ("laws", "staircase")'), "utf-8")
    router = tmp_path / "stairs.router.toml"
    router.write_text(
        """
builder = "multicore"
cores = 4
link = "100 Gbit/s"
service = { per_packet = "500 ns" }
contention = { law = "staircase", step_height = 0.25 }

[load]
rate = "20 Mpps"
flows = { count = 4 }
""",
        encoding="utf-8",
    )

    def said(*arguments: str) -> str:
        environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
        command = [sys.executable, "-m", "routecast", *arguments]
        run = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, cwd=tmp_path)
        assert run.returncode == 0, run.stderr
        return run.stdout

    # Four cores of 500 ns, each slowed by one step: 4/(500 ns * 1.25).
    assert '"forwarded_pps": 6400000.0' in said("solve", str(router), "--json")
    assert '"step_height"' in said("schema", "router")
    asked = "from routecast.calibrate.points import Point; from routecast.calibrate.fit import fit; "
    asked += "points = [Point(cores=k, frame_bytes=64.0, throughput_pps=rate) for k, rate in ((1, 2e6), (4, 6.4e6))]; "
    asked += "print(list(fit(points, laws=['staircase']).law_weights))"
    run = subprocess.run(
        [sys.executable, "-c", asked],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
    )
    assert run.stdout == "['staircase']\n"
