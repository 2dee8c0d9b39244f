"""``routecast study``: run a study and write its folder; list and copy those that ship."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from routecast.cli.console import (
    check_output_file,
    data,
    print_json,
    print_table,
    progress_bar,
    remark,
    save_router,
    today,
)
from routecast.cli.copies import copy_files, print_copies
from routecast.cli.options import AsJson, grouped
from routecast.errors import QuantityProblem

if TYPE_CHECKING:
    from collections.abc import Mapping

    from routecast.study.document import StudyFile
    from routecast.study.result import StudyResult, TerminalSummary

__all__ = ["study"]


def _names(incomplete: str) -> list[str]:
    from routecast.study.reading import shipped_studies

    return [name for name in shipped_studies() if name.startswith(incomplete)]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShippedOptions:
    """What is done with the studies that ship, in place of a run."""

    list_shipped: Annotated[
        bool, typer.Option("--list", help="List the studies that ship: what each shows, and how long it takes.")
    ] = False
    copy: Annotated[
        str | None, typer.Option("--copy", metavar="NAME", help="Copy a shipped study and the files that it names.")
    ] = None
    force: Annotated[bool, typer.Option("--force", help="--copy: overwrite files that differ.")] = False


@grouped
def study(
    name_or_file: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME|FILE",
            help="A shipped study or a *.study.toml; with --copy, the folder of the copy (./NAME-copy if not given).",
            autocompletion=_names,
        ),
    ] = None,
    *,
    shipped: ShippedOptions,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="DIR",
            help="Folder of the results; NAME beside the file, ./NAME of one that ships, if not given.",
            file_okay=False,
        ),
    ] = None,
    save_router_to: Annotated[
        Path | None,
        typer.Option(
            "--save-router",
            metavar="FILE.toml",
            help="Write the router that the study calibrates as a router file.",
            dir_okay=False,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run a study: calibrate, validate, predict, report.

    A killed study continues where it stopped when it is started again with the same folder. Leaves with 1 if an error
    exceeds what the study allows.
    """
    if shipped.list_shipped or shipped.copy is not None:
        _list_or_copy(shipped, name_or_file, {"--out": out, "--save-router": save_router_to}, as_json=as_json)
        return
    if name_or_file is None:
        raise QuantityProblem("", "name a study that ships, or a *.study.toml; `routecast study --list` lists them")
    if shipped.force:
        raise QuantityProblem("", "--force is for --copy: a run continues in its folder, or replaces what is there")
    from routecast.study.engine import router_file_of, terminal_summary
    from routecast.study.reading import find_study, read_study

    file = read_study(find_study(name_or_file))
    # The results of a file are beside the file, apart from those of the shipped study in the present folder.
    folder = out or Path(name_or_file).parent / file.study.name
    if save_router_to is not None and save_router_to.parent != folder:
        check_output_file(save_router_to, "--save-router")
    router_file = None if save_router_to is None else router_file_of(file, today=today())
    command = f"routecast study {name_or_file}" + (f" --out {out}" if out else "")
    result = _run(file, folder, command=command)
    if as_json:
        print_json(result.to_json())
    else:
        _print(file.study.title, terminal_summary(result))
    if save_router_to is not None and router_file is not None:
        save_router(router_file, save_router_to)
    remark(f"Report: {folder / 'report.html'}")
    _require_criteria(result)


def _list_or_copy(
    shipped: ShippedOptions, name_or_file: str | None, options: Mapping[str, object], *, as_json: bool
) -> None:
    """List the studies that ship, or copy one; ``options`` are those of a run, which have no meaning here."""
    others = {**options, "--force": shipped.force or None}
    if shipped.copy is None or shipped.list_shipped:
        _refuse_others("--list", {"a study": name_or_file, "--copy": shipped.copy, **others})
        _list(as_json=as_json)
        return
    _refuse_others("--copy", others)
    if name_or_file == "":
        raise QuantityProblem("", "--copy: the name of the folder is empty: name one, or leave it out")
    _copy(shipped.copy, Path(name_or_file) if name_or_file else None, force=shipped.force, as_json=as_json)


def _require_criteria(result: StudyResult[Any]) -> None:
    """Leave with 1 if an error exceeds what the study allows."""
    failed = [criterion for criterion in result.criteria if not criterion.is_met]
    for criterion in failed:
        remark(f"Criterion missed: {criterion.name} is {criterion.reached:.4g}, allowed is {criterion.bound:.4g}")
    if failed:
        raise typer.Exit(1)


def _run(file: StudyFile[Any], folder: Path, *, command: str) -> StudyResult[Any]:
    from routecast.study.engine import run_study

    try:
        with progress_bar(f"study {file.study.name}") as progress:
            result: StudyResult[Any] = run_study(file, folder, on_progress=progress, command=command)
    except KeyboardInterrupt:
        if (folder / "results.parquet").exists():
            remark(f"Finished work is in {folder / 'results.parquet'}; the same command continues from there.")
        raise
    return result


def _refuse_others(option: str, options: Mapping[str, object]) -> None:
    """Refuse options that --list or --copy does not take."""
    allowed = ("--copy", "--force") if option == "--copy" else ()
    for name, value in options.items():
        if value is not None and name not in allowed:
            other = f"{name} ({value!r})" if name == "a study" else name
            raise QuantityProblem("", f"{option} runs no study, and does not go with {other}: give one of them")


def _list(*, as_json: bool) -> None:
    from routecast.evaluate.plain import plain
    from routecast.study.shipped import list_studies, studies_table

    studies = list_studies()
    if as_json:
        print_json(plain(studies))
        return
    print_table(data(), studies_table((study.name, study.shows, study.takes, study.needs) for study in studies))


def _copy(name: str, into: Path | None, *, force: bool, as_json: bool) -> None:
    from routecast.quantity.did_you_mean import did_you_mean
    from routecast.study.reading import SUFFIX, shipped_studies
    from routecast.study.shipped import texts_to_copy

    shipped = shipped_studies()
    study_name = Path(name).name.removesuffix(SUFFIX)
    if study_name not in shipped:
        message = f"no study that ships is called {name!r}: {did_you_mean(name, shipped)}; `--list` lists all"
        raise QuantityProblem(name, message)
    # Apart from ./NAME, which takes the results of the study that ships.
    folder = into or Path(f"{study_name}-copy")
    copies = copy_files(
        texts_to_copy(shipped[study_name]),
        folder,
        force=force,
        original="the study that ships",
        elsewhere="another DIR",
    )
    print_copies(*copies, as_json=as_json)
    words = ["routecast", "study", str(folder / f"{study_name}{SUFFIX}"), "--out", str(folder / "results")]
    remark(f"Change the copy, then run: {shlex.join(words)}")


def _print(title: str, summary: TerminalSummary) -> None:
    console = data()
    console.print(title if summary.lead else f"{title}\n", style="bold", markup=False)
    if summary.lead:
        console.print(f"{summary.lead}\n", markup=False)
    for table in summary.tables:
        print_table(console, table)
    if summary.closing:
        console.print(summary.closing)
    for note in summary.notes:
        remark(note)
