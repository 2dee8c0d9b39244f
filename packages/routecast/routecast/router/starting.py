"""A first router file, from this machine or from a few answers, with its guesses marked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from routecast.hardware.model import Nic
from routecast.load.offered import line_rate_pps
from routecast.quantity import format_frequency, format_pps
from routecast.quantity.toml_file import toml_string

__all__ = ["Start", "host_start", "router_text"]

GUESSED_CYCLES = 1500
"""Cycles per frame on one core: a round figure between user-space forwarding (hundreds) and a kernel with filters."""
GUESSED_CORE_PPS = 2e6
GUESSED_SIGMA = 0.05
"""Near the 0.056 of Linux on the four cores of Meyer et al. 2014."""
_GUESSED_LINK_BPS = 10e9
_LOAD_SHARE = 0.5
_MAX_COLUMNS = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """The values of a router before it is measured, with a note on each; the note of a guess begins with ``guess:``.

    ``frequency_hz`` is given where the service is in cycles; ``core_pps`` is the resulting rate of one core.
    """

    name: str
    cores: int
    cores_note: str = ""
    ports: int = 2
    ports_note: str = ""
    link_bps: float = _GUESSED_LINK_BPS
    link_note: str = ""
    frequency_hz: float | None = None
    frequency_note: str = ""
    core_pps: float = GUESSED_CORE_PPS
    service_note: str = ""
    frames: str = "64 B"
    frame_bytes: float = 64.0
    remarks: tuple[str, ...] = ()


def host_start(
    *,
    name: str,
    cpu: str,
    cores: int,
    frequency_hz: float | None,
    frequency_source: str,
    cards: Sequence[Nic],
    remarks: Sequence[str] = (),
) -> Start:
    """Return the values of a router on this machine.

    ``cpu``: name of the processor; ``cores``: number of cores, without hardware threads; ``frequency_hz``: None where
    the system does not report it; ``frequency_source``: its source; ``cards``: network cards that report their speed,
    of which the most frequent counts; ``remarks``: values that the system does not report.
    """
    speeds = Counter(card.link_bps for card in cards)
    link_bps, count = speeds.most_common(1)[0] if speeds else (_GUESSED_LINK_BPS, 0)
    names = ", ".join(card.name for card in cards if card.link_bps == link_bps)
    clock_hz = frequency_hz or 3e9
    return Start(
        name=name,
        cores=cores,
        cores_note=f"all of {cpu}; fewer where some do other work",
        ports=max(count, 2),
        ports_note=names if count >= 2 else f"guess: only {names} reports its speed" if count else "guess",
        link_bps=link_bps,
        link_note=f"speed of {names}" if count else "guess: no network card reports its speed",
        frequency_hz=clock_hz,
        frequency_note=frequency_source if frequency_hz else "guess: the system does not report the clock",
        core_pps=clock_hz / GUESSED_CYCLES,
        service_note="guess: measure it, then `routecast init --measurements`",
        remarks=tuple(remarks),
    )


def router_text(start: Start, *, command: str) -> str:
    """Return the text of a router file that runs without changes."""
    in_cycles = start.frequency_hz is not None
    per_packet = f"{GUESSED_CYCLES} cycles" if in_cycles else f"{1e9 / start.core_pps:.6g} ns"
    carried = min(start.cores * start.core_pps, start.ports * line_rate_pps(start.link_bps, start.frame_bytes))
    values = [
        ("builder", '"multicore"', "receive-side scaling spreads the flows over the cores"),
        ("name", toml_string(start.name), ""),
        ("cores", str(start.cores), start.cores_note),
        ("ports", str(start.ports), start.ports_note),
        ("link", f'"{start.link_bps / 1e9:.10g} Gbit/s"', start.link_note),
        *(
            [("frequency", f'"{format_frequency(start.frequency_hz)}"', start.frequency_note)]
            if start.frequency_hz
            else []
        ),
        ("queue", '"512 frames"', "guess: a common receive ring"),
        ("service", f'{{ per_packet = "{per_packet}", per_byte = "0 ns/B" }}', start.service_note),
        ("contention", f"{{ sigma = {GUESSED_SIGMA} }}", "guess: what each further core costs the others"),
    ]
    load = [
        (
            "rate",
            f'"{format_pps(_LOAD_SHARE * carried)}"',
            "half of what the cores or the links carry without contention",
        ),
        ("frames", toml_string(start.frames), 'or IMIX, or "7x64, 4x594, 1x1518"'),
        ("flows", f"{{ count = {start.cores} }}", "one for each core"),
    ]
    lines = [
        f'# Written by `{command}`. Values marked "guess" are not known: correct them.',
        "# `routecast solve FILE` answers. All keys: docs/cli.md, `routecast schema router`.",
        *(f"# {remark[0].upper()}{remark[1:]}." for remark in start.remarks),
        "",
        *_lines(values),
        "",
        "[load]",
        *_lines(load),
    ]
    return "\n".join(lines) + "\n"


def _lines(values: Sequence[tuple[str, str, str]]) -> list[str]:
    """Return lines of TOML with aligned notes."""
    texts = [f"{key} = {text}" for key, text, _ in values]
    width = min(max(map(len, texts)), _MAX_COLUMNS)
    return [f"{text:{width}}  # {note}" if note else text for text, (_, _, note) in zip(texts, values, strict=True)]
