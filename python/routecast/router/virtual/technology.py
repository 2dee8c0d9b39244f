"""What a virtualisation technique costs: what moves a frame into a machine and out of it, and what runs that.

::

      wire ─► NIC ring ─► nic_receive ─► queue ─► receive ─► guest ring ─► function ─► send ring ─► send ─► wire
              ───────────────────────    ─────────────────    ─────────────────────     ────────────────
              softirq of the host        backend              guest                     backend
              (interrupt core)           (vhost thread, …)    (vcpu thread)             (the same thread)

Techniques differ in who does the backend's work and how it is woken, not in the picture:

===========================  ======================================  ==========================
technique                    backend                                 guest
===========================  ======================================  ==========================
KVM with vhost-net           a thread for each interface             a thread for each vcpu
KVM with an emulated card    a thread for each machine, dear frames  the same, an exit per frame
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
from dataclasses import dataclass, field
from typing import Literal

from routecast.router.model import Contention, Policy, RandomTime, ServiceCost

__all__ = ["BACKEND_SOFTIRQ", "SOFTIRQ", "Backend", "BackendThreads", "Guest", "Technology"]

Backend = Literal["thread", "softirq", "polling", "none"]
BackendThreads = Literal["interface", "machine", "server"]
Guest = Literal["thread", "softirq", "polling"]

SOFTIRQ = 1000
"""Priority of interrupts and softirqs: above every thread, real-time ones (1 to 99) included."""

BACKEND_SOFTIRQ = 900
"""Priority of a backend that works in softirqs: what the card brings comes first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Technology:
    """Costs and mechanisms of a virtualisation technique on its reference machine.

    Parameters
    ----------
    name, title : str
    nic_receive : ServiceCost
        Work of the host for a frame that comes off a wire, until it waits for its machine: driver, bridge or macvtap.
    nic_send : ServiceCost
        Work of a polling vSwitch for a frame onto a wire; other backends have it in ``send``.
    nic_interrupt_s : float
        Work of an interrupt of the card.
    nic_moderation_s : float
        Least time between two interrupts of the card.
    nic_queues : int
        Receive queues of a card, each with a ring and an interrupt of its own, over which it spreads flows (RSS); no
        more than there are cores for its interrupts.
    nic_ring_frames, nic_budget_frames : int
        Receive ring of a card's queue, and frames of a NAPI poll.
    backend : {"thread", "softirq", "polling", "none"}
        What moves frames between host and machine.
    backend_threads : {"interface", "machine", "server"}
        How many threads that takes: one for each interface of a machine (vhost-net), one for each machine, or those of
        the server, one for each polling core (a vSwitch).
    receive, send : ServiceCost
        Work of the backend for a frame into the machine, and out of it.
    queue_frames : int
        Frames that wait for the backend (tap or macvtap queue).
    backend_budget_frames : int
        Frames of one direction before the backend turns to the next.
    backend_wake_s : float
        Work of a notification that wakes the backend.
    backend_moderation_s : float
        Least time between two notifications of a backend in softirqs, of each direction (coalescing).
    switch : ServiceCost
        Work for a frame that crosses the virtual switch from machine to machine; the sender's backend does it. A
        polling vSwitch does it for every frame, off a wire and onto one too.
    guest : {"thread", "softirq", "polling"}
        What runs the function in the machine.
    guest_ring_frames : int
        Ring of the machine in each direction.
    guest_queue_frames : int
        Frames that wait in the machine, before its ring, for the backend to send (a Linux machine's qdisc); 0: none.
    guest_budget_frames : int
        Frames of a poll in the machine.
    guest_wake_s : float
        Work of a notification that wakes the machine: injected interrupt, exits, halt.
    guest_driver : ServiceCost
        Work in the machine for a frame besides its function: driver, and the exits of an emulated card.
    interrupt_driven : tuple of str
        Functions that do not poll for their frames: interrupts of the machine bring them, and go before the function
        (receive livelock: Mogul and Ramakrishnan, ACM TOCS 15(3), 1997, sec. 4). Only in threads.
    guest_interrupt : ServiceCost
        Work in the machine for a frame of such a function before it waits for it.
    guest_backlog_frames : int
        Frames that wait so; what comes beyond is dropped when that work is done.
    guest_wakeup : RandomTime or None
        From a notification until the machine asks for a core; it occupies nothing.
    holds_back : bool
        Whether the backend leaves a frame where it is while the machine's ring is full (vhost), or drops it.
    functions : mapping of str to ServiceCost
        Work of functions in a machine, by name: ``forward`` (route a frame), ``balance`` and ``return`` (a balancer
        on the way in and on the way out).
    policy : Policy
        Scheduler of a server's cores.
    switch_cost_s, migration_cost_s : float
        Lost when a core turns to another thread, and when a thread goes on at another core.
    contention : Contention
        How much slower cores are when others work too.
    smp_factor : float
        Work in a machine of several vcpus relative to one: locks and cache lines that move, >= 1.
    """

    name: str
    title: str = ""
    nic_receive: ServiceCost = field(default_factory=ServiceCost)
    nic_send: ServiceCost = field(default_factory=ServiceCost)
    nic_interrupt_s: float = 0.0
    nic_moderation_s: float = 0.0
    nic_queues: int = 1
    nic_ring_frames: int = 512
    nic_budget_frames: int = 64
    backend: Backend = "thread"
    backend_threads: BackendThreads = "interface"
    receive: ServiceCost = field(default_factory=ServiceCost)
    send: ServiceCost = field(default_factory=ServiceCost)
    queue_frames: int = 512
    backend_budget_frames: int = 256
    backend_wake_s: float = 0.0
    backend_moderation_s: float = 0.0
    switch: ServiceCost = field(default_factory=ServiceCost)
    guest: Guest = "thread"
    guest_ring_frames: int = 256
    guest_queue_frames: int = 0
    guest_budget_frames: int = 64
    guest_wake_s: float = 0.0
    guest_driver: ServiceCost = field(default_factory=ServiceCost)
    interrupt_driven: tuple[str, ...] = ()
    guest_interrupt: ServiceCost = field(default_factory=ServiceCost)
    guest_backlog_frames: int = 1000
    guest_wakeup: RandomTime | None = None
    holds_back: bool = True
    functions: Mapping[str, ServiceCost] = field(default_factory=dict)
    policy: Policy = field(default_factory=lambda: Policy(kind="linux", quantum_s=3e-3))
    switch_cost_s: float = 0.0
    migration_cost_s: float = 0.0
    contention: Contention = field(default_factory=Contention)
    smp_factor: float = 1.0

    def sending_frames(self, ways: int = 1) -> int:
        """Return how many frames wait in a machine to be sent on one of so many ways that share its ring and queue."""
        return max((self.guest_ring_frames + self.guest_queue_frames) // ways, 1)
