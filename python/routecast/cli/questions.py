"""What ``routecast`` answers: the questions with their commands, and for each command one that runs."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

__all__ = ["EXAMPLES", "QUESTIONS", "example_of"]

QUESTIONS = """\
routecast models, simulates, measures and sizes software routers.

How many cores for 40 Gbit/s?        routecast size points.csv --target RATE
What does it forward, lose, delay?   routecast solve FILE; simulate FILE
What limits at each count of cores?  routecast sweep FILE --vary cores=1..16
What if I turn this and that?        routecast explore FILE
Which measurement comes next?        routecast next points.csv
Is the model right?                  routecast validate points.csv; study; board
Which factors matter?                routecast experiment FILE
What does a function cost on a CPU?  routecast function; workload
What does a real router do?          routecast measure; benchmark rfc2544
Can this machine measure?            routecast doctor
What of a router of many machines?   routecast multistage
How many watts, and what saves some? routecast power
Which machines, which cores, where?  routecast plan
What of a network on chip?           routecast noc

To begin with:
  routecast examples         lists the files that ship, and copies them
  routecast study --list     lists the studies that ship
  routecast init             writes a file of yours

routecast --help lists all commands, routecast COMMAND --help one's options."""
"""What ``routecast`` alone shows: one screen of 80 columns."""

_ROUTER = "examples/multicore.router.toml"
_POINTS = "examples/points.csv"
_NOC = "examples/toy.noc.toml"
_DEMO = "examples/demo.multistage.toml"

EXAMPLES: Mapping[str, str] = {
    "size": f'{_POINTS} --target "8 Mpps"',
    "validate": _POINTS,
    "next": f"{_POINTS} --cores 8",
    "compare": "meyer2014 five/results",
    "experiment": "examples/multicore_2_3.experiment.toml --design-only",
    "solve": f'{_ROUTER} --load "14 Mpps"',
    "simulate": f'{_ROUTER} --load "14 Mpps" --duration "20 ms"',
    "sweep": f"{_ROUTER} --vary cores=1..8",
    "measure": '--testbed namespaces --dut linux --load "20 kpps" --duration "200 ms"',
    "testbed up": "namespaces",
    "multistage predict": f'{_DEMO} --load "20 kpps"',
    "multistage up": f"{_DEMO} --background",
    "multistage drain": 'br0 --idle "1 s"',
    "multistage add": "br3 --weight 2",
    "multistage remove": "br0",
    "multistage weight": "br1 0.5",
    "multistage fail": "br1 --kind hang",
    "multistage restore": "br1",
    "multistage trace": "udp 198.18.1.2:1024 198.19.1.2:7",
    "hardware show": "xeon-e5-2690v2",
    "import": "results.json",
    "export": f"{_ROUTER} --format ns3",
    "schema": "router",
    "power fit": "samples.csv --out server.power.toml",
    "power day": 'examples/green.router.toml --profile geant --step "1 h" --peak "1 Gbit/s"',
    "power optimise": 'examples/green.router.toml --target "p99 < 100 us"',
    "plan cluster": "examples/li2012.cluster.toml",
    "plan mapping": "examples/ixp2850-mapping.router.toml",
    "plan placement": "examples/vnf.placement.toml",
    "noc power": _NOC,
    "noc optimum": _NOC,
    "noc simulate": "examples/hotspot.noc.toml",
    "noc compare": _NOC,
}
"""What may follow each command that does not run alone."""


def example_of(command: str) -> str:
    """Return a line with a command that runs, and how to get the example that it reads; nothing where none is known.

    Examples
    --------
    >>> example_of("routecast schema")
    'for example: routecast schema router'
    """
    from routecast.cli.examples import example_hint

    arguments = EXAMPLES.get(command.removeprefix("routecast "))
    if arguments is None:
        return ""
    hints = (example_hint(word) for word in shlex.split(arguments) if word.startswith("examples/"))
    return f"for example: {command} {arguments}{''.join(hints)}"
