"""``[[prior_knowledge]]``: whether a model was calibrated on compared values, chosen in sight of them or predicts them.

A kind of study lists the groups of values that it compares (:meth:`routecast.study.document.StudyDocument.groups`).
The document shows which values calibrate. Its author declares in ``[[prior_knowledge]]`` whether the others were known
when parameters and mechanisms were chosen. A group without a declaration has the role "not said".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from routecast.errors import Problem
from routecast.quantity.did_you_mean import did_you_mean
from routecast.quantity.file_model import FileModel

__all__ = [
    "NOT_SAID",
    "STATEMENTS",
    "Group",
    "Knowledge",
    "KnownGroup",
    "Role",
    "counted_group",
    "prior_knowledge_problems",
    "roles_of",
]

Role = Literal["calibrated on", "chosen in sight of", "predicted"]

STATEMENTS = "statements in words"
"""Name of the group of a source's statements in words."""

NOT_SAID = "not said"
"""Role of a group that the document does not declare."""


class Knowledge(FileModel):
    """``[[prior_knowledge]]``: the role of compared values in the making of the model."""

    of: tuple[str, ...] = Field(
        default=(), description="Names of groups of compared values, as the table has them; empty: all other groups."
    )
    role: Role = Field(
        description='"calibrated on": parameters were fitted to them; "chosen in sight of": a parameter or a mechanism '
        'was chosen when they were known; "predicted": no part of the model depends on them.'
    )
    because: str = Field(default="", description="Reason for the role, or the choice that was made.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Values that a study compares; ``calibrates`` names the parameters that the document fits to them, if any."""

    name: str
    values: str = ""
    calibrates: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownGroup:
    """A group of compared values and its role."""

    of: str
    values: str
    role: str
    because: str


def counted_group(name: str, *counted: tuple[int, str], calibrates: str = "") -> Iterator[Group]:
    """Yield a group with its values counted by kind, or no group without values.

    Examples
    --------
    >>> [group.values for group in counted_group("fig. 4", (2, "rate"), (0, "shape"), (1, "order"))]
    ['2 rates, 1 order']
    """
    values = ", ".join(f"{count} {noun}{'s' if count != 1 else ''}" for count, noun in counted if count)
    if values:
        yield Group(name=name, values=values, calibrates=calibrates)


def roles_of(groups: Sequence[Group], declared: Sequence[Knowledge]) -> tuple[KnownGroup, ...]:
    """Return the role of each group: it calibrates, or has the role that the author declares, if any."""
    by_name = {name: entry for entry in declared for name in entry.of}
    others = next((entry for entry in declared if not entry.of), None)
    rows = []
    for group in groups:
        entry = by_name.get(group.name, others)
        role, because = (entry.role, entry.because) if entry else (NOT_SAID, "")
        if group.calibrates:
            role, because = "calibrated on", f"sets {group.calibrates}"
        rows.append(KnownGroup(of=group.name, values=group.values, role=role, because=because))
    return tuple(rows)


def prior_knowledge_problems(groups: Sequence[Group], declared: Sequence[Knowledge]) -> Iterator[Problem]:
    """Yield a problem for each declaration that repeats another, or names no group without a role."""
    is_open = {group.name: not group.calibrates for group in groups}
    names = [name for name in is_open if is_open[name]]
    seen: set[str] = set()
    for number, entry in enumerate(declared):
        if not entry.of and any(not earlier.of for earlier in declared[:number]):
            yield Problem(
                f"prior_knowledge[{number}].of",
                "is missing, as in an earlier entry: a single entry is for all other groups",
            )
        for index, name in enumerate(entry.of):
            place = f"prior_knowledge[{number}].of[{index}]"
            if name not in is_open:
                yield Problem(place, f"{name!r} is no group of compared values; {did_you_mean(name, names)}")
            elif not is_open[name]:
                yield Problem(place, f"{name!r} calibrates, as the rest of the study shows: leave it out here")
            elif name in seen:
                yield Problem(place, f"{name!r} is declared twice: a group has one role")
            seen.add(name)
