"""The questions that ``routecast`` answers with their commands, and an example of each command."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from routecast.wings import wings

__all__ = ["example_of", "examples", "questions"]

_QUESTIONS = {
    "How many cores for 40 Gbit/s?": "size points.csv --target RATE",
    "What does it forward, lose, delay?": "solve FILE; simulate FILE",
    "What limits at each count of cores?": "sweep FILE --vary cores=1..16",
    "What if I turn this and that?": "explore FILE",
    "Which measurement comes next?": "next points.csv",
    "Is the model right?": "validate points.csv; study; board",
    "What does a function cost on a CPU?": "function; workload",
    "What does a real router do?": "measure; benchmark rfc2544",
    "Can this machine measure?": "doctor",
    "How much headroom is left?": "watch INTERFACE",
    "How many watts, and what saves some?": "power",
}
_ROUTER = "examples/multicore.router.toml"
_POINTS = "examples/points.csv"
_EXAMPLES: Mapping[str, str] = {
    "size": f'{_POINTS} --target "8 Mpps"',
    "validate": _POINTS,
    "next": f"{_POINTS} --cores 8",
    "compare": "meyer2014 five/results",
    "solve": f'{_ROUTER} --load "14 Mpps"',
    "simulate": f'{_ROUTER} --load "14 Mpps" --duration "20 ms"',
    "sweep": f"{_ROUTER} --vary cores=1..8",
    "measure": '--testbed namespaces --dut linux --load "20 kpps" --duration "200 ms"',
    "testbed up": "namespaces",
    "hardware show": "xeon-e5-2690v2",
    "import": "results.json",
    "export": f"{_ROUTER} --format ns3",
    "schema": "router",
    "power fit": "samples.csv --out server.power.toml",
}


def questions() -> str:
    """Return the output of ``routecast`` alone: one screen of 80 columns, with the questions of core and wings."""
    of_wings = {question: command for wing in wings() for question, command in wing.questions.items()}
    lines = [f"{question:<36} routecast {command}" for question, command in {**_QUESTIONS, **of_wings}.items()]
    return f"""\
routecast models, simulates, measures and sizes software routers.

{chr(10).join(lines)}

To begin with:
  routecast examples         lists the files that ship, and copies them
  routecast study --list     lists the studies that ship
  routecast init             writes a file of yours

routecast --help lists all commands, routecast COMMAND --help one's options."""


def examples() -> dict[str, str]:
    """Return example arguments of each command that needs some, by command."""
    return {**_EXAMPLES, **{command: text for wing in wings() for command, text in wing.examples.items()}}


def example_of(command: str) -> str:
    """Return a line with an example of a command, and how to get the file that it reads; empty if none is known.

    Examples
    --------
    >>> example_of("routecast schema")
    'for example: routecast schema router'
    """
    from routecast.cli.examples import example_hint

    arguments = examples().get(command.removeprefix("routecast "))
    if arguments is None:
        return ""
    hints = (example_hint(word) for word in shlex.split(arguments) if word.startswith("examples/"))
    return f"for example: {command} {arguments}{''.join(hints)}"
