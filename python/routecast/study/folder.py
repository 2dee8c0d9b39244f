"""The folder of a study's results: figures, report, summary."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from routecast.quantity.whole_file import write_whole
from routecast.report.page import Page

__all__ = ["write_results"]


def write_results(out: Path, page: Page, summary: Mapping[str, object]) -> None:
    """Write figures, report and, last, the summary that says that the study is complete."""
    from routecast.report.drawing import draw
    from routecast.report.page import render_page

    folder = out / "figures"
    folder.mkdir(exist_ok=True)
    for figure in page.figures():
        write_whole(folder / f"{figure.name}.svg", draw(figure))
    write_whole(out / "report.html", render_page(page))
    write_whole(out / "summary.json", json.dumps(summary, indent=2, ensure_ascii=False) + "\n")
