"""Read ``*.testbed.toml`` and report every fault at once with its place."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from routecast.errors import EnvironmentProblem, FileProblem, Problem
from routecast.quantity.bounded_file import read_text
from routecast.quantity.toml_file import format_value, parse_toml, place_of, validated

if TYPE_CHECKING:
    from routecast.lab.testbed.document import InterfacesFile, NamespacesFile

__all__ = ["BUILT_IN", "bed_schema", "parse_testbed", "read_testbed"]

BUILT_IN = "namespaces"
"""Name of the test bed that needs no file."""


def read_testbed(
    name: str | Path,
    *,
    device: str | None = None,
    options: Mapping[str, object] | None = None,
    encapsulation: str | None = None,
) -> NamespacesFile | InterfacesFile:
    """Read a test bed from a file, or return the built-in one, ``"namespaces"``.

    ``device`` and ``encapsulation`` replace those of the file. ``options`` of the device go before the file's, and
    replace all of them if ``device`` is another one. Raises FileProblem: the file cannot be read, is not TOML,
    or is wrong; the error holds all faults with their places.
    """
    if str(name) == BUILT_IN:
        text = f'name = "{BUILT_IN}"\nkind = "namespaces"\n'
    elif Path(name).exists():
        text = read_text(Path(name), kind="test bed")
    else:
        hint = f'is not there; "{BUILT_IN}" is the test bed that needs no file'
        raise FileProblem(str(Path(name)), [Problem("", hint)])
    return parse_testbed(text, subject=str(Path(name)), device=device, options=options, encapsulation=encapsulation)


def parse_testbed(
    text: str,
    *,
    subject: str = "test bed",
    device: str | None = None,
    options: Mapping[str, object] | None = None,
    encapsulation: str | None = None,
) -> NamespacesFile | InterfacesFile:
    r"""Read a test bed from the text of its file; see :func:`read_testbed`.

    Examples
    --------
    >>> parse_testbed('name = "quick"\nkind = "namespaces"\nwire = "1 Gbit/s"').wire
    1000000000.0
    """
    from routecast.lab.testbed.document import InterfacesFile, NamespacesFile

    data = parse_toml(text, subject)
    _override(data, device, options or {})
    if encapsulation is not None:
        data["encapsulation"] = encapsulation
    kind = data.get("kind")
    models: dict[str, type[NamespacesFile] | type[InterfacesFile]] = {
        "namespaces": NamespacesFile,
        "interfaces": InterfacesFile,
    }
    if not isinstance(kind, str) or kind not in models:
        message = (
            f"got {format_value(kind)}: allowed are {' and '.join(models)}"
            if kind
            else 'is missing: write kind = "namespaces" or kind = "interfaces"'
        )
        raise FileProblem(subject, [Problem("kind", message)])
    bed = validated(models[kind], data, subject)
    problems = _consistency_problems(bed) + _device_problems(bed) + _power_problems(bed)
    if problems:
        raise FileProblem(subject, problems)
    return bed


def bed_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of test bed files, with units and meanings as descriptions."""
    from routecast.lab.testbed.document import TestbedFile

    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **TestbedFile.model_json_schema(),
        "title": "routecast test bed file",
        "description": "Ports of a tester, wires, and a device under test.",
    }


def _override(data: dict[str, Any], device: str | None, options: Mapping[str, object]) -> None:
    table = data.get("dut", {})
    if not isinstance(table, dict):
        return  # the model reports it
    if device is not None and device != table.get("device", "linux"):
        table = {"device": device}
    if device is not None or options:
        data["dut"] = {**table, **({"device": device} if device else {}), **options}


def _consistency_problems(bed: NamespacesFile | InterfacesFile) -> list[Problem]:
    problems = []
    cores = bed.cores
    if cores.tester is not None and cores.tester == cores.dut:
        message = f"is core {cores.dut}, the tester's: the device is then measured together with the tester"
        problems.append(Problem("cores.dut", f"{message}; give another core, or none to let routecast choose"))
    if bed.kind == "namespaces":
        return problems
    numbers: dict[tuple[str | None, str], int] = {}
    for number, port in enumerate(bed.port):
        key = (port.netns, port.interface)
        if key in numbers:
            message = f"{port.interface} is port {numbers[key]} already: each port has its own interface"
            problems.append(Problem(f"port[{number}].interface", message))
        numbers[key] = number
        if number > 1 and port.ipv4 is None:
            message = "is missing: RFC 2544 gives addresses to two ports, give those of further ports here"
            problems.append(Problem(f"port[{number}].ipv4", message))
    return problems


def _device_problems(bed: NamespacesFile | InterfacesFile) -> list[Problem]:
    from routecast.lab.testbed.devices import make_device

    try:
        make_device(bed.dut.device, bed.dut.options)
    except FileProblem as problem:
        place_by_option = {"name": "device"}
        return [
            Problem(place_of(["dut", place_by_option.get(fault.place, fault.place)]), fault.message)
            for fault in problem.problems
        ]
    return []


def _power_problems(bed: NamespacesFile | InterfacesFile) -> list[Problem]:
    from routecast.lab.testbed.meters._finding import AUTO, meter_of

    if bed.power is None or bed.power.meter == AUTO:
        return []
    try:
        meter_of(bed.power.meter, bed.power)
    except FileProblem as problem:
        return [Problem("power.meter", fault.message) for fault in problem.problems]
    except EnvironmentProblem:
        return []  # credentials are a matter of the run, not of the file
    return []
