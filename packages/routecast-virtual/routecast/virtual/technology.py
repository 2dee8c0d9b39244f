"""The costs of a virtualisation technique: the steps of a frame into and out of a machine, and their threads.

::

      wire ─► NIC ring ─► nic_receive ─► queue ─► receive ─► guest ring ─► function ─► send ring ─► send ─► wire
              ───────────────────────    ─────────────────    ─────────────────────     ────────────────
              softirq of the host        backend              guest                     backend
              (interrupt core)           (vhost thread, …)    (vcpu thread)             (the same thread)

The picture holds for all techniques. They differ in the thread that does the backend's work and in its wake-up:

===========================  ======================================  ==========================
technique                    backend                                 guest
===========================  ======================================  ==========================
KVM with vhost-net           a thread for each interface             a thread for each vcpu
KVM with an emulated card    a thread for each machine, costly       the same, an exit per frame
VMware-like                  a thread for each machine               a thread for each vcpu
Xen-like, bridged            softirqs of the driver domain           a thread for each vcpu
container                    none: one kernel                        softirqs of the host
vhost-user, memif            a polling core for each vSwitch         a thread, or a polling core
SR-IOV                       none: the card                          a thread, or a polling core
physical machine             none                                    softirqs of the machine
===========================  ======================================  ==========================
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from routecast.quantity.fields import Count, FrameCount, Number, Span, TimePerByte
from routecast.quantity.schema import Given, field, value
from routecast.router.bounds import LONGEST_BYTE_S, LONGEST_S, MAX_CONTENTION, MAX_FRAMES, MAX_SCV
from routecast.router.model import Contention, Policy, RandomTime, ServiceCost, Variation

__all__ = [
    "BACKEND_SOFTIRQ",
    "SOFTIRQ",
    "Backend",
    "BackendThreads",
    "Cost",
    "Guest",
    "Mechanisms",
    "Technology",
    "Work",
]

Backend = Literal["thread", "softirq", "polling", "none"]
BackendThreads = Literal["interface", "machine", "server"]
Guest = Literal["thread", "softirq", "polling"]

SOFTIRQ = 1000
"""Priority of interrupts and softirqs: above every thread, including real-time threads (1 to 99)."""

BACKEND_SOFTIRQ = 900
"""Priority of a backend that works in softirqs: frames from the card come first."""


@value
class Work:
    """Work for one frame on the reference machine; a missing value is the base's, else 0."""

    per_packet_s: Span = field("Work for a frame, s", default=0.0, le=LONGEST_S)
    per_byte_s: TimePerByte = field("Work for a byte of a frame, s/B", default=0.0, le=LONGEST_BYTE_S)
    per_batch_s: Span = field("Work for a batch, shared by its frames, s", default=0.0, le=LONGEST_S)
    variation: Variation = field("Distribution of the work for a frame around its mean", default="deterministic")
    scv: Number | None = field(
        "Squared coefficient of variation of that work (gamma, lognormal, …)", default=None, ge=0.0, le=MAX_SCV
    )


Cost = Annotated[ServiceCost, Given(Work)]


@value
class Mechanisms:
    """Costs and mechanisms of a virtualisation technique on its reference machine."""

    # Driver, and bridge or macvtap.
    nic_receive: Cost = field(
        "Work of the host for a frame off a wire, until it waits for its machine", default_factory=ServiceCost
    )
    # Other backends include this work in ``send``.
    nic_send: Cost = field("Work of a polling vSwitch for a frame onto a wire", default_factory=ServiceCost)
    nic_interrupt_s: Span = field("Work of an interrupt of a card, s", default=0.0, le=LONGEST_S)
    nic_moderation_s: Span = field("Least time between two interrupts of a card, s", default=0.0, le=LONGEST_S)
    # At most the number of cores for a card's interrupts.
    nic_queues: Count = field(
        "Receive queues of a card that it spreads flows over, each with its own interrupt", default=1, ge=1, le=128
    )
    nic_ring_frames: FrameCount = field("Receive ring of a card's queue, frames", default=512, le=MAX_FRAMES)
    nic_budget_frames: FrameCount = field(
        "Most frames of a poll of a card (NAPI weight), frames", default=64, le=MAX_FRAMES
    )
    backend: Backend = field(
        "Mover of frames between host and machine: thread, softirq, polling, none", default="thread"
    )
    # One for each interface of a machine (vhost-net), one for each machine, or one for each polling core of the server
    # (a vSwitch).
    backend_threads: BackendThreads = field(
        "Threads of the backend: one for each interface, machine, or server", default="interface"
    )
    receive: Cost = field("Work of the backend for a frame into a machine", default_factory=ServiceCost)
    send: Cost = field("Work of the backend for a frame out of a machine", default_factory=ServiceCost)
    queue_frames: FrameCount = field(
        "Frames that wait for the backend (tap or macvtap queue), frames", default=512, le=MAX_FRAMES
    )
    backend_budget_frames: FrameCount = field(
        "Frames of one direction before the backend turns to the next, frames", default=256, le=MAX_FRAMES
    )
    backend_wake_s: Span = field("Work of a notification that wakes the backend, s", default=0.0, le=LONGEST_S)
    # Of each direction (coalescing).
    backend_moderation_s: Span = field(
        "Least time between two notifications of a backend in softirqs, s", default=0.0, le=LONGEST_S
    )
    # The sender's backend does this work for frames between machines; a polling vSwitch does it for every frame, also
    # from and to a wire.
    switch: Cost = field("Work for a frame that crosses the virtual switch", default_factory=ServiceCost)
    guest: Guest = field("Runner of functions in a machine: thread, softirq, polling", default="thread")
    guest_ring_frames: FrameCount = field("Ring of a machine in each direction, frames", default=256, le=MAX_FRAMES)
    guest_queue_frames: FrameCount = field(
        "Frames that wait in a machine, before its ring, to be sent (qdisc), frames", default=0, le=MAX_FRAMES
    )
    guest_budget_frames: FrameCount = field("Most frames of a poll in a machine, frames", default=64, le=MAX_FRAMES)
    guest_wake_s: Span = field(
        "Work of a notification that wakes a machine: injected interrupt, exits, s", default=0.0, le=LONGEST_S
    )
    guest_driver: Cost = field(
        "Work in a machine for a frame besides its function: driver, exits", default_factory=ServiceCost
    )
    # These functions do not poll, and interrupts precede them (receive livelock: Mogul and Ramakrishnan, ACM TOCS
    # 15(3), 1997, sec. 4). Only for guests that are threads.
    interrupt_driven: tuple[str, ...] = field(
        "Functions whose frames interrupts of the machine bring, before any work of the function", default=()
    )
    guest_interrupt: Cost = field(
        "Work of the interrupt in a machine for a frame of an interrupt-driven function", default_factory=ServiceCost
    )
    # A frame that finds the backlog full is dropped after that work.
    guest_backlog_frames: FrameCount = field(
        "Frames that wait between the interrupts and such a function, frames", default=1000, le=MAX_FRAMES
    )
    guest_wakeup: RandomTime | None = field(
        "Time from a notification until the machine requests a core; it occupies no core during it", default=None
    )
    # vhost does; other backends drop the frame.
    holds_back: bool = field(
        "Whether the backend leaves a frame where it is while the machine's ring is full", default=True
    )
    # ``balance`` and ``return``: a balancer on the way in and on the way out.
    functions: Mapping[str, Cost] = field(
        "Work of functions in a machine, by name: forward, balance, return", default_factory=dict
    )
    policy: Annotated[Policy, Given()] = field(
        "Scheduler of a server's cores", default=Policy(kind="linux", quantum_s=3e-3)
    )
    switch_cost_s: Span = field("Lost when a core turns to another thread, s", default=0.0, le=LONGEST_S)
    migration_cost_s: Span = field("Time lost when a thread continues on another core, s", default=0.0, le=LONGEST_S)
    contention: Annotated[Contention, Given()] = field("Slowdown of cores by other busy cores", default=Contention())
    # Locks and cache lines that move.
    smp_factor: Number = field(
        "Work in a machine of several vcpus relative to one", default=1.0, ge=1.0, le=MAX_CONTENTION
    )

    def sending_frames(self, paths: int = 1) -> int:
        """Return the frames that can wait on one of several paths that share a machine's send ring and queue."""
        return max((self.guest_ring_frames + self.guest_queue_frames) // paths, 1)


@value
class Technology(Mechanisms):
    """A virtualisation technique."""

    name: str = field("Name of the technique")
    title: str = field("Description in one line", default="")
