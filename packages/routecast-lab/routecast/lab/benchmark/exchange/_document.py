"""JSON documents of other tools, read with the path of every fault.

A :class:`Node` is a value with its path. It returns the value as the type that a format wants. A missing value, or one
of another type, is entered in the document's list of problems, so that all faults of a file are reported at once.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator

from routecast.errors import FileProblem, Problem

MAX_BYTES = 500_000_000
"""Greatest size of a file; results have kilobytes to megabytes."""

MAX_NUMBER = 1e18
"""Greatest count, rate or time of a result; larger numbers do not fit into tables."""

MAX_VALUES = 1_000_000
"""Most JSON values of a file: the events of a test with an interval of 0.1 s over a day."""

# An unterminated text reaches to the end of the file; a search from each of its quotes would take too long.
_TEXT_OR_NUMBER = re.compile(
    r'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)|(?<![\w.])[-+]?(?:nan|inf(?:inity)?)(?![\w.])', re.IGNORECASE | re.DOTALL
)
_SPACE = re.compile(r"\s*")
_DECODER = json.JSONDecoder()
_JSON_NUMBERS = {"nan": "NaN", "inf": "Infinity", "infinity": "Infinity"}


class Node:
    """A value of a document, with its path."""

    __slots__ = ("document", "place", "value")

    def __init__(self, document: Document, value: object, place: str) -> None:
        self.document = document
        self.value = value
        self.place = place

    def __bool__(self) -> bool:
        return self.value is not None

    def __contains__(self, key: str) -> bool:
        return isinstance(self.value, dict) and key in self.value

    def problem(self, message: str) -> None:
        """Enter a fault of this value."""
        self.document.problems.append(Problem(self.place, message))

    def get(self, key: str) -> Node:
        """Return an entry of a mapping; an empty node without one."""
        value = self.value.get(key) if isinstance(self.value, dict) else None
        return Node(self.document, value, f"{self.place}.{key}" if self.place else key)

    def at(self, path: str) -> Node:
        """Return the entry at a path of keys, ``"end.sum.packets"``."""
        node = self
        for key in path.split("."):
            node = node.get(key)
        return node

    def need(self, path: str) -> Node:
        """Return the entry at a path; a missing one is a fault."""
        node = self.at(path)
        if node.value is None:
            node.problem("is missing")
        return node

    def entries(self) -> Iterator[tuple[str, Node]]:
        """Yield the entries of a mapping; another type is a fault."""
        if not isinstance(self.value, dict):
            self.problem(f"got {_describe(self.value)}: wants an object")
            return
        for key in self.value:
            yield str(key), self.get(key)

    def items(self) -> Iterator[Node]:
        """Yield the entries of a list; another type is a fault."""
        if not isinstance(self.value, list):
            self.problem(f"got {_describe(self.value)}: wants a list")
            return
        for number, value in enumerate(self.value):
            yield Node(self.document, value, f"{self.place}[{number}]")

    def number(self, *, least: float = -MAX_NUMBER, most: float = MAX_NUMBER, default: float = math.nan) -> float:
        """Return a number, or the default where the file has NaN, an infinity or none.

        Another type, or a number out of range, is a fault.
        """
        value = self.value
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int | float):
            self.problem(f"got {_describe(value)}: wants a number")
            return math.nan
        if math.isfinite(value) and not least <= value <= most:
            bounds = f"at least {least:g}" if most == MAX_NUMBER and value < least else f"from {least:g} to {most:g}"
            self.problem(f"got {_describe(value)}: wants a number {bounds}")
            return math.nan
        return float(value) if math.isfinite(value) else default

    def finite(self, *, least: float = -MAX_NUMBER, most: float = MAX_NUMBER) -> float:
        """Return a number; a missing or infinite one is a fault."""
        before = len(self.document.problems)
        value = self.number(least=least, most=most)
        if math.isnan(value) and len(self.document.problems) == before:
            self.problem("is missing" if self.value is None else "is not a number (NaN or infinite)")
        return value

    def count(self) -> int | None:
        """Return a whole number >= 0; None where the file has none."""
        if self.value is None:
            return None
        value = self.finite(least=0.0)
        return None if math.isnan(value) else round(value)

    def text(self, default: str = "") -> str:
        """Return a text, or a number as a text."""
        if self.value is None:
            return default
        if isinstance(self.value, dict | list | bool):
            self.problem(f"got {_describe(self.value)}: wants a text")
            return default
        return str(self.value)

    def flag(self, default: bool = False) -> bool:
        """Return true or false; 0 and 1 stand for them."""
        if self.value is None:
            return default
        if self.value not in (True, False, 0, 1):
            self.problem(f"got {_describe(self.value)}: wants true or false")
            return default
        return bool(self.value)


class Document:
    """A document of a file: its root, its faults, and notes on wrong but readable values."""

    def __init__(self, name: str, value: object) -> None:
        self.name = name
        self.problems: list[Problem] = []
        self.notes: list[str] = []
        self.root = Node(self, value, "")

    def check(self) -> None:
        """Raise a FileProblem with all faults, if there are any."""
        if self.problems:
            raise FileProblem(self.name, list(dict.fromkeys(self.problems)))


def parse_document(text: str, *, name: str) -> Document:
    """Read one JSON document; a note names each ``nan``, ``-nan`` and ``inf``, which JSON does not allow.

    Raises FileProblem: the text is no JSON, or is cut off.
    """
    values = parse_values(text, name=name, most=1)
    return document_of(values[0], name=name)


def parse_values(text: str, *, name: str, most: int = MAX_VALUES) -> list[object]:
    """Read the JSON values that stand in a text one after the other, as tools append them to a file.

    Raises FileProblem: the text is no JSON, is cut off, or has more than ``most`` values.
    """
    text = _TEXT_OR_NUMBER.sub(_as_json_number, text) if "n" in text else text
    values: list[object] = []
    position = _end_of_space(text, 0)
    try:
        while position < len(text) or not values:
            if len(values) == most:
                raise json.JSONDecodeError("Extra data", text, position)
            value, position = _DECODER.raw_decode(text, position)
            values.append(value)
            position = _end_of_space(text, position)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        cut = not text[error.pos :].strip() or error.msg.startswith("Unterminated string")
        what = "is cut off: the file ends in the middle of its document" if cut else f"is no JSON: {error.msg}"
        raise FileProblem(name, [Problem(place, what)]) from None
    except RecursionError:
        raise FileProblem(name, [Problem("", "is nested too deeply to be a result")]) from None
    except ValueError as error:  # a number of thousands of digits
        raise FileProblem(name, [Problem("", f"is no result: {error}")]) from None
    return values


def _end_of_space(text: str, position: int) -> int:
    match = _SPACE.match(text, position)
    return match.end() if match else position


def document_of(value: object, *, name: str) -> Document:
    """Return the document of a JSON value, with a note on its numbers that are none."""
    try:
        wrong = list(_not_finite(value, ""))
    except RecursionError:
        raise FileProblem(name, [Problem("", "is nested too deeply to be a result")]) from None
    document = Document(name, value)
    if wrong:
        more = f" and {len(wrong) - 3} more" if len(wrong) > 3 else ""
        document.notes.append(f"{name}: {', '.join(wrong[:3])}{more}: not a number (NaN or infinite), left out")
    return document


def _as_json_number(match: re.Match[str]) -> str:
    token = match.group()
    if token.startswith('"'):
        return token
    sign = "-" if token.startswith("-") and token[1:].lower() != "nan" else ""
    return sign + _JSON_NUMBERS[token.lstrip("+-").lower()]


def _not_finite(value: object, place: str) -> Iterator[str]:
    if isinstance(value, dict):
        for key, entry in value.items():
            yield from _not_finite(entry, f"{place}.{key}" if place else str(key))
    elif isinstance(value, list):
        for number, entry in enumerate(value):
            yield from _not_finite(entry, f"{place}[{number}]")
    elif isinstance(value, float) and not math.isfinite(value):
        yield place


def _describe(value: object) -> str:
    if isinstance(value, dict | list):  # it may hold the whole file
        return "an object" if isinstance(value, dict) else "a list"
    text = json.dumps(value) if not isinstance(value, float) else repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"
