"""Suggestions of known names in messages about unknown names."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["did_you_mean"]

_MOST_LISTED = 8
"""Most names that a message lists in full."""
_NEAREST = 5


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Suggest the nearest known name for an unknown name, or list the known names; of many the nearest five.

    Examples
    --------
    >>> did_you_mean("cpuu", ["cpu", "bus"])
    'did you mean "cpu"?'
    >>> did_you_mean("x", ["cpu", "bus"])
    'known are "cpu", "bus"'
    >>> did_you_mean("core_rate", ["a", "b", "cost", "rates", "rate", "clock", "c", "d", "e"])
    'did you mean "rate"?'
    >>> did_you_mean("xy", [f"{letter}x{letter}{letter}" for letter in "abcdefghi"])
    'the nearest of 9 are "axaa", "bxbb", "cxcc", "dxdd", "exee"'
    """
    from difflib import SequenceMatcher, get_close_matches  # only for messages

    names = list(dict.fromkeys(known))
    close = get_close_matches(name[:100].lower(), [name.lower() for name in names], n=1, cutoff=0.6)
    if close:
        nearest = next(name for name in names if name.lower() == close[0])
        return f'did you mean "{nearest}"?'
    if not names:
        return "there is none"
    if len(names) <= _MOST_LISTED:
        return f"known are {_quoted(names)}"
    likeness = SequenceMatcher(b=name[:100].lower())

    def ratio(known: str) -> float:
        likeness.set_seq1(known.lower())
        return likeness.ratio()

    return f"the nearest of {len(names)} are {_quoted(sorted(names, key=ratio, reverse=True)[:_NEAREST])}"


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)
