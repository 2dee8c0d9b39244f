"""Options of devices under test: fields of a frozen dataclass, read from texts and TOML values."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import Field, dataclass, field, fields
from typing import Any, TypeVar

from routecast.errors import FileProblem, Problem
from routecast.quantity.did_you_mean import did_you_mean

__all__ = ["DeviceOptions", "option", "read_options"]

_T = TypeVar("_T")
_BOOLEANS = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}


def option(
    default: Any, text: str, *, minimum: int | None = None, maximum: int | None = None, choices: tuple[str, ...] = ()
) -> Any:
    """Declare an option of a device: a dataclass field with its meaning and its allowed values.

    The option has the type of ``default``. ``text`` is the meaning; ``minimum`` and ``maximum`` are the range of a
    number, ends included; ``choices`` are the allowed texts (empty: any text).
    """
    metadata = {"text": text, "minimum": minimum, "maximum": maximum, "choices": choices}
    return field(default=default, metadata=metadata)


@dataclass(frozen=True, kw_only=True)
class DeviceOptions:
    """Base of the options of a device.

    The constructor raises FileProblem with all options of a wrong type or out of range.
    """

    def __post_init__(self) -> None:
        problems = []
        for field_ in fields(self):
            try:
                _check(field_, getattr(self, field_.name))
            except ValueError as problem:
                problems.append(Problem(field_.name, str(problem)))
        if problems:
            raise FileProblem(type(self).__name__, problems)


def read_options(subject: str, kind: type[_T], options: Mapping[str, object]) -> _T:
    """Read the options of class ``kind`` from a table of a file or from ``key=value`` texts of a command line.

    ``subject`` names their owner in messages: ``"device linux"``. Texts are read as the type of the option. Raises
    FileProblem: unknown options, values of the wrong type or out of range; all of them at once.
    """
    fields_by_name = {field_.name: field_ for field_ in fields(kind)}  # type: ignore[arg-type]  # every kind is a dataclass
    problems: list[Problem] = []
    values: dict[str, object] = {}
    for name, value in options.items():
        field_ = fields_by_name.get(name.replace("-", "_"))
        if field_ is None:
            problems.append(Problem(name, f"no such option; {did_you_mean(name, fields_by_name)}"))
            continue
        try:
            values[field_.name] = _convert(field_, value)
        except ValueError as problem:
            problems.append(Problem(name, str(problem)))
    if problems:
        raise FileProblem(subject, problems)
    return kind(**values)


def _convert(field_: Field[Any], value: object) -> object:
    if isinstance(value, str) and not isinstance(field_.default, str):
        text = value.strip().lower()
        if isinstance(field_.default, bool):
            value = _BOOLEANS.get(text, value)
        else:
            with suppress(ValueError):  # _check reports it
                value = int(text.replace("_", ""))
    _check(field_, value)
    return value


def _check(field_: Field[Any], value: object) -> None:
    kind = type(field_.default)
    meaning = field_.metadata["text"]
    if type(value) is not kind:
        type_names = {bool: "true or false", int: "a whole number", str: "a text"}
        raise ValueError(f"{value!r} is not {type_names[kind]} ({meaning})")
    choices = field_.metadata["choices"]
    if choices and value not in choices:
        raise ValueError(f"{value!r} is not allowed; {did_you_mean(str(value), choices)} ({meaning})")
    minimum, maximum = field_.metadata["minimum"], field_.metadata["maximum"]
    if isinstance(value, int) and minimum is not None and value < minimum:
        raise ValueError(f"{value} is below {minimum} ({meaning})")
    if isinstance(value, int) and maximum is not None and value > maximum:
        raise ValueError(f"{value} is above {maximum} ({meaning})")
