"""The compiled tester that Measure uses, and its back ends."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal, Protocol

from routecast.errors import EnvironmentProblem
from routecast.progress import ShareProgress
from routecast.quantity.schema import field, value

__all__ = ["BACK_ENDS", "BackEnd", "Tester", "back_ends", "error_text", "notes_of", "open_tester"]

BACK_ENDS = ("auto", "live", "af_xdp", "af_packet")
"""Ways to send; ``auto`` takes the fastest that a port has for a load."""


@value
class BackEnd:
    """A way to send or to receive."""

    name: str
    task: Literal["send", "receive"]
    why_not: str | None = field("Why this process cannot use it on any interface; None if it can")


class Tester(Protocol):
    """The part of ``routecast.lab._lab.Tester`` that Measure uses."""

    def trial(self, request: str, on_progress: ShareProgress | None = None) -> str:
        """Run a trial; JSON in and out."""
        ...

    def facts(self) -> str:
        """Return the facts of the tester as JSON."""
        ...

    def close(self) -> None:
        """Release the ports."""
        ...


def open_tester(configuration: Mapping[str, Any]) -> Tester:
    """Open the compiled tester.

    Raises EnvironmentProblem: a right, an interface or a kernel feature is missing.
    """
    from routecast.lab._lab import Tester as CompiledTester
    from routecast.lab._lab import TesterError

    try:
        tester: Tester = CompiledTester(json.dumps(configuration))
    except TesterError as problem:
        is_live = any(port.get("send") == "live" for port in configuration["ports"])
        needs_ebpf = is_live and problem.args[0] in {"rights", "no_programs", "bpf"}
        instead = "; back end auto takes one that needs no eBPF" if needs_ebpf else ""
        raise EnvironmentProblem(f"the tester cannot be opened: {error_text(problem)}{instead}") from problem
    return tester


def back_ends() -> tuple[BackEnd, ...]:
    """Return the tester's back ends, tested as far as possible without an interface."""
    from routecast.lab import _lab

    return tuple(BackEnd(**entry) for entry in json.loads(_lab.back_ends()))


def notes_of(facts: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the notes of trials by a tester, from its facts."""
    why = facts.get("no_ebpf")
    if not why:
        return ()
    ports = facts["ports"]
    sent = dict.fromkeys(sender["back_end"] for port in ports for sender in port["send"])
    received = dict.fromkeys(port["receive"]["back_end"] for port in ports if port["receive"])
    path = f"sent through {', '.join(sent)} and received through {', '.join(received)}"
    return (f"frames were {path}: {why}",)


def error_text(problem: Exception) -> str:
    """Return the message of the extension's error, whose arguments are a kind and a message."""
    return str(problem.args[1] if len(problem.args) > 1 else problem)
