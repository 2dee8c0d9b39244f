"""``routecast study``: run a study and write its folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from routecast.cli.console import data, print_json, progress_bar, remark
from routecast.cli.tables import print_table

if TYPE_CHECKING:
    from routecast.study.cluster.result import ClusterResult
    from routecast.study.functions.result import FunctionResult
    from routecast.study.napi.result import NapiResult
    from routecast.study.result import StudyResult
    from routecast.study.wire.result import WireResult

__all__ = ["study"]


def _names(incomplete: str) -> list[str]:
    from routecast.study.reading import shipped_studies

    return [name for name in shipped_studies() if name.startswith(incomplete)]


def study(
    name_or_file: Annotated[
        str,
        typer.Argument(metavar="NAME|FILE", help="A shipped study or a *.study.toml.", autocompletion=_names),
    ],
    *,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="DIR", help="Folder of the results; ./NAME if not given.", file_okay=False
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as one JSON document.")] = False,
) -> None:
    """Run a study: calibrate, validate, predict, report.

    A study that was killed goes on where it stopped when it is started again with the same folder. Leaves with 1 if
    an error exceeds what the study allows.
    """
    from routecast.study.reading import (
        ClusterStudyFile,
        FunctionStudyFile,
        NapiStudyFile,
        WireStudyFile,
        find_study,
        read_study,
    )

    file = read_study(find_study(name_or_file))
    folder = out or Path(file.study.name)
    command = f"routecast study {name_or_file}" + (f" --out {out}" if out else "")
    try:
        with progress_bar(f"study {file.study.name}") as progress:
            result: StudyResult | WireResult | FunctionResult | NapiResult | ClusterResult
            if isinstance(file, WireStudyFile):
                from routecast.study.wire.bench import TestbedBench
                from routecast.study.wire.run import run_wire_study

                bench = TestbedBench(file.study.testbed.file, file.folder)
                result = run_wire_study(file.study, folder, bench, progress=progress, command=command)
            elif isinstance(file, FunctionStudyFile):
                from routecast.study.functions.bench import LocalBench
                from routecast.study.functions.run import run_function_study

                host = LocalBench(file.study)
                result = run_function_study(file.study, folder, host, progress=progress, command=command)
            elif isinstance(file, ClusterStudyFile):
                from routecast.study.cluster.run import run_cluster_study

                result = run_cluster_study(
                    file.study, folder, folder=file.folder, progress=progress, command=command
                )
            elif isinstance(file, NapiStudyFile):
                from routecast.study.napi.run import run_napi_study

                result = run_napi_study(file.study, folder, file.folder, progress=progress, command=command)
            else:
                from routecast.study.run import run_study

                result = run_study(file, folder, progress=progress, command=command)
    except KeyboardInterrupt:
        if (folder / "results.parquet").exists():
            remark(
                f"What is finished is in {folder / 'results.parquet'}; the same command goes on from there."
            )
        raise
    if as_json:
        print_json(result.to_json())
    else:
        from routecast.study.cluster.result import ClusterResult
        from routecast.study.functions.result import FunctionResult
        from routecast.study.napi.result import NapiResult
        from routecast.study.result import StudyResult

        if isinstance(result, StudyResult):
            _print(result)
        elif isinstance(result, FunctionResult):
            _print_functions(result)
        elif isinstance(result, NapiResult):
            _print_napi(result)
        elif isinstance(result, ClusterResult):
            _print_cluster(result)
        else:
            _print_wire(result)
    remark(f"Report: {folder / 'report.html'}")
    missed = [criterion for criterion in result.criteria if not criterion.is_met]
    for criterion in missed:
        remark(
            f"Criterion missed: {criterion.name} is {criterion.reached:.4g}, allowed is {criterion.bound:.4g}"
        )
    if missed:
        raise typer.Exit(1)


def _print(result: StudyResult) -> None:
    from routecast.study.tabulate import (
        comparison_table,
        error_table,
        forecast_table,
        parameter_table,
    )

    console = data()
    console.print(result.study.title, style="bold", markup=False)
    console.print(f"{result.law}\n", markup=False)
    for table in (parameter_table(result), comparison_table(result), error_table(result)):
        print_table(console, table)
    for name, points in result.scenarios.items():
        if any(
            p.cores != result.study.router.cores or p.link_bps != result.study.router.link for p in points
        ):
            print_table(console, forecast_table(result, name))
    inside = sum(row.is_covered for row in result.held_out)
    console.print(f"{inside} of {len(result.held_out)} held-out points lie inside their 95 % interval.")


def _print_wire(result: WireResult) -> None:
    from routecast.study.wire.tabulate import error_table, latency_table, loss_table, series_table

    console = data()
    console.print(f"{result.study.title}\n", style="bold", markup=False)
    tables = [series_table(each) for each in result.series]
    tables += [loss_table(curve) for curve in result.loss]
    tables += [latency_table(curve) for curve in result.latency]
    for table in (*tables, error_table(result)):
        print_table(console, table)


def _print_cluster(result: ClusterResult) -> None:
    from routecast.report.cluster.tables import designs_table
    from routecast.study.cluster.tabulate import fleets_table, mismatch_table, statements_table

    console = data()
    console.print(f"{result.study.title}\n", style="bold", markup=False)
    tables = [designs_table(result.answer), mismatch_table(result)]
    tables += [fleets_table(result)] if result.fleets else []
    tables += [statements_table(result)] if result.statements else []
    for table in tables:
        print_table(console, table)
    for note in result.answer.notes:
        remark(note)


def _print_functions(result: FunctionResult) -> None:
    from routecast.study.functions.tabulate import function_table, hand_table, summary_table

    console = data()
    console.print(f"{result.study.title}\n", style="bold", markup=False)
    for title in result.titles:
        print_table(console, function_table(result, title, shortest=True))
    hand = hand_table(result)
    if hand:
        print_table(console, hand)
    print_table(console, summary_table(result))
    for note in result.notes:
        remark(note)


def _print_napi(result: NapiResult) -> None:
    from routecast.study.napi.tabulate import tables_of

    console = data()
    console.print(f"{result.study.title}\n", style="bold", markup=False)
    for table in tables_of(result):
        print_table(console, table)
