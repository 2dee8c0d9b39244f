"""``routecast function --run`` and ``--counts``: the real function on this host."""

from __future__ import annotations

from pathlib import Path

from routecast.cli.console import data, print_json, print_notes, print_table, print_trial, remark, share_bar
from routecast.function.case import Case
from routecast.lab.study.refine import check_refinable, refine_file
from routecast.lab.testbed.function_run import count_function, run_function
from routecast.lab.testbed.function_views import counts_table, runs_table

__all__ = ["count", "run"]


def count(case: Case, *, as_json: bool) -> None:
    """Count the instructions of the real function with valgrind, and print them."""
    with share_bar(f"counting {case.function.name} under valgrind") as on_progress:
        counts = count_function(case, on_progress)
    if as_json:
        print_json({"function": case.function.name, "counts": [count.to_json() for count in counts]})
    else:
        print_table(data(), counts_table(case, counts))


def run(case: Case, refined_file: Path | None, *, as_json: bool) -> None:
    """Run the real function beside its estimate; the runs correct ``refined_file``, a hardware file."""
    if refined_file is not None:
        check_refinable(case)
    with share_bar(f"running {case.function.name}") as on_progress:
        runs = run_function(case, on_progress)
    refined = None
    if refined_file is not None:
        refined = refine_file(case.hardware, [run.measured(case) for run in runs], refined_file)
    if as_json:
        document: dict[str, object] = {"function": case.function.name, "runs": [run.to_json() for run in runs]}
        print_json(document | ({"refined": {"file": str(refined_file), **refined.to_json()}} if refined else {}))
        return
    console = data()
    print_table(console, runs_table(case, runs))
    if missing := sorted({name for run in runs for name in run.without_cost}):
        remark(
            f"{case.hardware.name} gives no cost of {', '.join(missing)}, so there is no estimate: probe this host "
            "(routecast hardware probe) and remove --on"
        )
    if case.rate is None:
        print_notes(console, dict.fromkeys(note for run in runs for note in run.trial.notes))
    for run in runs if case.rate else ():
        name = f"{case.function.name} {run.direction}" if len(case.directions) > 1 else case.function.name
        console.print(f"{name}, {run.frames.name}", style="bold", markup=False)
        print_trial(console, run.trial)
    if refined is not None:
        remark(f"{refined_file} holds {refined}")
