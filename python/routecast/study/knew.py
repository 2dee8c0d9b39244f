"""What the model knew of the values that a study compares with: whether it was calibrated on them, or chosen in sight.

A kind of study lists the groups of values that it compares (:meth:`routecast.study.document.StudyDocument.groups`).
The document shows which values calibrate. Only its author knows whether the others were known when parameters and
mechanisms were chosen, and declares it in ``[[knew]]``. A group without a declaration has the role "not said".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from pydantic import Field

from routecast.errors import Problem
from routecast.quantity.did_you_mean import did_you_mean
from routecast.quantity.file_model import FileModel

__all__ = ["NOT_SAID", "STATEMENTS", "Group", "Knew", "KnownGroup", "Role", "group_of", "knew_problems", "known"]

Role = Literal["calibrated on", "chosen in sight of", "predicted"]

STATEMENTS = "statements in words"
"""The group of a source's statements in words, where a kind of study knows the words itself."""

NOT_SAID = "not said"
"""The role of a group that the document does not declare."""


class Knew(FileModel):
    """``[[knew]]``: what the model knew of values that it is compared with."""

    of: tuple[str, ...] = Field(
        default=(), description="Groups of compared values, as the table names them; none: all that are left."
    )
    role: Role = Field(
        description='"calibrated on": parameters were fitted to them; "chosen in sight of": a parameter or a mechanism '
        'was chosen when they were known; "predicted": nothing in the model knew them.'
    )
    because: str = Field(default="", description="Reason for the role, or the choice that was made.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Values that a study compares with; ``calibrates`` names what the document sets by them, empty for nothing."""

    name: str
    values: str = ""
    calibrates: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownGroup:
    """A group of compared values and the role that they had."""

    SUMMARY: ClassVar = ("*",)

    of: str
    values: str
    role: str
    because: str


def group_of(name: str, *counted: tuple[int, str], calibrates: str = "") -> Iterator[Group]:
    """Yield a group with its values counted by kind; no group where there are no values.

    Examples
    --------
    >>> [group.values for group in group_of("fig. 4", (2, "rate"), (0, "shape"), (1, "order"))]
    ['2 rates, 1 order']
    """
    values = ", ".join(f"{count} {noun}{'s' if count != 1 else ''}" for count, noun in counted if count)
    if values:
        yield Group(name=name, values=values, calibrates=calibrates)


def known(groups: Sequence[Group], declared: Sequence[Knew]) -> tuple[KnownGroup, ...]:
    """Return the role of each group: it calibrates, has the role that the author declares, or none is declared."""
    by_name = {name: knew for knew in declared for name in knew.of}
    others = next((knew for knew in declared if not knew.of), None)
    rows = []
    for group in groups:
        knew = by_name.get(group.name, others)
        role, because = (knew.role, knew.because) if knew else (NOT_SAID, "")
        if group.calibrates:
            role, because = "calibrated on", f"sets {group.calibrates}"
        rows.append(KnownGroup(of=group.name, values=group.values, role=role, because=because))
    return tuple(rows)


def knew_problems(groups: Sequence[Group], declared: Sequence[Knew]) -> Iterator[Problem]:
    """Yield the declarations that repeat another one, or name no group without a role."""
    is_open = {group.name: not group.calibrates for group in groups}
    names = [name for name in is_open if is_open[name]]
    seen: set[str] = set()
    for number, knew in enumerate(declared):
        if not knew.of and any(not before.of for before in declared[:number]):
            yield Problem(
                f"knew[{number}].of", "is missing, as in an entry before: only one can be of all that is left"
            )
        for index, name in enumerate(knew.of):
            place = f"knew[{number}].of[{index}]"
            if name not in is_open:
                yield Problem(place, f"{name!r} is no group of compared values; {did_you_mean(name, names)}")
            elif not is_open[name]:
                yield Problem(place, f"{name!r} calibrates by what the study says elsewhere: leave it out here")
            elif name in seen:
                yield Problem(place, f"{name!r} stands there twice: it has one role")
            seen.add(name)
