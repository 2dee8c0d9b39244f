"""The rig of a test bed with a device under test."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from routecast.evaluate.protocol import Evaluator
from routecast.evaluate.trial import Trial
from routecast.lab.benchmark.rig import RigKind, medium_of
from routecast.lab.benchmark.streams import (
    BROADCAST,
    BROADCAST_RATIO,
    MANAGEMENT,
    ROUTING_UPDATES,
    SECTIONS,
    Stream,
    mix_refused,
)
from routecast.lab.benchmark.values import TrialProfile
from routecast.lab.testbed.addresses import port_addresses
from routecast.lab.testbed.bed import Bed
from routecast.lab.testbed.conditions import RoutingDevice
from routecast.lab.testbed.devices import make_device
from routecast.lab.testbed.document import Cores, NamespacesFile
from routecast.lab.testbed.management import ManagementQueries, is_answered
from routecast.lab.testbed.measure import Measure, Phases
from routecast.lab.testbed.meters import checked_meter, meter_for
from routecast.lab.testbed.opening import open_testbed
from routecast.lab.testbed.reading import read_testbed
from routecast.lab.testbed.selftest import BackToBack, Wire
from routecast.lab.testbed.streams import min_test_frame_bytes
from routecast.load.offered import OfferedLoad

__all__ = ["BedRig"]

_FILTERING = "nftables"
_ROUTING = "frr"


class BedRig:
    """A test bed that exists from the first stream until the context ends.

    The device keeps its configuration between streams (RFC 2544 sec. 7), except for streams with filters: the same
    device then has that many conditions, of which the last accepts (sec. 11.4).

    Device ``frr`` on a test bed of namespaces learns its routes from neighbours, so that each trial begins with a
    routing update (sec. 13), unless its option ``routing`` is set.

    Parameters
    ----------
    testbed : str or Path
        ``"namespaces"``, or a test bed file.
    device : str or None
        The device under test; by default the file's.
    options : mapping of str to object
        Its options.
    own_network : bool
        Whether to send on interfaces that carry other traffic as well.
    share_cores : bool
        Whether to use cores on which another test bed measures.
    power : str or None
        The power meter, by default the file's; ``"auto"`` is the first readable meter of this machine, ``"none"`` no
        meter.
    on_remark : callable
        Called with each line of a remark for the user.

    Raises
    ------
    routecast.errors.FileProblem
        The file or an option is wrong.
    """

    kind: RigKind = "measure"

    def __init__(
        self,
        testbed: str | Path,
        *,
        device: str | None = None,
        options: Mapping[str, object] | None = None,
        encapsulation: str | None = None,
        own_network: bool = False,
        share_cores: bool = False,
        power: str | None = None,
        on_remark: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._device, self._options, self._power, self._on_remark = device, dict(options or {}), power, on_remark
        self._file = read_testbed(testbed, device=device, options=options, encapsulation=encapsulation)
        self._opening: dict[str, Any] = {
            "testbed": testbed,
            "device": device,
            "encapsulation": encapsulation,
            "own_network": own_network,
            "share_cores": share_cores,
            "on_remark": on_remark,
            "power": power,
            "retries": 0,  # the benchmark itself repeats an invalid trial, and keeps every attempt
        }
        # Routing neighbours send no VLAN tags.
        is_plain = not self._file.encapsulation.vlan_ids
        can_learn = isinstance(self._file, NamespacesFile) and self._file.networks > 1 and is_plain
        if self._file.dut.device == _ROUTING and can_learn and "routing" not in self._file.dut.options:
            self._options["routing"] = "bgp"
            self._file = read_testbed(testbed, device=device, options=self._options, encapsulation=encapsulation)
        self._under_test = make_device(self._file.dut.device, self._file.dut.options)
        self._open = ExitStack()
        self._measure: Measure | None = None
        self._modifier = ""
        self._facts: Mapping[str, object] = {}
        self._agent_answers: bool | None = None
        self._agent_address = ""

    @property
    def title(self) -> str:
        """Title of the device under test."""
        return self._under_test.title

    @property
    def link_bps(self) -> tuple[float, ...]:
        """Rate of each port's wire."""
        if isinstance(self._file, NamespacesFile):
            return (self._file.wire, self._file.wire)
        return tuple(port.wire_bps for port in self._ready("").bed.ports)

    @property
    def medium(self) -> str:
        """The medium in words."""
        medium = medium_of(self.link_bps, virtual=isinstance(self._file, NamespacesFile))
        return ", ".join(filter(None, [medium, self._file.encapsulation.title]))

    @property
    def identity(self) -> str:
        """The test bed's file, the device with its options, and the power meter."""
        return f"{self._file!r}/{self._device}/{sorted(self._options.items())}/{self._power}"

    @property
    def resets_not_run(self) -> Mapping[str, str]:
        """Reason for each kind of reset that does not apply to the device."""
        return dict(getattr(self._under_test, "resets_not_run", {}))

    @property
    def sends_routing_updates(self) -> bool:
        """Whether each trial begins with a routing update of all its networks (RFC 2544 sec. 13)."""
        return isinstance(self._under_test, RoutingDevice) and self._under_test.learns_routes

    def refuses(self, stream: Stream) -> str:
        """Return why a stream cannot be sent; empty if it can."""
        if stream.modifier == ROUTING_UPDATES and not self.sends_routing_updates:
            option = f"--dut {_ROUTING} --dut-option routing=bgp"
            return f"the routes of {self.title} are static: run a device that learns them from a neighbour ({option})"
        if stream.modifier == MANAGEMENT and (reason := self._no_agent()):
            return reason
        if stream.modifier and stream.modifier not in SECTIONS and self._under_test.name != _FILTERING:
            return f"{self.title} filters nothing: run the packet filter as the device (--dut {_FILTERING})"
        encapsulation, is_ipv6 = self._file.encapsulation, stream.protocol == "IPv6"
        if encapsulation.title:
            least = min_test_frame_bytes(6 if is_ipv6 else 4, encapsulation)
            if reason := mix_refused(stream, least, f"{stream.protocol} ({encapsulation.title})"):
                return reason
        if isinstance(self._file, NamespacesFile):
            if is_ipv6 and not self._file.ipv6:
                return "the test bed has no IPv6: set ipv6 = true in its file"
            if stream.networks > self._file.networks:
                return f"the test bed has {self._file.networks} networks at each side: raise networks in its file"
        return ""

    @contextmanager
    def prepared(self, stream: Stream, phases: TrialProfile) -> Iterator[Evaluator]:
        """Return the evaluator for a stream, with the pauses of RFC 2544 sec. 23."""
        measure = self._ready("" if stream.modifier in SECTIONS else stream.modifier)
        view = _view(measure, stream)
        if stream.modifier == ROUTING_UPDATES:
            device = measure.bed.device
            assert isinstance(device, RoutingDevice)
            view = view.with_condition(device.routing_updates())
        with ExitStack() as stream_stack:
            if stream.modifier == MANAGEMENT:
                queries = ManagementQueries(measure.bed.ports[0].netns, _first_address(measure))
                view = view.with_condition(stream_stack.enter_context(closing(queries)))
            yield view.with_phases(_phases(phases))

    @property
    def no_floor(self) -> str:
        """Reason that the floor cannot be measured: the cables of a lab join the tester to the device."""
        if isinstance(self._file, NamespacesFile):
            return ""
        return "the ports of this test bed are joined to the device; `routecast testbed selftest` measures the tester"

    def floor(self, stream: Stream, phases: TrialProfile) -> Evaluator:
        """Return the evaluator of a wire on the cores of this bed, beside the idle device."""
        assert isinstance(self._file, NamespacesFile)
        return _Floor(file=self._file, beside=self._ready(self._modifier).bed, stream=stream, phases=phases)

    def device(self) -> Mapping[str, object]:
        """Return the facts of the device under test (RFC 2544 sec. 7)."""
        device = self._facts.get("device", {})
        assert isinstance(device, Mapping)
        return {"name": self._under_test.name, "title": self.title, **device}

    def tester(self) -> Mapping[str, object]:
        """Return the facts of tester and test bed."""
        return {name: value for name, value in self._facts.items() if name != "device"}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._measure = None
        self._open.close()

    def _ready(self, modifier: str) -> Measure:
        """Return the evaluator on the open test bed, or on a new bed if the device needs other filters."""
        if self._measure is not None and modifier == self._modifier:
            return self._measure
        self._measure = None
        self._open.close()
        self._try_meter()
        options = dict(self._options)
        if modifier:
            options["rules"] = int(modifier.split(maxsplit=1)[0]) - 1  # the last condition accepts
        self._measure, self._modifier = (
            self._open.enter_context(open_testbed(**self._opening, options=options)),
            modifier,
        )
        if not self._facts:
            self._facts = self._measure.facts()
        return self._measure

    def _no_agent(self) -> str:
        """Return the message that no SNMP agent answers at the device; empty if an agent answers."""
        if isinstance(self._file, NamespacesFile):
            # The option starts an agent, and the device does not start without its answer.
            chosen = getattr(self._under_test, "chosen", None)
            if getattr(chosen, "snmp", False):
                return ""
            address = port_addresses(0).router_ipv4.partition("/")[0]
            advice = ": let the device run one (--dut-option snmp=true)" if hasattr(chosen, "snmp") else ""
            return f"no SNMP agent answers at {address}{advice}"
        if self._agent_answers is None:
            with open_testbed(**self._opening, options=self._options) as measure:
                address = _first_address(measure)
                self._agent_answers = bool(address) and is_answered(measure.bed.ports[0].netns, address)
                self._agent_address = (
                    address or "the device, whose address the test bed's file does not give (dut_ipv4)"
                )
        return "" if self._agent_answers else f"no SNMP agent answers at {self._agent_address}"

    def _try_meter(self) -> None:
        """Refuse an unreadable meter before the test bed is up, and report once why there is no meter."""
        if self._facts:
            return
        meter, no_power = meter_for(self._file.power, self._power)
        if meter is not None:
            checked_meter(meter)
        elif no_power:
            self._on_remark(no_power)


def _first_address(measure: Measure) -> str:
    """Return the device's address at the port where test frames enter it."""
    return measure.bed.site.ports[0].ipv4.partition("/")[0]


def _view(measure: Measure, stream: Stream) -> Measure:
    """Return the evaluator with the protocol, networks and broadcast frames of a stream."""
    view = measure.with_ip(6 if stream.protocol == "IPv6" else 4).over_networks(stream.networks)
    return view.with_broadcast(BROADCAST_RATIO) if stream.modifier == BROADCAST else view


def _phases(phases: TrialProfile) -> Phases:
    return Phases(wait_before_s=phases.before, residual_wait_s=phases.residual, restabilise_s=phases.settle)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Floor:
    """Evaluator of a wire without a device, which exists for one trial.

    The core of the bed's generator sends. The core of the bed's receiver receives, or that of the device if the
    receiver has no core of its own, with priority over a device that polls.
    """

    file: NamespacesFile
    beside: Bed
    stream: Stream
    phases: TrialProfile

    def trial(self, load: OfferedLoad, duration_s: float) -> Trial:
        placement = self.beside.placement
        receiver = placement.receiver if placement.receiver is not None or placement.is_shared else placement.dut
        changes = {
            "name": f"{self.file.name}-floor",
            "cores": Cores(tester=placement.tester, receiver=receiver, dut=placement.dut),
            "priority": min(self.file.priority + 1, 98) if self.file.priority else 0,
            "power": None,
        }
        bed = BackToBack(self.file.model_copy(update=changes), Wire())
        bed.beside, bed.share_cores = self.beside.name, True
        with bed, Measure(bed, retries=0, phases=replace(_phases(self.phases), learning_frames=0)) as measure:
            return _view(measure, self.stream).trial(load, duration_s)
