"""``routecast doctor``: whether this machine is fit for measurements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from routecast.cli.console import data, print_json, remark
from routecast.cli.options import AsJson
from routecast.errors import CriterionFailed

if TYPE_CHECKING:
    from routecast.lab.testbed.doctor import ExaminedMachine, Finding

__all__ = ["doctor"]


def doctor(
    *,
    testbed: Annotated[
        str | None, typer.Option("--testbed", metavar="FILE", help="Look at the interfaces and cores of this test bed.")
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Leave with 1 if something distorts.")] = False,
    everything: Annotated[
        bool, typer.Option("--all", help="Also explain the effects of findings that are fine.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Print what distorts measurements on this machine, and the command that corrects it. Nothing is changed."""
    from dataclasses import asdict

    from routecast.lab.testbed.doctor import State, examine

    findings = list(examine(_machine(testbed)))
    if as_json:
        print_json(
            {
                "findings": [{"group": group, **asdict(finding)} for group, finding in findings],
                "counts": {state.value: _count(findings, state) for state in State},
            }
        )
    else:
        _print(findings, everything=everything)
    if strict and (distorting := [finding.check for _, finding in findings if finding.state is State.DISTORTS]):
        raise CriterionFailed(f"this machine distorts measurements (--strict): {', '.join(distorting)}")


def _machine(testbed: str | None) -> ExaminedMachine:
    from routecast.lab.testbed.doctor import ExaminedMachine

    if testbed is None:
        return ExaminedMachine()
    from routecast.lab.testbed.document import InterfacesFile
    from routecast.lab.testbed.reading import read_testbed

    bed = read_testbed(testbed)
    ports = bed.port if isinstance(bed, InterfacesFile) else ()
    interfaces = tuple(port.interface for port in ports if port.netns is None)
    for port in ports:
        if port.netns is not None:
            remark(f"{port.interface} is in the namespace {port.netns}: ip netns exec {port.netns} routecast doctor")
    chosen = (bed.cores.tester, bed.cores.receiver, bed.cores.dut)
    if isinstance(bed, InterfacesFile):
        cores = tuple(core for core in chosen if core is not None)
    else:
        from routecast.lab.testbed.placement import assign_cores

        assigned = assign_cores(*chosen)
        cores = tuple(
            dict.fromkeys(core for core in (assigned.tester, assigned.receiver, assigned.dut) if core is not None)
        )
    return ExaminedMachine(interfaces=interfaces, cores=cores)


def _count(findings: list[tuple[str, Finding]], state: str) -> int:
    return sum(finding.state == state for _, finding in findings)


def _print(findings: list[tuple[str, Finding]], *, everything: bool) -> None:
    from rich.text import Text

    from routecast.lab.testbed.views import MARKS, findings_tables

    console = data()
    for table in findings_tables(findings, everything=everything):
        console.print(table)
        console.print()
    fine, distorts, missing, unseen = (_count(findings, state) for state in MARKS)
    console.print(
        Text.assemble(
            (f"✓ {fine} fine", "green"),
            "   ",
            (f"▲ {distorts} distort", "yellow"),
            "   ",
            (f"✗ {missing} missing", "red"),
            "   ",
            (f"? {unseen} not to be seen", "dim"),
        )
    )
