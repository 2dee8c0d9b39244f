"""Suggestions of known names in messages about unknown names."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["did_you_mean"]


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Suggest the nearest known name for an unknown name, or list all known names.

    Examples
    --------
    >>> did_you_mean("cpuu", ["cpu", "bus"])
    'did you mean "cpu"?'
    >>> did_you_mean("x", ["cpu", "bus"])
    'known are "cpu", "bus"'
    """
    from difflib import get_close_matches  # only for messages

    names = list(dict.fromkeys(known))
    close = get_close_matches(name[:100].lower(), [name.lower() for name in names], n=1, cutoff=0.6)
    if close:
        nearest = next(name for name in names if name.lower() == close[0])
        return f'did you mean "{nearest}"?'
    if not names:
        return "there is none"
    return "known are " + ", ".join(f'"{name}"' for name in names)
