"""What files say of virtualisation techniques, servers and machines: the tables, their keys, units and meanings.

A table of a technique says what differs from its ``base``; what it leaves out is as there. A text in its place is short
for ``{ base = "…" }``.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field
from pydantic_core import PydanticCustomError

from routecast.quantity.fields import (
    BitRate,
    Count,
    FileModel,
    FrameCount,
    Number,
    Span,
    TimePerByte,
)
from routecast.quantity.toml_file import shown
from routecast.router.file_models import ContentionTable, LoadTable, PolicyTable, RandomTimeTable
from routecast.router.power_tables import PowerTable
from routecast.router.random_time import Variation
from routecast.router.virtual.technology import Backend, BackendThreads, Guest

__all__ = [
    "CostTable",
    "MachineTable",
    "ParallelRouter",
    "ServerTable",
    "TechnologyFile",
    "TechnologyOrName",
    "TechnologyTable",
    "VirtualRouter",
]


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
    nic_send: CostTable | None = Field(
        default=None, description="Work of a polling vSwitch for a frame onto a wire"
    )
    nic_interrupt: Span | None = Field(default=None, description="Work of an interrupt of a card, s")
    nic_moderation: Span | None = Field(
        default=None, description="Least time between two interrupts of a card, s"
    )
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
    receive: CostTable | None = Field(
        default=None, description="Work of the backend for a frame into a machine"
    )
    send: CostTable | None = Field(
        default=None, description="Work of the backend for a frame out of a machine"
    )
    queue: FrameCount | None = Field(
        default=None, description="Frames that wait for the backend (tap or macvtap queue), frames"
    )
    backend_budget: FrameCount | None = Field(
        default=None, description="Frames of one direction before the backend turns to the next, frames"
    )
    backend_wake: Span | None = Field(
        default=None, description="Work of a notification that wakes the backend, s"
    )
    backend_moderation: Span | None = Field(
        default=None, description="Least time between two notifications of a backend in softirqs, s"
    )
    switch: CostTable | None = Field(
        default=None, description="Work for a frame that crosses the virtual switch"
    )
    guest: Guest | None = Field(
        default=None, description="What runs functions in a machine: thread, softirq, polling"
    )
    guest_ring: FrameCount | None = Field(
        default=None, description="Ring of a machine in each direction, frames"
    )
    guest_queue: FrameCount | None = Field(
        default=None, description="Frames that wait in a machine, before its ring, to be sent (qdisc), frames"
    )
    guest_budget: FrameCount | None = Field(
        default=None, description="Most frames of a poll in a machine, frames"
    )
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
    guest_wakeup: RandomTimeTable | None = Field(
        default=None, description="From a notification until the machine asks for a core, occupying nothing"
    )
    holds_back: bool | None = Field(
        default=None,
        description="Whether the backend leaves a frame where it is while the machine's ring is full",
    )
    functions: dict[str, CostTable] = Field(
        default={}, description="Work of functions in a machine, by name: forward, balance, return"
    )
    policy: PolicyTable | None = Field(default=None, description="Scheduler of a server's cores")
    switch_cost: Span | None = Field(default=None, description="Lost when a core turns to another thread, s")
    migration_cost: Span | None = Field(
        default=None, description="Lost when a thread goes on at another core, s"
    )
    contention: ContentionTable | None = Field(
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


TechnologyOrName = Annotated[
    TechnologyTable, BeforeValidator(_as_table, json_schema_input_type=str | TechnologyTable)
]


class ServerTable(FileModel):
    """A physical machine."""

    name: str = Field(description="Name of the server")
    cores: Count = Field(description="How many cores")
    technology: TechnologyOrName | None = Field(
        default=None, description="What its machines run on, where that is not the router's technology"
    )
    speed: Number = Field(
        default=1.0, description="Speed of a core relative to the technology's reference machine"
    )
    interrupt_cores: list[Count] = Field(
        default=[], description="Cores that its cards interrupt, card by card in turn; none: the first"
    )
    switch_cores: list[Count] = Field(
        default=[], description="Cores of its polling vSwitch, card by card in turn; none: the first"
    )
    power: PowerTable | None = Field(default=None, description="Watts of one core")


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
    interfaces: Count = Field(
        default=1, description="Interfaces of each machine; ports take them in turn", ge=1
    )
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
