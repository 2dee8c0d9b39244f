"""A plan's folder: the plan as JSON, its steps as CSV, its figures, its page."""

from __future__ import annotations

import csv
import json
from datetime import timedelta
from pathlib import Path

from routecast.plan.cluster.answer import ClusterAnswer
from routecast.plan.cluster.saving.switching import schedule_power_w
from routecast.plan.cluster.views.figures import machines_figure, power_figure
from routecast.plan.cluster.views.tables import clock, designs_table, headline, plan_table, savings_table
from routecast.show.drawing import draw
from routecast.show.page import Listing, Page, Prose, Section, render_page

__all__ = ["cluster_page", "write_plan"]


def cluster_page(answer: ClusterAnswer) -> Page:
    """Return the page of a plan: the fleet and what it saves, the figures, the tables."""
    case = answer.case
    first, *rest = headline(answer)
    return Page(
        title=f"Cluster: {case.name}",
        question="Which machines to buy, and which of them to have on when?",
        answer=first,
        sections=(
            Section.of(
                "plan",
                "The plan",
                "",
                Prose(tuple(rest)),
                power_figure(answer),
                machines_figure(answer),
                plan_table(answer),
            ),
            Section.of("designs", "Other designs", "", designs_table(answer)),
            Section.of(
                "saving",
                "Saving",
                "",
                bool(answer.day_savings)
                and savings_table(answer.day_savings, case.days, name="day", title="Over the plan"),
                bool(answer.notes) and Listing(title="Notes", entries=tuple(answer.notes)),
            ),
        ),
    )


def write_plan(answer: ClusterAnswer, out: Path) -> None:
    """Write ``plan.json``, ``schedule.csv``, ``figures/*.svg`` and ``report.html`` to a folder, made if missing."""
    (out / "figures").mkdir(parents=True, exist_ok=True)
    text = json.dumps(answer.to_json(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    (out / "plan.json").write_text(text, encoding="utf-8")
    for figure in (power_figure(answer), machines_figure(answer)):
        (out / "figures" / f"{figure.name}.svg").write_text(draw(figure), encoding="utf-8")
    (out / "report.html").write_text(render_page(cluster_page(answer)), encoding="utf-8")
    problem, start = answer.case.problem, answer.case.day.start
    power = schedule_power_w(problem, answer.design.schedule.on).tolist()
    with (out / "schedule.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["from", "load_bps", "power_w", *(f"on_{group.name}" for group in problem.groups)])
        for step, on in enumerate(answer.design.schedule.on):
            at_s = step * problem.step_s
            begin = clock(at_s) if start is None else (start + timedelta(seconds=at_s)).isoformat(sep=" ")
            writer.writerow([begin, f"{problem.traffic_bps[step]:.6g}", f"{power[step]:.6g}", *on])
