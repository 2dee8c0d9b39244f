"""Deviations of a run from RFC 2544 and its updates, computed from its profile, its procedures and its streams.

RFC 2544 sec. 5: an implementation that satisfies all MUST and all SHOULD requirements of a procedure is
*unconditionally compliant*; one that satisfies all MUST but not all SHOULD is *conditionally compliant*.

A profile alone cannot make a run compliant. Sec. 13 asks for a routing update before each trial. Sec. 11.1 to 11.3 ask
for tests with broadcast frames, management frames and routing updates as well. Each missing part is a deviation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from routecast.lab.benchmark.procedures import PROCEDURES
from routecast.lab.benchmark.procedures.procedure import deviation, span
from routecast.lab.benchmark.streams import MIN_IPV6_BYTES, SECTIONS, Stream
from routecast.lab.benchmark.values import Compliance, Deviation, NotRun, Profile
from routecast.load.frames import RFC2544_FRAME_BYTES

CONDITIONS = frozenset({"11.1", "11.2", "11.3", "13"})
"""Sections of RFC 2544 that ask for frames beside the test stream."""

_MODIFIERS = (
    ("11.1", "tests repeated with 1 % broadcast frames in the stream"),
    ("11.2", "tests repeated with a management query as the first frame of each second"),
    ("11.3", "tests repeated with routing updates during each trial, which alternate between two states"),
)
_BURSTS = (16, 64, 256, 1024)
_LEARNING = ("23 b", "after the learning frames")


def compliance_of(
    profile: Profile,
    *,
    procedures: Sequence[str],
    frame_bytes: Sequence[int],
    streams: Sequence[Stream],
    evaluator: str,
    short_of_medium: Sequence[str] = (),
    ran: frozenset[str] = frozenset(),
) -> Compliance:
    """Return the compliance of a run: its level, a statement, and all deviations.

    ``procedures``, ``frame_bytes`` and ``streams``: of the run; ``frame_bytes`` are fixed sizes, since sec. 9 has no
    mixes; ``evaluator``: ``"measure"``, or the evaluator of the model; ``short_of_medium``: notes on a tester below the
    medium's maximum rate; ``ran``: sections of :data:`CONDITIONS` that were run, beside those of the streams.
    """
    ran = ran | {SECTIONS[stream.modifier] for stream in streams if stream.modifier in SECTIONS}
    deviations = tuple(_deviations(profile, procedures, frame_bytes, streams, short_of_medium, ran))
    musts = sum(entry.requirement == "MUST" for entry in deviations)
    level: Literal["unconditional", "conditional", "not compliant"]
    level = "not compliant" if musts else "conditional" if deviations else "unconditional"
    statement = _statement(level, musts, len(deviations) - musts, evaluator)
    return Compliance(level=level, statement=statement, deviations=deviations)


def _deviations(
    profile: Profile,
    procedures: Sequence[str],
    frame_bytes: Sequence[int],
    streams: Sequence[Stream],
    short_of_medium: Sequence[str],
    ran: frozenset[str],
) -> Iterator[Deviation]:
    """Yield every deviation, in the order of the sections."""
    yield from _size_deviations(frame_bytes, streams)
    for section, wanted in _MODIFIERS:
        if section not in ran:
            yield deviation(section, "SHOULD", wanted, "not run")
    yield from _address_deviations(streams)
    if "13" not in ran:
        wanted = "at the start of each trial, a routing update with all networks of the trial"
        yield deviation("13", "MUST", wanted, "routes are static, no routing update is sent")
    yield from _direction_deviations(streams)
    if short_of_medium:
        yield deviation("20", "MUST", "the maximum rate is that of the medium", "; ".join(short_of_medium))
    yield from _phase_deviations(profile, has_update="13" in ran)
    for procedure in PROCEDURES.values():
        if procedure.name in procedures:
            yield from procedure.deviations(profile)


def _statement(level: str, musts: int, shoulds: int, evaluator: str) -> str:
    statement = {
        "unconditional": "Unconditionally compliant with RFC 2544 (sec. 5), RFC 9004 and RFC 6201: every MUST and "
        "SHOULD of the procedures that were run is satisfied.",
        "conditional": f"Conditionally compliant with RFC 2544 (sec. 5): every MUST is satisfied, "
        f"{shoulds} SHOULD {_are(shoulds)} not.",
        "not compliant": f"NOT compliant with RFC 2544: {musts} MUST and {shoulds} SHOULD {_are(musts + shoulds)} not "
        "satisfied.",
    }[level]
    if evaluator != "measure":
        statement += f" The procedure was run on a model ({evaluator}): its figures are predictions, not measurements."
    return statement


def _are(number: int) -> str:
    return "is" if number == 1 else "are"


def _size_deviations(frame_bytes: Sequence[int], streams: Sequence[Stream]) -> Iterator[Deviation]:
    if len(set(frame_bytes)) < 5:
        done = f"{len(set(frame_bytes))}: {_listed(frame_bytes)} B" if frame_bytes else "a mix of sizes alone"
        yield deviation("9", "SHOULD", "at least five frame sizes", done)
    for_ipv6 = all(stream.protocol == "IPv6" for stream in streams)
    smallest = RFC2544_FRAME_BYTES[0]
    wanted = [MIN_IPV6_BYTES if for_ipv6 and size == smallest else size for size in RFC2544_FRAME_BYTES]
    missing = [size for size in wanted if size not in frame_bytes]
    if missing:
        done = f"without {_listed(missing)} B"
        yield deviation("9.1", "SHOULD", f"on Ethernet, {_listed(wanted)} B", done)


def _address_deviations(streams: Sequence[Stream]) -> Iterator[Deviation]:
    if all(stream.networks > 1 for stream in streams):
        yield deviation("12", "SHOULD", "one pair of addresses first", "several destination networks alone")
    if not any(stream.networks >= 256 for stream in streams):
        yield deviation("12", "SHOULD", "random destinations over 256 networks as well", "not run")


def _direction_deviations(streams: Sequence[Stream]) -> Iterator[Deviation]:
    if not any(stream.bidirectional for stream in streams):
        yield deviation("14", "SHOULD", "both ways at the same rate as well", "one way")
    bursts = {stream.burst_frames for stream in streams}
    if not bursts.issuperset(_BURSTS):
        done = f"{_listed(bursts - {1})} frames" if bursts - {1} else "steady load alone"
        yield deviation("21", "SHOULD", f"repeated bursts of {_listed(_BURSTS)} frames as well", done)


def _phase_deviations(profile: Profile, *, has_update: bool) -> Iterator[Deviation]:
    trial = profile.trial
    learning = ("23 a and b", "after the routing update and after the learning frames") if has_update else _LEARNING
    for section, wanted_s, got_s, purpose in (
        (learning[0], 2.0, trial.before, learning[1]),
        ("23 d", 2.0, trial.residual, "for residual frames"),
        ("23 e", 5.0, trial.settle, "for the device to restabilise"),
    ):
        if got_s < wanted_s:
            yield deviation(section, "SHOULD", f"a wait of {wanted_s:g} s {purpose}", span(got_s))


def _listed(values: Iterable[int]) -> str:
    return ", ".join(str(value) for value in sorted(set(values)))


_LEFT_OUT = (
    ("11.1", "1 % broadcast frames", "no stream asks for them: give one with broadcast frames (--broadcast)"),
    ("11.2", "SNMP queries", "no stream asks for them: give one with SNMP queries (--management)"),
    ("11.3", "routing updates", "no stream asks for them: give one with routing updates (--routing-updates)"),
)


def modifiers_left_out(streams: Sequence[Stream]) -> list[NotRun]:
    """List the modifiers of sec. 11 that were not run, with the reason."""
    ran = {SECTIONS[stream.modifier] for stream in streams if stream.modifier in SECTIONS}
    modifiers = [
        NotRun(section=f"RFC 2544 sec. {section}", what=what, reason=why)
        for section, what, why in _LEFT_OUT
        if section not in ran
    ]
    if not any("filter" in stream.modifier for stream in streams):
        reason = "the device filters nothing: run a packet filter as the device (--dut nftables --filters 25)"
        modifiers.append(NotRun(section="RFC 2544 sec. 11.4", what="1 and 25 filters", reason=reason))
    return modifiers


def hashes_left_out(streams: Sequence[Stream], flows: int) -> list[NotRun]:
    """List the fields that RFC 4814 varies for devices that hash frames, and that the tester did not vary."""
    reasons = []
    if flows == 1 and all(stream.networks == 1 for stream in streams):
        reason = "every stream is one flow with fixed ports: give --flows N"
        reasons.append(NotRun(section="RFC 4814 sec. 4.5", what="pseudo-random UDP ports", reason=reason))
    reason = "each port of the tester has one MAC address"
    return [*reasons, NotRun(section="RFC 4814 sec. 4.2", what="pseudo-random MAC addresses", reason=reason)]
