"""The folder of a comparison: page, figures, everything as JSON, power and link loads as CSV."""

from __future__ import annotations

import csv
import json
from pathlib import Path

from routecast.noc.answer.compare import Comparison
from routecast.quantity.whole_file import unfinished, write_whole
from routecast.report.drawing import draw
from routecast.report.noc.link_map import draw_link_map
from routecast.report.noc.page import comparison_maps, comparison_page
from routecast.report.page import render_page

__all__ = ["write_comparison"]


def write_comparison(answer: Comparison, out: Path) -> Path:
    """Write ``report.html``, ``figures/*.svg``, ``compare.json``, ``power.csv`` and ``links.csv`` to a folder.

    Every file is whole or absent.

    Returns
    -------
    Path
        The page.
    """
    figures = out / "figures"
    figures.mkdir(parents=True, exist_ok=True)
    page = comparison_page(answer)
    for figure in page.figures():
        write_whole(figures / f"{figure.name}.svg", draw(figure))
    for link_map in comparison_maps(answer):
        write_whole(figures / f"{link_map.name}.svg", draw_link_map(link_map, has_heading=True))
    text = json.dumps(answer.to_json(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    write_whole(out / "compare.json", text)
    _write_rows(out / "power.csv", _power_rows(answer))
    _write_rows(out / "links.csv", _link_rows(answer))
    write_whole(out / "report.html", render_page(page))
    return out / "report.html"


def _power_rows(answer: Comparison) -> list[list[str]]:
    rows = [["load", "routing", "bottlenecks", "alphas", "hop_flow", "power", "of_no_dvfs_ratio"]]
    for row in answer.power.rows:
        rows.append(
            [
                f"{row.load:g}",
                row.key,
                " ".join(f"{one:.6g}" for one in row.bottlenecks),
                " ".join(f"{one:.6g}" for one in row.alphas),
                f"{row.hop_flow:.6g}",
                "" if row.power is None else f"{row.power:.6g}",
                "" if row.of_no_dvfs_ratio is None else f"{row.of_no_dvfs_ratio:.6g}",
            ]
        )
    for one in answer.optimum.rows:
        flow = sum(float(plane.link_loads.sum()) for plane in one.optimum.planes)
        rows.append(
            [
                f"{one.load:g}",
                "optimum",
                " ".join(
                    f"{float(one.relative_loads(n).max(initial=0.0)):.6g}"
                    for n in range(len(answer.case.widths))
                ),
                " ".join(f"{plane.alpha:.6g}" for plane in one.optimum.planes),
                f"{flow:.6g}",
                f"{one.optimum.power:.6g}",
                "",
            ]
        )
    return rows


def _link_rows(answer: Comparison) -> list[list[str]]:
    """Return the load of every link on every plane, at the highest load, by routing."""
    load = answer.highest.load if answer.highest is not None else answer.case.loads[-1]
    name = answer.case.topology.link_name
    rows = [["routing", "plane", "link", "load"]]
    for row in answer.power.at(load):
        for plane, loads in enumerate(row.link_loads, start=1):
            rows += [
                [row.key, str(plane), name(link), f"{value:.6g}"] for link, value in enumerate(loads.tolist())
            ]
    if answer.highest is not None:
        for plane in range(len(answer.case.widths)):
            loads = answer.highest.relative_loads(plane)
            rows += [
                ["optimum", str(plane + 1), name(link), f"{value:.6g}"]
                for link, value in enumerate(loads.tolist())
            ]
    return rows


def _write_rows(path: Path, rows: list[list[str]]) -> None:
    with unfinished(path) as draft, draft.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)
