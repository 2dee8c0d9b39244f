"""``routecast compare``: two results side by side, and which differences are noise."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from routecast.cli.console import (
    check_figure_file,
    check_output_file,
    data,
    print_json,
    print_table,
    progress_bar,
    remark,
    write_figure,
)
from routecast.cli.options import AsJson, FigureFile
from routecast.errors import FileProblem, Problem, QuantityProblem
from routecast.wings import require_part

if TYPE_CHECKING:
    from routecast.evaluate.compare import Comparison, Pairing

__all__ = ["compare"]

_LARGEST_BYTES = 500_000_000
_WIDE_COLUMNS = 120
"""Least width of a terminal that has room for intervals."""

_KINDS: Mapping[str, frozenset[str]] = {
    "study": frozenset({"study", "made"}),
    "experiment": frozenset({"experiment", "analyses"}),
    "benchmark": frozenset({"profile_name", "setup", "compliance"}),
    "trial": frozenset({"evaluator", "forwarded_pps", "bottleneck"}),
    "table of trials": frozenset({"file", "trials"}),
    "sweep": frozenset({"varied", "points"}),
    "validation": frozenset({"rows", "series", "summary"}),
    "sizing": frozenset({"series"}),
}
"""The keys that identify a kind of result."""

_PREDICTED_KINDS = frozenset({"study", "validation", "sizing"})
"""Kinds of results that a calibration may predict."""

_FILES = ("summary.json", "benchmark.json")
"""The result in a folder: of a study or an experiment, of a benchmark."""

_UNFINISHED = ("results.parquet", "results.parts", "runs.parquet", "runs.parts", "trials.parquet")

Result = Annotated[Path, typer.Argument(metavar="A", help="Folder of results, or a file with what --json printed.")]
OtherResult = Annotated[Path, typer.Argument(metavar="B", help="Another of the same kind.")]


def compare(
    a: Result,
    b: OtherResult,
    *,
    every: Annotated[bool, typer.Option("--all", help="Print every row of long tables.")] = False,
    as_json: AsJson = False,
    figure: FigureFile = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE.html", help="Write a page.", dir_okay=False)
    ] = None,
) -> None:
    """Compare two results: what differs, by how much, and what of it is only noise.

    Results are folders of studies, experiments and benchmarks, or files with what --json printed: trials of solve,
    simulate and measure, sweeps, validations, sizings, tables of trials. Predictions of one calibration are compared
    draw by draw. If one is the name of a shipped study that has not run here, and the other is a study's folder, the
    shipped study is run first, into ./NAME.
    """
    from routecast.evaluate.compare import compare_documents
    from routecast.evaluate.compare_views import comparison_figure, comparison_json

    check_figure_file(figure)
    check_output_file(out, "--out", ".html")
    for missing, present in ((a, b), (b, a)):
        if _is_unrun_study(missing) and present.exists() and _read_result(present)[0] == "study":
            _run_shipped(str(missing))
    (kind, document), (other_kind, other) = _read_result(a), _read_result(b)
    if kind != other_kind:
        message = f'{a} is of the kind "{kind}", {b} of the kind "{other_kind}": compare two of the same kind'
        raise QuantityProblem("", message)
    try:
        names = str(a), str(b)
        comparison = compare_documents(
            kind, document, other, names=names, pairing=_pairing(kind, document, other, names)
        )
    except RecursionError:
        raise QuantityProblem("", f"{a} and {b} are nested too deeply for results") from None
    if not comparison.same and not comparison.differences:
        raise QuantityProblem("", f"{a} and {b} have no quantity in common")
    if as_json:
        print_json(comparison_json(comparison))
    else:
        if kind in {"study", "experiment"} and document[kind] != other[kind]:
            remark(f'Two {"studies" if kind == "study" else "experiments"}: "{document[kind]}" and "{other[kind]}"')
        _print(comparison, a, b, has_all=every)
    if figure is not None:
        drawing = comparison_figure(comparison)
        if drawing is None:
            raise QuantityProblem(
                "--figure", f"{a} and {b} have no rates whose difference has an interval: nothing to draw"
            )
        write_figure(drawing, figure)
    if out is not None:
        _write_page(comparison, a, b, out)


def _print(comparison: Comparison, a: Path, b: Path, *, has_all: bool) -> None:
    """Print the sentences, the tables and the answer of a comparison."""
    from routecast.evaluate.compare_views import (
        comparison_answer,
        comparison_sentences,
        comparison_tables,
        dependence_sentence,
    )

    console = data()
    sentences = tuple(filter(None, (*comparison_sentences(comparison), dependence_sentence(comparison))))
    if sentences:
        console.print("\n".join(sentences) + "\n", markup=False, soft_wrap=True)
    console.print(f"A: {a}\nB: {b}\n", markup=False)
    is_wide = console.width >= _WIDE_COLUMNS
    for table in comparison_tables(comparison, has_all=has_all, has_intervals=is_wide):
        print_table(console, table)
    console.print(comparison_answer(comparison), markup=False, soft_wrap=True)


def _write_page(comparison: Comparison, a: Path, b: Path, out: Path) -> None:
    from routecast.evaluate.compare_views import comparison_page
    from routecast.quantity.whole_file import write_whole
    from routecast.show.page import render_page

    command = shlex.join(["routecast", "compare", str(a), str(b)])
    write_whole(out, render_page(comparison_page(comparison, command=command)))
    remark(f"wrote {out}")


def _is_sizing(document: Mapping[str, Any]) -> bool:
    series = document["series"]
    return isinstance(series, list) and bool(series) and all({"target", "counts"} <= set(part) for part in series)


def _pairing(
    kind: str, document: Mapping[str, Any], other: Mapping[str, Any], names: tuple[str, str]
) -> Pairing | None:
    """Return what the values of two results share; None for results that no calibration predicts."""
    if kind not in _PREDICTED_KINDS:
        return None
    from routecast.calibration.pairing import DrawPairing  # NumPy

    return DrawPairing(document, other, names=names)


def _is_unrun_study(path: Path) -> bool:
    """Return whether a path names a shipped study that has not run here and needs no rights."""
    from routecast.study.shipped import list_studies

    if path.exists() or path.name != str(path):
        return False
    return any(study.name == path.name and not study.needs for study in list_studies())


def _run_shipped(name: str) -> None:
    from routecast.study.engine import run_study
    from routecast.study.reading import find_study, read_study

    remark(f"{name} has not run here: running the shipped study into {Path(name)}")
    with progress_bar(f"study {name}") as progress:
        run_study(read_study(find_study(name)), Path(name), on_progress=progress, command=f"routecast study {name}")


def _read_result(path: Path) -> tuple[str, dict[str, Any]]:
    """Return the kind of a result and its document.

    Raises FileProblem: the result is missing, incomplete or none.
    """
    if path.is_dir():
        path = _result_file(path)
    elif not path.exists():
        raise FileProblem(
            str(path), [Problem("", f"there is neither a folder nor a file of this name{_missing_hint(path)}")]
        )
    if path.suffix.lower() in {".parquet", ".csv"}:
        records = require_part("a table of trials")(path, format_name="auto")
        return "table of trials", {"file": str(path), "trials": [record.to_json() for record in records]}
    return _json_result(path)


def _result_file(folder: Path) -> Path:
    for file in _FILES:
        if (folder / file).is_file():
            return folder / file
    for file in _UNFINISHED:
        if (folder / file).exists():
            message = f"has {file} but neither {' nor '.join(_FILES)}: the run is not complete; start it again"
            raise FileProblem(str(folder), [Problem("", message)])
    subfolders = [path for path in sorted(folder.iterdir()) if any((path / file).is_file() for file in _FILES)]
    hint = f"; {' and '.join(map(str, subfolders[:3]))} would be" if subfolders else ""
    message = f"is no folder of results: it has neither {' nor '.join(_FILES)}{hint}"
    raise FileProblem(str(folder), [Problem("", message)])


def _missing_hint(path: Path) -> str:
    """Return how to get a missing result: the shipped study, or the right spelling."""
    from routecast.quantity.did_you_mean import did_you_mean
    from routecast.study.reading import shipped_studies

    if path.name in shipped_studies():
        return f"; `routecast study {path.name} --out {shlex.quote(str(path))}` runs the study that ships"
    names = sorted(entry.name for entry in path.parent.iterdir()) if path.parent.is_dir() else []
    suggestion = did_you_mean(path.name, names)
    return f"; {suggestion}" if suggestion.startswith("did") else ""


def _json_result(path: Path) -> tuple[str, dict[str, Any]]:
    from routecast.quantity.bounded_file import read_text

    try:
        text = read_text(path, kind="result", max_file_bytes=_LARGEST_BYTES)
        # A whole number beyond the floats becomes infinite, so that it is no quantity.
        document = json.loads(text, parse_int=lambda digits: int(digits) if len(digits) < 300 else float(digits))
    except ValueError as problem:
        raise FileProblem(str(path), [Problem("", f"is no JSON: {problem}")]) from problem
    except RecursionError as problem:
        raise FileProblem(str(path), [Problem("", "is nested too deeply for a result")]) from problem
    if isinstance(document, dict):
        for kind, keys in _KINDS.items():
            if keys <= set(document) and (kind != "sizing" or _is_sizing(document)):
                return kind, document
    message = f"is no result that can be compared; results are: {', '.join(_KINDS)}, as --json prints them"
    raise FileProblem(str(path), [Problem("", message)])
