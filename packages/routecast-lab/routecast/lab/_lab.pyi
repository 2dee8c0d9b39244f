"""The compiled part of routecast that measures: the tester, the probe and routers of many machines."""

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self, final

__all__ = [
    "FrameLoss",
    "LoadBalancer",
    "MemberGate",
    "NamespaceNetlink",
    "PollWatch",
    "ProbeError",
    "Tester",
    "TesterError",
    "XdpProgram",
    "__version__",
    "attach_xdp",
    "back_ends",
    "flow_row",
    "flow_table",
    "probe_host",
    "run_function",
    "run_workload",
    "trace_workload",
    "workload_kernels",
]

__version__: str

class TesterError(Exception):
    """A tester that cannot be opened or a trial that cannot be run. Arguments: kind, message.

    Kinds: ``usage``, ``rights``, ``no_programs``, ``no_interface``, ``back_end``, ``occupied``, ``system``,
    ``bpf``, ``closed``, ``outcome``, ``panic``.
    """

@final
class PollWatch:
    """Counts the polls of an interface in the kernel, until it is closed.

    Parameters
    ----------
    interface_index : int
        Its number; 0 for the backlog of the processors.
    namespace_inode : int
        Inode of its network namespace.
    threads_alone : bool
        Whether no softirq polls it; what runs at each softirq of the machine is then left out.

    Raises
    ------
    TesterError
        A right or the kernel's type information is missing, or the kernel refuses.
    """

    def __new__(cls, interface_index: int, namespace_inode: int, threads_alone: bool) -> Self: ...
    def polls(self) -> str:
        """Return what was counted so far, as JSON; ``crates/tester/src/watch.rs`` documents each field."""

    def take_records(self) -> bytes:
        """Return records of full polls, and of those after one, since the last call.

        Each is a ``struct poll_record`` of ``crates/tester/bpf/watch.bpf.c``.
        """

    def close(self) -> None:
        """Stop counting."""

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
    """Measure this host, asked for and answered as JSON; see :mod:`routecast.lab.probe` for the public way.

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
