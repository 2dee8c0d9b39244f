"""Titles that follow the values of a study's file: ``"{cores} cores"`` is "Eight cores" where ``cores = 8``.

A copy of a study is there to be changed. A title that states a value in words would keep the value of the original.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["with_filled_titles"]

_TEXTS = ("title", "question")
_PLACEHOLDER = re.compile(r"\{([A-Za-z][A-Za-z0-9_.-]*)\}")
_WORDS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_DEFAULTS = "router"
"""The table whose values hold where a scenario gives none."""


def with_filled_titles(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a study's document with the values of its fields in its titles and questions.

    ``{cores}`` in a title is the value of ``cores`` in the same table, or else in ``[router]``; ``{traffic.frame}`` is
    that of a table below it. At the top of the file, ``{NAME.cores}`` is the value in the entry called NAME. Whole
    numbers up to twelve are words. Braces around anything else stay as they are.

    Examples
    --------
    >>> with_filled_titles({"scenario": [{"name": "more", "title": "{cores} cores, links of {link}", "cores": 6}],
    ...     "router": {"link": "10 Gbit/s"}})["scenario"][0]["title"]
    'Six cores, links of 10 Gbit/s'
    """
    defaults = document.get(_DEFAULTS)
    defaults = defaults if isinstance(defaults, Mapping) else {}
    own = {**defaults, **dict(_named_entries(document)), **document}
    return {**_filled(document, defaults), **_filled_texts(document, own)}


def _filled(table: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    filled = {key: _filled_entry(entry, defaults) for key, entry in table.items()}
    return {**filled, **_filled_texts(table, {**defaults, **table})}


def _filled_entry(entry: Any, defaults: Mapping[str, Any]) -> Any:
    if isinstance(entry, Mapping):
        return _filled(entry, defaults)
    return [_filled_entry(part, defaults) for part in entry] if isinstance(entry, list) else entry


def _filled_texts(table: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, str]:
    return {
        key: _filled_text(table[key], values)
        for key in _TEXTS
        if isinstance(table.get(key), str) and _PLACEHOLDER.search(table[key])
    }


def _filled_text(text: str, values: Mapping[str, Any]) -> str:
    def words(match: re.Match[str]) -> str:
        entry = _value_words(_at(values, match[1]))
        return match[0] if entry is None else entry

    filled = _PLACEHOLDER.sub(words, text)
    return f"{filled[:1].upper()}{filled[1:]}"


def _at(values: Mapping[str, Any], path: str) -> Any:
    """Return the value at a dotted path, whose keys may have dots themselves; None where there is none."""
    if path in values:
        return values[path]
    parts = path.split(".")
    for count in range(len(parts) - 1, 0, -1):
        below = values.get(".".join(parts[:count]))
        if isinstance(below, Mapping):
            return _at(below, ".".join(parts[count:]))
    return None


def _named_entries(document: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for entries in document.values():
        for entry in entries if isinstance(entries, list) else ():
            if isinstance(entry, Mapping) and isinstance(entry.get("name"), str):
                yield entry["name"], entry


def _value_words(entry: Any) -> str | None:
    """Return a value in words; None for what has no place in a sentence."""
    if isinstance(entry, bool) or entry is None:
        return None
    if isinstance(entry, int):
        return _WORDS[entry - 1] if 1 <= entry <= len(_WORDS) else str(entry)
    if isinstance(entry, str | float):
        return str(entry)
    if not isinstance(entry, list) or not entry:
        return None
    words = [_value_words(part) for part in entry]
    if any(word is None for word in words):
        return None
    if (
        len(entry) > 2
        and all(isinstance(part, int) for part in entry)
        and entry == list(range(entry[0], entry[-1] + 1))
    ):
        return f"{words[0]} to {words[-1]}"
    texts = [word for word in words if word is not None]
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"
