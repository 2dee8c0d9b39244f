"""Values of Python as a router file and ``--vary`` write them: numbers in base units with their unit."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from numbers import Integral
from typing import TYPE_CHECKING, Any, get_args

from routecast.api._arguments import MAX_FLOWS, as_list, check_load, is_number, plain_entry, read_count, wrong_type
from routecast.calibration.fitted import MAX_CORES
from routecast.errors import QuantityProblem
from routecast.load import FrameMix
from routecast.quantity.fields import Parsed
from routecast.router.variants import field_of

if TYPE_CHECKING:
    from pydantic import BaseModel


LOAD_KEYS = {"load": "load.rate", "frame": "load.frames", "frames": "load.frames", "flows": "load.flows.count"}
"""Short keys of ``--vary``, and the fields of a router file that they are short for."""
_ASKED_ABOVE = {"s": (100.0, "us"), "s/B": (1e-6, "ns/B")}
_ASKED_BELOW = {"bit/s": (100e6, "Gbit/s"), "pps": (100e3, "Mpps"), "Hz": (1e6, "GHz"), "B/s": (1e6, "GB/s")}
"""Numbers in base units that are asked about, by unit: the limit, and the unit that was probably meant."""
_LONGEST_COST_S, _SHORTEST_COST_S = 1e-3, 1e-10
"""A frame that takes a core longer, or less than a cycle, is asked about."""


def encodable(entry: Any) -> Any:
    """Return a text as UTF-8 can hold it: pydantic reports no other."""
    return entry.encode("utf-8", "replace").decode() if isinstance(entry, str) else entry


def _parsed_type(path: str, table: type[BaseModel]) -> Parsed | None:
    """Return how a field of a router file is written, where it is a text with a unit."""
    known = field_of(table, path)
    kinds = [known.annotation] if known else []
    while kinds:
        kind = kinds.pop()
        if isinstance(kind, Parsed):
            return kind
        kinds += [*get_args(kind), *getattr(kind, "__metadata__", ())]
    return None


def written_entry(path: str, entry: Any, table: type[BaseModel]) -> Any:
    """Write a number in base units as a router file writes it, with its unit, and so the numbers in tables and lists.

    Raises QuantityProblem: the number is absurd in its base unit, so that another unit was probably meant.
    """
    entry = plain_entry(entry)
    if isinstance(entry, Mapping):
        return {str(key): written_entry(f"{path}.{key}", part, table) for key, part in entry.items()}
    if isinstance(entry, Iterable) and not isinstance(entry, str | bytes | bytearray):
        return [written_entry(f"{path}[{number}]", part, table) for number, part in enumerate(entry)]
    if not is_number(entry):
        return encodable(entry)
    entry = int(entry) if isinstance(entry, Integral) else float(entry)
    if not math.isfinite(entry):
        raise QuantityProblem(str(entry), f"{path}: got {entry}: write a finite number, or a text with a unit")
    if path == "load.rate":
        check_load(entry)
        return f"{entry!r} pps"
    if path == "load.frames":
        return f"{entry:g} B"
    kind = _parsed_type(path, table)
    if kind is None or not kind.unit:
        return entry
    _check_unit(path, entry, kind.unit)
    return kind.write(entry)


def _check_unit(path: str, amount: float, unit: str) -> None:
    """Raise where a number without a unit is absurd in its base unit, and the probable one is another."""
    limit, probable = _ASKED_ABOVE.get(unit, (math.inf, ""))
    if unit == "s" and path.rpartition(".")[2].startswith("per_"):
        limit, probable = _LONGEST_COST_S, "ns"
    least, larger = _ASKED_BELOW.get(unit, (0.0, ""))
    if path.rpartition(".")[2] == "per_packet":
        least, larger = _SHORTEST_COST_S, "us"
    if amount > limit or 0.0 < amount < least:
        plain = f"{amount:g} {unit}"
        raise QuantityProblem(
            plain,
            f'{path}: got {amount:g} without a unit, which is {plain}: write its unit, "{amount:g} '
            f'{probable if amount > limit else larger}" or "{plain}"',
        )


def vary_texts(key: str, values: Any, table: type[BaseModel]) -> list[str]:
    """Write the values of a key as ``--vary`` takes them: mixes of frames with ``+``, numbers in base units."""
    what = f"values of {key}"
    values = encodable(values)
    if isinstance(values, str):  # a list or a range, as --vary takes it
        return [_with_plus(values) if key == "frame" and "x" in values.lower().replace("imix", "") else values]
    texts = []
    for entry in map(plain_entry, as_list(values, what)):
        if isinstance(entry, bool):
            texts.append(str(entry).lower())
        elif isinstance(entry, FrameMix) and key == "frame":
            texts.append(_with_plus(entry.name))
        elif isinstance(entry, str):
            text = encodable(entry)
            texts.append(_with_plus(text) if key == "frame" else _THOUSANDS.sub("", text))
        elif not is_number(entry):
            raise wrong_type(entry, what, "write texts, numbers or Booleans, several in a list")
        elif key == "frame":
            texts.append(f"{read_count(entry, 'bytes of a frame', most=MAX_FLOWS)}")
        elif key == "flows":
            texts.append(f"{read_count(entry, 'a number of flows', most=MAX_FLOWS)}")
        elif key == "cores":
            texts.append(f"{read_count(entry, 'cores', most=MAX_CORES)}")
        else:
            written = written_entry(LOAD_KEYS.get(key, key), entry, table)
            texts.append(f"{written:.17g}" if isinstance(written, float) else str(written))
    return texts


_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")


def _with_plus(mix: str) -> str:
    return re.sub(r",\s*", "+", mix)
