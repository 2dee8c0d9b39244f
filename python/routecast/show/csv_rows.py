"""Plain data as CSV: a line for each row, in the units of its keys."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping

__all__ = ["csv_of"]


def csv_of(rows: Iterable[Mapping[str, object]]) -> str:
    r"""Return rows of plain data as CSV; what is not known is empty.

    A part of a part is named for both; texts of a list stand in one cell; other lists and encoded histograms are left
    out, for no cell holds them.

    Examples
    --------
    >>> csv_of([{"pps": 1.0, "latency": {"mean_s": None}, "notes": ["a", "b"], "flows": [{"pps": 1.0}]}])
    'pps,latency_mean_s,notes\n1.0,,a; b\n'
    """
    flat = [_flat(row) for row in rows]
    heads = dict.fromkeys(key for row in flat for key in row)
    text = io.StringIO()
    writer = csv.DictWriter(text, list(heads), lineterminator="\n")
    writer.writeheader()
    writer.writerows(flat)
    return text.getvalue()


def _flat(row: Mapping[str, object]) -> dict[str, object]:
    flat: dict[str, object] = {}
    for key, entry in row.items():
        if isinstance(entry, Mapping):
            flat |= {f"{key}_{inner}": part for inner, part in _flat(entry).items()}
        elif isinstance(entry, list | tuple):
            if all(isinstance(part, str) for part in entry):
                flat[key] = "; ".join(entry)
        elif not key.endswith("_base64"):
            flat[key] = entry
    return flat
