"""A mapping's folder: the answer as JSON, the router file, the load by engine as CSV and as a picture, and its page."""

from __future__ import annotations

import csv
import json
from pathlib import Path

from routecast.plan.mapping.answer import MappingAnswer
from routecast.plan.mapping.loads import engine_loads
from routecast.plan.mapping.views.figures import engines_figure
from routecast.plan.mapping.views.tables import headline, mappings_table, memories_table, stages_table, troubles
from routecast.plan.mapping.writing import router_text
from routecast.show.drawing import draw
from routecast.show.page import Listing, Page, Prose, Section, render_page

__all__ = ["mapping_page", "write_mapping"]


def mapping_page(answer: MappingAnswer) -> Page:
    """Return the page of a mapping: what it forwards, the load by engine, the tables."""
    first, *rest = headline(answer)
    trouble = troubles(answer.others)
    return Page(
        title="Mapping",
        question="Which blocks share which engines, for the greatest throughput?",
        answer=first,
        sections=(
            Section.of(
                "mapping",
                "The mapping",
                "",
                Prose(tuple(rest)),
                engines_figure(answer),
                mappings_table(answer),
                stages_table(answer),
                memories_table(answer),
                bool(trouble) and Listing(title="Others that do not run", entries=trouble),
            ),
        ),
    )


def write_mapping(answer: MappingAnswer, out: Path) -> None:
    """Write ``mapping.json``, ``mapping.router.toml``, ``engines.csv``, ``engines.svg``, ``report.html``; makes it."""
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
    (out / "report.html").write_text(render_page(mapping_page(answer)), encoding="utf-8")
