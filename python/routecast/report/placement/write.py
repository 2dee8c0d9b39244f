"""A placement's folder: the answers as JSON, the elements as CSV, the pictures, the page."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Sequence
from pathlib import Path

from routecast.plan.placement.answer import PlacementAnswer
from routecast.report.page import render_page
from routecast.report.placement.figures import placement_svg
from routecast.report.placement.page import placement_page
from routecast.report.placement.words import cores_said

__all__ = ["answers_json", "write_placement"]


def answers_json(answers: Sequence[PlacementAnswer]) -> dict[str, object]:
    """Return all answers as one document."""
    return {"name": answers[0].problem.name, "answers": [answer.to_json() for answer in answers]}


def write_placement(answers: Sequence[PlacementAnswer], out: Path) -> None:
    """Write ``placement.json``, ``elements.csv``, ``figures/*.svg``, ``report.html``; the folder is made if missing."""
    (out / "figures").mkdir(parents=True, exist_ok=True)
    text = json.dumps(answers_json(answers), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    (out / "placement.json").write_text(text, encoding="utf-8")
    for answer in answers:
        stem = re.sub(r"[^A-Za-z0-9]+", "-", answer.problem.frames.name).strip("-").lower()
        (out / "figures" / f"placement-{stem}.svg").write_text(placement_svg(answer), encoding="utf-8")
    with (out / "elements.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["frames", "element", "server", "cores", "carries_pps", "alone_pps"])
        for answer in answers:
            for seat in answer.seats:
                row = [answer.problem.frames.name, seat.element, seat.server, cores_said(seat.threads)]
                writer.writerow([*row, f"{seat.carries_pps:.6g}", f"{seat.alone_pps:.6g}"])
    (out / "report.html").write_text(render_page(placement_page(answers)), encoding="utf-8")
