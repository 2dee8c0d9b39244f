"""The folder of a benchmark: page, figures, schema, beside the data that the run has written."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path

from routecast.benchmark.result import BenchmarkResult
from routecast.quantity.whole_file import write_whole
from routecast.report.benchmark.page import benchmark_page
from routecast.report.drawing import draw
from routecast.report.page import render_page

__all__ = ["write_report"]

DATA, SCHEMA = "benchmark.json", "benchmark.schema.json"


def write_report(result: BenchmarkResult, folder: Path) -> Path:
    """Write ``report.html``, ``figures/*.svg``, ``benchmark.schema.json``; and ``benchmark.json`` if it is not there.

    Parameters
    ----------
    result : BenchmarkResult
    folder : Path
        The benchmark's folder; made if missing. Every file is whole or absent.

    Returns
    -------
    Path
        The page.
    """
    folder.mkdir(parents=True, exist_ok=True)
    page = benchmark_page(result)
    pictures = folder / "figures"
    for figure in page.figures():
        pictures.mkdir(exist_ok=True)
        write_whole(pictures / f"{figure.name}.svg", draw(figure))
    schema = (files("routecast") / "data" / "schemas" / SCHEMA).read_text(encoding="utf-8")
    write_whole(folder / SCHEMA, schema)
    if not (folder / DATA).exists():
        text = json.dumps(result.to_json(), indent=2, ensure_ascii=False, allow_nan=False)
        write_whole(folder / DATA, text + "\n")
    write_whole(folder / "report.html", render_page(page))
    return folder / "report.html"
