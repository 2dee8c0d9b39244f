"""Hosts by name: those that come with routecast, this host once it was probed, and a user's own files."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from routecast.errors import EnvironmentProblem, FileProblem, Problem
from routecast.hardware.files import hardware_text, parse_hardware
from routecast.hardware.model import Hardware
from routecast.quantity.bounded_file import read_text
from routecast.quantity.did_you_mean import did_you_mean
from routecast.quantity.shipped import shipped_files

__all__ = [
    "HOST",
    "check_writable",
    "hardware_names",
    "host_file",
    "read_hardware",
    "shipped_hardware",
    "write_hardware",
]

HOST = "host"
"""What people write for the host that they are on."""

_SUFFIX = ".hardware.toml"


def shipped_hardware() -> dict[str, Path]:
    """Return the files of the hosts that come with routecast, by name."""
    return shipped_files("hardware", _SUFFIX)


def hardware_names() -> tuple[str, ...]:
    """Return the names that :func:`read_hardware` knows: ``"host"`` first, if this host was probed."""
    return ((HOST,) if host_file().is_file() else ()) + tuple(shipped_hardware())


def host_file() -> Path:
    """Return where this host's file is, or will be.

    ``$ROUTECAST_HOST_FILE``, else ``routecast/host.hardware.toml`` in ``$XDG_DATA_HOME`` or ``~/.local/share``.
    """
    given = os.environ.get("ROUTECAST_HOST_FILE")
    if given:
        return Path(given)
    data = os.environ.get("XDG_DATA_HOME")
    return (Path(data) if data else Path.home() / ".local" / "share") / "routecast" / f"{HOST}{_SUFFIX}"


def read_hardware(name_or_path: str | Path) -> Hardware:
    """Read a host by its name, or from a file.

    Raises
    ------
    routecast.errors.FileProblem
        There is neither; the file cannot be read, or says something wrong; all faults with their places.
    """
    text = str(name_or_path)
    shipped = shipped_hardware()
    if text == HOST:
        path = host_file()
        if not path.is_file():
            message = f"this host was not probed yet ({path} is not there); run: routecast hardware probe"
            raise FileProblem(HOST, [Problem("", message)])
    elif text in shipped:
        path = shipped[text]
    elif isinstance(name_or_path, Path) or text.endswith(".toml") or os.sep in text:
        path = Path(name_or_path)
    else:
        hint = did_you_mean(text, (HOST, *shipped))
        message = f'is no hardware that comes with routecast, "{HOST}", or a FILE.toml; {hint}'
        raise FileProblem(text[:100], [Problem("", message)])
    return parse_hardware(read_text(path, kind="hardware file"), subject=str(path))


def check_writable(path: str | Path) -> None:
    """Refuse a place where :func:`write_hardware` could not write, before the work is done.

    Raises
    ------
    routecast.errors.EnvironmentProblem
        The file could not be written.
    """
    path = Path(path)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        draft.touch()
        draft.unlink()
    except OSError as problem:
        raise EnvironmentProblem(f"{path} cannot be written: {problem}") from problem


def write_hardware(hardware: Hardware, path: str | Path) -> None:
    """Write a host's file, with its folder; a file that was there is replaced at once or not at all.

    Raises
    ------
    routecast.errors.EnvironmentProblem
        The file cannot be written.
    """
    path = Path(path)
    text = hardware_text(hardware)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        draft.write_text(text, encoding="utf-8")
        draft.replace(path)
    except OSError as problem:
        raise EnvironmentProblem(f"{path} cannot be written: {problem}") from problem
    finally:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)
