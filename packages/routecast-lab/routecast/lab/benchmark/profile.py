"""Profiles: every setting of a benchmark, as data.

A profile is a TOML file of ``data/benchmark``. It has a value for everything in which a run can differ from RFC 2544,
so that :mod:`routecast.lab.benchmark._compliance` can compute the differences.
"""

from __future__ import annotations

from dataclasses import MISSING, fields
from functools import cache
from pathlib import Path

from routecast.errors import FileProblem, Problem
from routecast.lab.benchmark.procedures import PROCEDURES
from routecast.lab.benchmark.values import Profile
from routecast.quantity.bounded_file import read_text
from routecast.quantity.catalogue import shipped_files
from routecast.quantity.did_you_mean import did_you_mean
from routecast.quantity.schema import extended, field
from routecast.quantity.toml_file import parse_toml, validated

__all__ = ["read_profile", "shipped_profiles"]


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
