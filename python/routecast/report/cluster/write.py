"""A plan's folder: the plan as JSON, its steps as CSV, its figures."""

from __future__ import annotations

import csv
import json
from datetime import timedelta
from pathlib import Path

from routecast.plan.cluster.answer import ClusterAnswer
from routecast.plan.cluster.saving.switching import schedule_power_w
from routecast.report.cluster.figures import machines_figure, power_figure
from routecast.report.cluster.tables import clock
from routecast.report.drawing import draw

__all__ = ["write_plan"]


def write_plan(answer: ClusterAnswer, out: Path) -> None:
    """Write ``plan.json``, ``schedule.csv`` and ``figures/*.svg`` to a folder, which is made if missing."""
    (out / "figures").mkdir(parents=True, exist_ok=True)
    text = json.dumps(answer.to_json(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    (out / "plan.json").write_text(text, encoding="utf-8")
    for figure in (power_figure(answer), machines_figure(answer)):
        (out / "figures" / f"{figure.name}.svg").write_text(draw(figure), encoding="utf-8")
    problem, start = answer.case.problem, answer.case.day.start
    power = schedule_power_w(problem, answer.design.schedule.on).tolist()
    with (out / "schedule.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["from", "load_bps", "power_w", *(f"on_{group.name}" for group in problem.groups)])
        for step, on in enumerate(answer.design.schedule.on):
            at_s = step * problem.step_s
            begin = clock(at_s) if start is None else (start + timedelta(seconds=at_s)).isoformat(sep=" ")
            writer.writerow([begin, f"{problem.traffic_bps[step]:.6g}", f"{power[step]:.6g}", *on])
