"""Cost of a frame at a task unit: work by frame, batch and interrupt, and the states of its idle units."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from statistics import fmean

from routecast.quantity.schema import field, value
from routecast.router.model import RouterModel, TaskUnit

SleepStates = Sequence[tuple[float, float]]

_WARM_UP = 16
_AVERAGED = 48
_MAX_CYCLES = 500
_SHORT_RATIO = 0.25
_MAX_EVEN_POLLS = 256
_MAX_INSERTIONS = 60
_SMALL_INSERTION = 1e-9


@value
class IdleTimes:
    """Mean times of a server in each state between the end of its work and the next start.

    ::

        last frame ── linger ──► released ── after ──► asleep ── frame ──► (wake-up) ──► waking ──► interrupt, work …
        |<------------------------- idle time ------------------------>|<------ set-up ------>|<-- busy period -->|

    With Poisson arrivals the idle time is exponential, so the probabilities of lingering to the end (``e^{-λ·linger}``)
    and of each sleep state follow directly; with equal gaps the idle time has a known length.
    """

    released: float = field("Probability that it releases its unit: the idle time outlasts the lingering", default=1.0)
    spin_s: float = field("Lingering, polling without frames", default=0.0)
    asleep_s: tuple[float, ...] = field("Time asleep by sleep state, s", default=())
    chances: tuple[float, ...] = field("Probability that the next frame finds it in each sleep state", default=())
    exit_s: float = field("Mean time to leave a sleep state, s", default=0.0)

    @staticmethod
    def mean_of(samples: Sequence[IdleTimes], weights: Sequence[float] | None = None) -> IdleTimes:
        """Return the mean of idle times, by default with equal weights."""
        return IdleTimes(
            released=fmean([times.released for times in samples], weights),
            spin_s=fmean([times.spin_s for times in samples], weights),
            asleep_s=tuple(fmean(state, weights) for state in zip(*(times.asleep_s for times in samples), strict=True)),
            chances=tuple(fmean(state, weights) for state in zip(*(times.chances for times in samples), strict=True)),
            exit_s=fmean([times.exit_s for times in samples], weights),
        )


@value
class Cycle:
    """Means of a cycle: its length, work (interrupts included), interrupts, polls and idle times.

    ``polls``: polls that find frames, NaN if unknown; ``idles``: probability of an idle time.
    """

    cycle_s: float
    work_s: float
    interrupts: float = 0.0
    polls: float = math.nan
    idles: float = 0.0
    idle_times: IdleTimes = field(
        "Time between the end of one work and the start of the next, by state", default=IdleTimes()
    )

    @property
    def used(self) -> float:
        """Share of the time that the server works."""
        return min(self.work_s / self.cycle_s, 1.0)

    def share(self, time_s: float) -> float:
        """Return the share of time of a state that occurs in every idle time; for a count, its rate."""
        return self.idles * time_s / self.cycle_s

    def at_equal_gaps(self, sleep_states: SleepStates) -> Cycle:
        """Return the mean of such cycles with known idle times, each shortened by the wake-up before it."""
        spare_s, late_s = self.cycle_s - self.work_s, 0.0
        cycles = []
        for _ in range(_WARM_UP + _AVERAGED):
            idle_times = fixed_idle_times(max(spare_s - late_s, 0.0), sleep_states=sleep_states)
            late_s = max(late_s - spare_s, 0.0) + idle_times.exit_s
            cycles.append(replace(self, idles=1.0, idle_times=idle_times))
        return Cycle.mean_of(cycles[_WARM_UP:])

    @staticmethod
    def mean_of(cycles: Sequence[Cycle]) -> Cycle:
        """Return the mean of cycles in succession."""
        if len(cycles) == 1:
            return cycles[0]
        return Cycle(
            cycle_s=fmean(cycle.cycle_s for cycle in cycles),
            work_s=fmean(cycle.work_s for cycle in cycles),
            interrupts=fmean(cycle.interrupts for cycle in cycles),
            polls=fmean(cycle.polls for cycle in cycles),
            idles=1.0,
            idle_times=IdleTimes.mean_of([cycle.idle_times for cycle in cycles]),
        )


def _no_frame_probability(rate_pps: float, *, frame_s: float, batch_s: float, interrupt_s: float) -> float:
    """Return the probability that no frame comes while a gated poll is under way, for Poisson arrivals.

    n frames of a poll take B + nc, in which a come; the next poll has a + 1{a = 0} and those of its interrupt C. With
    ``g(z) = e^{-λc(1 - z)}`` the generating function of n is ``N(z) = e^{-λC(1 - z)} (e^{-λB(1 - z)} N(g(z)) - (1 - z)
    p)``, ``p = e^{-λB} N(g(0))``: repeated insertion leads to N(1) = 1 (gated service; Takagi 1991, ch. 2).
    """
    load = rate_pps * frame_s
    if load >= 1.0:
        return 0.0
    per_interrupt, per_batch = rate_pps * interrupt_s, rate_pps * batch_s
    factor, taken, short = math.exp(-per_batch), 0.0, -math.expm1(-load)
    for _ in range(_MAX_INSERTIONS):
        factor *= math.exp(-per_interrupt * short)
        taken += factor * short
        factor *= math.exp(-per_batch * short)
        short = -math.expm1(-load * short)
        if short < _SMALL_INSERTION:
            break
    # What is left of z's way to 1 shrinks by the load each time.
    factor *= math.exp(-(per_interrupt + per_batch) * short / (1.0 - load))
    taken += factor * short / (1.0 - load)
    return factor / (1.0 + taken)


def poisson_idle_times(
    rate_pps: float, *, linger_s: float = 0.0, sleep_s: float = 0.0, sleep_states: SleepStates = ()
) -> IdleTimes:
    """Return the mean times of a server in each state during idle times that Poisson arrivals end.

    The server is released with probability ``p = e^{-λ·linger}``. Its unit then idles for an exponential time and for
    the wake-up ``w`` of its task unit: ``P(idle >= a) = e^{-λ(a - w)+}``, and on average ``(w - a)+ + e^{-λ(a -
    w)+}/λ`` of the idle time comes after a.
    """
    released = math.exp(-rate_pps * linger_s)
    beyond = [math.exp(-rate_pps * max(after_s - sleep_s, 0.0)) for after_s, _ in sleep_states] + [0.0]
    later_s = [
        max(sleep_s - after_s, 0.0) + chance / rate_pps
        for (after_s, _), chance in zip(sleep_states, beyond[:-1], strict=True)
    ] + [0.0]
    chances = tuple(released * (beyond[i] - beyond[i + 1]) for i in range(len(sleep_states)))
    return IdleTimes(
        released=released,
        spin_s=(1.0 - released) / rate_pps,
        asleep_s=tuple(released * (later_s[i] - later_s[i + 1]) for i in range(len(sleep_states))),
        chances=chances,
        exit_s=math.fsum(chance * exit_s for chance, (_, exit_s) in zip(chances, sleep_states, strict=True)),
    )


def fixed_idle_times(
    idle_s: float, *, linger_s: float = 0.0, sleep_s: float = 0.0, sleep_states: SleepStates = ()
) -> IdleTimes:
    """Return the times of a server in each state during an idle time of a known length."""
    if idle_s < linger_s:
        return IdleTimes(
            released=0.0, spin_s=idle_s, asleep_s=(0.0,) * len(sleep_states), chances=(0.0,) * len(sleep_states)
        )
    left_s = idle_s - linger_s + sleep_s
    bounds = [min(after_s, left_s) for after_s, _ in sleep_states] + [left_s]
    deepest = max((i for i, (after_s, _) in enumerate(sleep_states) if after_s <= left_s and left_s > 0.0), default=-1)
    return IdleTimes(
        released=1.0,
        spin_s=linger_s,
        asleep_s=tuple(bounds[i + 1] - bounds[i] for i in range(len(sleep_states))),
        chances=tuple(float(i == deepest) for i in range(len(sleep_states))),
        exit_s=sleep_states[deepest][1] if deepest >= 0 else 0.0,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Service time of a task unit's frames, averaged over the mix, without contention.

    ``busy_s`` is per frame in full batches, as under overload; ``frame_s`` without the batch's part ``batch_s``.
    """

    frame_s: float
    batch_s: float
    batch_frames: int
    interrupt_s: float
    moderation_s: float
    short_polls: bool
    exhaustive: bool = False
    """Whether a poll also takes the frames that arrive during it."""
    sleep_s: float = 0.0
    """Mean wake-up time."""
    stretch: float = 1.0
    """Mean completion time over service time under interruptions; the times above contain it."""
    slowdown: float = 1.0
    """``stretch`` over the mean speed of its units; the times above contain it."""
    scatter_s: float = 0.0
    """Variance that interruptions add per second of service."""
    linger_s: float = 0.0
    """Time that it continues to poll without frames before it enables interrupts."""
    sleep_states: tuple[tuple[float, float], ...] = ()
    """Sleep states of its idle units: idle time before the state, and time to leave it, s."""

    @property
    def busy_s(self) -> float:
        """Seconds per frame under overload."""
        extra = self.interrupt_s if self.short_polls else 0.0
        return self.frame_s + (self.batch_s + extra) / self.batch_frames

    @property
    def drains(self) -> bool:
        """Whether an interrupt starts polls until no frame waits, without another interrupt."""
        return self.exhaustive or self.linger_s > 0.0

    def used(self, rate_pps: float, factor: float, *, equal_gaps: bool = False) -> float:
        """Share of time that one server works at a rate, below overload."""
        frame_s, start_s = self.frame_s * factor, (self.batch_s + self.interrupt_s) * factor
        if start_s <= 0.0 or rate_pps <= 0.0:
            return min(rate_pps * frame_s, 1.0)
        if self.drains:
            return self._until_empty(rate_pps, factor, equal_gaps=equal_gaps).used
        return _polls(self, rate_pps, factor, equal_gaps=equal_gaps).used

    def cycle(self, rate_pps: float, factor: float, *, equal_gaps: bool = False) -> Cycle:
        """Return the cycle of one server from one start of work to the next, at a rate > 0 below overload.

        Where batches and interrupts have no cost, or polls continue until no frame waits, a cycle is an idle time and
        the busy period after it (:meth:`_until_empty`). Otherwise each poll is a cycle (:meth:`poll_by_poll`).
        """
        start_s = (self.batch_s + self.interrupt_s) * factor
        if start_s <= 0.0 or self.drains:
            return self._until_empty(rate_pps, factor, equal_gaps=equal_gaps)
        if equal_gaps and self.moderation_s > 0.0 and self.sleep_states:
            return self._even_moderated(rate_pps, factor)
        polls = _polls(self, rate_pps, factor, equal_gaps=equal_gaps)
        return polls.at_equal_gaps(self.sleep_states) if equal_gaps else polls

    def poll_by_poll(self, rate_pps: float, factor: float, *, equal_gaps: bool) -> Cycle:
        """Return the cycle of polls that each begin with an interrupt, or with the cost of a batch.

        An interrupt costs C, a batch B and a frame c. C comes first; the poll then takes the b frames that wait, which
        have arrived since the last poll took its own: ``b = λ·cycle``. The next interrupt comes when the work
        ``B + b·c`` is done, the interrupt moderation is over, and a frame has arrived; if none has by then, after
        another 1/λ on average. For Poisson arrivals without moderation the probability of that is exact for constant
        times (:func:`_no_frame_probability`); with moderation m it is ``e^{-λ(m - C)}``, and the mean stands for the
        random batch. Frames at equal gaps: :meth:`_even_polls`. Full batches mean overload.
        """
        frame_s, batch_s, interrupt_s = self.frame_s * factor, self.batch_s * factor, self.interrupt_s * factor
        if equal_gaps and self.moderation_s <= 0.0:
            return self._even_polls(rate_pps, factor)
        start_s, gap_s = batch_s + interrupt_s, 1.0 / rate_pps
        idle_times = IdleTimes()
        batch, work_s, cycle_s, idle = 1.0, start_s + frame_s, math.inf, math.nan
        for _ in range(_MAX_CYCLES):
            work_s, last_batch, last_idle_times = start_s + batch * frame_s, batch, idle_times
            # The time of the moderation that stays idle after the unit has woken and done its work.
            spare_s = max(self.moderation_s - work_s - idle_times.exit_s, 0.0)
            if equal_gaps:
                cycle_s, idle = max(work_s, self.moderation_s, gap_s), 1.0
            elif spare_s > 0.0:
                # Probability from the start of the poll until the moderation is over.
                no_frame = math.exp(-rate_pps * (self.moderation_s - interrupt_s - idle_times.exit_s))
                cycle_s = self.moderation_s + no_frame * gap_s
                idle_until_frame = poisson_idle_times(rate_pps, sleep_s=spare_s, sleep_states=self.sleep_states)
                idle_until_moderation_ends = fixed_idle_times(spare_s, sleep_states=self.sleep_states)
                idle_times = IdleTimes.mean_of(
                    (idle_until_frame, idle_until_moderation_ends), (no_frame, 1.0 - no_frame)
                )
                idle = 1.0
            else:
                idle = _no_frame_probability(rate_pps, frame_s=frame_s, batch_s=batch_s, interrupt_s=interrupt_s)
                idle_times = poisson_idle_times(rate_pps, sleep_states=self.sleep_states)
                cycle_s = work_s + idle * (gap_s + idle_times.exit_s)
            batch = rate_pps * cycle_s
            if batch >= self.batch_frames:
                return self._mostly_full(rate_pps, factor)
            if abs(batch - last_batch) <= 1e-9 * batch and (idle_times == last_idle_times or not self.sleep_states):
                break
        return Cycle(
            cycle_s=cycle_s,
            work_s=work_s,
            interrupts=self._interrupts_per_poll,
            polls=1.0,
            idles=idle,
            idle_times=idle_times,
        )

    @property
    def _interrupts_per_poll(self) -> float:
        return 1.0 if self.interrupt_s or self.moderation_s else 0.0

    def _even_polls(self, rate_pps: float, factor: float) -> Cycle:
        """Return the cycle of polls of frames at equal gaps, from one frame that finds the server idle to the next.

        Exact: a frame that comes as a poll takes its frames, or as it ends, is none of its frames. Polls that never
        find the server idle are counted for a while, once their batches have settled.
        """
        frame_s, batch_s, interrupt_s = self.frame_s * factor, self.batch_s * factor, self.interrupt_s * factor
        gap_s = 1.0 / rate_pps
        load = rate_pps * frame_s
        if load >= 1.0 or rate_pps * (interrupt_s + batch_s) >= self.batch_frames * (1.0 - load):
            return self._mostly_full(rate_pps, factor)

        def arrived(until_s: float) -> int:
            return math.ceil(until_s / gap_s - 1e-9)

        served = interrupts = polls = 0
        end_s, is_full = 0.0, False
        settled_s, settled_interrupts = 0.0, 0
        while polls < _MAX_EVEN_POLLS:
            if polls == _MAX_EVEN_POLLS // 2:
                settled_s, settled_interrupts = end_s, interrupts
            if not is_full:
                end_s += interrupt_s
                interrupts += 1
            waiting = max(arrived(end_s), 1) - served
            frames = min(waiting, self.batch_frames)
            served += frames
            polls += 1
            end_s += batch_s + frames * frame_s
            if arrived(end_s) <= served:
                return Cycle(
                    cycle_s=served * gap_s,
                    work_s=end_s,
                    interrupts=interrupts * self._interrupts_per_poll,
                    polls=polls,
                    idles=1.0,
                )
            is_full = frames == self.batch_frames and not self.short_polls
        time_s, counted = end_s - settled_s, interrupts - settled_interrupts
        return Cycle(
            cycle_s=time_s,
            work_s=time_s,
            interrupts=counted * self._interrupts_per_poll,
            polls=_MAX_EVEN_POLLS - _MAX_EVEN_POLLS // 2,
        )

    def _even_moderated(self, rate_pps: float, factor: float) -> Cycle:
        """Return the mean cycle of moderated interrupts of frames at equal gaps, whose idle times decide the sleep.

        Interrupt by interrupt: how long the server has been idle decides the time to leave its sleep, and that how many
        frames the poll finds.
        """
        frame_s, batch_s, interrupt_s = self.frame_s * factor, self.batch_s * factor, self.interrupt_s * factor
        gap_s, load = 1.0 / rate_pps, rate_pps * frame_s
        if load >= 1.0 or rate_pps * (interrupt_s + batch_s) >= self.batch_frames * (1.0 - load):
            return self._mostly_full(rate_pps, factor)
        served, last_s, released_s, half_s = 0, -math.inf, 0.0, 0.0
        work_s, polls = 0.0, 0
        idle_times: list[IdleTimes] = []
        for number in range(_MAX_EVEN_POLLS):
            if number == _MAX_EVEN_POLLS // 2:
                half_s, work_s, polls, idle_times = released_s, 0.0, 0, []
            is_waiting = math.ceil(released_s / gap_s - 1e-9) > served
            last_s = max(released_s if is_waiting else served * gap_s, last_s + self.moderation_s)
            idle_times.append(fixed_idle_times(max(last_s - released_s, 0.0), sleep_states=self.sleep_states))
            end_s = last_s + idle_times[-1].exit_s + interrupt_s
            work_s += interrupt_s
            frames = self.batch_frames
            while frames == self.batch_frames:
                waiting = math.ceil(end_s / gap_s - 1e-9) - served
                frames = min(max(waiting, 0 if polls else 1), self.batch_frames)
                served, polls = served + frames, polls + 1
                spent_s = (batch_s if frames else 0.0) + frames * frame_s
                end_s, work_s = end_s + spent_s, work_s + spent_s
            released_s = end_s
        counted = len(idle_times)
        return Cycle(
            cycle_s=(released_s - half_s) / counted,
            work_s=work_s / counted,
            interrupts=self._interrupts_per_poll,
            polls=polls / counted,
            idles=1.0,
            idle_times=IdleTimes.mean_of(idle_times),
        )

    def _mostly_full(self, rate_pps: float, factor: float) -> Cycle:
        """Return the cycle of polls that are nearly all full: below overload, interrupts take the rest of the time.

        A poll that is not full costs an interrupt, during which the next frames arrive, so the server never idles; with
        moderation it does.
        """
        busy = min(rate_pps * self.busy_s * factor, 1.0)
        if self.moderation_s > 0.0 or self.interrupt_s <= 0.0 or busy >= 1.0:
            return Cycle(cycle_s=1.0, work_s=busy, polls=rate_pps / self.batch_frames)
        return Cycle(cycle_s=1.0, work_s=1.0, interrupts=(1.0 - busy) / (self.interrupt_s * factor))

    def _until_empty(self, rate_pps: float, factor: float, *, equal_gaps: bool) -> Cycle:
        """Return the cycle of an idle time, the set-up after it and a busy period, after which no frame waits.

        Poisson arrivals: ``T = (1/λ + D)/(1 - rho)``, exact (M/G/1 with set-up D: wake-up, way out of a sleep state,
        interrupt). Equal gaps g: the frames that arrive until the backlog has drained, ``⌈D/(g - c)⌉``. Longer polls
        than the budget cost another batch.
        """
        load = self._drained_load(rate_pps, factor, equal_gaps=equal_gaps)
        if load >= 1.0:
            return Cycle(cycle_s=1.0, work_s=1.0)
        batch_s = self.batch_s * factor if self.exhaustive else 0.0
        work_s = self.interrupt_s * factor
        if equal_gaps:
            return Cycle.mean_of(self._even_cycles(rate_pps, load, batch_s=batch_s, work_s=work_s))
        idle_times = poisson_idle_times(
            rate_pps, linger_s=self.linger_s, sleep_s=self.sleep_s, sleep_states=self.sleep_states
        )
        set_up_s = idle_times.released * (self.sleep_s + work_s) + idle_times.exit_s + batch_s
        cycle_s = max((1.0 / rate_pps + set_up_s) / (1.0 - load), self.moderation_s)
        return self._with_polls(cycle_s, rate_pps, load, idle_times, batch_s=batch_s, work_s=work_s)

    def _even_cycles(self, rate_pps: float, load: float, *, batch_s: float, work_s: float) -> list[Cycle]:
        """Return the cycles at equal gaps: each idle time decides the sleep state, which decides the next idle time."""
        gap_s = 1.0 / rate_pps
        drain_s = gap_s * (1.0 - load)
        wakeup_s = self.sleep_s + batch_s + work_s
        cycles: list[Cycle] = []
        idle_s = drain_s
        # There are as many different idle times as sleep states, so the cycles repeat.
        for _ in range(len(self.sleep_states) + 3):
            idle_times = fixed_idle_times(
                idle_s, linger_s=self.linger_s, sleep_s=self.sleep_s, sleep_states=self.sleep_states
            )
            earlier = [cycle.idle_times for cycle in cycles]
            if idle_times in earlier:
                return cycles[earlier.index(idle_times) :]
            set_up_s = idle_times.exit_s + (wakeup_s if idle_times.released else batch_s)
            frames = max(math.ceil(set_up_s / drain_s - 1e-9), 1.0)
            cycle_s = max(frames * gap_s, self.moderation_s)
            cycles.append(self._with_polls(cycle_s, rate_pps, load, idle_times, batch_s=batch_s, work_s=work_s))
            idle_s = max(frames * drain_s - set_up_s, 0.0)
        return cycles

    def set_ups(self, rate_pps: float, factor: float, *, equal_gaps: bool) -> list[tuple[float, float, bool]]:
        """Return the kinds of set-up: probability, time without the wake-up in seconds, whether there is a wake-up.

        A frame that finds the task unit lingering does not wait; a frame that finds the unit asleep waits until the
        unit is awake and the interrupt is served.
        """
        work_s = self.interrupt_s * factor
        if equal_gaps:
            load = self._drained_load(rate_pps, factor, equal_gaps=True)
            cycles = self._even_cycles(rate_pps, load, batch_s=0.0, work_s=work_s)
            return [
                (1.0 / len(cycles), times.released * work_s + times.exit_s, times.released > 0.0)
                for times in (cycle.idle_times for cycle in cycles)
            ]
        idle_times = poisson_idle_times(
            rate_pps, linger_s=self.linger_s, sleep_s=self.sleep_s, sleep_states=self.sleep_states
        )
        exits = [
            (chance, work_s + exit_s, True)
            for chance, (_, exit_s) in zip(idle_times.chances, self.sleep_states, strict=True)
        ]
        awake = max(idle_times.released - math.fsum(idle_times.chances), 0.0)
        return [(1.0 - idle_times.released, 0.0, False), (awake, work_s, True), *exits]

    def _with_polls(
        self, cycle_s: float, rate_pps: float, load: float, idle_times: IdleTimes, *, batch_s: float, work_s: float
    ) -> Cycle:
        frames = rate_pps * cycle_s
        again_s = max(frames / self.batch_frames - 1.0, 0.0) * batch_s
        # Some busy periods are longer than a poll long before the mean busy period is.
        short = self.exhaustive and frames <= _SHORT_RATIO * self.batch_frames
        start_s = batch_s + idle_times.released * work_s
        full_polls_load = min(rate_pps * self.busy_s, 1.0) if self.exhaustive else 0.0
        return Cycle(
            cycle_s=cycle_s,
            work_s=min(max((start_s + again_s) / cycle_s + load, full_polls_load), 1.0) * cycle_s,
            interrupts=idle_times.released,
            polls=1.0 if short else math.nan,
            idles=1.0,
            idle_times=idle_times,
        )

    def _drained_load(self, rate_pps: float, factor: float, *, equal_gaps: bool) -> float:
        """Return the load of the frames alone; for polls that take a batch at a time, with the cost of the batches."""
        if self.exhaustive or self.batch_s <= 0.0:
            return rate_pps * self.frame_s * factor
        without_interrupts = Cost(
            frame_s=self.frame_s,
            batch_s=self.batch_s,
            batch_frames=self.batch_frames,
            interrupt_s=0.0,
            moderation_s=0.0,
            short_polls=False,
        )
        return without_interrupts.cycle(rate_pps, factor, equal_gaps=equal_gaps).used


@lru_cache(maxsize=1024)
def _polls(cost: Cost, rate_pps: float, factor: float, *, equal_gaps: bool) -> Cycle:
    """Return the cycle of polls of a cost: equal cores at equal rates have one, and ask for it several times."""
    return cost.poll_by_poll(rate_pps, factor, equal_gaps=equal_gaps)


def costs_of(tasks: Sequence[TaskUnit], model: RouterModel, mean_bytes: float) -> tuple[Cost, ...]:
    """Return the cost of each task unit's frames; task units of equal work share one."""
    speeds = {pool.name for pool in model.pools if pool.unit_speed_ratio}
    cost_by_work: dict[tuple[object, ...], Cost] = {}
    costs = []
    for task in tasks:
        pin = task.pin if task.needs and task.needs[0].pool in speeds else ()
        key = (task.service, task.activation, task.needs, pin, task.batch_frames, task.queue_frames)
        if key not in cost_by_work:
            cost_by_work[key] = cost_of(task, model, mean_bytes)
        costs.append(cost_by_work[key])
    return tuple(costs)


def cost_of(task: TaskUnit, model: RouterModel, mean_bytes: float) -> Cost:
    """Return the cost of a task unit's frames (S5, S6)."""
    pool = model.pool(task.needs[0].pool) if task.needs else None
    frequency_hz = pool.frequency_hz if pool else None
    speed = 1.0
    if pool and pool.unit_speed_ratio:
        speeds = [pool.unit_speed_ratio[unit] for unit in task.pin or range(pool.units)]
        # One frame at a time, alone on its units: the first of them serves every frame.
        speed = speeds[0] if keeps_first_unit(task, model) else math.fsum(speeds) / len(speeds)
    single_frame_s = task.service.mean_s(mean_bytes, frequency_hz=frequency_hz, batch_frames=1.0)
    without_batch_s = task.service.mean_s(mean_bytes, frequency_hz=frequency_hz, batch_frames=math.inf)
    is_interrupt = task.activation.kind == "interrupt"
    exhaustive = is_interrupt and task.activation.discipline == "exhaustive"
    frames_at_once = task.activation.budget_frames if is_interrupt else task.batch_frames
    wakeup = task.activation.wakeup if is_interrupt else None
    stretch, scatter_s = _interrupted(task, model)
    slowdown = stretch / speed
    return Cost(
        frame_s=without_batch_s * slowdown,
        batch_s=max(single_frame_s - without_batch_s, 0.0) * slowdown,
        batch_frames=frames_at_once if exhaustive else max(min(frames_at_once, task.queue_frames), 1),
        interrupt_s=task.activation.interrupt_cost_s * slowdown if is_interrupt else 0.0,
        moderation_s=task.activation.moderation_s if is_interrupt else 0.0,
        short_polls=is_interrupt and not exhaustive and task.queue_frames < frames_at_once,
        exhaustive=exhaustive,
        sleep_s=wakeup.average_s if wakeup is not None else 0.0,
        stretch=stretch,
        slowdown=slowdown,
        scatter_s=scatter_s,
        linger_s=task.activation.linger_s if is_interrupt else 0.0,
        sleep_states=_sleep_states(task, model),
    )


def keeps_first_unit(task: TaskUnit, model: RouterModel) -> bool:
    """Whether every frame of a task unit is served by the first of the units that it may use.

    It serves one frame at a time and returns to the unit that it used last, which nobody else may take.
    """
    if not task.needs or task.thread or task.activation.kind == "thread" or task.request == "frame":
        return False
    need = task.needs[0]
    own = set(task.pin or range(model.pool(need.pool).units))
    others = (other for other in model.tasks if other.name != task.name)
    is_alone = not any(
        own & set((other.pin if position == 0 else ()) or range(model.pool(need.pool).units))
        for other in others
        for position, other_need in enumerate(other.needs)
        if other_need.pool == need.pool
    )
    return is_alone and min(task.parallel, len(own) // need.units) == 1 and need.units == 1


def slowest_over_mean(task: TaskUnit, model: RouterModel, cost: Cost) -> float:
    """Return the greatest time of a frame over its mean: on the slowest unit, and with a migration for each grant."""
    pool = model.pool(task.needs[0].pool) if task.needs else None
    if pool is None or not (pool.unit_speed_ratio or pool.migration_cost_s) or keeps_first_unit(task, model):
        return 1.0
    units = task.pin or tuple(range(pool.units))
    slower = 1.0
    if pool.unit_speed_ratio:
        speeds = [pool.unit_speed_ratio[unit] for unit in units]
        slower = math.fsum(speeds) / len(speeds) / min(speeds)
    if pool.migration_cost_s > 0.0 and len(units) > 1 and cost.busy_s > 0.0:
        slower += pool.migration_cost_s / cost.batch_frames / cost.busy_s
    return slower


def _sleep_states(task: TaskUnit, model: RouterModel) -> tuple[tuple[float, float], ...]:
    """Return the sleep states that the units of a task unit enter when it has no work."""
    pool = model.pool(task.needs[0].pool) if task.needs else None
    if pool is None or pool.power is None or task.activation.kind == "polling":
        return ()
    return tuple((state.after_s, state.exit_s) for state in pool.power.sleep)


def _interrupted(task: TaskUnit, model: RouterModel) -> tuple[float, float]:
    """Return the factor on a task unit's services by interruptions of its units, and the added variance."""
    stretch, scatter_s = 1.0, 0.0
    for need in task.needs:
        interruptions = model.pool(need.pool).interruptions
        if interruptions is not None:
            stretch += need.units * (interruptions.stretch - 1.0)
            scatter_s += need.units * interruptions.scatter_s
    return stretch, scatter_s
