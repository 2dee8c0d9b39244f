"""Port models as NetPowerBench's YAML (github.com/nsg-ethz/NetPowerBench, devices/*/power_model*.yml).

Three layouts of the same eight numbers exist there and are read: ``Arguments`` beside ``Power_model`` (what its
model_derivation writes now), the same keys in one flat table, and a tree PORT → TRX → SPEED under ``metadata`` that
holds several kinds of ports, where ``default`` points to another kind's numbers. The tree is written. Watts and
joules are in base units; ``.nan`` is what was not measured.
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
from routecast.quantity.toml_file import shown

_TERMS = {
    "P_BASE": "base_w",
    "P_PORT": "port_w",
    "P_TRX_IN": "trx_in_w",
    "P_TRX_UP": "trx_up_w",
    "E_BIT": "bit_j",
    "E_PKT": "packet_j",
    "P_OFFSET": "offset_w",
}
_KNOWN = (*_TERMS, "P_TRX")
_ARGUMENTS = ("Device", "Port_type", "Port_speed", "Transceivers", "Traffic_generator")
_METADATA = ("device_id", "connected_PSUs")
_DEFAULT = {"port_type": 0, "trx_phy": 1, "trx_speed": 2}
_SUM_SLACK_W = 1e-6
_PARTS = 3
LARGEST_BYTES = 1_000_000
_MOST_NODES = 20_000
"""Ten and four times NetPowerBench's largest; PyYAML takes a second for so many keys and values."""


def read_netpowerbench(path: str | Path) -> PortPower:
    """Read a port model from a file.

    Raises FileProblem: as :func:`parse_netpowerbench`, or the file cannot be read.
    """
    text = read_text(Path(path), kind="NetPowerBench power model", largest_bytes=LARGEST_BYTES)
    return parse_netpowerbench(text, subject=str(path))


def parse_netpowerbench(text: str, *, subject: str = "power model") -> PortPower:
    """Read a port model from the text of a file.

    Raises FileProblem: it is no YAML, or has unknown keys, or values that are no numbers; all faults with their places.

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
        device, classes = _tree(document, problems)
    else:
        device, classes = _single(document, problems)
    if not classes and not problems:
        problems.append(Problem("", "holds no ports"))
    if problems:
        raise FileProblem(subject, problems)
    return PortPower(device=device, classes=classes, source=subject)


class _Loader(yaml.SafeLoader):
    """Plain YAML: ten lines of aliases to lists of aliases can stand for more values than any memory holds."""

    nodes = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        self.nodes += 1
        if self.nodes > _MOST_NODES:
            message = f"holds more than {_MOST_NODES:,} keys and values, more than any file of NetPowerBench"
            raise ComposerError(None, None, f"{message}: cut it")
        if self.check_event(yaml.AliasEvent):
            event = self.peek_event()  # type: ignore[no-untyped-call]
            where = f"line {event.start_mark.line + 1}"
            message = f"*{event.anchor} in {where} is an alias, which no file of NetPowerBench has"
            raise ComposerError(None, None, f"{message}: write out what it stands for")
        return super().compose_node(parent, index)


def parse_yaml(text: str, subject: str) -> Any:
    """Return the content of a YAML text, within bounds and without aliases; ``subject`` is what messages call it.

    Raises FileProblem: the text is no YAML, has an alias, or is nested too deeply or too large.
    """
    try:
        return yaml.load(text, Loader=_Loader)
    # Only the first is PyYAML's own: values that are not what their tag says raise the others.
    except (yaml.YAMLError, ValueError, LookupError, AttributeError) as error:
        raise FileProblem(subject, [Problem("", f"is no YAML: {error}")]) from error
    except RecursionError as error:
        raise FileProblem(subject, [Problem("", "is nested too deeply")]) from error


def netpowerbench_text(model: PortPower) -> str:
    """Return the YAML of a port model; what it is equipped with and its scope have no place in that format.

    Raises ModelProblem: a class is not named PORT/TRX/SPEED.
    """
    tree: dict[str, Any] = {"metadata": {"device_id": model.device}}
    for name, ports in model.classes.items():
        parts = name.split("/")
        if len(parts) != _PARTS or not all(parts):
            message = (
                f'NetPowerBench names ports PORT/TRX/SPEED, such as QSFP/PCC/100G: got "{name}"; write .toml or .json '
                "instead"
            )
            raise ModelProblem(model.device, [Problem("classes", message)])
        values = {key: _number(getattr(ports, term)) for key, term in _TERMS.items()}
        values["P_TRX"] = _number(ports.trx_w)
        tree.setdefault(parts[0], {}).setdefault(parts[1], {})[parts[2]] = {key: values[key] for key in _KNOWN}
    return yaml.safe_dump(tree, sort_keys=False)


def _number(value: float | None) -> float:
    return math.nan if value is None else value


def _single(document: Mapping[Any, Any], problems: list[Problem]) -> tuple[str, dict[str, PortClass]]:
    """Read the two layouts of one kind of port."""
    if "Power_model" in document or "Arguments" in document:
        _only(document, ("Arguments", "Power_model"), "", problems)
        arguments, values = document.get("Arguments"), document.get("Power_model")
        if not isinstance(arguments, dict) or not isinstance(values, dict):
            problems.append(Problem("", "Arguments and Power_model must both be tables"))
            return "", {}
        _only(arguments, _ARGUMENTS, "Arguments", problems)
        place = "Power_model"
    else:
        arguments = {key: document[key] for key in _ARGUMENTS if key in document}
        values = {key: value for key, value in document.items() if key not in _ARGUMENTS}
        place = ""
    missing = [key for key in _ARGUMENTS[:4] if key not in arguments]
    problems += [Problem(key, "is missing") for key in missing]
    ports = _class(values, place, problems)
    if missing or ports is None:
        return "", {}
    name = "/".join(str(arguments[key]) for key in ("Port_type", "Transceivers", "Port_speed"))
    return str(arguments["Device"]), {name: ports}


def _tree(document: Mapping[Any, Any], problems: list[Problem]) -> tuple[str, dict[str, PortClass]]:
    metadata = document["metadata"]
    if not isinstance(metadata, dict) or "device_id" not in metadata:
        problems.append(Problem("metadata", "must be a table with device_id"))
        return "", {}
    _only(metadata, _METADATA, "metadata", problems)
    classes: dict[str, PortClass] = {}
    points_to: dict[str, str] = {}
    for name, values in _leaves({key: value for key, value in document.items() if key != "metadata"}, problems):
        if isinstance(values.get("default"), dict):
            wanted = values["default"]
            _only(wanted, _DEFAULT, f"{name}.default", problems)
            points_to[name] = "/".join(str(wanted.get(key, "")) for key in _DEFAULT)
        elif (ports := _class(values, name, problems)) is not None:
            classes[name] = ports
    for name, target in points_to.items():
        if target in classes:
            classes[name] = classes[target]
        elif not problems:
            problems.append(Problem(f"{name}.default", f'names "{target}": {did_you_mean(target, classes)}'))
    return str(metadata["device_id"]), classes


def _leaves(document: Mapping[Any, Any], problems: list[Problem]) -> list[tuple[str, Mapping[Any, Any]]]:
    """Return the tables at the third level with their names PORT/TRX/SPEED."""
    level: list[tuple[str, Any]] = [("", document)]
    for step in ("kinds of ports", "transceivers", "speeds"):
        below = []
        for name, table in level:
            if not isinstance(table, dict):
                problems.append(Problem(name, f"got {shown(table)}: give a table of {step}"))
                continue
            below += [(f"{name}/{key}".removeprefix("/"), value) for key, value in table.items()]
        level = below
    problems += [
        Problem(name, f"got {shown(value)}: give a table of {', '.join(_TERMS)}")
        for name, value in level
        if not isinstance(value, dict)
    ]
    return [(name, value) for name, value in level if isinstance(value, dict)]


def _class(values: Mapping[Any, Any], place: str, problems: list[Problem]) -> PortClass | None:
    before = len(problems)
    _only(values, _KNOWN, place, problems)
    read: dict[str, float | None] = {}
    for key in _KNOWN:
        value = values.get(key, math.nan)
        where = f"{place}.{key}".removeprefix(".")
        if isinstance(value, bool) or not isinstance(value, int | float) or math.isinf(value):
            problems.append(Problem(where, f"got {shown(value)}: it must be a number, or .nan"))
        else:
            read[key] = None if math.isnan(value) else float(value)
    base = read.get("P_BASE")
    if len(problems) == before and (base is None or base < 0.0):
        problems.append(Problem(f"{place}.P_BASE".removeprefix("."), "must be there: watts, not negative"))
    together, inside, up = (read.get(key) for key in ("P_TRX", "P_TRX_IN", "P_TRX_UP"))
    if together is not None and inside is not None and up is not None:
        if abs(together - inside - up) > _SUM_SLACK_W:
            problems.append(Problem(f"{place}.P_TRX".removeprefix("."), f"{together:g} is not P_TRX_IN + P_TRX_UP"))
    elif together is not None:
        # Only the sum was measured: a transceiver that is plugged in and up costs it.
        read["P_TRX_IN"], read["P_TRX_UP"] = together - (up or 0.0), up or 0.0
    if len(problems) > before or base is None:
        return None
    rest = {term: read[key] for key, term in _TERMS.items() if key != "P_BASE"}
    return PortClass(base_w=base, **rest)


def _only(
    table: Mapping[Any, Any], known: tuple[str, ...] | Mapping[str, int], place: str, problems: list[Problem]
) -> None:
    for key in table:
        if key not in known:
            where = f"{place}.{key}".removeprefix(".")
            problems.append(Problem(where, f"is no key that is known here: {did_you_mean(str(key), known)}"))


_DEEPEST = 8


def read_power_data(path: str | Path) -> CsvFile:
    """Return the measurements of a file as rows with the columns device, path, n and mean_w.

    NetPowerBench's own table of measurements (``devices/*/power_data.yml``) as rows of a table of samples.

    Its keys, one below the other, are the steps of a path (devices/README.md there); at the end stand the medians of
    the measurements in ``power`` and their times in ``ts``.

    Raises FileProblem: it cannot be read, is no YAML, or holds no measurements; all faults with their places.
    """
    subject = str(path)
    text = read_text(Path(path), kind="NetPowerBench table of measurements", largest_bytes=LARGEST_BYTES)
    document = parse_yaml(text, subject)
    if not isinstance(document, dict):
        raise FileProblem(subject, [Problem("", "is no NetPowerBench table of measurements")])
    device = str(document.get("device", Path(path).parent.name or "device"))
    problems: list[Problem] = []
    rows: list[CsvRow] = []
    for steps, power in _measurements({key: entry for key, entry in document.items() if key != "device"}, ()):
        place = "/".join(steps)
        values = power if isinstance(power, list) else []
        right = [value for value in values if isinstance(value, int | float) and math.isfinite(value) and value >= 0.0]
        if not values or len(right) < len(values):
            problems.append(Problem(place, f"got {shown(power)}: power is a list of watts, not negative"))
            continue
        mean_w = sum(right) / len(right)
        cells = {"device": device, "path": place, "n": str(len(right)), "mean_w": repr(mean_w)}
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
    for key, below in table.items():
        if isinstance(below, dict) and len(steps) < _DEEPEST:
            yield from _measurements(below, (*steps, str(key)))
        else:
            yield (*steps, str(key)), below
