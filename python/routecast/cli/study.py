"""``routecast study``: run a study and write its folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from routecast.cli.console import (
    data,
    print_json,
    print_table,
    progress_bar,
    refuse_no_file,
    remark,
    save_router,
    today,
)
from routecast.cli.options import AsJson

if TYPE_CHECKING:
    from routecast.study.result import TerminalSummary

__all__ = ["study"]


def _names(incomplete: str) -> list[str]:
    from routecast.study.reading import shipped_studies

    return [name for name in shipped_studies() if name.startswith(incomplete)]


def study(
    name_or_file: Annotated[
        str, typer.Argument(metavar="NAME|FILE", help="A shipped study or a *.study.toml.", autocompletion=_names)
    ],
    *,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="DIR", help="Folder of the results; ./NAME if not given.", file_okay=False),
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

    A study that was killed goes on where it stopped when it is started again with the same folder. Leaves with 1 if
    an error exceeds what the study allows.
    """
    from routecast.study.engine import router_file_of, run_study, terminal_summary
    from routecast.study.reading import find_study, read_study

    file = read_study(find_study(name_or_file))
    folder = out or Path(file.study.name)
    if save_router_to is not None and save_router_to.parent != folder:
        refuse_no_file(save_router_to, "--save-router")
    saved = None if save_router_to is None else router_file_of(file, today=today())
    command = f"routecast study {name_or_file}" + (f" --out {out}" if out else "")
    try:
        with progress_bar(f"study {file.study.name}") as progress:
            result = run_study(file, folder, progress=progress, command=command)
    except KeyboardInterrupt:
        if (folder / "results.parquet").exists():
            remark(f"What is finished is in {folder / 'results.parquet'}; the same command goes on from there.")
        raise
    if as_json:
        print_json(result.to_json())
    else:
        _print(file.study.title, terminal_summary(result))
    if save_router_to is not None and saved is not None:
        save_router(saved, save_router_to)
    remark(f"Report: {folder / 'report.html'}")
    missed = [criterion for criterion in result.criteria if not criterion.is_met]
    for criterion in missed:
        remark(f"Criterion missed: {criterion.name} is {criterion.reached:.4g}, allowed is {criterion.bound:.4g}")
    if missed:
        raise typer.Exit(1)


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
