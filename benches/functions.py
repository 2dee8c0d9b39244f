"""Network functions on this host: estimated from a probe alone, beside what they really do, and refined.

Every ratio has both sides from the same run. Prints the tables of the study ``host_functions``; its report lies in
``build/host_functions``. ``--quick`` takes one repeat of short runs.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from routecast.cli.console import data, print_table, progress_bar
from routecast.lab.study.functions.document import FunctionStudy
from routecast.lab.study.functions.run import FunctionResult
from routecast.lab.study.functions.views import function_table, hand_table, summary_table
from routecast.study.engine import run_study
from routecast.study.reading import find_study, read_study


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    arguments.add_argument("--quick", action="store_true", help="one repeat of 50 ms")
    arguments.add_argument("--out", type=Path, default=Path("build/host_functions"), help="folder of the report")
    chosen = arguments.parse_args()
    file = read_study(find_study("host_functions"))
    assert isinstance(file.study, FunctionStudy)
    study = file.study
    if chosen.quick:
        study = study.model_copy(update={"run": study.run.model_copy(update={"duration": 0.05, "repeats": 1})})
    with progress_bar("functions") as progress:
        result: FunctionResult = run_study(replace(file, study=study), chosen.out, on_progress=progress)
    console = data()
    for title in result.titles:
        print_table(console, function_table(result, title, shortest=True))
    hand = hand_table(result)
    if hand:
        print_table(console, hand)
    print_table(console, summary_table(result))


if __name__ == "__main__":
    main()
