"""The folder of a study's results: whose it is, and how files get into it whole."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from routecast import __version__
from routecast.errors import FileProblem, Problem
from routecast.report.page import Page

__all__ = ["check_folder", "versions", "write_results"]


def check_folder(out: Path, name: str) -> None:
    """Refuse a folder whose summary is not of this study: its files would be replaced.

    Raises
    ------
    routecast.errors.FileProblem
        It belongs to another study, or to something else.
    """
    summary = out / "summary.json"
    if not summary.exists():
        return
    try:
        document = json.loads(summary.read_text(encoding="utf-8"))
    except (ValueError, OSError):
        document = None
    owner = document.get("study") if isinstance(document, dict) else None
    if owner != name:
        message = f"belongs to {f'the study {owner!r}' if owner else 'something else'}: give another folder with --out"
        raise FileProblem(str(summary), [Problem("", message)])


def versions() -> dict[str, str]:
    """Return the versions of what decides a study's figures."""
    found = {"routecast": __version__, "Python": platform.python_version()}
    for name in ("numpy", "scipy", "polars"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def write_results(out: Path, page: Page, summary: Mapping[str, object]) -> None:
    """Write figures, report and, last, the summary that says that the study is complete."""
    from routecast.report.drawing import draw
    from routecast.report.page import render_page

    folder = out / "figures"
    folder.mkdir(exist_ok=True)
    for figure in page.figures():
        _write_whole(folder / f"{figure.name}.svg", draw(figure))
    _write_whole(out / "report.html", render_page(page))
    _write_whole(out / "summary.json", json.dumps(summary, indent=2, ensure_ascii=False) + "\n")


def _write_whole(path: Path, text: str) -> None:
    unfinished = path.with_name(path.name + ".unfinished")
    unfinished.write_text(text, encoding="utf-8")
    unfinished.replace(path)
