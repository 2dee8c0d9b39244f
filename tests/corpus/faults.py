"""The fault corpus: shipped files with one key dropped, misspelt, of another type or out of range, and what is said."""

from __future__ import annotations

import shutil
import tomllib
from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import tomli_w
from corpus import ROOT

from routecast.errors import RoutecastError
from routecast.experiment.file import read_experiment
from routecast.function.catalogue import read_function
from routecast.hardware.catalogue import read_hardware
from routecast.lab.benchmark import read_profile
from routecast.lab.testbed.reading import read_testbed
from routecast.multistage.reading import read_multistage
from routecast.noc.file import read_noc
from routecast.plan.cluster.reading import read_cluster
from routecast.plan.network_processor.catalogue import read_processor
from routecast.plan.placement.reading import read_placement
from routecast.power.files import read_power_model
from routecast.router.files import read_router_and_load
from routecast.study.reading import read_study
from routecast.virtual.catalogue import read_technology

__all__ = ["changes_of", "faults", "files", "reader_of", "subject"]

_READERS: dict[str, Callable[[Path], object]] = {
    "router": read_router_and_load,
    "testbed": read_testbed,
    "multistage": read_multistage,
    "noc": read_noc,
    "experiment": read_experiment,
    "cluster": read_cluster,
    "placement": read_placement,
    "study": read_study,
    "benchmark": read_profile,
    "function": read_function,
    "hardware": read_hardware,
    "power": read_power_model,
    "processor": read_processor,
    "virtualisation": read_technology,
}
_DATA = ROOT / "packages" / "routecast" / "routecast" / "data"
_OTHERS = (
    "benchmark/rfc2544.toml",
    "functions/ipv4_router.function.toml",
    "functions/bng.function.toml",
    "hardware/xeon-e5-2690v2.hardware.toml",
    "power/bolla2009.toml",
    "processors/ixp2850.processor.toml",
    "processors/agilio-cx.processor.toml",
    "virtualisation/kvm-vhost-2012.virtualisation.toml",
    "virtualisation/memif.virtualisation.toml",
)
_MOST_KEYS = 14
"""Keys of one file that are changed, evenly chosen: about two thousand changes in all."""

Path_ = tuple[str | int, ...]


def files() -> list[Path]:
    """The files that are changed: every example, every shipped study, some of each other kind."""
    folders = (_DATA, *ROOT.glob("packages/routecast-*/routecast/*/data"))
    studies = sorted(
        (path for folder in folders for path in folder.glob("studies/*.study.toml")), key=lambda path: path.name
    )
    others = [folder / each for each in _OTHERS for folder in folders if (folder / each).exists()]
    assert len(others) == len(_OTHERS)
    return [*sorted((ROOT / "examples").glob("*.toml")), *studies, *others]


def subject(file: Path) -> str:
    """What the page of a file is called."""
    return f"faults/{file.name.removesuffix('.toml')}"


def faults(file: Path, folder: Path) -> str:
    """Every change of a file and what is said of it; changed files go to ``folder``, beside copies of others."""
    beside = folder / file.parent.name
    if not beside.exists():
        shutil.copytree(file.parent, beside)
    read = reader_of(file)
    lines = [f"# {file.relative_to(ROOT)}, one key changed in each"]
    target = beside / file.name
    for place, what, changed in changes_of(file):
        target.write_text(tomli_w.dumps(changed))
        lines += [f"- {_shown(place)}: {what}", *(f"  {line}" for line in _said(read, target, folder))]
    target.write_text(file.read_text())
    return "\n".join(lines) + "\n"


def reader_of(file: Path) -> Callable[[Path], object]:
    """Return the function that reads a file of this kind."""
    return _READERS[file.name.split(".")[-2] if file.name.count(".") > 1 else file.parent.name]


def changes_of(file: Path) -> Iterator[tuple[Path_, str, dict[str, Any]]]:
    """Yield the changed place of a file, what is changed there, and the changed document."""
    document = tomllib.loads(file.read_text())
    places = list(_leaves(document))
    for place in places[:: -(-len(places) // _MOST_KEYS)]:
        for what, changed in _changes(document, place):
            yield place, what, changed


def _said(read: Callable[[Path], object], target: Path, folder: Path) -> list[str]:
    try:
        read(target)
    except RoutecastError as error:
        return str(error).replace(str(target), target.name).replace(str(folder), "").splitlines()
    return ["is read"]


def _leaves(value: Any, place: Path_ = ()) -> Iterator[Path_]:
    if isinstance(value, dict):
        for key, each in value.items():
            yield from _leaves(each, (*place, key))
    elif isinstance(value, list) and value and isinstance(value[0], dict):
        for index, each in enumerate(value):
            yield from _leaves(each, (*place, index))
    else:
        yield place


def _changes(document: dict[str, Any], place: Path_) -> Iterator[tuple[str, dict[str, Any]]]:
    value = _at(document, place)
    yield "dropped", _with(document, place, lambda table, key: table.pop(key))
    yield (
        f'misspelt "{place[-1]}x"',
        _with(document, place, lambda table, key: table.update({f"{key}x": table.pop(key)})),
    )
    other: Any = [["a"]] if not isinstance(value, list) else 1.5
    yield f"= {other}", _with(document, place, lambda table, key: table.update({key: other}))
    outside: Any = "-3 parsecs" if isinstance(value, str) else -7 if not isinstance(value, list) else []
    yield f"= {outside!r}", _with(document, place, lambda table, key: table.update({key: outside}))


def _at(value: Any, place: Path_) -> Any:
    for each in place:
        value = value[each]
    return value


def _with(document: dict[str, Any], place: Path_, change: Callable[[Any, Any], object]) -> dict[str, Any]:
    copy = deepcopy(document)
    change(_at(copy, place[:-1]), place[-1])
    return copy


def _shown(place: Path_) -> str:
    text = ""
    for each in place:
        text += f"[{each}]" if isinstance(each, int) else f".{each}" if text else each
    return text
