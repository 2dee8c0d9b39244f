"""Measure: the evaluator on the wire."""

from __future__ import annotations

import itertools
import json
import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any, Literal, Self

from routecast.errors import EnvironmentProblem, FileProblem, ModelProblem, Problem, RoutecastError
from routecast.evaluate.trial import Trial
from routecast.load.offered import OfferedLoad
from routecast.quantity import format_duration, format_pps
from routecast.quantity.did_you_mean import did_you_mean
from routecast.quantity.schema import field, value
from routecast.testbed._counted import Slice, counted, windows
from routecast.testbed._links import wait_for_frames
from routecast.testbed._measured import trial_of
from routecast.testbed._watch import MachineSnapshot, Watch
from routecast.testbed.bed import Bed
from routecast.testbed.checks import BEFORE_THE_RESET, Limits, Seen, stream_ports
from routecast.testbed.conditions import Condition, RoutingDevice, during
from routecast.testbed.meters.meter import MeteredTrial, PowerMeter
from routecast.testbed.streams import Addressing, Streams, as_recorded, learning_streams, streams_of
from routecast.testbed.tester import BACK_ENDS, Tester, error_text, notes_of, open_tester

__all__ = ["Measure", "Phases"]


@value
class Phases:
    """The phases of a trial around the counted frames (RFC 2544 sec. 23).

    The phases of a trial (RFC 2544 sec. 23).
    """

    # Frames that each receiving port sends first, so that the device knows where it is; 0 for none.
    learning_frames: int = 4
    # Without one, they are sent only if the device may not know them: before the first trial, after a reset, after a
    # minute.
    wait_before_s: float = field("Pause after them", default=0.0)
    warmup_s: float = field("How long frames are sent before they are counted", default=0.0)
    residual_wait_s: float = field("Pause for frames that are still in the device", default=0.05)
    restabilise_s: float = field("Pause after the trial, before the next one", default=0.0)

    def __post_init__(self) -> None:
        problems = [
            Problem(name, f"got {value}: a pause is a number of seconds >= 0")
            for name in ("wait_before_s", "warmup_s", "residual_wait_s", "restabilise_s")
            if not (math.isfinite(value := getattr(self, name)) and value >= 0.0)
        ]
        if not 0 <= self.learning_frames <= 1000:
            problems.append(Problem("learning_frames", f"got {self.learning_frames}: 0 to 1000 frames"))
        if problems:
            raise ModelProblem("phases of a trial", problems)

    @classmethod
    def rfc2544(cls) -> Phases:
        """Pauses as RFC 2544 sec. 23 has them: 2 s after learning, 2 s for residual frames, 5 s to restabilise."""
        return cls(wait_before_s=2.0, residual_wait_s=2.0, restabilise_s=5.0)


_LEARNING_PPS = 5_000.0
_REMEMBERED_S = 60.0
"""How long a device is taken to know its neighbours; bridges forget after 300 s (IEEE 802.1D table 7-5)."""

_TRIAL_IDS = 128

_ALMOST_RATIO = 1.0 - 1e-9
_MOST_SLICES = 10_000
"""A slice takes the tester some milliseconds besides."""


class Sender:
    """Sends what it is asked to from the ports of a bed; an evaluator and all its views share one.

    ``bed``: a test bed that is up; ``back_end``: one of :data:`~routecast.testbed.tester.BACK_ENDS`; ``tester``: opens
    the tester for a configuration.
    """

    def __init__(self, bed: Bed, *, back_end: str, tester: Callable[[Mapping[str, Any]], Tester]) -> None:
        self._bed = bed
        self._back_end = back_end
        self._opener = tester
        self._tester: Tester | None = None
        self._watch: Watch | None = None
        self._marks = itertools.count(1)
        self._learnt: dict[str, float] = {}

    @property
    def cores(self) -> dict[str, int]:
        """CPUs of the tester and, unless it is on the bench and has its own, of the device."""
        cores = {"tester": self._bed.placement.tester}
        if self._bed.site.cpu is not None:
            cores["dut"] = self._bed.site.cpu
            cores |= {f"dut {number}": core for number, core in enumerate(self._bed.site.more_cpus, start=2)}
        return cores

    def open(self) -> None:
        """Open the tester and what watches it; once it is open, nothing happens.

        Raises EnvironmentProblem: a right, an interface or a kernel feature is missing.
        """
        if self._tester is None:
            ports = self._bed.ports
            self._tester = self._opener(self._bed.tester_configuration(self._back_end))
            try:
                self._bed.settle()
                self._watch = Watch(
                    [*(port.netns for port in ports), self._bed.site.netns],
                    list(self.cores.values()),
                    device_netns=self._bed.site.netns,
                )
            except BaseException:
                self.close()
                raise

    def close(self) -> None:
        """Let go of the ports."""
        if self._watch is not None:
            self._watch.close()
            self._watch = None
        if self._tester is not None:
            self._tester.close()
            self._tester = None

    def facts(self) -> Mapping[str, object]:
        """Return what the tester is made of; nothing while it is closed."""
        facts: Mapping[str, object] = json.loads(self._tester.facts()) if self._tester is not None else {}
        return facts

    def notes(self) -> tuple[str, ...]:
        """Return what the reader of a trial must know of the open tester."""
        return notes_of(self.facts())

    def ask(
        self, request: Mapping[str, Any], *, seed: int, progress: Callable[[float], object] | None = None
    ) -> Mapping[str, Any]:
        """Return the outcome of a request, which gets the wires' rate, a seed and a mark of its own.

        Raises EnvironmentProblem: the tester failed.
        """
        assert self._tester is not None
        wires = [port.wire_bps for port in self._bed.ports if port.is_virtual]
        whole = {
            **request,
            "wire_bps": min(wires) if wires else None,
            "seed": seed,
            "trial_id": next(self._marks) % _TRIAL_IDS,
        }
        try:
            outcome: Mapping[str, Any] = json.loads(self._tester.trial(json.dumps(whole), progress))
        except RoutecastError:
            raise
        except Exception as problem:
            if type(problem).__name__ != "TesterError":
                raise
            raise EnvironmentProblem(f"the tester failed: {error_text(problem)}") from problem
        return outcome

    def learn(self, streams: Streams, phases: Phases, *, seed: int) -> None:
        """Send learning frames, unless the device has just had the same ones and no pause is to follow them."""
        frames = phases.learning_frames
        learning = learning_streams(streams, self._bed.ports, frames=frames, rate_pps=_LEARNING_PPS)
        what = json.dumps([stream["flows"] for stream in learning])
        now_s = time.monotonic()
        is_known = now_s - self._learnt.get(what, -math.inf) < _REMEMBERED_S
        if frames and not (is_known and phases.wait_before_s == 0.0):
            request = {"duration_s": frames / _LEARNING_PPS, "wait_s": 0.0, "streams": learning}
            self.ask(request, seed=seed)
            self._learnt[what] = now_s

    def forget(self) -> None:
        """Take the device to know none of its neighbours."""
        self._learnt.clear()

    def read(self) -> MachineSnapshot:
        """Return what the links, the CPUs and the device have counted so far."""
        assert self._watch is not None
        return self._watch.read(self._bed.device_threads(), dict(self._bed.device.counters()))


_BETWEEN_ATTEMPTS_S = 0.2
_KERNELS_OWN_FRAMES = 8


class Measure:
    """Answers for a load by sending it to a real router: an ``Evaluator``, ``Described`` and ``Resettable``.

    Use it as a context, inside that of its bed.

    Parameters
    ----------
    bed : Bed
        A test bed that is up.
    seed : int
        Of ports, destinations and Poisson gaps.
    version : {4, 6}
        Of IP.
    networks : int
        Destination networks (RFC 2544 sec. 12: 1, then 256).
    phases : Phases
    limits : Limits
    retries : int
        How often an invalid trial is run again.
    slice_s : float, optional
        Longest piece in which a trial is sent; counts of the pieces are added up. None: in one piece.
    over_time : bool
        Whether trials say how they went over time: :attr:`~routecast.evaluate.Trial.over_time`.
    back_end : str
        How frames are sent: ``"auto"``, ``"live"``, ``"af_xdp"``, ``"af_packet"``.
    on_progress : callable, optional
        Told the finished share of a trial, 0..1.
    on_slice : callable, optional
        Told each slice of a trial as it ends.
    meter : PowerMeter, optional
        Read while frames are sent: trials carry watts.
    no_power : str
        Why there is no meter although one was asked for; a note of each trial.
    tester : callable
        Opens the tester for a configuration.
    """

    def __init__(
        self,
        bed: Bed,
        *,
        seed: int = 1,
        version: Literal[4, 6] = 4,
        networks: int = 1,
        phases: Phases | None = None,
        limits: Limits | None = None,
        retries: int = 2,
        slice_s: float | None = None,
        over_time: bool = False,
        back_end: str = "auto",
        on_progress: Callable[[float], object] | None = None,
        on_slice: Callable[[Slice], object] | None = None,
        meter: PowerMeter | None = None,
        no_power: str = "",
        tester: Callable[[Mapping[str, Any]], Tester] = open_tester,
    ) -> None:
        if back_end not in BACK_ENDS:
            what = f"got {back_end!r}: {did_you_mean(back_end, BACK_ENDS)}"
            raise ModelProblem("measure", [Problem("back_end", what)])
        if retries < 0 or (slice_s is not None and not slice_s > 0.0):
            what = f"retries {retries}, slice_s {slice_s}: retries are >= 0, a slice is longer than 0 s"
            raise ModelProblem("measure", [Problem("", what)])
        self.bed = bed
        self.phases = phases or Phases()
        self.limits = limits or Limits()
        self.retries = retries
        self.slice_s = slice_s
        self.over_time = over_time
        self.on_progress = on_progress
        self.on_slice = on_slice
        self.meter = meter
        self.no_power = no_power
        self._routing = device if isinstance(device := bed.device, RoutingDevice) and device.learns_routes else None
        self._addressing = Addressing(
            layer=bed.layer,
            version=version,
            networks=networks,
            seed=seed,
            encapsulation=bed.encapsulation,
            are_learnt=self._routing is not None,
        )
        self._condition: Condition | None = None
        self._sender = Sender(bed, back_end=back_end, tester=tester)
        self._is_view = False

    @property
    def reset_kinds(self) -> tuple[str, ...]:
        """Kinds of reset of the device (RFC 6201)."""
        return tuple(self.bed.device.reset_kinds)

    def over_networks(self, networks: int) -> Measure:
        """Return a view of this evaluator whose frames go to so many networks (RFC 2544 sec. 12)."""
        return self._view(replace(self._addressing, networks=networks))

    def with_ip(self, version: Literal[4, 6]) -> Measure:
        """Return a view of this evaluator that sends IPv4 or IPv6."""
        return self._view(replace(self._addressing, version=version))

    def with_broadcast(self, ratio: float) -> Measure:
        """Return a view of this evaluator that sends such a share of each load as broadcast frames (sec. 11.1).

        Its trials count the other frames alone, and say nothing of their course over time.
        """
        view = self._view(replace(self._addressing, broadcast_ratio=ratio))
        view.over_time = False
        return view

    def with_condition(self, condition: Condition) -> Measure:
        """Return a view of this evaluator that sends something to the device each second (sec. 11.2, 11.3)."""
        view = self._view(self._addressing)
        view._condition = condition
        return view

    def with_phases(self, phases: Phases) -> Measure:
        """Return a view of this evaluator with other pauses around each trial."""
        view = self._view(self._addressing)
        view.phases = phases
        return view

    def attempted_once(self) -> Measure:
        """Return a view of this evaluator that runs no trial again."""
        view = self._view(self._addressing)
        view.retries = 0
        return view

    def open(self) -> Self:
        """Open the tester; the context does it too."""
        self._sender.open()
        return self

    def close(self) -> None:
        """Let go of the ports."""
        if not self._is_view:
            self._sender.close()

    def __enter__(self) -> Self:
        return self.open()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def trial(self, load: OfferedLoad, duration_s: float) -> Trial:
        """Send ``load`` for ``duration_s`` seconds; run an invalid trial again.

        Raises
        ------
        routecast.errors.ModelProblem
            The bed cannot send this load.
        routecast.errors.EnvironmentProblem
            The tester or the device failed.
        """
        load = as_recorded(load)
        streams = self._streams(load, duration_s)
        attempt = 0
        while True:
            attempt += 1
            trial = self._attempt(load, duration_s, streams)
            if trial.is_valid or attempt > self.retries:
                return replace(trial, attempts=attempt)
            time.sleep(_BETWEEN_ATTEMPTS_S * attempt)

    def reset_trial(self, load: OfferedLoad, duration_s: float, *, kind: str, at_s: float) -> Trial:
        """Send ``load`` for ``duration_s`` seconds and reset the device ``at_s`` seconds after the start (RFC 6201).

        Raises
        ------
        routecast.errors.FileProblem
            The device has no such reset, or the instant is not within the trial.
        """
        if kind not in self.reset_kinds:
            allowed = ", ".join(self.reset_kinds) or "none for this device"
            raise FileProblem("reset", [Problem("kind", f"got {kind!r}: allowed are {allowed}")])
        if not 0.0 < at_s < duration_s:
            what = f"got {at_s}: it lies within the trial of {duration_s} s"
            raise FileProblem("reset", [Problem("at_s", what)])
        streams = self._streams(load, duration_s)
        # The kernel sends a frame of its own now and then, which must not be taken for the trial's first.
        begun = max(1, min(_KERNELS_OWN_FRAMES, round(0.01 * streams.wanted_pps[0])))
        failed: list[BaseException] = []
        done = threading.Event()
        happened = threading.Event()

        def reset() -> None:
            try:
                # The tester may have to wait for its turn on a core.
                port = self.bed.ports[streams.streams[0]["port"]]
                wait_for_frames(port.netns, port.interface, done, frames=begun)
                if done.wait(self.phases.warmup_s + at_s):
                    return
                happened.set()
                self.bed.device.restart(kind)
                self.bed.settle()
            except BaseException as problem:  # raised again below, in the thread that asked
                failed.append(problem)

        thread = threading.Thread(target=reset, name="reset")
        try:
            trial = self._attempt(load, duration_s, streams, beside=thread, is_reset=True)
        finally:
            done.set()
            self._sender.forget()  # a reset may make the device forget
            if thread.ident is not None:
                thread.join()
        if failed:
            raise failed[0]
        if not happened.is_set():
            trial = replace(trial, invalid=(*trial.invalid, BEFORE_THE_RESET))
        return replace(trial, notes=(f"reset of the {kind} {at_s:g} s after the start (RFC 6201)", *trial.notes))

    def facts(self) -> Mapping[str, object]:
        """Return what answers: the device, the bed, the tester, and how trials are run (RFC 2544 sec. 7)."""
        return {
            "evaluator": "measure",
            "device": dict(self.bed.device.facts()),
            "bed": dict(self.bed.facts()),
            "tester": self._sender.facts(),
            "power": None if self.meter is None else {"meter": self.meter.name, "scope": self.meter.scope},
            "trial": {
                "learning_frames": self.phases.learning_frames,
                "wait_before_s": self.phases.wait_before_s,
                "warmup_s": self.phases.warmup_s,
                "residual_wait_s": self.phases.residual_wait_s,
                "restabilise_s": self.phases.restabilise_s,
                "retries": self.retries,
                "slice_s": self.slice_s,
                "ip_version": self._addressing.version,
                "networks": self._addressing.networks,
                "seed": self._addressing.seed,
            },
        }

    def announcement(self, load: OfferedLoad) -> tuple[str, ...]:
        """Return in words what will be sent where."""
        lines = []
        load = as_recorded(load)
        streams = streams_of(load, self.bed.ports, self._addressing)
        for stream, rate in zip(streams.streams, streams.wanted_pps, strict=True):
            port, flow = self.bed.ports[stream["port"]], stream["flows"][0]
            lines.append(
                f"sending from {port.interface} ({flow['source_mac']}, {flow['source_address']}) to "
                f"{flow['destination_mac']}, {flow['destination_address']}"
                f"{' and others' if len(stream['flows']) > 1 else ''}: {load.frames.name}, {rate:,.0f} frames/s"
            )
        return tuple(lines)

    def _view(self, addressing: Addressing) -> Measure:
        self.open()
        view = Measure(
            self.bed,
            phases=self.phases,
            limits=self.limits,
            retries=self.retries,
            slice_s=self.slice_s,
            over_time=self.over_time,
            on_progress=self.on_progress,
            on_slice=self.on_slice,
            meter=self.meter,
            no_power=self.no_power,
        )
        view._addressing, view._condition = addressing, self._condition
        view._sender, view._is_view = self._sender, True
        return view

    def _streams(self, load: OfferedLoad, duration_s: float) -> Streams:
        if not (math.isfinite(duration_s) and duration_s > 0.0):
            raise ModelProblem("trial", [Problem("duration_s", f"got {duration_s}: a number of seconds > 0")])
        problems = list(self._too_short(load, duration_s))
        if problems:
            raise ModelProblem("trial", problems)
        return streams_of(load, self.bed.ports, self._addressing)

    def _too_short(self, load: OfferedLoad, duration_s: float) -> Iterator[Problem]:
        """Report a time in which not one frame is sent: the tester would send one, at a rate that nobody asked for."""
        if load.steps:
            return
        least_s = 1.0 / load.rate_pps
        advice = f"give at least {format_duration(least_s)}, or a higher rate"
        if duration_s < least_s * _ALMOST_RATIO:
            got = f"got {format_duration(duration_s)}, in which {format_pps(load.rate_pps)} are not one frame"
            yield Problem("duration_s", f"{got}: {advice}")
        elif self.slice_s is not None and self.slice_s < duration_s:
            if self.slice_s < least_s * _ALMOST_RATIO:
                got = f"got {format_duration(self.slice_s)}, in which {format_pps(load.rate_pps)} are not one frame"
                yield Problem("slice_s", f"{got}: {advice}")
            elif duration_s > _MOST_SLICES * self.slice_s:
                least = format_duration(duration_s / _MOST_SLICES)
                got = f"got {format_duration(self.slice_s)}: a trial is sent in at most {_MOST_SLICES:,} slices"
                yield Problem("slice_s", f"{got}, give at least {least}")

    def _attempt(
        self,
        load: OfferedLoad,
        duration_s: float,
        streams: Streams,
        *,
        beside: threading.Thread | None = None,
        is_reset: bool = False,
    ) -> Trial:
        self.open()
        self.bed.settle_again()
        if self._routing is not None:
            self._routing.announce()  # RFC 2544 sec. 13, 23 a
            time.sleep(self.phases.wait_before_s)
        self._sender.learn(streams, self.phases, seed=self._addressing.seed)
        time.sleep(self.phases.wait_before_s)
        before = self._sender.read()
        pieces = [duration_s]
        is_divisible = not load.steps and load.arrivals.kind != "trace"
        if self.slice_s is not None and duration_s > self.slice_s and is_divisible and not is_reset:
            number = math.ceil(duration_s / self.slice_s)
            pieces = [duration_s / number] * number
        slices: list[Slice] = []
        with MeteredTrial(self.meter, self.no_power) as metered, during(self._condition) as ticks:
            for number, piece_s in enumerate(pieces):
                from_s = math.fsum(pieces[:number])
                outcome = self._send(streams, piece_s, from_s=from_s, of_s=duration_s, beside=beside)
                slices.append(Slice(outcome=outcome, from_s=from_s, duration_s=piece_s))
                if self.on_slice is not None:
                    self.on_slice(slices[-1])
        seen = Seen(
            slices=slices,
            counted=counted(slices),
            before=before,
            after=self._sender.read(),
            ports=self.bed.ports,
            receiving=sorted(set(stream_ports(streams.streams))),
            cores=self._sender.cores,
            device_netns=self.bed.site.netns,
            device_ports=[port.link for port in self.bed.site.ports],
            beside_generator=self.bed.beside_generator(),
            limits=self.limits,
            is_reset=is_reset,
        )
        notes = [*self._sender.notes(), *self.bed.notes_for({stream["port"] for stream in streams.streams})]
        if len(pieces) > 1:
            notes.append(f"sent in {len(pieces)} slices of {pieces[0]:g} s, whose counts are added up")
        trial = metered.add_power(trial_of(load, duration_s, streams, seen, notes=notes), windows(slices))
        if streams.beside:
            trial = _with_broadcast(trial, slices)
        if self._condition is not None:
            trial = self._condition.onto(trial, ticks.due)
        time.sleep(self.phases.restabilise_s)
        return trial

    def _send(
        self, streams: Streams, duration_s: float, *, from_s: float, of_s: float, beside: threading.Thread | None
    ) -> Mapping[str, Any]:
        def progress(share: float) -> None:
            if self.on_progress is not None:
                self.on_progress((from_s + share * duration_s) / of_s)

        # A burst of so few frames that not one of them is a broadcast frame has none.
        broadcast = [stream for stream in streams.beside if stream["rate_pps"] * duration_s >= _ALMOST_RATIO]
        request = {
            "duration_s": duration_s,
            "warmup_s": self.phases.warmup_s,
            "wait_s": self.phases.residual_wait_s,
            "over_time": self.over_time,
            "streams": [*streams.streams, *broadcast],
        }
        if beside is not None:
            beside.start()
        outcome = self._sender.ask(request, seed=self._addressing.seed, progress=progress)
        number = len(streams.streams)
        return {
            **outcome,
            "streams": outcome["streams"][:number],
            "beside": outcome["streams"][number:],
            "ports": [int(stream["port"]) for stream in streams.streams],
            "to_ports": stream_ports(streams.streams),
            "is_even": [stream["schedule"]["kind"] == "cbr" and not stream["steps"] for stream in streams.streams],
        }


_SHORT_RATIO = 0.01


def _with_broadcast(trial: Trial, slices: Sequence[Slice]) -> Trial:
    """Say how many broadcast frames were sent beside the test frames; a trial with too few of them is no result."""
    streams = [stream for part in slices for stream in part.outcome["beside"]]
    sent, intended = (sum(int(stream[name]) for stream in streams) for name in ("sent_frames", "intended_frames"))
    share = sent / (sent + (trial.offered_frames or 0)) if sent else 0.0
    note = f"{sent:,} broadcast frames were sent besides ({share:.2%} of all; RFC 2544 sec. 11.1); they are not counted"
    few = intended - sent > max(float(len(streams)), _SHORT_RATIO * intended)
    reasons = (f"the tester sent {sent:,} of {intended:,} broadcast frames",) if few else ()
    # Where nothing is lost, what the device dropped are the broadcast frames.
    places = trial.drops_pps if trial.dropped_frames else {}
    return replace(trial, drops_pps=places, notes=(*trial.notes, note), invalid=(*trial.invalid, *reasons))
