"""The compiled core of routecast: the packet-level and the flit-level simulator, captures, the tester and the probe.

A build for another system than Linux has the simulator and captures only; :mod:`routecast.compiled` has the other
names.
"""

from collections.abc import Callable, Sequence
from os import PathLike
from types import TracebackType
from typing import Self, TypedDict, final, type_check_only

__all__ = [
    "CaptureError",
    "FrameLoss",
    "LoadBalancer",
    "MemberGate",
    "NamespaceNetlink",
    "NocError",
    "ProbeError",
    "SimulationError",
    "Tester",
    "TesterError",
    "XdpProgram",
    "__version__",
    "attach_xdp",
    "back_ends",
    "flow_row",
    "flow_table",
    "hdr_classes",
    "hdr_merged",
    "hdr_quantiles_s",
    "is_capture",
    "noc_greedy",
    "noc_simulate",
    "polled_starts",
    "probe_host",
    "queue_starts",
    "read_recording",
    "run_function",
    "run_workload",
    "simulate",
    "trace_workload",
    "workload_kernels",
]

__version__: str

class SimulationError(Exception):
    """A scenario that cannot be simulated. Arguments: kind, message, duration_s, needed_s."""

def hdr_classes(hdr_base64: str) -> list[tuple[int, int, int]]:
    """Return the classes of an HDR histogram that hold something: least value, greatest value, count, in its unit.

    Raises
    ------
    ValueError
        The text is no histogram.
    """

def hdr_merged(hdr_base64: Sequence[str]) -> str:
    """Return the histogram of all values of several HDR histograms; of none, an empty text.

    Raises
    ------
    ValueError
        A text is no histogram.
    """

def hdr_quantiles_s(hdr_base64: str, probabilities: Sequence[float]) -> list[float]:
    """Return times in seconds read out of an HDR histogram, one per probability (0..1).

    Parameters
    ----------
    hdr_base64 : str
        Base64 of the compressed V2 form, in nanoseconds, as ``Delay.hdr_base64`` carries it.
    probabilities : sequence of float

    Raises
    ------
    ValueError
        The text is no histogram, or the histogram is empty.
    """

def polled_starts(
    at_ps: bytes,
    work_ps: bytes,
    room: int,
    until_ps: int,
    polls: tuple[int, int, int, int, int, int],
    *,
    exhaustive: bool,
    sleep_ps: list[tuple[int, int]],
) -> tuple[bytes, bytes, int, int]:
    """Return starts and ends of service of recorded frames at a server with interrupts, its work and its interrupts.

    ``at_ps``, ``work_ps``, ``room``: those of :func:`queue_starts`; ``until_ps``: work after it is not counted;
    ``polls``: budget in frames, then cost of an interrupt, cost of a batch, moderation, wake-up and lingering, all in
    picoseconds; ``sleep_ps``: sleep states of the idle unit, by the idle time before each and the time to leave it. The
    work is in picoseconds, without lingering and waking.

    Raises ValueError: as :func:`queue_starts`, or the budget or the room is 0.
    """

def queue_starts(at_ps: bytes, work_ps: bytes, servers: int, room: int) -> bytes:
    """Return the starts of service of recorded frames at one queue, first come, first served.

    ``at_ps``, ``work_ps``: arrivals in order and services as native 64-bit unsigned numbers, picoseconds; ``servers``:
    frames served at a time; ``room``: frames that may wait besides. The result has one number for each frame, 2^64 - 1
    for a frame that finds no room.

    Raises ValueError: the lengths differ or are no multiple of 8 bytes, or there is no server.
    """

def simulate(
    scenario: str,
    *,
    replications: int = 1,
    target_relative_half_width: float | None = None,
    most: int = 64,
    progress: Callable[[float], object] | None = None,
) -> str:
    """Simulate a scenario, given and answered as JSON; see :mod:`routecast.evaluate.simulate` for the public way.

    Parameters
    ----------
    scenario : str
        Router, load and run with indices for names; ``crates/sim/src/scenario.rs`` documents each field.
    replications : int
        Independent replications, run in parallel.
    target_relative_half_width : float, optional
        Go on, up to ``most`` replications, until the 95 % half-width of the mean latency is this share of it.
    most : int
        Most replications.
    progress : callable, optional
        Called about every 50 ms with the finished share, 0..1.

    Returns
    -------
    str
        The outcome.

    Raises
    ------
    SimulationError
        The scenario is wrong, or its transient did not end.
    """

class CaptureError(Exception):
    """A capture that cannot be read. Arguments: kind, message.

    Kinds: ``file``, ``interrupted``, ``panic``.
    """

@type_check_only
class _Recording(TypedDict):
    time_s: bytes
    frame_bytes: bytes
    flow: bytes
    flows: list[tuple[bytes, int, int, str]]
    notes: list[str]
    counts: dict[str, int]

def read_recording(path: str | PathLike[str], inner: bool = False, split_mtu: int = 0) -> _Recording:
    """Read times, sizes and flows of the frames of a capture (pcap, pcapng), packed or not.

    Parameters
    ----------
    path : str or path
        The file, or a pipe; ``-`` is the standard input.
    inner : bool
        Whether flows are those of the innermost packets of tunnels.
    split_mtu : int
        MTU in bytes to which super-packets of TCP and UDP are split; 0 splits none.

    Returns
    -------
    dict
        By frame, in order of time, as bytes in the order of this machine: ``time_s`` (float64) since the earliest,
        ``frame_bytes`` (uint32) on the wire with FCS, ``flow`` (uint32). By flow: what receive-side scaling hashes,
        side, frames, words. Notes in sentences, and counts by name.

    Raises
    ------
    CaptureError
        The capture cannot be read, is damaged, has no packets, or packets without time or of an unknown link.
    """

def is_capture(path: str | PathLike[str]) -> bool:
    """Return whether a file is a capture, packed or not, by its first bytes.

    Raises
    ------
    CaptureError
        The file cannot be read.
    """

class NocError(Exception):
    """A network on chip that cannot be simulated. Arguments: kind, message.

    Kinds: ``scenario``, ``index``, ``number``, ``length``, ``route``, ``interrupted``, ``outcome``, ``panic``.
    """

def noc_greedy(columns: int, rows: int, rings: bool, demand: bytes) -> bytes:
    """Route flow after flow over the shortest path of a grid that is least loaded so far.

    Parameters
    ----------
    columns, rows : int
    rings : bool
        Whether rows and columns close to rings.
    demand : bytes
        Between routers: float64, source by source, in native order.

    Returns
    -------
    bytes
        The links of one path for every two routers: uint32, source by source and target by target.

    Raises
    ------
    ValueError
        The demand is not one of (routers, routers).
    """

def noc_simulate(scenarios: list[str], *, progress: Callable[[float], object] | None = None) -> list[str]:
    """Simulate planes of networks on chip flit by flit, each given and answered as JSON, in parallel.

    Parameters
    ----------
    scenarios : list of str
        One plane, one load and one seed each; ``crates/noc/src/scenario.rs`` documents each field.
    progress : callable, optional
        Called about every 50 ms with the finished share, 0..1. An exception in it, or a signal, ends the run and is
        raised.

    Returns
    -------
    list of str
        The outcomes in the same order; ``crates/noc/src/outcome.rs`` documents each field.

    Raises
    ------
    NocError
        A scenario is wrong; the message says which one and which entry.
    """

class TesterError(Exception):
    """A tester that cannot be opened or a trial that cannot be run. Arguments: kind, message.

    Kinds: ``usage``, ``rights``, ``no_programs``, ``no_interface``, ``back_end``, ``occupied``, ``system``,
    ``bpf``, ``closed``, ``outcome``, ``panic``.
    """

@final
class Tester:
    """Ports of this machine that send and receive test frames, until it is closed.

    Parameters
    ----------
    config : str
        Ports, cores and priority as JSON; ``crates/tester/src/config.rs`` documents each field. A namespace is a path
        (``/run/netns/NAME``); the calling thread stays in its own.

    Raises
    ------
    TesterError
        A right, an interface or an eBPF program is missing, or the kernel refuses.
    """

    def __new__(cls, config: str) -> Self: ...
    def trial(self, request: str, progress: Callable[[float], object] | None = None) -> str:
        """Run one trial, asked for and answered as JSON.

        Parameters
        ----------
        request : str
            What is sent; ``crates/tester/src/request.rs`` documents each field.
        progress : callable, optional
            Called about every 50 ms with the finished share, 0..1. An exception in it, or a signal, ends the trial
            within about 100 ms and is raised.

        Returns
        -------
        str
            What was found; ``crates/tester/src/outcome.rs`` documents each field.

        Raises
        ------
        TesterError
            The request is wrong, or the kernel refuses.
        """

    def facts(self) -> str:
        """Back ends, drivers, modes and time stamps as JSON."""

    def close(self) -> None:
        """Detach everything; again does nothing."""

    def __enter__(self) -> Self: ...
    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None, /
    ) -> None: ...

@final
class XdpProgram:
    """An eBPF program on the ingress of a device under test, until it is closed. Made by :func:`attach_xdp`."""

    def set(self, settings: str) -> None:
        """Change what it does from the next frame on; settings (JSON) that are not named become 0."""

    def counters(self) -> str:
        """Counters since it was attached, by name, as JSON."""

    def facts(self) -> str:
        """Program, interface and mode as JSON."""

    def close(self) -> None:
        """Detach the program; again does nothing."""

    def __enter__(self) -> Self: ...
    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None, /
    ) -> None: ...

def back_ends() -> str:
    """Back ends that send and receive, and why those that cannot be used here are not to be had, as JSON.

    Returns
    -------
    str
        A list of objects with ``name``, ``task`` (``send`` or ``receive``) and ``why_not``, null where this process can
        use it. No interface is looked at: one may still lack what a back end needs.
    """

def attach_xdp(config: str) -> XdpProgram:
    """Attach an eBPF program to an interface of a device under test.

    Parameters
    ----------
    config : str
        JSON with ``program`` (``pass``, ``slow``, ``forward`` or ``fault``), ``interface``, ``netns`` and the settings
        ``iterations``, ``delay_ns``, ``drop_every``, ``corrupt_every``, ``swallow``, ``reflect``;
        ``crates/tester/src/device.rs`` documents each.

    Raises
    ------
    TesterError
        The configuration is wrong, the interface does not exist or has an XDP program, or the kernel refuses.
    """

class ProbeError(Exception):
    """A host that cannot be probed or a function that cannot be run. Arguments: kind, message.

    Kinds: ``request``, ``memory``, ``system``, ``cpu``, ``function``, ``table``, ``interrupted``, ``outcome``,
    ``panic``.
    """

def probe_host(request: str, progress: Callable[[float], object] | None = None) -> str:
    """Measure this host, asked for and answered as JSON; see :mod:`routecast.hardware.probe` for the public way.

    Parameters
    ----------
    request : str
        What is measured; ``crates/probe/src/host/probe.rs`` documents each field.
    progress : callable, optional
        Called about every 50 ms with the finished share, 0..1. An exception in it, or a signal, ends the probe and is
        raised.

    Returns
    -------
    str
        What was measured, all repeats of it; cycles are those of the core.

    Raises
    ------
    ProbeError
        The request is wrong, memory is missing, or the processor is not this process's.
    """

def run_function(request: str, progress: Callable[[float], object] | None = None) -> str:
    """Run a network function on frames in memory, asked for and answered as JSON.

    Parameters
    ----------
    request : str
        Function, frames, tables and load; ``crates/probe/src/run/request.rs`` documents each field.
    progress : callable, optional
        Called about every 50 ms with the finished share, 0..1. An exception in it, or a signal, ends the run and is
        raised.

    Returns
    -------
    str
        What was measured; ``crates/probe/src/run/outcome.rs`` documents each field.

    Raises
    ------
    ProbeError
        The request is wrong, memory is missing, or a processor is not this process's.
    """

def workload_kernels() -> str:
    """Return what kernels of workloads there are, as JSON; ``crates/probe`` documents each field."""

def run_workload(request: str, progress: Callable[[float], object] | None = None) -> str:
    """Run a kernel over packets, asked for and answered as JSON.

    Parameters
    ----------
    request : str
        Kernel, table and packets; ``crates/probe/src/workload/request.rs`` documents each field.
    progress : callable, optional
        As of :func:`run_function`.

    Returns
    -------
    str
        What the packets were, and the time of one; ``crates/probe/src/workload/run.rs`` documents each field.

    Raises
    ------
    ProbeError
        The request is wrong, or the capture cannot be read.
    """

def trace_workload(request: str, progress: Callable[[float], object] | None = None) -> str:
    """Follow a program that runs a kernel instruction by instruction, asked for and answered as JSON.

    Parameters
    ----------
    request : str
        Command, packets and bound; ``crates/probe/src/workload/trace.rs`` documents each field.
    progress : callable, optional
        As of :func:`run_function`.

    Returns
    -------
    str
        What each packet took; ``crates/probe/src/workload/trace.rs`` documents each field.

    Raises
    ------
    ProbeError
        The request is wrong, the program fails, or it may not be traced.
    """

@final
class FrameLoss:
    """The eBPF program of a wire that loses frames in one direction: those that arrive at one of its interfaces.

    Parameters
    ----------
    interface : str
        The interface. It loses nothing before :meth:`set`.
    netns_path : str, optional
        Path of its network namespace.
    pins : str, optional
        Folder in a BPF file system where the program stays when this process ends. If it is there already, it is opened
        with the loss and the count that it has; one of an interface that was removed must be removed first.

    Raises
    ------
    TesterError
        The interface has an XDP program, a right or the interface is missing, or the kernel refuses. The same holds for
        each call.
    """

    def __new__(cls, interface: str, netns_path: str | None = None, pins: str | None = None) -> Self: ...
    def set(self, loss_ratio: float) -> None:
        """Drop this pseudo-random share of the arriving frames silently, 0 to 1."""

    def dropped(self) -> int:
        """Return how many frames it has dropped since it was attached."""

    def close(self) -> None:
        """Release the program: it stays at work if it is pinned, and comes off otherwise."""

    @staticmethod
    def remove(pins: str) -> None:
        """Take the program that is pinned in a folder off its interface; an absent one is no error."""

@final
class LoadBalancer:
    """The eBPF programs of a multistage router's load balancer, attached until it is closed or its pins are removed.

    Parameters
    ----------
    config : str
        Interfaces, scheme and detector as JSON; ``crates/multistage/src/plane.rs`` documents each field.

    Raises
    ------
    TesterError
        The text is wrong, a right or an interface is missing, or the kernel refuses. The same holds for each call.
    """

    def __new__(cls, config: str) -> Self: ...
    def publish(self, members: Sequence[tuple[int, float]], seed: int, epoch: int) -> str:
        """Switch to the table of these members (number, weight) at once; return its digest."""

    def set_member(self, number: int, mac: Sequence[int] | None) -> None:
        """Say who a member is, by a MAC address that ends in its number; None takes it out."""

    def set_silent(self, number: int, is_silent: bool) -> None:
        """Say whether a member does not answer the process's own frames: it then gets no others."""

    def set_role(self, role: str) -> None:
        """Make the load balancer one that works, stands_by or hangs (a fault)."""

    def set_loss(self, loss_ratio: float) -> None:
        """Drop a pseudo-random share of all arriving frames silently, 0 to 1 (a fault)."""

    def answers(self) -> list[int]:
        """Return how often the working load balancer answered: by the inside interface, by each outside one."""

    def drain(self, number: int, idle_s: float, deadline_s: float) -> None:
        """Let a member keep the rows it owned before the last table, until they are idle or the deadline comes, s."""

    def set_neighbour(self, mac: Sequence[int], interface: str | None) -> None:
        """Say behind which outside interface a neighbour is; None forgets it."""

    def neighbours(self) -> list[str]:
        """Return the MAC addresses of the neighbours, as text, in order."""

    def add_own(self, address: str) -> None:
        """Add an address of the router itself, which the load balancer's kernel answers for."""

    def beat(self) -> None:
        """Say that the process which holds the router lives."""

    def paths(self) -> dict[int, list[int]]:
        """Return, for each member, how many own frames came back on each of its 64 paths since it is one.

        An own frame on a path goes from the source of ``probe`` (IPv4) or ``probe6`` (IPv6) to any destination, with
        protocol 253; the low six bits of the IPv4 identification or the IPv6 flow label are the path's number.
        """

    def status(self) -> str:
        """Return epoch, digest, members with counts and health, and reasons of what was not forwarded, as JSON."""

    def audit(self) -> str:
        """Return digests of the rows in the kernel, of those that should be there, and of the neighbours, as JSON."""

    def close(self) -> None:
        """Take the programs off."""

@final
class MemberGate:
    """The eBPF program before a back-end router: a cap that emulates a slower machine, and a silent hang.

    Parameters
    ----------
    interface : str
        Its interface.
    netns : str, optional
        Path of its network namespace.
    pins : str, optional
        Folder in a BPF file system where the program and its maps stay when this process ends.

    Raises
    ------
    TesterError
        As of :class:`LoadBalancer`.
    """

    def __new__(cls, interface: str, netns: str | None = None, pins: str | None = None) -> Self: ...
    def set(self, *, cap_pps: float, queue_frames: int, hangs: bool, forwards: bool, loss: float = 0.0) -> None:
        """Set the cap, frames/s (0: none), how many frames may wait, and what is dropped silently.

        That is everything (``hangs``) or a pseudo-random share of the arriving frames (``loss``, 0 to 1).
        """

    def counters(self) -> str:
        """Return frames passed, dropped over the cap, by the hang, and by the loss, as JSON."""

    def close(self) -> None:
        """Take the program off."""

@final
class NamespaceNetlink:
    """Netlink sockets in a network namespace: its kernel's requests for neighbours, its neighbours, its configuration.

    Parameters
    ----------
    netns_path : str
        Path of the namespace, such as ``/run/netns/NAME``.

    Raises
    ------
    TesterError
        The namespace cannot be joined, there is no such interface, an address is wrong, or the kernel refuses. The same
        holds for each call.
    """

    def __new__(cls, netns_path: str) -> Self: ...
    def fileno(self) -> int:
        """Return the descriptor to wait on for :meth:`lookups`."""

    def lookups(self, limit: int) -> list[tuple[str, str]]:
        """Return interface and address of the neighbours that the kernel looks for, each once, without waiting.

        They are those since the last call, at most ``limit``; what is left stays for the next call.
        """

    def set_neighbours(self, interface: str, entries: Sequence[tuple[str, str]]) -> None:
        """Set permanent neighbours (address, MAC address); all but the refused ones are set when it raises."""

    def remove_neighbours(self, interface: str, addresses: Sequence[str]) -> None:
        """Remove neighbours; one that is absent is no error."""

    def contents(self) -> list[str]:
        """Return what is configured: sorted lines ``address``, ``link``, ``neighbour`` and ``route``.

        They cover permanent neighbours and the main table of IPv4 and IPv6. What the kernel made by itself (its
        routes, link-local addresses) and the interface ``lo`` are left out.
        """

    def close(self) -> None:
        """Close the sockets."""

def flow_row(source: str, destination: str, protocol: int, ports: tuple[int, int] | None, is_fragment: bool) -> int:
    """Return the row of a flow: as the load balancer computes it of a frame's headers.

    Parameters
    ----------
    source, destination : str
        Addresses of one version of IP.
    protocol : int
        Its number (IANA): 6 TCP, 17 UDP.
    ports : (int, int), optional
        Source and destination port.
    is_fragment : bool
        Whether it is a fragment: ports then do not count.
    """

def flow_table(members: Sequence[tuple[int, float]], seed: int, rows: Sequence[int]) -> list[list[int]]:
    """Return the members of some rows of a table, in the order in which they take the row.

    Parameters
    ----------
    members : sequence of (int, float)
        Number (0 to 63) and weight of each.
    seed : int
        Of the hash.
    rows : sequence of int
        0 to 65535.

    Raises
    ------
    TesterError
        There is no such row.
    """
