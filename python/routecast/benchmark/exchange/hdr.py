"""HDR histograms as CSIT, TRex and NFVbench write them: base64 of the compressed V2 encoding.

The encoding (hdrhistogram.org, "HdrHistogram V2 encoding"): a cookie and a length, then zlib data with a header of 40
bytes and the counts as ZigZag LEB128 numbers, negative ones for runs of empty classes.
"""

from __future__ import annotations

import base64
import binascii
import math
import struct
import zlib
from collections.abc import Iterator

from routecast.evaluate.trial import Delay

__all__ = ["classes_of_hdr", "delay_of_hdr"]

_COMPRESSED, _PLAIN = 0x1C849304, 0x1C849303
_WORD_SIZE = 0xF0
_MOST_BYTES = 2**24
_HEADER = struct.Struct(">IIIIQQd")


def classes_of_hdr(text: str) -> tuple[tuple[int, int, int], ...] | None:
    """Return the classes that hold something, as (least value, greatest value, count); None if the text is no HDR.

    Values are whole numbers of the histogram's unit.
    """
    try:
        packed = base64.b64decode(text, validate=True)
        cookie, length = struct.unpack_from(">II", packed)
        if cookie & ~_WORD_SIZE != _COMPRESSED:
            return None
        stream = zlib.decompressobj()
        plain = stream.decompress(packed[8 : 8 + length], _MOST_BYTES)
        cookie, length, _, digits, lowest, _, _ = _HEADER.unpack_from(plain)
    except (binascii.Error, struct.error, zlib.error, ValueError):
        return None
    if cookie & ~_WORD_SIZE != _PLAIN or not 0 <= digits <= 5 or lowest < 1:
        return None
    half = max(math.ceil(math.log2(2 * 10**digits)), 1) - 1
    unit = lowest.bit_length() - 1
    found = []
    index = 0
    for number in _zigzag(plain[_HEADER.size : _HEADER.size + length]):
        if number < 0:
            index -= number
            continue
        if number > 0:
            found.append((*_edges(index, half, unit), number))
        index += 1
    return tuple(found)


def _zigzag(data: bytes) -> Iterator[int]:
    """Numbers of ZigZag LEB128, of nine bytes at most, the ninth of which has no continuation bit."""
    value = shift = 0
    for byte in data:
        if shift == 56:
            value |= byte << shift
        else:
            value |= (byte & 0x7F) << shift
            if byte & 0x80:
                shift += 7
                continue
        yield (value >> 1) ^ -(value & 1)
        value = shift = 0


def _edges(index: int, half: int, unit: int) -> tuple[int, int]:
    """Least and greatest value that fall into a class."""
    bucket, part = (index >> half) - 1, (index & ((1 << half) - 1)) + (1 << half)
    if bucket < 0:
        bucket, part = 0, part - (1 << half)
    width = 1 << (bucket + unit)
    return part * width, part * width + width - 1


def delay_of_hdr(text: str, *, unit_s: float) -> Delay | None:
    """Return the delay that an HDR histogram holds; None if it is none, or empty.

    Parameters
    ----------
    text : str
        The histogram, base64.
    unit_s : float
        Seconds that one unit of its values stands for.
    """
    classes = classes_of_hdr(text)
    if not classes:
        return None
    total = sum(count for _, _, count in classes)

    def percentile_s(ratio: float) -> float:
        passed = 0
        for _, most, count in classes:
            passed += count
            if passed >= ratio * total:
                return most * unit_s
        return classes[-1][1] * unit_s

    return Delay(
        mean_s=sum(0.5 * (least + most) * count for least, most, count in classes) / total * unit_s,
        min_s=classes[0][0] * unit_s,
        p50_s=percentile_s(0.5),
        p90_s=percentile_s(0.9),
        p99_s=percentile_s(0.99),
        p999_s=percentile_s(0.999),
        max_s=classes[-1][1] * unit_s,
        method=f"HDR histogram of {total:,} frames",
        hdr_base64=text,
    )
