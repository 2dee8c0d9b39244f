"""Virtualisation techniques as TOML files (``*.virtualisation.toml``): those that ship, and those that users write."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal, cast

from pydantic import BeforeValidator, Field
from pydantic_core import PydanticCustomError

from routecast.errors import FileProblem, Problem
from routecast.quantity.bounded_file import read_text
from routecast.quantity.did_you_mean import did_you_mean
from routecast.quantity.fields import BitRate, Count, FrameCount, Number, Span, TimePerByte
from routecast.quantity.file_model import FileModel
from routecast.quantity.schema import Given, schema_of
from routecast.quantity.shipped import shipped_files
from routecast.quantity.toml_file import parse_toml, shown, validated
from routecast.router.load_table import LoadTable
from routecast.router.model import Contention, Policy, PowerDraw, RandomTime, ServiceCost, Variation
from routecast.router.virtual.technology import Backend, BackendThreads, Guest, Technology

__all__ = [
    "CostTable",
    "MachineTable",
    "ParallelRouter",
    "ServerTable",
    "TechnologyOrName",
    "TechnologyTable",
    "VirtualRouter",
    "cost_over",
    "parse_technology",
    "read_technology",
    "technologies",
    "technology",
    "technology_from",
    "technology_schema",
    "technology_sources",
]


# What files say of virtualisation techniques, servers and machines: the tables, their keys, units and meanings.
#
# A table of a technique says what differs from its ``base``; what it leaves out is as there. A text in its place is
# short
# for ``{ base = "…" }``.


class CostTable(FileModel):
    """Work for one frame on the reference machine; what is left out is as the base says, else 0."""

    per_packet: Span | None = Field(default=None, description="Work for a frame, s")
    per_byte: TimePerByte | None = Field(default=None, description="Work for a byte of a frame, s/B")
    per_batch: Span | None = Field(default=None, description="Work for a batch, shared by its frames, s")
    variation: Variation | None = Field(
        default=None, description="Distribution of the work for a frame around its mean"
    )
    scv: Number | None = Field(
        default=None, description="Squared coefficient of variation of that work (gamma, lognormal, …)"
    )


class TechnologyTable(FileModel):
    """A virtualisation technique, as far as it differs from its base."""

    base: str = Field(
        default="",
        description="A technique that ships, by name, or a *.virtualisation.toml: what is left out is as there",
    )
    nic_receive: CostTable | None = Field(
        default=None, description="Work of the host for a frame off a wire, until it waits for its machine"
    )
    nic_send: CostTable | None = Field(default=None, description="Work of a polling vSwitch for a frame onto a wire")
    nic_interrupt: Span | None = Field(default=None, description="Work of an interrupt of a card, s")
    nic_moderation: Span | None = Field(default=None, description="Least time between two interrupts of a card, s")
    nic_queues: Count | None = Field(
        default=None,
        ge=1,
        le=128,
        description="Receive queues of a card that it spreads flows over, each with an interrupt of its own",
    )
    nic_ring: FrameCount | None = Field(default=None, description="Receive ring of a card's queue, frames")
    nic_budget: FrameCount | None = Field(
        default=None, description="Most frames of a poll of a card (NAPI weight), frames"
    )
    backend: Backend | None = Field(
        default=None, description="What moves frames between host and machine: thread, softirq, polling, none"
    )
    backend_threads: BackendThreads | None = Field(
        default=None,
        description="How many threads the backend has: one for each interface, machine, or server",
    )
    receive: CostTable | None = Field(default=None, description="Work of the backend for a frame into a machine")
    send: CostTable | None = Field(default=None, description="Work of the backend for a frame out of a machine")
    queue: FrameCount | None = Field(
        default=None, description="Frames that wait for the backend (tap or macvtap queue), frames"
    )
    backend_budget: FrameCount | None = Field(
        default=None, description="Frames of one direction before the backend turns to the next, frames"
    )
    backend_wake: Span | None = Field(default=None, description="Work of a notification that wakes the backend, s")
    backend_moderation: Span | None = Field(
        default=None, description="Least time between two notifications of a backend in softirqs, s"
    )
    switch: CostTable | None = Field(default=None, description="Work for a frame that crosses the virtual switch")
    guest: Guest | None = Field(default=None, description="What runs functions in a machine: thread, softirq, polling")
    guest_ring: FrameCount | None = Field(default=None, description="Ring of a machine in each direction, frames")
    guest_queue: FrameCount | None = Field(
        default=None, description="Frames that wait in a machine, before its ring, to be sent (qdisc), frames"
    )
    guest_budget: FrameCount | None = Field(default=None, description="Most frames of a poll in a machine, frames")
    guest_wake: Span | None = Field(
        default=None, description="Work of a notification that wakes a machine: injected interrupt, exits, s"
    )
    guest_driver: CostTable | None = Field(
        default=None, description="Work in a machine for a frame besides its function: driver, exits"
    )
    interrupt_driven: list[str] | None = Field(
        default=None,
        description="Functions whose frames interrupts of the machine bring, before any work of the function",
    )
    guest_interrupt: CostTable | None = Field(
        default=None, description="Work in a machine for a frame of such a function before it waits for it"
    )
    guest_backlog: FrameCount | None = Field(
        default=None, description="Frames that wait so for such a function, frames"
    )
    guest_wakeup: RandomTime | None = Field(
        default=None, description="From a notification until the machine asks for a core, occupying nothing"
    )
    holds_back: bool | None = Field(
        default=None,
        description="Whether the backend leaves a frame where it is while the machine's ring is full",
    )
    functions: dict[str, CostTable] = Field(
        default={}, description="Work of functions in a machine, by name: forward, balance, return"
    )
    policy: Annotated[Policy, Given()] | None = Field(default=None, description="Scheduler of a server's cores")
    switch_cost: Span | None = Field(default=None, description="Lost when a core turns to another thread, s")
    migration_cost: Span | None = Field(default=None, description="Lost when a thread goes on at another core, s")
    contention: Annotated[Contention, Given()] | None = Field(
        default=None, description="How much slower cores are when others work too"
    )
    smp_factor: Number | None = Field(
        default=None, description="Work in a machine of several vcpus relative to one, >= 1"
    )


class TechnologyFile(TechnologyTable):
    """A ``*.virtualisation.toml``: a technique, and where each of its values comes from."""

    name: str = Field(description="Name of the technique")
    title: str = Field(default="", description="What it is, in a line")
    reference: str = Field(description="The machine that the work is stated for: processor, clock, software")
    notes: list[str] = Field(default=[], description="What else to know")
    source: dict[str, str | dict[str, str]] = Field(
        default={},
        description="Where the value of each key that is given comes from: a citation, or what is assumed",
    )


# A file may hold anything here.
def _as_table(value: Any) -> Any:
    if isinstance(value, str):
        return {"base": value}
    if isinstance(value, dict | TechnologyTable):
        return value
    message = f'got {shown(value)}: give a name or a file in quotes, or a table {{ base = "…", … }}'
    raise PydanticCustomError("value", "{message}", {"message": message})


TechnologyOrName = Annotated[TechnologyTable, BeforeValidator(_as_table, json_schema_input_type=str | TechnologyTable)]


class ServerTable(FileModel):
    """A physical machine."""

    name: str = Field(description="Name of the server")
    cores: Count = Field(description="How many cores")
    technology: TechnologyOrName | None = Field(
        default=None, description="What its machines run on, where that is not the router's technology"
    )
    speed: Number = Field(default=1.0, description="Speed of a core relative to the technology's reference machine")
    interrupt_cores: list[Count] = Field(
        default=[], description="Cores that its cards interrupt, card by card in turn; none: the first"
    )
    switch_cores: list[Count] = Field(
        default=[], description="Cores of its polling vSwitch, card by card in turn; none: the first"
    )
    power: PowerDraw | None = Field(default=None, description="Watts of one core")


class MachineTable(FileModel):
    """A machine that functions run in."""

    name: str = Field(description="Name of the machine")
    server: str = Field(default="", description="Name of its server; may be left out where there is only one")
    vcpus: Count = Field(default=1, description="Threads that run its functions; flows are spread over them")
    vcpu_cores: list[list[Count]] = Field(
        default=[], description="Where each vcpu may run; the last holds for those beyond, [] is anywhere"
    )
    backend_cores: list[list[Count]] = Field(
        default=[],
        description="Where each of its backend threads may run, likewise; softirqs without: the interrupt cores",
    )
    vcpu_priority: Count = Field(default=0, description="0: shared fairly; 1 to 99: real time (SCHED_FIFO)")
    backend_priority: Count = Field(default=0, description="Of its backend threads, likewise")
    weight: Number = Field(default=1.0, description="Share of each of its threads under the fair scheduler")
    functions: dict[str, CostTable] = Field(
        default={}, description="Work of its functions where it differs from the technology's"
    )


class _OneServerRouter(FileModel):
    """What virtual and parallel routers have in common: one server, its ports, and what its machines run on."""

    name: str = Field(default="", description="Name of the router; without it the file's")
    technology: TechnologyOrName | None = Field(
        default=None,
        description="What machines run on: a name, a *.virtualisation.toml, or a table with a base",
    )
    server: list[ServerTable] = Field(description="The server, one")
    interfaces: Count = Field(default=1, description="Interfaces of each machine; ports take them in turn", ge=1)
    ports: Count = Field(default=2, description="Interfaces of the server", ge=1)
    link: BitRate = Field(default=1e9, description="Rate of each link in each direction, bit/s")
    tx_ring: FrameCount = Field(default=512, description="Transmit ring of each port, frames")
    load: LoadTable | None = Field(default=None, description="Load to evaluate with by default")


class VirtualRouter(_OneServerRouter):
    """A router in a virtual machine, a container, or on the server itself."""

    builder: Literal["virtual"] = Field(description="Name of the builder")
    machine: list[MachineTable] = Field(description="The machine, one")


class ParallelRouter(_OneServerRouter):
    """Like routers in several machines, over which the host spreads the frames."""

    builder: Literal["parallel"] = Field(description="Name of the builder")
    machines: Count | None = Field(
        default=None,
        description="How many machines; the one machine table, if any, then says what all of them are like",
        ge=1,
        le=4096,
    )
    machine: list[MachineTable] = Field(default=[], description="The machines")
    balancing: Literal["flow_hash", "round_robin"] = Field(
        default="flow_hash", description="How frames are spread over the machines"
    )


_SUFFIX = ".virtualisation.toml"
_LARGEST_FILE_BYTES = 1_000_000
_TOLD = ("name", "title", "reference", "notes", "base", "source", "functions")

_FIELDS = {
    "nic_interrupt": "nic_interrupt_s",
    "nic_moderation": "nic_moderation_s",
    "nic_queues": "nic_queues",
    "nic_ring": "nic_ring_frames",
    "nic_budget": "nic_budget_frames",
    "backend": "backend",
    "backend_threads": "backend_threads",
    "queue": "queue_frames",
    "backend_budget": "backend_budget_frames",
    "backend_wake": "backend_wake_s",
    "backend_moderation": "backend_moderation_s",
    "guest": "guest",
    "guest_ring": "guest_ring_frames",
    "guest_queue": "guest_queue_frames",
    "guest_budget": "guest_budget_frames",
    "guest_wake": "guest_wake_s",
    "guest_backlog": "guest_backlog_frames",
    "holds_back": "holds_back",
    "switch_cost": "switch_cost_s",
    "migration_cost": "migration_cost_s",
    "smp_factor": "smp_factor",
}
_COSTS = ("nic_receive", "nic_send", "receive", "send", "switch", "guest_driver", "guest_interrupt")
_COST_FIELDS = {
    "per_packet": "per_packet_s",
    "per_byte": "per_byte_s",
    "per_batch": "per_batch_s",
    "variation": "variation",
    "scv": "scv",
}


def technologies() -> tuple[str, ...]:
    """Return the names of the virtualisation techniques that ship, in alphabetical order."""
    return tuple(shipped_files("virtualisation", _SUFFIX))


def technology(name: str) -> Technology:
    """Return a virtualisation technique that ships.

    Raises
    ------
    routecast.errors.FileProblem
        There is none of that name; the message names the nearest.

    Examples
    --------
    >>> technology("physical-linux").backend
    'none'
    """
    return parse_technology(_shipped(name), subject=f"{name}{_SUFFIX}")


def technology_sources(name: str) -> Mapping[str, str]:
    """Return where each value of a technique that ships comes from, by its key in the file, its bases' included.

    Raises
    ------
    routecast.errors.FileProblem
        As :func:`technology`.
    """
    document = validated(TechnologyFile, parse_toml(_shipped(name), name), f"{name}{_SUFFIX}")
    below = technology_sources(document.base) if document.base else {}
    return {**below, **_flat(document.source)}


def read_technology(path: str | Path) -> Technology:
    """Read a virtualisation technique: one that ships by its name, or a ``*.virtualisation.toml``.

    Raises
    ------
    routecast.errors.FileProblem
        The file cannot be read, is no TOML, says something wrong, or gives a value without a source; all faults with
        their places.
    """
    return _read(path, above=())


def parse_technology(text: str, *, subject: str = "virtualisation file", folder: Path | None = None) -> Technology:
    """Read a virtualisation technique from the text of its file.

    Parameters
    ----------
    text : str
    subject : str
        What to call the text in messages.
    folder : Path or None
        Where a base that is a file is looked for.

    Raises
    ------
    routecast.errors.FileProblem
        As :func:`read_technology`.
    """
    return _parse(text, subject=subject, folder=folder, above=())


def technology_from(table: TechnologyTable, *, name: str = "", folder: Path | None = None) -> Technology:
    """Return the technique that a table says: its base, with the table's own values over it.

    Parameters
    ----------
    table : TechnologyTable
    name : str
        Name of a technique that has no base.
    folder : Path or None
        Where a base that is a file is looked for.

    Raises
    ------
    routecast.errors.FileProblem
        There is no such base, or its file says something wrong.
    """
    return _merged(table, name=name, folder=folder, above=())


def technology_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of virtualisation files, with units and meanings as descriptions."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema_of(TechnologyFile),
        "title": "routecast virtualisation file",
    }


def _shipped(name: str) -> str:
    shipped = shipped_files("virtualisation", _SUFFIX)
    if name not in shipped:
        hint = f"is no virtualisation technique that ships: {did_you_mean(name, shipped)}"
        raise FileProblem(f'"{name}"', [Problem("", hint)])
    return shipped[name].read_text(encoding="utf-8")


def _read(path: str | Path, *, above: tuple[str, ...], folder: Path | None = None) -> Technology:
    name = str(path)
    if not name.endswith(".toml"):
        if name in above:
            circle = " on ".join(f'"{one}"' for one in (*above[above.index(name) :], name))
            raise FileProblem(name, [Problem("base", f"rests on itself: {circle}")])
        return _parse(_shipped(name), subject=f"{name}{_SUFFIX}", folder=None, above=(*above, name))
    file = (folder or Path()) / name
    known = str(file.resolve())
    if known in above:
        raise FileProblem(str(file), [Problem("base", "rests on itself: a base must be another file")])
    text = read_text(file, kind="virtualisation file", largest_bytes=_LARGEST_FILE_BYTES)
    return _parse(text, subject=str(file), folder=file.parent, above=(*above, known))


def _parse(text: str, *, subject: str, folder: Path | None, above: tuple[str, ...]) -> Technology:
    document = validated(TechnologyFile, parse_toml(text, subject), subject)
    problems = list(_source_problems(document))
    merged = None
    try:
        merged = _merged(document, name=document.name, folder=folder, above=above)
    except FileProblem as problem:
        problems += [Problem("base", f"{problem.subject}: {one}") for one in problem.problems]
    if problems or merged is None:
        raise FileProblem(subject, problems)
    return replace(merged, name=document.name, title=document.title)


def _merged(table: TechnologyTable, *, name: str, folder: Path | None, above: tuple[str, ...]) -> Technology:
    base = _read(table.base, above=above, folder=folder) if table.base else Technology(name=name or "own")
    changed: dict[str, Any] = {
        field: getattr(table, key) for key, field in _FIELDS.items() if getattr(table, key) is not None
    }
    for key in _COSTS:
        cost = getattr(table, key)
        if cost is not None:
            changed[key] = cost_over(getattr(base, key), cost)
    if table.functions:
        own = {
            function: cost_over(base.functions.get(function, ServiceCost()), cost)
            for function, cost in table.functions.items()
        }
        changed["functions"] = {**base.functions, **own}
    if table.interrupt_driven is not None:
        changed["interrupt_driven"] = tuple(table.interrupt_driven)
    if table.guest_wakeup is not None:
        changed["guest_wakeup"] = table.guest_wakeup
    if table.policy is not None:
        changed["policy"] = replace(base.policy, **cast("Any", table.policy))
    if table.contention is not None:
        changed["contention"] = replace(base.contention, **cast("Any", table.contention))
    return replace(base, **changed)


def cost_over(base: ServiceCost, table: CostTable) -> ServiceCost:
    """Return a cost with what a table gives in the place of its own."""
    given = {field: getattr(table, key) for key, field in _COST_FIELDS.items() if getattr(table, key) is not None}
    return replace(base, **given)


def _source_problems(document: TechnologyFile) -> Iterator[Problem]:
    """Yield what has a value and no source, and sources of nothing."""
    given = [key for key in TechnologyTable.model_fields if key not in _TOLD and getattr(document, key) is not None]
    given += [f"functions.{function}" for function in document.functions]
    sources = _flat(document.source)
    for key in given:
        if not sources.get(key, "").strip():
            yield Problem(f"source.{key}", f"is missing: say where the value of {key} comes from")
    for key in sources:
        if key not in given:
            meant = did_you_mean(key, given)
            yield Problem(f"source.{key}", f"is the source of a value that is not given: {meant}")


def _flat(source: Mapping[str, str | dict[str, str]]) -> dict[str, str]:
    flat: dict[str, str] = {}
    for key, told in source.items():
        if isinstance(told, str):
            flat[key] = told
        else:
            flat |= {f"{key}.{inner}": text for inner, text in told.items()}
    return flat
