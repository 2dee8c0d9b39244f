"""All facts of router and tester, nested as they are, as names and values (RFC 2544 sec. 7)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from routecast.benchmark.result import BenchmarkResult
from routecast.report.benchmark.texts import links
from routecast.report.page import Block, Facts

__all__ = ["flattened", "setup_facts"]

_LONGEST_LINE = 80


def setup_facts(result: BenchmarkResult) -> tuple[Block, ...]:
    """Return router, tester, media and streams, and the profile's values."""
    setup = result.setup
    streams = "\n".join(
        f"{stream.name}: UDP over {stream.protocol}, {'both ways' if stream.bidirectional else 'one way'}, "
        f"{stream.networks} destination network{'s' if stream.networks != 1 else ''}"
        + (f", {stream.modifier}" if stream.modifier else "")
        for stream in setup.streams
    )
    media = (
        ("Evaluator", _EVALUATORS.get(setup.evaluator, setup.evaluator)),
        ("Media", setup.medium),
        ("Links", links(result)),
        ("Frame sizes", ", ".join(map(str, setup.frame_bytes)) + " B, FCS included"),
        ("Streams", streams),
        ("Frame format", setup.frame_format),
        ("Units", setup.load_unit),
    )
    parts = (
        ("Router (device under test)", tuple(flattened(setup.device)) or (("", "nothing is known of it"),)),
        ("Tester", tuple(flattened(setup.tester)) or (("", "nothing is known of it"),)),
        ("Media and streams", media),
        (f"Profile {result.profile_name}", tuple(flattened(result.profile))),
    )
    return tuple(Facts(title=title, rows=rows) for title, rows in parts if rows)


_EVALUATORS = {
    "measure": "measured on the wire",
    "simulate": "a simulation of a model: predictions, no measurements",
    "solve": "a closed form of a model: predictions, no measurements",
}


def flattened(value: Mapping[str, object], before: str = "") -> Iterator[tuple[str, str]]:
    """Yield name and value of every fact; names of nested ones are joined by a point.

    Examples
    --------
    >>> list(flattened({"version": "6.1", "offloads": {"gro": True}, "lines": ["ip a", "ip r"]}))
    [('version', '6.1'), ('offloads · gro', 'yes'), ('lines', 'ip a; ip r')]
    """
    for key, entry in value.items():
        name = f"{before} · {key}" if before else str(key).replace("_", " ")
        if isinstance(entry, Mapping):
            if entry:
                yield from flattened(entry, name)
            else:
                yield name, "none"
        elif isinstance(entry, Sequence) and not isinstance(entry, str):
            yield name, _listed(entry)
        else:
            yield name, _text(entry)


def _listed(entries: Sequence[object]) -> str:
    if not entries:
        return "none"
    texts = [
        ", ".join(f"{key} = {_text(part)}" for key, part in entry.items())
        if isinstance(entry, Mapping)
        else _text(entry)
        for entry in entries
    ]
    line = ", ".join(texts) if all(isinstance(entry, int | float) for entry in entries) else "; ".join(texts)
    return line if len(line) < _LONGEST_LINE and "\n" not in line else "\n".join(texts)


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list | tuple):
        return ", ".join(map(_text, value))
    if isinstance(value, Mapping):
        return ", ".join(f"{key} = {_text(entry)}" for key, entry in value.items())
    return str(value)
