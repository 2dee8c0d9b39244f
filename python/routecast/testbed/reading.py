"""Reading ``*.testbed.toml``: every fault at once, each with its place."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from routecast.errors import FileProblem, Problem
from routecast.router.did_you_mean import did_you_mean

if TYPE_CHECKING:
    from routecast.testbed.document import InterfacesFile, NamespacesFile

__all__ = ["BUILT_IN", "bed_schema", "parse_testbed", "read_testbed"]

BUILT_IN = "namespaces"
"""What people write for the test bed that needs no file."""

_KINDS = ("namespaces", "interfaces")
_LARGEST_FILE_BYTES = 1_000_000


def read_testbed(
    name: str | Path, *, device: str | None = None, options: Mapping[str, object] | None = None
) -> NamespacesFile | InterfacesFile:
    """Read a test bed from a file, or return the one that is built in.

    Parameters
    ----------
    name : str or Path
        ``"namespaces"`` is the built-in test bed, everything else a file.
    device : str, optional
        The device under test, instead of the file's.
    options : mapping of str to object, optional
        Options of the device; they go before the file's, and replace all of them where ``device`` is another one.

    Raises
    ------
    routecast.errors.FileProblem
        The file cannot be read, is no TOML, or says something wrong; all faults with their places.
    """
    if str(name) == BUILT_IN:
        return parse_testbed(
            'name = "namespaces"\nkind = "namespaces"\n', subject=BUILT_IN, device=device, options=options
        )
    path = Path(name)
    try:
        if path.stat().st_size > _LARGEST_FILE_BYTES:
            raise FileProblem(
                str(path), [Problem("", f"is larger than {_LARGEST_FILE_BYTES} bytes: no test bed")]
            )
        text = path.read_bytes().decode("utf-8")
    except FileNotFoundError as problem:
        hint = f'is not there; "{BUILT_IN}" is the test bed that needs no file'
        raise FileProblem(str(path), [Problem("", hint)]) from problem
    except (OSError, UnicodeDecodeError) as problem:
        raise FileProblem(str(path), [Problem("", f"cannot be read: {problem}")]) from problem
    return parse_testbed(text, subject=str(path), device=device, options=options)


def parse_testbed(
    text: str,
    *,
    subject: str = "test bed",
    device: str | None = None,
    options: Mapping[str, object] | None = None,
) -> NamespacesFile | InterfacesFile:
    r"""Read a test bed from the text of its file; see :func:`read_testbed`.

    Examples
    --------
    >>> parse_testbed('name = "quick"\nkind = "namespaces"\nwire = "1 Gbit/s"').wire
    1000000000.0
    """
    from pydantic import ValidationError

    from routecast.testbed.document import TestbedFile

    try:
        data = tomllib.loads(text)
    except (ValueError, RecursionError) as problem:
        message = str(problem) if isinstance(problem, ValueError) else "is nested too deeply"
        raise FileProblem(subject, [Problem("", f"is no TOML: {message}")]) from problem
    _override(data, device, options or {})
    try:
        bed = TestbedFile.model_validate(data).root
    except ValidationError as problem:
        raise FileProblem(subject, _problems(problem, data)) from problem
    problems = _contradictions(bed) + _device_problems(bed)
    if problems:
        raise FileProblem(subject, problems)
    return bed


def bed_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of test bed files, with units and meanings as descriptions."""
    from routecast.testbed.document import TestbedFile

    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **TestbedFile.model_json_schema(),
        "title": "routecast test bed file",
        "description": "Ports of a tester, wires, and a device under test.",
    }


def _override(data: dict[str, Any], device: str | None, options: Mapping[str, object]) -> None:
    table = data.get("dut", {})
    if not isinstance(table, dict):
        return  # the model says what a [dut] is
    if device is not None and device != table.get("device", "linux"):
        table = {"device": device}
    if device is not None or options:
        data["dut"] = {**table, **({"device": device} if device else {}), **options}


def _problems(error: Any, data: Mapping[str, Any]) -> list[Problem]:
    kind = data.get("kind")
    problems = []
    for fault in error.errors(include_url=False, include_context=True):
        place = [part for part in fault["loc"] if part not in {*_KINDS}]
        if fault["type"].startswith("union_tag"):
            message = (
                f"got {kind!r}: allowed are {' and '.join(_KINDS)}"
                if kind
                else (f'is missing: write kind = "{_KINDS[0]}" or kind = "{_KINDS[1]}"')
            )
            problems.append(Problem("kind", message))
        elif fault["type"] == "extra_forbidden":
            problems.append(Problem(_path(place), f"is not known here; {_known(kind, place)}"))
        elif fault["type"] == "missing":
            problems.append(Problem(_path(place), "is missing"))
        elif fault["type"] in {"quantity", "mac", "address", "network", "value"}:
            problems.append(Problem(_path(place), fault["msg"]))
        else:
            message = fault["msg"][:1].lower() + fault["msg"][1:]
            problems.append(Problem(_path(place), f"got {_shown(fault['input'])}: {message}"))
    return problems


def _known(kind: object, place: list[Any]) -> str:
    from routecast.testbed import document

    tables: dict[tuple[str, ...], Any] = {
        ("cores",): document.Cores,
        ("port",): document.InterfacePort,
        (): document.NamespacesFile if kind == "namespaces" else document.InterfacesFile,
    }
    inside = tuple(part for part in place[:-1] if isinstance(part, str))
    model = tables.get(inside, tables[()])
    return did_you_mean(str(place[-1]), tuple(model.model_fields))


def _path(place: list[Any]) -> str:
    text = ""
    for part in place:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"


def _contradictions(bed: NamespacesFile | InterfacesFile) -> list[Problem]:
    problems = []
    cores = bed.cores
    if cores.tester is not None and cores.tester == cores.dut:
        what = f"is core {cores.dut}, the tester's: the device is then measured together with the tester"
        problems.append(Problem("cores.dut", f"{what}; give another core, or none to let routecast choose"))
    if bed.kind == "namespaces":
        return problems
    seen: dict[tuple[str | None, str], int] = {}
    for number, port in enumerate(bed.port):
        key = (port.netns, port.interface)
        if key in seen:
            what = f"{port.interface} is port {seen[key]} already: each port has its own interface"
            problems.append(Problem(f"port[{number}].interface", what))
        seen[key] = number
        if number > 1 and port.ipv4 is None:
            what = "is missing: RFC 2544 gives addresses to two ports, give those of further ports here"
            problems.append(Problem(f"port[{number}].ipv4", what))
    return problems


def _device_problems(bed: NamespacesFile | InterfacesFile) -> list[Problem]:
    from routecast.testbed.devices import make_device

    try:
        make_device(bed.dut.device, bed.dut.options)
    except FileProblem as problem:
        places = {"name": "device"}
        return [
            Problem(_path(["dut", places.get(one.place, one.place)]), one.message) for one in problem.problems
        ]
    return []
