"""Profiles: every setting of a benchmark, as data.

A profile is a TOML file of ``data/benchmark``. It has a value for everything in which a run can differ from RFC 2544,
so that :mod:`routecast.benchmark._compliance` can compute the differences.
"""

from __future__ import annotations

from dataclasses import MISSING, fields, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from routecast.benchmark.procedures import PROCEDURES
from routecast.benchmark.settings import Repeats, Text
from routecast.benchmark.streams import StreamProfile
from routecast.errors import FileProblem, Problem
from routecast.load.frames import FrameMix
from routecast.quantity.bounded_file import read_text
from routecast.quantity.catalogue import shipped_files
from routecast.quantity.did_you_mean import did_you_mean
from routecast.quantity.fields import Parsed, Span
from routecast.quantity.schema import extended, field, value
from routecast.quantity.toml_file import parse_toml, validated

__all__ = ["Profile", "TrialProfile", "parse_frames", "read_profile", "shipped_profiles"]


def parse_frames(text: str) -> int | str:
    """Read a frame size in bytes, or the name of a mix of sizes.

    Raises QuantityProblem: the text is neither.

    Examples
    --------
    >>> parse_frames("64 B"), parse_frames("IMIX"), parse_frames("7x64, 4x594, 1x1518")
    (64, 'IMIX', '7x64+4x594+1x1518')
    """
    frames = FrameMix.parse(text)
    return frames.sequence_bytes[0] if frames.is_fixed else frames.name


FrameSize = Annotated[int | str, Parsed(parse_frames)]


@value
class TrialProfile:
    """``[trial]``: the phases of RFC 2544 sec. 23, repetitions of invalid trials, and the floor."""

    before: Span = field("Wait after the learning frames (sec. 23 b).", default=2.0)
    residual: Span = field("Wait for residual frames after the trial (sec. 23 d).", default=2.0)
    settle: Span = field("Wait until the device has restabilised (sec. 23 e).", default=5.0)
    attempts: Repeats = field("Attempts at a trial that is invalid.", default=3)
    floor: bool = field(
        "Whether a trial over a wire without a device follows each throughput at the same rate, to measure the loss "
        "of the machine. For test beds of network namespaces only.",
        default=True,
    )


@value
class Profile:
    """A profile; the profile of a file has a table for each procedure as well, by the procedure's name."""

    name: Annotated[Text, Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,31}$")]
    title: Text = field("Purpose of the profile, in one line.")
    frames: Annotated[tuple[FrameSize, ...], Field(min_length=1)] = field(
        'Fixed sizes and mixes of sizes: ``"64 B"``, ``"IMIX"``, ``"genome aaafg"``, ``"7x64, 4x594, 1x1518"``.'
    )
    procedures: tuple[str, ...] = field("Chosen procedures; empty: all.", default=())
    trial: TrialProfile = TrialProfile()
    stream: Annotated[tuple[StreamProfile, ...], Field(min_length=1)] = (StreamProfile(),)

    def changed(self, table: str, **values: Any) -> Profile:
        """Return the profile with other values in a table."""
        return replace(self, **{table: replace(getattr(self, table), **values)})

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Return the table of a procedure."""


@cache
def _file_profile() -> type[Profile]:
    """Return the type of a file's profile; a table of a procedure may be missing if all its values have defaults."""
    tables = []
    for name, procedure in PROCEDURES.items():
        needs_values = any(part.default is part.default_factory is MISSING for part in fields(procedure.settings))
        default = {} if needs_values else {"default": procedure.settings()}
        tables.append((name, procedure.settings, field(f"Values of the procedure {procedure.words}.", **default)))
    return extended(Profile, tables)


def shipped_profiles() -> tuple[str, ...]:
    """Names of the profiles that come with routecast."""
    return tuple(shipped_files("benchmark", ".toml"))


def read_profile(name_or_file: str | Path) -> Profile:
    """Read a shipped profile by its name, or a profile's file.

    Raises
    ------
    routecast.errors.FileProblem
        There is no such profile, the file cannot be read, or values are wrong; the error has the place of each fault.
    """
    text, subject = _text_of(str(name_or_file))
    return validated(_file_profile(), parse_toml(text, subject), subject)


def _text_of(name_or_file: str) -> tuple[str, str]:
    shipped = shipped_files("benchmark", ".toml")
    if name_or_file in shipped:
        return shipped[name_or_file].read_text(encoding="utf-8"), f"profile {name_or_file}"
    if name_or_file.endswith(".toml"):
        return read_text(Path(name_or_file), kind="profile"), name_or_file
    hint = did_you_mean(name_or_file, shipped)
    raise FileProblem(f"profile {name_or_file!r}", [Problem("", f"there is none; {hint}, or give a FILE.toml")])
