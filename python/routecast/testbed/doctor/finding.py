"""What a check found."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["Finding", "State"]


class State(StrEnum):
    """How it stands with what a check looked at."""

    FINE = "fine"
    DISTORTS = "distorts"
    MISSING = "missing"
    UNSEEN = "unseen"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that a check looked at.

    Parameters
    ----------
    check : str
        Name of the check, ``"governor"``; with the interface where it is about one: ``"offloads eth1"``.
    state : State
        ``fine``; ``distorts``: measurements come out otherwise than they would; ``missing``: something cannot be done;
        ``unseen``: this process may not look, or the machine does not say.
    found : str
        What is so.
    effect : str
        What it does to measurements; may say something where all is fine, too.
    remedy : str
        The command that mends it. It is printed, never executed.
    advice : str
        What mends it where no command does.
    """

    check: str
    state: State
    found: str
    effect: str = ""
    remedy: str = ""
    advice: str = ""
