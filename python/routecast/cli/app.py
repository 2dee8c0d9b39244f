"""The Typer application: every command with its name, its group and its help."""

from __future__ import annotations

from typing import Annotated

import typer

from routecast.cli import (
    benchmark,
    board,
    doctor,
    examples,
    exchange,
    experiment,
    function,
    hardware,
    measure,
    next_measurement,
    noc,
    plan,
    power,
    schema,
    simulate,
    solve,
    study,
    testbed,
    validate,
    workload,
)

__all__ = ["app"]

app = typer.Typer(
    name="routecast",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


@app.callback()
def routecast(
    *,
    version: Annotated[bool, typer.Option("--version", help="Print the version and leave.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Measure, predict and plan software routers.

    stdout is data, stderr is progress. Exit codes: 0 ok, 1 a criterion failed, 2 usage or bad file, 3 environment.
    """
    if version:
        from routecast import __version__

        typer.echo(f"routecast {__version__}")
        raise typer.Exit


STUDIES = "Measure, calibrate, predict"
TRIALS = "One router, one load"
MEASURE = "Measure"
FUNCTIONS = "Functions and hosts"
PLANS = "Power and plans"
FILES = "Files"

app.command("study", rich_help_panel=STUDIES)(study.study)
app.command("experiment", rich_help_panel=STUDIES)(experiment.experiment)
app.command("validate", rich_help_panel=STUDIES)(validate.validate)
app.command("next", rich_help_panel=STUDIES)(next_measurement.next_measurement)
app.command("board", rich_help_panel=STUDIES)(board.board)
app.add_typer(benchmark.app, name="benchmark", rich_help_panel=STUDIES)
app.command("function", rich_help_panel=TRIALS)(function.function)
app.command("solve", rich_help_panel=TRIALS)(solve.solve)
app.command("simulate", rich_help_panel=TRIALS)(simulate.simulate)
app.command("measure", rich_help_panel=MEASURE)(measure.measure)
app.add_typer(testbed.app, name="testbed", rich_help_panel=MEASURE)
app.command("doctor", rich_help_panel=MEASURE)(doctor.doctor)
app.add_typer(hardware.app, name="hardware", rich_help_panel=FUNCTIONS)
app.command("workload", rich_help_panel=FUNCTIONS)(workload.workload)
app.add_typer(power.app, name="power", rich_help_panel=PLANS)
app.add_typer(plan.app, name="plan", rich_help_panel=PLANS)
app.add_typer(noc.app, name="noc", rich_help_panel=PLANS)
app.command("examples", rich_help_panel=FILES)(examples.examples)
app.command("import", rich_help_panel=FILES)(exchange.import_trials)
app.command("export", rich_help_panel=FILES)(exchange.export_trials)
app.command("schema", rich_help_panel=FILES)(schema.schema)
