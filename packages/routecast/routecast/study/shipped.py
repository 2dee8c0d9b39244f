"""The shipped studies: their purpose, their duration, and their files, to copy and change."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from routecast.quantity.bounded_file import read_text
from routecast.quantity.toml_file import parse_toml
from routecast.show.tables import Table, text_table
from routecast.study.reading import DEFAULT, SUFFIX, shipped_studies
from routecast.study.titles import with_filled_titles

__all__ = ["ShippedStudy", "list_studies", "studies_table", "texts_to_copy"]

_TAKES = re.compile(r"takes ((?:about |some |less than )[^.;:]+)", re.IGNORECASE)
_NEEDS = re.compile(r"needs (root)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShippedStudy:
    """A shipped study: its name, kind, title, duration, the rights that it needs, and its files."""

    name: str
    kind: str
    shows: str
    takes: str
    needs: str
    files: tuple[str, ...]


def list_studies() -> tuple[ShippedStudy, ...]:
    """Return the shipped studies, by name; the comment at the head of a file states duration and rights."""
    return tuple(_listed(name, path) for name, path in shipped_studies().items())


def _listed(name: str, path: Path) -> ShippedStudy:
    text = read_text(path, kind="study")
    document = with_filled_titles(parse_toml(text, str(path)))
    lines = text.splitlines()
    first = next((number for number, line in enumerate(lines) if not line.startswith("#")), len(lines))
    head = " ".join(line.removeprefix("#").strip() for line in lines[:first])
    takes, needs = _TAKES.search(head), _NEEDS.search(head)
    return ShippedStudy(
        name=name,
        kind=str(document.get("kind", DEFAULT)),
        shows=str(document["title"]),
        takes=takes[1] if takes else "",
        needs=needs[1] if needs else "",
        files=tuple(texts_to_copy(path)),
    )


def texts_to_copy(path: Path) -> dict[str, str]:
    """Return the text of a study and of each file that it names, by file name, for one folder.

    A path such as ``../measured/idle.csv`` becomes ``idle.csv`` in the text of the study.
    """
    text = read_text(path, kind="study")
    named = dict.fromkeys(file for file in _texts(parse_toml(text, str(path))) if _is_file(path.parent, file))
    for file in named:
        text = text.replace(f'"{file}"', f'"{Path(file).name}"')
    files = {Path(file).name: (path.parent / file).read_text(encoding="utf-8") for file in named}
    return {path.name.removesuffix(SUFFIX) + SUFFIX: text, **files}


def _texts(entry: object) -> Iterator[str]:
    if isinstance(entry, str):
        yield entry
    elif isinstance(entry, dict | list):
        for part in entry.values() if isinstance(entry, dict) else entry:
            yield from _texts(part)


def _is_file(folder: Path, text: str) -> bool:
    return len(text) < 200 and text.isprintable() and bool(Path(text).suffix) and (folder / text).is_file()


def studies_table(studies: Iterable[tuple[str, str, str, str]]) -> Table:
    """Return the shipped studies: name, title, duration, and the right that each needs."""
    return text_table(
        studies,
        ("Study", "What it shows", "Takes", "Needs"),
        name="studies",
        caption="`routecast study NAME` runs one; `routecast study --copy NAME` copies one with its files.",
    )
