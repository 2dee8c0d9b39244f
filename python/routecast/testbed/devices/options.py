"""Options of devices under test: declared as fields of a frozen dataclass, read from texts and TOML values."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import Field, field, fields
from typing import Any, TypeVar

from routecast.errors import FileProblem, Problem
from routecast.quantity.did_you_mean import did_you_mean

__all__ = ["check_options", "option", "read_options"]

_T = TypeVar("_T")
_TRUTHS = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}


def option(
    default: Any, text: str, *, minimum: int | None = None, maximum: int | None = None, choices: tuple[str, ...] = ()
) -> Any:
    """Declare an option of a device: a dataclass field with its meaning and what is allowed.

    ``default``: its type is the type of the option; ``text``: what the option means, for documentation and messages;
    ``minimum`` and ``maximum``: range of a number, ends included; ``choices``: the allowed texts; any text if empty.
    """
    metadata = {"text": text, "minimum": minimum, "maximum": maximum, "choices": choices}
    return field(default=default, metadata=metadata)


def read_options(subject: str, kind: type[_T], given: Mapping[str, object]) -> _T:
    """Make the options ``kind`` from a table of a file or from ``key=value`` texts of a command line.

    ``subject``: what the options belong to, for messages: ``"device linux"``; ``kind``: frozen dataclass whose fields
    are made by :func:`option`; ``given``: by option; texts are read as the type of the option. Raises FileProblem: an
    unknown option, a value of the wrong type or out of its range: all of them at once.
    """
    known = {declared.name: declared for declared in fields(kind)}  # type: ignore[arg-type]  # every kind is a dataclass
    problems: list[Problem] = []
    values: dict[str, object] = {}
    for name, value in given.items():
        declared = known.get(name.replace("-", "_"))
        if declared is None:
            problems.append(Problem(name, f"no such option; {did_you_mean(name, known)}"))
            continue
        try:
            values[declared.name] = _converted(declared, value)
        except ValueError as wrong:
            problems.append(Problem(name, str(wrong)))
    if problems:
        raise FileProblem(subject, problems)
    return kind(**values)


def check_options(subject: str, options: object) -> None:
    """Refuse options whose values have the wrong type or are out of their ranges.

    Raises FileProblem: with every wrong option.
    """
    problems = []
    for declared in fields(options):  # type: ignore[arg-type]  # every kind is a dataclass
        try:
            _check(declared, getattr(options, declared.name))
        except ValueError as wrong:
            problems.append(Problem(declared.name, str(wrong)))
    if problems:
        raise FileProblem(subject, problems)


def _converted(declared: Field[Any], value: object) -> object:
    if isinstance(value, str) and not isinstance(declared.default, str):
        text = value.strip().lower()
        if isinstance(declared.default, bool):
            value = _TRUTHS.get(text, value)
        else:
            with suppress(ValueError):  # _check says what is wanted
                value = int(text.replace("_", ""))
    _check(declared, value)
    return value


def _check(declared: Field[Any], value: object) -> None:
    wanted = type(declared.default)
    meaning = declared.metadata["text"]
    if type(value) is not wanted:
        words = {bool: "true or false", int: "a whole number", str: "a text"}
        raise ValueError(f"{value!r} is not {words[wanted]} ({meaning})")
    choices = declared.metadata["choices"]
    if choices and value not in choices:
        raise ValueError(f"{value!r} is not allowed; {did_you_mean(str(value), choices)} ({meaning})")
    minimum, maximum = declared.metadata["minimum"], declared.metadata["maximum"]
    if isinstance(value, int) and minimum is not None and value < minimum:
        raise ValueError(f"{value} is below {minimum} ({meaning})")
    if isinstance(value, int) and maximum is not None and value > maximum:
        raise ValueError(f"{value} is above {maximum} ({meaning})")
