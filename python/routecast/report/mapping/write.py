"""A mapping's folder: the answer as JSON, the router file, the load by engine as CSV and as a picture."""

from __future__ import annotations

import csv
import json
from pathlib import Path

from routecast.plan.mapping.answer import MappingAnswer
from routecast.plan.mapping.loads import engine_loads
from routecast.plan.mapping.writing import router_text
from routecast.report.drawing import draw
from routecast.report.mapping.figures import engines_figure

__all__ = ["write_mapping"]


def write_mapping(answer: MappingAnswer, out: Path) -> None:
    """Write ``mapping.json``, ``mapping.router.toml``, ``engines.csv`` and ``engines.svg``; the folder is made."""
    out.mkdir(parents=True, exist_ok=True)
    text = json.dumps(answer.to_json(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    (out / "mapping.json").write_text(text, encoding="utf-8")
    (out / "mapping.router.toml").write_text(router_text(answer.best.mapping, answer.document), encoding="utf-8")
    with (out / "engines.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["mapping", "engine", "stage", "threads", "busy_ratio", "threads_ratio"])
        for one in (answer.best, *answer.others):
            if not one.trouble:
                for load in engine_loads(one.mapping, one.predicted_pps):
                    writer.writerow(
                        [
                            one.mapping.name,
                            load.engine,
                            load.stage,
                            load.threads,
                            f"{load.busy_ratio:.6g}",
                            f"{load.threads_ratio:.6g}",
                        ]
                    )
    (out / "engines.svg").write_text(draw(engines_figure(answer), has_heading=True), encoding="utf-8")
