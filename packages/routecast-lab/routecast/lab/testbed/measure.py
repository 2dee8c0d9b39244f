"""Measure: the evaluator that sends trials over a test bed."""

from __future__ import annotations

import contextlib
import itertools
import json
import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, Self

from routecast.errors import EnvironmentProblem, FileProblem, ModelProblem, Problem, RoutecastError
from routecast.evaluate.trial import Trial
from routecast.lab.testbed._counts import Slice, slice_windows_s, trial_counts
from routecast.lab.testbed._measured import trial_of
from routecast.lab.testbed._snapshots import MachineSnapshot, SnapshotReader
from routecast.lab.testbed.bed import Bed
from routecast.lab.testbed.checks import Limits, TrialRecord, reset_reasons
from routecast.lab.testbed.conditions import Condition, RoutingDevice, during
from routecast.lab.testbed.devices.lifecycle import StartedDevice
from routecast.lab.testbed.links import wait_for_frames
from routecast.lab.testbed.meters._meter import Metering, PowerMeter
from routecast.lab.testbed.streams import Addressing, Streams, learning_streams, streams_of
from routecast.lab.testbed.tester import BACK_ENDS, Tester, error_text, notes_of, open_tester
from routecast.lab.testbed.throttling import RealTimeThrottle
from routecast.load.offered import OfferedLoad
from routecast.progress import ShareProgress
from routecast.quantity import format_duration, format_pps
from routecast.quantity.did_you_mean import did_you_mean
from routecast.quantity.schema import field, value

__all__ = ["Measure", "Phases"]

_LEARNING_PPS = 5_000.0
_LEARNT_FOR_S = 60.0
"""Time for which a device remembers its neighbours; bridges forget after 300 s (IEEE 802.1D table 7-5)."""

_TRIAL_ID_COUNT = 128
_ROUNDING_RATIO = 1.0 - 1e-9
_MAX_SLICES = 10_000
"""Each slice costs the tester some milliseconds."""

_RETRY_PAUSE_S = 0.2
_KERNEL_FRAMES = 8
_SHORTFALL_RATIO = 0.01


@value
class Phases:
    """The phases of a trial around the counted frames (RFC 2544 sec. 23)."""

    learning_frames: int = field(
        "Frames that each receiving port sends first, so that the device learns its address; 0 for none", default=4
    )
    wait_before_s: float = field(
        "Pause after them; at 0, they are sent only if the device may not know the addresses: before the first trial, "
        "after a reset, after a minute",
        default=0.0,
    )
    warmup_s: float = field("Time in which frames are sent and not counted", default=0.0)
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
        """Return the pauses of RFC 2544 sec. 23: 2 s after learning, 2 s for residual frames, 5 s to restabilise."""
        return cls(wait_before_s=2.0, residual_wait_s=2.0, restabilise_s=5.0)


class Sender:
    """Sends requests from the ports of a bed that is up; an evaluator and all its views share one.

    ``back_end`` is one of :data:`~routecast.lab.testbed.tester.BACK_ENDS`; ``tester`` opens the tester of a
    configuration.
    """

    def __init__(self, bed: Bed, *, back_end: str, tester: Callable[[Mapping[str, Any]], Tester]) -> None:
        self._bed = bed
        self._back_end = back_end
        self._open_tester = tester
        self._tester: Tester | None = None
        self._snapshots: SnapshotReader | None = None
        self._trial_ids = itertools.count(1)
        self._learnt_at_s: dict[str, float] = {}

    @property
    def cores(self) -> dict[str, int]:
        """Cores of the tester and of the device; an external device has none here."""
        cores = {"tester": self._bed.placement.tester}
        if self._bed.site.cpu is not None:
            cores["dut"] = self._bed.site.cpu
            cores |= {f"dut {number}": core for number, core in enumerate(self._bed.site.more_cpus, start=2)}
        return cores

    def open(self) -> None:
        """Open the tester and the watch; an open tester stays as it is.

        Raises EnvironmentProblem: a right, an interface or a kernel feature is missing.
        """
        if self._tester is None:
            ports = self._bed.ports
            self._tester = self._open_tester(self._bed.tester_configuration(self._back_end))
            try:
                self._bed.bind_threads()
                self._snapshots = SnapshotReader(
                    [*(port.netns for port in ports), self._bed.site.netns],
                    list(self.cores.values()),
                    device_netns=self._bed.site.netns,
                )
            except BaseException:
                self.close()
                raise

    def close(self) -> None:
        """Release the ports."""
        if self._snapshots is not None:
            self._snapshots.close()
            self._snapshots = None
        if self._tester is not None:
            self._tester.close()
            self._tester = None

    def facts(self) -> Mapping[str, object]:
        """Return the facts of the open tester; empty while it is closed."""
        facts: Mapping[str, object] = json.loads(self._tester.facts()) if self._tester is not None else {}
        return facts

    def notes(self) -> tuple[str, ...]:
        """Return the notes on trials of the open tester."""
        return notes_of(self.facts())

    def send(
        self, request: Mapping[str, Any], *, seed: int, on_progress: ShareProgress | None = None
    ) -> Mapping[str, Any]:
        """Return the outcome of a request, after adding the wires' rate, a seed and a trial id.

        Raises EnvironmentProblem: the tester failed.
        """
        assert self._tester is not None
        wires = [port.wire_bps for port in self._bed.ports if port.is_virtual]
        complete = {
            **request,
            "wire_bps": min(wires) if wires else None,
            "seed": seed,
            "trial_id": next(self._trial_ids) % _TRIAL_ID_COUNT,
        }
        try:
            outcome: Mapping[str, Any] = json.loads(self._tester.trial(json.dumps(complete), on_progress))
        except RoutecastError:
            raise
        except Exception as problem:
            if type(problem).__name__ != "TesterError":
                raise
            raise EnvironmentProblem(f"the tester failed: {error_text(problem)}") from problem
        return outcome

    def learn(self, streams: Streams, phases: Phases, *, seed: int) -> None:
        """Send learning frames, unless the device received the same frames recently and no pause follows them."""
        frames = phases.learning_frames
        learning = learning_streams(streams, self._bed.ports, frames=frames, rate_pps=_LEARNING_PPS)
        key = json.dumps([stream["flows"] for stream in learning])
        now_s = time.monotonic()
        is_learnt = now_s - self._learnt_at_s.get(key, -math.inf) < _LEARNT_FOR_S
        if frames and not (is_learnt and phases.wait_before_s == 0.0):
            request = {"duration_s": frames / _LEARNING_PPS, "wait_s": 0.0, "streams": learning}
            self.send(request, seed=seed)
            self._learnt_at_s[key] = now_s

    def forget(self) -> None:
        """Forget which addresses the device knows."""
        self._learnt_at_s.clear()

    def read(self) -> MachineSnapshot:
        """Return a snapshot of links, cores and device."""
        assert self._snapshots is not None
        return self._snapshots.read(self._bed.device_threads(), dict(self._bed.device.counters()))


@dataclass(slots=True)
class _ResetTimes:
    """Times of a reset on the monotonic clock, s; infinite where it did not happen."""

    first_frame_s: float = math.nan
    began_s: float = math.inf
    ended_s: float = math.inf


class Measure:
    """The evaluator that sends a load to a real router: an ``Evaluator``, ``Described`` and ``Resettable``.

    Use it as a context inside that of its bed.

    Parameters
    ----------
    bed : Bed
        A test bed that is up.
    seed : int
        Seed of ports, destinations and Poisson gaps.
    version : {4, 6}
        Version of IP.
    networks : int
        Destination networks (RFC 2544 sec. 12: 1, then 256).
    phases : Phases
    limits : Limits
    retries : int
        Repetitions of an invalid trial.
    slice_s : float, optional
        Longest slice in which a trial is sent; the counts of slices are added up. None: one slice.
    over_time : bool
        Whether trials have rates over time: :attr:`~routecast.evaluate.Trial.over_time`.
    back_end : str
        The back end that sends: ``"auto"``, ``"live"``, ``"af_xdp"``, ``"af_packet"``.
    on_progress : callable, optional
        Receives the finished share of a trial, 0..1.
    on_slice : callable, optional
        Receives each slice of a trial as it ends.
    meter : PowerMeter, optional
        Runs while frames are sent, so that trials carry watts.
    no_power : str
        Reason for a missing meter, which becomes a note of each trial.
    tester : callable
        Opens the tester of a configuration.
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
        on_progress: ShareProgress | None = None,
        on_slice: Callable[[Slice], object] | None = None,
        meter: PowerMeter | None = None,
        no_power: str = "",
        tester: Callable[[Mapping[str, Any]], Tester] = open_tester,
    ) -> None:
        if back_end not in BACK_ENDS:
            message = f"got {back_end!r}: {did_you_mean(back_end, BACK_ENDS)}"
            raise ModelProblem("measure", [Problem("back_end", message)])
        if retries < 0 or (slice_s is not None and not slice_s > 0.0):
            message = f"retries {retries}, slice_s {slice_s}: retries are >= 0, a slice is longer than 0 s"
            raise ModelProblem("measure", [Problem("", message)])
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
        """Return a view of this evaluator whose frames go to ``networks`` networks (RFC 2544 sec. 12)."""
        return self._view(_addressing=replace(self._addressing, networks=networks))

    def with_ip(self, version: Literal[4, 6]) -> Measure:
        """Return a view of this evaluator that sends IPv4 or IPv6."""
        return self._view(_addressing=replace(self._addressing, version=version))

    def with_broadcast(self, ratio: float) -> Measure:
        """Return a view of this evaluator that sends a share of each load as broadcast frames (RFC 2544 sec. 11.1).

        Its trials count the other frames alone, and have no rates over time.
        """
        return self._view(_addressing=replace(self._addressing, broadcast_ratio=ratio), over_time=False)

    def with_condition(self, condition: Condition) -> Measure:
        """Return a view of this evaluator with frames to the device each second (RFC 2544 sec. 11.2, 11.3)."""
        return self._view(_condition=condition)

    def with_phases(self, phases: Phases) -> Measure:
        """Return a view of this evaluator with other pauses around each trial."""
        return self._view(phases=phases)

    def attempted_once(self) -> Measure:
        """Return a view of this evaluator that repeats no trial."""
        return self._view(retries=0)

    def open(self) -> Self:
        """Open the tester, as the context does."""
        self._sender.open()
        return self

    def close(self) -> None:
        """Release the ports."""
        if not self._is_view:
            self._sender.close()

    def __enter__(self) -> Self:
        return self.open()

    def __exit__(self, *_: object) -> None:
        self.close()

    def trial(self, load: OfferedLoad, duration_s: float) -> Trial:
        """Send ``load`` for ``duration_s`` seconds; repeat an invalid trial.

        Raises
        ------
        routecast.errors.ModelProblem
            The bed cannot send this load.
        routecast.errors.EnvironmentProblem
            The tester or the device failed.
        """
        streams = self._streams(load, duration_s)
        return self._repeated(lambda: self._attempt(load, duration_s, streams))

    def _repeated(self, run: Callable[[], Trial]) -> Trial:
        """Run a trial again while it is invalid, at most ``retries`` times."""
        attempt = 1
        while not (trial := run()).is_valid and attempt <= self.retries:
            time.sleep(_RETRY_PAUSE_S * attempt)
            attempt += 1
        return replace(trial, attempts=attempt)

    def reset_trial(self, load: OfferedLoad, duration_s: float, *, kind: str, at_s: float) -> Trial:
        """Send ``load`` for ``duration_s`` seconds and reset the device ``at_s`` seconds after the start (RFC 6201).

        A trial is invalid, and repeated, if the reset took no effect within it.

        Raises
        ------
        routecast.errors.FileProblem
            The device has no such reset, or the instant is not within the trial.
        """
        if kind not in self.reset_kinds:
            allowed = ", ".join(self.reset_kinds) or "none for this device"
            raise FileProblem("reset", [Problem("kind", f"got {kind!r}: allowed are {allowed}")])
        if not 0.0 < at_s < duration_s:
            message = f"got {at_s}: a reset happens within the trial of {duration_s} s"
            raise FileProblem("reset", [Problem("at_s", message)])
        streams = self._streams(load, duration_s)
        return self._repeated(lambda: self._reset_attempt(load, duration_s, streams, kind=kind, at_s=at_s))

    def _reset_attempt(
        self, load: OfferedLoad, duration_s: float, streams: Streams, *, kind: str, at_s: float
    ) -> Trial:
        # The kernel sometimes sends a frame of its own, which must not count as the trial's first.
        first_frames = max(1, min(_KERNEL_FRAMES, round(0.01 * streams.sent_pps[0])))
        errors: list[BaseException] = []
        done = threading.Event()
        times = _ResetTimes()

        def reset() -> None:
            try:
                # The tester may start late if it has to wait for a core.
                port = self.bed.ports[streams.streams[0]["port"]]
                wait_for_frames(port.netns, port.interface, done, frames=first_frames)
                if done.wait(self.phases.warmup_s + at_s):
                    return
                times.began_s = time.monotonic()
                self.bed.device.restart(kind)
                times.ended_s = time.monotonic()
                self.bed.bind_threads()
            except BaseException as problem:  # raised again below, in the calling thread
                errors.append(problem)

        thread = threading.Thread(target=reset, name="reset")
        try:
            trial = self._attempt(load, duration_s, streams, reset=thread, reset_times=times)
        finally:
            done.set()
            self._sender.forget()  # a reset may make the device forget
            if thread.ident is not None:
                thread.join()
        if errors:
            raise errors[0]
        reasons = reset_reasons(
            trial,
            kind=kind,
            planned_s=at_s,
            began_s=times.began_s - times.first_frame_s,
            ended_s=times.ended_s - times.first_frame_s,
        )
        note = f"reset of the {kind} {at_s:g} s after the start (RFC 6201)"
        return replace(trial, invalid=(*trial.invalid, *reasons), notes=(note, *trial.notes))

    def facts(self) -> Mapping[str, object]:
        """Return the facts of device, bed, tester and trials for a report (RFC 2544 sec. 7)."""
        return {
            "evaluator": "measure",
            "device": dict(self.bed.device.facts()),
            "bed": dict(self.bed.facts()),
            "tester": self._sender.facts(),
            "power": None if self.meter is None else {"meter": self.meter.name, "scope": self.meter.scope},
            "trial": {
                **asdict(self.phases),
                "retries": self.retries,
                "slice_s": self.slice_s,
                "ip_version": self._addressing.version,
                "networks": self._addressing.networks,
                "seed": self._addressing.seed,
            },
        }

    def announcement(self, load: OfferedLoad) -> tuple[str, ...]:
        """Return a sentence for each stream with its port, addresses, frames and rate."""
        lines = []
        streams = streams_of(load, self.bed.ports, self._addressing)
        for stream, rate in zip(streams.streams, streams.sent_pps, strict=True):
            port, flow = self.bed.ports[stream["port"]], stream["flows"][0]
            lines.append(
                f"sending from {port.interface} ({flow['source_mac']}, {flow['source_address']}) to "
                f"{flow['destination_mac']}, {flow['destination_address']}"
                f"{' and others' if len(stream['flows']) > 1 else ''}: {load.frames.name}, {rate:,.0f} frames/s"
            )
        return tuple(lines)

    def _view(self, **changes: object) -> Measure:
        """Return a view: the same evaluator on the same tester, with other attributes."""
        self.open()
        view = copy(self)
        for name, change in {**changes, "_is_view": True}.items():
            setattr(view, name, change)
        return view

    def _streams(self, load: OfferedLoad, duration_s: float) -> Streams:
        if not (math.isfinite(duration_s) and duration_s > 0.0):
            raise ModelProblem("trial", [Problem("duration_s", f"got {duration_s}: a number of seconds > 0")])
        problems = list(_too_short_problems(load, duration_s, self.slice_s))
        if problems:
            raise ModelProblem("trial", problems)
        return streams_of(load, self.bed.ports, self._addressing)

    def _attempt(
        self,
        load: OfferedLoad,
        duration_s: float,
        streams: Streams,
        *,
        reset: threading.Thread | None = None,
        reset_times: _ResetTimes | None = None,
    ) -> Trial:
        is_reset = reset is not None
        self.open()
        self.bed.bind_replaced_threads()
        if self._routing is not None:
            self._routing.announce()  # RFC 2544 sec. 13, 23 a
            time.sleep(self.phases.wait_before_s)
        self._sender.learn(streams, self.phases, seed=self._addressing.seed)
        time.sleep(self.phases.wait_before_s)
        before = self._sender.read()
        slice_count = 1
        is_divisible = not load.steps and load.arrivals.kind != "trace"
        if self.slice_s is not None and duration_s > self.slice_s and is_divisible and not is_reset:
            slice_count = math.ceil(duration_s / self.slice_s)
        slice_s = duration_s / slice_count
        slices: list[Slice] = []
        device = self.bed.device
        running = (
            device.in_trial(self.phases.warmup_s + duration_s)
            if isinstance(device, StartedDevice)
            else contextlib.nullcontext()
        )
        with Metering(self.meter, self.no_power) as metered, during(self._condition) as ticks, running:
            for number in range(slice_count):
                from_s = math.fsum([slice_s] * number)
                outcome = self._send(streams, slice_s, from_s=from_s, trial_s=duration_s, reset=reset)
                slices.append(Slice(outcome=outcome, from_s=from_s, duration_s=slice_s))
                if self.on_slice is not None:
                    self.on_slice(slices[-1])
        if reset_times is not None:
            reset_times.first_frame_s = float(slices[0].outcome["clock"]["monotonic_s"])
        record = TrialRecord(
            slices=slices,
            counts=trial_counts(slices),
            before=before,
            after=self._sender.read(),
            ports=self.bed.ports,
            receiving=sorted({int(stream["to_port"]) for stream in streams.streams}),
            cores=self._sender.cores,
            device_netns=self.bed.site.netns,
            device_ports=[port.link for port in self.bed.site.ports],
            generator_core_workers=self.bed.generator_core_workers(),
            limits=self.limits,
            throttle=RealTimeThrottle.of_machine() if self.bed.priority > 0 else None,
            is_reset=is_reset,
        )
        notes = [*self._sender.notes(), *self.bed.notes_for({stream["port"] for stream in streams.streams})]
        if slice_count > 1:
            notes.append(f"sent in {slice_count} slices of {slice_s:g} s, whose counts are added up")
        trial = metered.add_power(trial_of(load, duration_s, streams, record, notes=notes), slice_windows_s(slices))
        if streams.broadcast:
            trial = _with_broadcast(trial, slices)
        if self._condition is not None:
            trial = self._condition.annotate(trial, ticks.due)
        time.sleep(self.phases.restabilise_s)
        return trial

    def _send(
        self, streams: Streams, duration_s: float, *, from_s: float, trial_s: float, reset: threading.Thread | None
    ) -> Mapping[str, Any]:
        def progress(share: float) -> None:
            if self.on_progress is not None:
                self.on_progress((from_s + share * duration_s) / trial_s)

        # A burst too short for one broadcast frame has none.
        broadcast = [stream for stream in streams.broadcast if stream["rate_pps"] * duration_s >= _ROUNDING_RATIO]
        request = {
            "duration_s": duration_s,
            "warmup_s": self.phases.warmup_s,
            "wait_s": self.phases.residual_wait_s,
            "over_time": self.over_time,
            "streams": [*streams.streams, *broadcast],
        }
        if reset is not None:
            reset.start()
        outcome = self._sender.send(request, seed=self._addressing.seed, on_progress=progress)
        number = len(streams.streams)
        return {
            **outcome,
            "streams": outcome["streams"][:number],
            "broadcast": outcome["streams"][number:],
            "ports": [int(stream["port"]) for stream in streams.streams],
            "to_ports": [int(stream["to_port"]) for stream in streams.streams],
            "is_even": [stream["schedule"]["kind"] == "cbr" and not stream["steps"] for stream in streams.streams],
        }


def _too_short_problems(load: OfferedLoad, duration_s: float, slice_s: float | None) -> Iterator[Problem]:
    """Report a time too short for a frame, in which the tester would send a frame at more than the load's rate."""
    if load.steps:
        return
    gap_s = 1.0 / load.rate_pps

    def problem_of(name: str, time_s: float) -> Problem:
        prefix = f"got {format_duration(time_s)}, in which {format_pps(load.rate_pps)} are not one frame"
        return Problem(name, f"{prefix}: give at least {format_duration(gap_s)}, or a higher rate")

    if duration_s < gap_s * _ROUNDING_RATIO:
        yield problem_of("duration_s", duration_s)
    elif slice_s is not None and slice_s < duration_s:
        if slice_s < gap_s * _ROUNDING_RATIO:
            yield problem_of("slice_s", slice_s)
        elif duration_s > _MAX_SLICES * slice_s:
            min_slice = format_duration(duration_s / _MAX_SLICES)
            prefix = f"got {format_duration(slice_s)}: a trial is sent in at most {_MAX_SLICES:,} slices"
            yield Problem("slice_s", f"{prefix}, give at least {min_slice}")


def _with_broadcast(trial: Trial, slices: Sequence[Slice]) -> Trial:
    """Note how many broadcast frames were sent besides the test frames; with too few, the trial is invalid."""
    streams = [stream for part in slices for stream in part.outcome["broadcast"]]
    sent, intended = (sum(int(stream[name]) for stream in streams) for name in ("sent_frames", "intended_frames"))
    share = sent / (sent + (trial.offered_frames or 0)) if sent else 0.0
    note = f"{sent:,} broadcast frames were sent besides ({share:.2%} of all; RFC 2544 sec. 11.1); they are not counted"
    is_short = intended - sent > max(float(len(streams)), _SHORTFALL_RATIO * intended)
    reasons = (f"the tester sent {sent:,} of {intended:,} broadcast frames",) if is_short else ()
    # If no test frame is lost, the device dropped broadcast frames only.
    drops_pps = trial.drops_pps if trial.dropped_frames else {}
    return replace(trial, drops_pps=drops_pps, notes=(*trial.notes, note), invalid=(*trial.invalid, *reasons))
