"""Copies of shipped files; existing files that differ are kept unless forced."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from routecast.cli.console import data, make_out_folder, print_json
from routecast.errors import FileProblem, Problem
from routecast.quantity.whole_file import unfinished

__all__ = ["copy_files", "print_copies"]


def copy_files(
    texts: Mapping[str, str], out: Path, *, force: bool, original: str, elsewhere: str
) -> tuple[list[Path], list[Path]]:
    """Write the files that do not exist yet, after a check of all of them.

    ``texts`` has the contents by the paths below ``out``, which is made if missing. ``force`` overwrites files that
    differ. For messages, ``original`` names the original of the copies, and ``elsewhere`` the way to name another
    folder. Returns the written files, and the files that existed already. Raises FileProblem, before anything is
    written: a path is a folder, or a file that differs.
    """
    content = {out / name: text.encode() for name, text in texts.items()}
    unchanged = [path for path, new in content.items() if path.is_file() and path.read_bytes() == new]
    existing = [path for path in content if path.exists() and path not in unchanged]
    problems = [
        Problem(str(path), f"is a folder: name another with {elsewhere}")
        if path.is_dir()
        else Problem(str(path), f"differs from {original}: --force overwrites it, {elsewhere} copies elsewhere")
        for path in existing
        if path.is_dir() or not force
    ]
    if problems:
        raise FileProblem(str(out), problems)
    for folder in dict.fromkeys((out, *(path.parent for path in content))):
        make_out_folder(folder)
    written = [path for path in content if path not in unchanged]
    for path in written:
        with unfinished(path) as draft:
            draft.write_bytes(content[path])
    return written, unchanged


def print_copies(written: list[Path], unchanged: list[Path], *, as_json: bool) -> None:
    """Print the written files, and the files that existed already."""
    if as_json:
        print_json({"written": [str(path) for path in written], "unchanged": [str(path) for path in unchanged]})
        return
    for paths, state in ((written, "written"), (unchanged, "already there")):
        for path in paths:
            data().print(f"{path}: {state}", markup=False, soft_wrap=True)
