"""Heads of a table of points: how they are spelled, and what is asked about those that are unknown."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from typing import Final, NamedTuple

from routecast.errors import Problem
from routecast.evaluate._point_cells import BETWEEN_WORDS, NO, YES
from routecast.evaluate._point_columns import (
    BIT_RATES,
    COLUMNS,
    FRAME_RATES,
    KIND_OF_STEM,
    LAYERS,
    RATE_COLUMNS,
    RATES,
    REQUIRED,
    REQUIRED_FOR_ROUTER,
    SPELLINGS,
    SUGGESTED_HEADS,
    USED,
    Unit,
)
from routecast.evaluate.points import Point, RateKind

_LAYER_FIRST: Final = re.compile(r"(l[123])_(.+?)_([^_]+)$")
_LAYER_LAST: Final = re.compile(r"(.+?)_([^_]+)_(l[123])$")
_REMARK_HEADS: Final = frozenset(
    {"remark", "remarks", "comment", "comments", "note", "notes", "description", "date", "bemerkung", "kommentar"}
)
"""Heads of columns that no answer uses, whatever their cells hold."""
IGNORED: Final = "ignored"
"""The column of cells that are not read."""
UNUSED_RATE: Final = "unused_rate"
"""The column of lossless rates beside one of forwarding rates."""
_BYTES_PER_SECOND: Final = re.compile(r"(?<![A-Za-z])([kKMGT]?)(?:B|[Bb]ytes?)(?:/s|ps|/sec)(?![A-Za-z])")
NEEDS_FRAMES: Final = "no column names the frame size: add frame_bytes (64 or more, or IMIX), or give frames/s"
_ASKS_BITS: Final = (
    "names a unit only: write throughput_{unit} for measured rates, or link_{unit} for the rate of a port"
)
_BYTE_RATE: Final = re.compile(r"(?:^|_)[kmgt]?b/s(?:ec)?$")
_ASKS_BYTES: Final = "may be bits or bytes per second: write bit/s or bytes/s with its prefix, as in throughput_mbit/s"


class Head(NamedTuple):
    """The head of a column: its spelling in the table, its key in :data:`COLUMNS`, the unit of its bare numbers."""

    spelled: str
    column: str
    unit: Unit
    names_unit: bool


def read_header(
    header: Sequence[str], router: Point | None, rows: Sequence[Sequence[str]]
) -> tuple[tuple[Head, ...], list[Problem]]:
    heads: list[Head] = []
    problems: list[Problem] = []
    unread: list[tuple[int, str]] = []
    for index, spelled in enumerate(header):
        plain = plain_head(spelled)
        column, unit = SPELLINGS.get(plain, ("", Unit()))
        earlier = next((head.spelled for head in heads if head.column == column), None)
        if not column:
            unread.append((index, spelled))
            heads.append(Head(spelled, IGNORED, Unit(), names_unit=True))
            continue
        names_unit = _names_unit(plain, column)
        rival = next((head for head in heads if column == head.column == "throughput_pps"), None)
        if rival is not None and kind_of_head(rival.spelled) != kind_of_head(spelled):
            # Both kinds of rate: a model predicts what is forwarded in overload, which is no less.
            keeps_rival = kind_of_head(spelled) == "no_loss"
            if not keeps_rival:
                heads[heads.index(rival)] = rival._replace(column=UNUSED_RATE)
            heads.append(Head(spelled, UNUSED_RATE if keeps_rival else column, unit, names_unit))
            continue
        if earlier == spelled:
            problems.append(Problem(f"row 1, column {spelled}", "is given twice: keep one"))
        elif earlier is not None:
            problems.append(Problem("row 1", f"columns {earlier} and {spelled} mean the same: keep one"))
        heads.append(Head(spelled, column, unit, names_unit))
    columns = {head.column for head in heads}
    required = REQUIRED if router is None else REQUIRED_FOR_ROUTER
    missing = [column for column in required if column not in columns]
    for index, spelled in unread:
        cells = [row[index].strip() for row in rows if index < len(row)]
        is_remark = plain_head(spelled) in _REMARK_HEADS or not any(cells)
        if is_remark or (not missing and _is_prose(cells) and not _is_like_known(spelled)):
            continue
        hint = _unknown_head(spelled, missing)
        is_listed = any(hint == problem.message for problem in problems)
        shown_name = spelled[:60] or f"(number {index + 1}, without a name)"
        problems.append(Problem(f"row 1, column {shown_name}", "unknown too" if is_listed else hint))
    problems += [Problem("row 1", f"column {column} is missing: {COLUMNS[column].meaning}") for column in missing]
    if router is None and "frame_bytes" not in columns:
        problems += [
            Problem(f"row 1, column {head.spelled}", f"is in bit/s, but {NEEDS_FRAMES}")
            for head in heads
            if head.unit.layer and head.column in RATE_COLUMNS
        ]
    return tuple(heads), problems


def _names_unit(plain: str, column: str) -> bool:
    """Whether a head of a column names the unit of bare numbers; a layer of bits is none."""
    stem, _, last = plain.rpartition("_")
    return (stem if last in LAYERS and column in RATE_COLUMNS else plain) not in COLUMNS[column].stems


def _is_prose(cells: Sequence[str]) -> bool:
    """Whether cells hold words: neither amounts nor yes and no, which could decide an answer."""
    words = [cell for cell in cells if cell]
    return not any(_STARTS_AMOUNT.match(cell) for cell in words) and not all(cell.lower() in YES | NO for cell in words)


_STARTS_AMOUNT: Final = re.compile(r"[+-]?[.,]?\d")


def _is_like_known(spelled: str) -> bool:
    from routecast.quantity.did_you_mean import did_you_mean

    return did_you_mean(plain_head(spelled), SUGGESTED_HEADS).startswith("did you mean")


def _unknown_head(spelled: str, missing: Sequence[str]) -> str:
    """Return what to do about a head that no column has, with the likely name where there is one."""
    from routecast.quantity.did_you_mean import did_you_mean  # only for messages

    plain = plain_head(spelled)
    # A stem that names the kind of the rate is a claim: it is suggested for what begins like it alone.
    heads_alike = [head for head in SUGGESTED_HEADS if head[:4] == plain[:4] or not head.startswith((*KIND_OF_STEM,))]
    bits = plain.removeprefix("throughput_") if plain.rpartition("_")[0] in {"", "throughput"} else ""
    if bits in BIT_RATES:
        return _ASKS_BITS.format(unit=bits)
    if _BYTE_RATE.search(plain):
        return _ASKS_BYTES
    nearest = did_you_mean(plain, heads_alike)
    likely = nearest.removeprefix('did you mean "').removesuffix('"?') if nearest.startswith("did you mean") else ""
    if not likely:  # of heads that differ in the unit alone, five are of one column
        of_unit = [name for name in USED if any(plain.endswith(f"_{unit}") for unit in COLUMNS[name].units)]
        nearest = did_you_mean(plain, of_unit or USED)
        unit = max((unit for unit in RATES if plain.endswith(f"_{unit}")), key=len, default="")
        if unit and "throughput_pps" in missing:
            likely = f"throughput_{unit}"
        elif missing and not of_unit:
            likely = missing[0] if len(missing) == 1 else ""
    renamed = shlex.quote(f"{spelled[:60]}={likely or 'NAME'}")
    return f"unknown: {nearest}{' Name' if nearest.endswith('?') else '; name'} it with --rename {renamed}"


def plain_head(spelled: str) -> str:
    """Return a head in lower case, with ``_`` for spaces and brackets; a layer stands before the unit.

    A frame rate is its own stem: ``Mpps`` is ``throughput_mpps``. A capital B is a byte.

    Examples
    --------
    >>> [plain_head(head) for head in ("L2 throughput (Gbps)", "Throughput Gbit/s L1", "Mpps", "link MB/s")]
    ['throughput_l2_gbps', 'throughput_l1_gbit/s', 'throughput_mpps', 'link_mbytes/s']
    """
    with_bytes = _BYTES_PER_SECOND.sub(r"\1bytes/s", spelled[:100].replace("_", " "))
    plain = BETWEEN_WORDS.sub("_", with_bytes.lower()).strip("_")
    if plain in FRAME_RATES:
        return f"throughput_{plain}"
    layer, _, stem = plain.partition("_")
    if layer in LAYERS and stem in COLUMNS["throughput_pps"].stems:
        return f"{stem}_{layer}"
    if match := _LAYER_FIRST.match(plain):
        return f"{match[2]}_{match[1]}_{match[3]}"
    if match := _LAYER_LAST.match(plain):
        return f"{match[1]}_{match[3]}_{match[2]}"
    return plain


def kind_of_head(spelled: str) -> RateKind:
    plain = plain_head(spelled)
    return next((kind for stem, kind in KIND_OF_STEM.items() if plain == stem or plain.startswith(f"{stem}_")), "")
