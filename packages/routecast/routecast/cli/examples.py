"""``routecast examples``: the files that ship, to look at, copy and change."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path, PurePosixPath
from typing import Annotated

import typer

from routecast.cli.console import data, print_json
from routecast.cli.copies import copy_files, print_copies
from routecast.cli.options import AsJson
from routecast.errors import QuantityProblem

__all__ = ["example_hint", "examples"]

FOLDER = Path("examples")
"""Folder of the copies, as in the names on pages and in comments."""


def examples(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]…", help="Such as green.router.toml, or green.")
    ] = None,
    *,
    every: Annotated[bool, typer.Option("--all", help="Copy all of them.")] = False,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Folder that takes the copies.")] = FOLDER,
    force: Annotated[bool, typer.Option("--force", help="Overwrite files that differ from the shipped.")] = False,
    as_json: AsJson = False,
) -> None:
    """List the examples that ship, or copy some with the files that they name.

    A file that is there and differs is not overwritten: nothing is copied then.
    """
    shipped = _shipped()
    if not names and not every:
        if force or out != FOLDER:
            message = "nothing to copy: name an example, or --all; `routecast examples` lists them"
            raise QuantityProblem("", message)
        _list(shipped, as_json=as_json)
        return
    if names and every:
        raise QuantityProblem("", f"--all copies {names[0]!r} with the others: name examples, or --all")
    requested = list(shipped) if every else [path for name in names or () for path in _matching_examples(name, shipped)]
    texts = {path: shipped[path] for path in _with_dependencies(requested, shipped)}
    copies = copy_files(texts, out, force=force, original="the example", elsewhere="--out DIR")
    print_copies(*copies, as_json=as_json)


def example_hint(path: str) -> str:
    """Return how to get a missing file that ships as an example; empty for other files.

    Examples
    --------
    >>> example_hint("not/here/green.router.toml")
    '; `routecast examples green.router.toml` copies the one that ships into ./examples'
    >>> example_hint("mine.router.toml")
    ''
    """
    name = PurePosixPath(path).name
    if os.path.exists(path) or not any(PurePosixPath(path).name == name for path in _shipped()):
        return ""
    return f"; `routecast examples {name}` copies the one that ships into ./{FOLDER}"


def _shipped() -> dict[str, str]:
    """Return the text of every example, by its path below the folder."""
    from routecast.wings import data_folders

    paths = {
        path.relative_to(folder).as_posix(): path
        for folder in data_folders("examples")
        for path in folder.rglob("*.*")
        if path.is_file()
    }
    return {name: path.read_text(encoding="utf-8") for name, path in sorted(paths.items())}


def _description(text: str) -> str:
    """Return an example's description: its first line of comment, or the text below a notebook's title."""
    if text.startswith("{"):
        title, _, description = "".join(json.loads(text)["cells"][0]["source"]).partition("\n\n")
        return description or title
    return next(line for line in text.splitlines() if line.startswith("# ")).removeprefix("# ")


def _named_examples(name: str, shipped: dict[str, str]) -> list[str]:
    """Return the other examples that the text of an example names, by file name."""
    matches = [
        (match.start(), other)
        for other in shipped
        if other != name
        and (match := re.search(rf"(?<![\w.-]){re.escape(PurePosixPath(other).name)}\b", shipped[name]))
    ]
    return [other for _, other in sorted(matches)]


def _with_dependencies(names: list[str], shipped: dict[str, str]) -> list[str]:
    """Return examples with all examples that they name, directly or through others."""
    closure: dict[str, None] = {}
    pending = names[::-1]
    while pending:
        if (path := pending.pop()) not in closure:
            closure[path] = None
            pending += _named_examples(path, shipped)[::-1]
    return list(closure)


def _matching_examples(name: str, shipped: dict[str, str]) -> list[str]:
    """Return the example of a name, with or without its suffix, or all examples of a folder."""
    path_or_stem = PurePosixPath(name).as_posix().removeprefix(f"{FOLDER}/")
    if in_folder := [path for path in shipped if path.startswith(f"{path_or_stem}/")]:
        return in_folder
    stems = {path: PurePosixPath(path).name.partition(".")[0] for path in shipped}
    matches = [path for path in shipped if path_or_stem in {path, PurePosixPath(path).name}]
    matches = matches or [path for path, stem in stems.items() if stem == path_or_stem]
    if len(matches) == 1:
        return matches
    if matches:
        message = f"{name!r} may be {' or '.join(matches)}: give the name in full"
    else:
        from routecast.quantity.did_you_mean import did_you_mean

        suggestion = did_you_mean(path_or_stem, stems.values())
        hint = f"{suggestion}; " if suggestion.startswith("did") else ""
        message = f"no example is called {name!r}: {hint}`routecast examples` lists all"
    raise QuantityProblem(name, message)


def _list(shipped: dict[str, str], *, as_json: bool) -> None:
    if as_json:
        print_json(
            [
                {"name": path, "shows": _description(text), "names": _named_examples(path, shipped)}
                for path, text in shipped.items()
            ]
        )
        return
    from routecast.cli.console import print_table
    from routecast.show.tables import text_table

    print_table(
        data(),
        text_table(
            ((name, _description(text)) for name, text in shipped.items()),
            ("Example", "What it shows"),
            name="examples",
            caption="`routecast examples NAME` copies one, with what it names, into ./examples; --all copies all.",
        ),
    )
