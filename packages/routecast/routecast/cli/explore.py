"""``routecast explore``: a page with the simulator in it."""

from __future__ import annotations

import shlex
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from routecast.cli.console import check_output_file, progress_bar, read_series_points, remark
from routecast.cli.options import RenameOption
from routecast.errors import FileProblem, Problem, QuantityProblem

if TYPE_CHECKING:
    from collections.abc import Sequence

    from routecast.explore.measured import StartConditions
    from routecast.show.page import Page

__all__ = ["explore"]

_TABLES = (".csv", ".parquet")


def explore(
    file: Annotated[
        str | None, typer.Argument(metavar="FILE|STUDY", help="A router file, a table of measured points, or a study.")
    ] = None,
    *,
    vary: Annotated[
        list[str] | None,
        typer.Option(
            "--vary",
            metavar="KEY=VALUES",
            help="A further field of a router file to turn, as for `sweep`: batch=1,32; may be repeated.",
        ),
    ] = None,
    series: Annotated[
        str | None, typer.Option("--series", metavar="NAME", help="Of a table: only the rows of this series.")
    ] = None,
    rename: RenameOption = None,
    frame: Annotated[
        str | None, typer.Option("--frame", "--frames", metavar="SIZE", help='Frames at the start: "1518 B", IMIX.')
    ] = None,
    gallery: Annotated[
        Path | None,
        typer.Option("--gallery", metavar="DIR", help="Write a page for each example router, and an index."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE.html", help="The page; beside you, named after FILE, if not given."),
    ] = None,
    show: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
) -> None:
    """Write a page with controls for a router's cores, frames, load, clock, queue and link; its curves follow them.

    The page contains the simulator, and needs no network and no installation. A router is calibrated from measured
    points, and the page then shows how sure each answer is.
    """
    from routecast.quantity.whole_file import write_whole
    from routecast.show.page import render_page

    if gallery is not None:
        options = {
            "a file": file,
            "--vary": vary,
            "--series": series,
            "--rename": rename,
            "--frame": frame,
            "--out": out,
        }
        for name, value in options.items():
            if value is not None:
                raise QuantityProblem("", f"--gallery writes pages of the examples, and does not go with {name}")
        page_file = _gallery(gallery)
    else:
        if file is None:
            message = (
                "name a router file, a table of measured points, or a study: explore examples/multicore.router.toml"
            )
            raise QuantityProblem("", message)
        page_file = out or Path(f"{_stem(file)}.html")
        check_output_file(page_file, "--out", ".html")
        words = ["routecast", "explore", file, *(word for text in vary or () for word in ("--vary", text))]
        words += ["--series", series] if series else []
        words += [word for text in rename or () for word in ("--rename", text)]
        words += ["--frame", frame] if frame else []
        start = _start(frame)
        with progress_bar("explore"):
            page = _page(file, vary or (), series, rename or (), start, command=shlex.join(words))
            write_whole(page_file, render_page(page))
        remark(f"wrote {page_file}")
    if show and not webbrowser.open(page_file.absolute().as_uri()):
        remark(f"No browser could be opened: open {page_file} yourself")


def _stem(file: str) -> str:
    return Path(file).name.partition(".")[0] or "explore"


def _page(
    file: str, vary: Sequence[str], series: str | None, rename: Sequence[str], start: StartConditions, *, command: str
) -> Page:
    from routecast.explore.views import points_page
    from routecast.quantity.table_file import is_spreadsheet
    from routecast.study.reading import SUFFIX, shipped_studies

    path = Path(file)
    if path.suffix in _TABLES or is_spreadsheet(path):
        _refuse_option(vary, "--vary", "a table: cores, frames, flows, link and queue can be turned")
        points = read_series_points(path, series, rename)
        names = dict.fromkeys(point.series for point in points)
        if len(names) > 1:
            raise QuantityProblem(file, f"{file} has the series {', '.join(names)}: choose one with --series")
        return points_page(points, title=next(iter(names)) or path.stem, subject=file, command=command, start=start)
    _refuse_option(series, "--series", "a router or a study, which are of one series")
    _refuse_option(rename, "--rename", "a router or a study, which are no tables")
    if file.endswith(SUFFIX) or (file in shipped_studies() and not path.is_file()):
        _refuse_option(vary, "--vary", "a study: cores, frames, flows, link and queue can be turned")
        return _study_page(file, command=command, start=start)
    return _router_page(path, vary, subject=str(path), command=command, start=start)


def _refuse_option(value: object, option: str, subject: str) -> None:
    if value:
        raise QuantityProblem("", f"{option} does not go with {subject}")


def _start(frame: str | None) -> StartConditions:
    from routecast.explore.measured import StartConditions
    from routecast.load.frames import FrameMix

    return StartConditions(frames=FrameMix.parse(frame) if frame else None)


def _router_page(
    path: Path, vary: Sequence[str], *, subject: str, command: str, start: StartConditions | None = None
) -> Page:
    from routecast.evaluate.sweep import parse_varied
    from routecast.explore.views import router_page
    from routecast.quantity.bounded_file import read_text
    from routecast.quantity.toml_file import parse_toml

    document = parse_toml(read_text(path, kind="router file"), str(path))
    varied = parse_varied(vary, document, subject=str(path)) if vary else ()
    return router_page(
        document, varied, subject=subject, folder=path.parent, command=command, start=start or _start(None)
    )


def _study_page(file: str, *, command: str, start: StartConditions) -> Page:
    from routecast.calibration.priors import read_priors
    from routecast.explore.views import points_page
    from routecast.study.reading import DEFAULT, find_study, read_study
    from routecast.study.tables.run import measured_points

    study = read_study(find_study(file))
    if study.study.kind != DEFAULT:
        message = (
            f'is a study of the kind "{study.study.kind}": explore takes those that calibrate a router from tables'
        )
        raise FileProblem(file, [Problem("kind", message)])
    priors = read_priors(without=study.study.measurements.left_out)
    return points_page(
        measured_points(study), title=study.study.title, subject=file, priors=priors, command=command, start=start
    )


def _gallery(folder: Path) -> Path:
    """Write a page for each example router, and an index; return the index."""
    from routecast.explore.views import gallery_page
    from routecast.quantity.bounded_file import read_text
    from routecast.quantity.whole_file import write_whole
    from routecast.show.page import render_page
    from routecast.wings import data_folders

    files = sorted(
        (path for data_folder in data_folders("examples") for path in data_folder.glob("*.router.toml")),
        key=lambda path: path.name,
    )
    if folder.exists() and not folder.is_dir():
        raise FileProblem(str(folder), [Problem("--gallery", "is no folder")])
    folder.mkdir(parents=True, exist_ok=True)
    pages = []
    with progress_bar("explore --gallery") as progress:
        for number, path in enumerate(files):
            progress(number, len(files), path.name)
            subject = f"examples/{path.name}"
            page = _router_page(path, (), subject=subject, command=f"routecast explore {subject}")
            name = f"{_stem(path.name)}.html"
            write_whole(folder / name, render_page(page))
            description = read_text(path, kind="router file").splitlines()[0].removeprefix("#").strip()
            pages.append((name, page.title, description))
    write_whole(folder / "index.html", render_page(gallery_page(pages)))
    remark(f"wrote {folder / 'index.html'} and {len(pages)} pages beside it")
    return folder / "index.html"
