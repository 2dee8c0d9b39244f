"""Port models as NetPowerBench's YAML (github.com/nsg-ethz/NetPowerBench, devices/*/power_model*.yml).

Three layouts of the same eight numbers are read: ``Arguments`` and ``Power_model`` (the present output of its
model_derivation), the same keys in one flat table, and a tree PORT → TRX → SPEED with ``metadata`` that holds several
classes of ports, where ``default`` points to the numbers of another class. The tree is the layout that is written.
Watts and joules are in base units; ``.nan`` stands for a number that was not measured.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml
from yaml.composer import ComposerError

from routecast.errors import FileProblem, ModelProblem, Problem
from routecast.power.csv_file import CsvFile, CsvRow
from routecast.power.port import PortClass, PortPower
from routecast.quantity.bounded_file import read_text
from routecast.quantity.did_you_mean import did_you_mean
from routecast.quantity.toml_file import format_value

_TERMS = {
    "P_BASE": "base_w",
    "P_PORT": "port_w",
    "P_TRX_IN": "trx_in_w",
    "P_TRX_UP": "trx_up_w",
    "E_BIT": "bit_j",
    "E_PKT": "packet_j",
    "P_OFFSET": "offset_w",
}
_CLASS_KEYS = (*_TERMS, "P_TRX")
_ARGUMENTS = ("Device", "Port_type", "Port_speed", "Transceivers", "Traffic_generator")
_METADATA = ("device_id", "connected_PSUs")
_DEFAULT_KEYS = {"port_type": 0, "trx_phy": 1, "trx_speed": 2}
_SUM_TOLERANCE_W = 1e-6
_CLASS_NAME_PARTS = 3
MAX_FILE_BYTES = 1_000_000
_MAX_NODES = 20_000
"""Limits: 10 times the bytes and 4 times the nodes of NetPowerBench's largest file, which PyYAML parses in a second."""


def read_netpowerbench(path: str | Path) -> PortPower:
    """Read a port model from a file.

    Raises FileProblem: as :func:`parse_netpowerbench`, or the file cannot be read.
    """
    text = read_text(Path(path), kind="NetPowerBench power model", max_file_bytes=MAX_FILE_BYTES)
    return parse_netpowerbench(text, subject=str(path))


def parse_netpowerbench(text: str, *, subject: str = "power model") -> PortPower:
    """Read a port model from the text of a file.

    Raises FileProblem: the text is no YAML, or it has unknown keys or values that are no numbers. It lists all faults
    with their places.

    Examples
    --------
    >>> flat = "{Device: x, Port_type: SFP, Port_speed: 1G, Transceivers: T, P_BASE: 33.0, E_BIT: .nan}"
    >>> parse_netpowerbench(flat).classes["SFP/T/1G"].base_w
    33.0
    """
    document = parse_yaml(text, subject)
    if not isinstance(document, dict):
        raise FileProblem(subject, [Problem("", "is no NetPowerBench power model: give a table")])
    problems: list[Problem] = []
    if "metadata" in document:
        device, classes = _read_tree(document, problems)
    else:
        device, classes = _read_one_class(document, problems)
    if not classes and not problems:
        problems.append(Problem("", "holds no ports"))
    if problems:
        raise FileProblem(subject, problems)
    return PortPower(device=device, classes=classes, source=subject)


class _Loader(yaml.SafeLoader):
    """Loader of YAML that refuses aliases, because nested aliases can expand to more values than memory holds."""

    nodes = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        self.nodes += 1
        if self.nodes > _MAX_NODES:
            message = f"holds more than {_MAX_NODES:,} keys and values, more than any file of NetPowerBench"
            raise ComposerError(None, None, f"{message}: split it")
        if self.check_event(yaml.AliasEvent):
            event = self.peek_event()  # type: ignore[no-untyped-call]
            where = f"line {event.start_mark.line + 1}"
            message = f"*{event.anchor} in {where} is an alias, which NetPowerBench does not use"
            raise ComposerError(None, None, f"{message}: write out the value")
        return super().compose_node(parent, index)


def parse_yaml(text: str, subject: str) -> Any:
    """Return the content of a YAML text of limited size without aliases; ``subject`` is its name in messages.

    Raises FileProblem: the text is no YAML, has an alias, or is nested too deeply or too large.
    """
    try:
        return yaml.load(text, Loader=_Loader)
    # PyYAML raises errors other than its own for values that contradict their tag.
    except (yaml.YAMLError, ValueError, LookupError, AttributeError) as error:
        raise FileProblem(subject, [Problem("", f"is no YAML: {error}")]) from error
    except RecursionError as error:
        raise FileProblem(subject, [Problem("", "is nested too deeply")]) from error


def netpowerbench_text(model: PortPower) -> str:
    """Return the YAML of a port model, without its equipped ports and scope, which that format lacks.

    Raises ModelProblem: a class is not named PORT/TRX/SPEED.
    """
    tree: dict[str, Any] = {"metadata": {"device_id": model.device}}
    for name, ports in model.classes.items():
        parts = name.split("/")
        if len(parts) != _CLASS_NAME_PARTS or not all(parts):
            message = (
                f'NetPowerBench names ports PORT/TRX/SPEED, such as QSFP/PCC/100G: got "{name}"; write .toml or .json '
                "instead"
            )
            raise ModelProblem(model.device, [Problem("classes", message)])
        values = {key: _number_or_nan(getattr(ports, term)) for key, term in _TERMS.items()}
        values["P_TRX"] = _number_or_nan(ports.trx_w)
        tree.setdefault(parts[0], {}).setdefault(parts[1], {})[parts[2]] = {key: values[key] for key in _CLASS_KEYS}
    return yaml.safe_dump(tree, sort_keys=False)


def _number_or_nan(value: float | None) -> float:
    return math.nan if value is None else value


def _read_one_class(document: Mapping[Any, Any], problems: list[Problem]) -> tuple[str, dict[str, PortClass]]:
    """Read either of the two layouts that hold a single class of ports."""
    if "Power_model" in document or "Arguments" in document:
        _report_unknown_keys(document, ("Arguments", "Power_model"), "", problems)
        arguments, values = document.get("Arguments"), document.get("Power_model")
        if not isinstance(arguments, dict) or not isinstance(values, dict):
            problems.append(Problem("", "Arguments and Power_model must both be tables"))
            return "", {}
        _report_unknown_keys(arguments, _ARGUMENTS, "Arguments", problems)
        place = "Power_model"
    else:
        arguments = {key: document[key] for key in _ARGUMENTS if key in document}
        values = {key: value for key, value in document.items() if key not in _ARGUMENTS}
        place = ""
    missing = [key for key in _ARGUMENTS[:4] if key not in arguments]
    problems += [Problem(key, "is missing") for key in missing]
    ports = _port_class(values, place, problems)
    if missing or ports is None:
        return "", {}
    name = "/".join(str(arguments[key]) for key in ("Port_type", "Transceivers", "Port_speed"))
    return str(arguments["Device"]), {name: ports}


def _read_tree(document: Mapping[Any, Any], problems: list[Problem]) -> tuple[str, dict[str, PortClass]]:
    metadata = document["metadata"]
    if not isinstance(metadata, dict) or "device_id" not in metadata:
        problems.append(Problem("metadata", "must be a table with device_id"))
        return "", {}
    _report_unknown_keys(metadata, _METADATA, "metadata", problems)
    classes: dict[str, PortClass] = {}
    default_targets: dict[str, str] = {}
    for name, values in _port_class_tables(
        {key: value for key, value in document.items() if key != "metadata"}, problems
    ):
        if isinstance(values.get("default"), dict):
            default = values["default"]
            _report_unknown_keys(default, _DEFAULT_KEYS, f"{name}.default", problems)
            default_targets[name] = "/".join(str(default.get(key, "")) for key in _DEFAULT_KEYS)
        elif (ports := _port_class(values, name, problems)) is not None:
            classes[name] = ports
    for name, target in default_targets.items():
        if target in classes:
            classes[name] = classes[target]
        elif not problems:
            problems.append(Problem(f"{name}.default", f'names "{target}": {did_you_mean(target, classes)}'))
    return str(metadata["device_id"]), classes


def _port_class_tables(document: Mapping[Any, Any], problems: list[Problem]) -> list[tuple[str, Mapping[Any, Any]]]:
    """Return the tables at the third level with their names PORT/TRX/SPEED."""
    level: list[tuple[str, Any]] = [("", document)]
    for step in ("kinds of ports", "transceivers", "speeds"):
        children = []
        for name, table in level:
            if not isinstance(table, dict):
                problems.append(Problem(name, f"got {format_value(table)}: give a table of {step}"))
                continue
            children += [(f"{name}/{key}".removeprefix("/"), value) for key, value in table.items()]
        level = children
    problems += [
        Problem(name, f"got {format_value(value)}: give a table of {', '.join(_TERMS)}")
        for name, value in level
        if not isinstance(value, dict)
    ]
    return [(name, value) for name, value in level if isinstance(value, dict)]


def _port_class(values: Mapping[Any, Any], place: str, problems: list[Problem]) -> PortClass | None:
    problems_before = len(problems)
    _report_unknown_keys(values, _CLASS_KEYS, place, problems)
    values_by_key: dict[str, float | None] = {}
    for key in _CLASS_KEYS:
        value = values.get(key, math.nan)
        where = f"{place}.{key}".removeprefix(".")
        if isinstance(value, bool) or not isinstance(value, int | float) or math.isinf(value):
            problems.append(Problem(where, f"got {format_value(value)}: it must be a number, or .nan"))
        else:
            values_by_key[key] = None if math.isnan(value) else float(value)
    base = values_by_key.get("P_BASE")
    if len(problems) == problems_before and (base is None or base < 0.0):
        problems.append(Problem(f"{place}.P_BASE".removeprefix("."), "must be given: watts, not negative"))
    trx_w, trx_in_w, trx_up_w = (values_by_key.get(key) for key in ("P_TRX", "P_TRX_IN", "P_TRX_UP"))
    if trx_w is not None and trx_in_w is not None and trx_up_w is not None:
        if abs(trx_w - trx_in_w - trx_up_w) > _SUM_TOLERANCE_W:
            problems.append(Problem(f"{place}.P_TRX".removeprefix("."), f"{trx_w:g} is not P_TRX_IN + P_TRX_UP"))
    elif trx_w is not None:
        # Only the sum was measured, which a transceiver draws when it is plugged in and up.
        values_by_key["P_TRX_IN"], values_by_key["P_TRX_UP"] = trx_w - (trx_up_w or 0.0), trx_up_w or 0.0
    if len(problems) > problems_before or base is None:
        return None
    terms = {term: values_by_key[key] for key, term in _TERMS.items() if key != "P_BASE"}
    return PortClass(base_w=base, **terms)


def _report_unknown_keys(
    table: Mapping[Any, Any], known: tuple[str, ...] | Mapping[str, int], place: str, problems: list[Problem]
) -> None:
    for key in table:
        if key not in known:
            where = f"{place}.{key}".removeprefix(".")
            problems.append(Problem(where, f"is an unknown key: {did_you_mean(str(key), known)}"))


_MAX_DEPTH = 8


def read_power_data(path: str | Path) -> CsvFile:
    """Read NetPowerBench's table of measurements (``devices/*/power_data.yml``).

    The result has the columns device, path, n and mean_w. Nested keys are the steps of a path (devices/README.md
    there). The innermost table holds the medians of the measurements in ``power`` and their times in ``ts``.

    Raises FileProblem: the file cannot be read, is no YAML, or holds no measurements. It lists all faults with their
    places.
    """
    subject = str(path)
    text = read_text(Path(path), kind="NetPowerBench table of measurements", max_file_bytes=MAX_FILE_BYTES)
    document = parse_yaml(text, subject)
    if not isinstance(document, dict):
        raise FileProblem(subject, [Problem("", "is no NetPowerBench table of measurements")])
    device = str(document.get("device", Path(path).parent.name or "device"))
    problems: list[Problem] = []
    rows: list[CsvRow] = []
    for steps, power in _measurements({key: entry for key, entry in document.items() if key != "device"}, ()):
        place = "/".join(steps)
        values = power if isinstance(power, list) else []
        watts = [value for value in values if isinstance(value, int | float) and math.isfinite(value) and value >= 0.0]
        if not values or len(watts) < len(values):
            problems.append(Problem(place, f"got {format_value(power)}: power is a list of watts, not negative"))
            continue
        mean_w = sum(watts) / len(watts)
        cells = {"device": device, "path": place, "n": str(len(watts)), "mean_w": repr(mean_w)}
        rows.append(CsvRow(number=len(rows) + 1, cells=cells))
    if not rows and not problems:
        problems.append(Problem("", "holds no measurements: each is a list named power"))
    if problems:
        raise FileProblem(subject, problems)
    return CsvFile(path=subject, columns=("device", "path", "n", "mean_w"), rows=tuple(rows))


def _measurements(table: Mapping[Any, Any], steps: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    if "power" in table:
        yield steps, table["power"]
        return
    for key, children in table.items():
        if isinstance(children, dict) and len(steps) < _MAX_DEPTH:
            yield from _measurements(children, (*steps, str(key)))
        else:
            yield (*steps, str(key)), children
