"""The nearest known name, for messages about unknown ones."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["did_you_mean"]


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Suggest a known name for an unknown one: the nearest, or all.

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
        meant = next(name for name in names if name.lower() == close[0])
        return f'did you mean "{meant}"?'
    if not names:
        return "there is none"
    return "known are " + ", ".join(f'"{name}"' for name in names)
