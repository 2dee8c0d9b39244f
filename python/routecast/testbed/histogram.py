"""HDR histograms in their base64 V2 form: counts of two are added without leaving the form."""

from __future__ import annotations

import base64
import binascii
import struct
import zlib
from collections.abc import Sequence

__all__ = ["merged"]

_COMPRESSED, _PLAIN = 0x1C84_9314, 0x1C84_9313
_HEADER = struct.Struct(">iiiiqqd")
"""Cookie, payload length, normalising offset, significant digits, lowest, highest, ratio."""


def merged(texts: Sequence[str]) -> str:
    """Return the histogram of all values of several histograms; they must have the same buckets.

    Raises
    ------
    ValueError
        A text is no histogram, or their buckets differ.
    """
    kept = [text for text in texts if text]
    if len(kept) < 2:
        return kept[0] if kept else ""
    headers, tables = zip(*(_read(text) for text in kept), strict=True)
    shapes = {(header[3], header[4]) for header in headers}
    if len(shapes) > 1:
        raise ValueError("histograms of different buckets cannot be added")
    counts = [0] * max(map(len, tables))
    for table in tables:
        for slot, count in enumerate(table):
            counts[slot] += count
    body = _zigzag(counts)
    first = headers[0]
    highest = max(header[5] for header in headers)
    header = _HEADER.pack(first[0], len(body), first[2], first[3], first[4], highest, first[6])
    packed = zlib.compress(header + body)
    return base64.b64encode(struct.pack(">ii", _COMPRESSED, len(packed)) + packed).decode()


def _read(text: str) -> tuple[tuple[int, int, int, int, int, int, float], list[int]]:
    try:
        data = base64.b64decode(text, validate=True)
        cookie, length = struct.unpack_from(">ii", data)
        plain = zlib.decompress(data[8 : 8 + length])
        header = _HEADER.unpack_from(plain)
    except (binascii.Error, struct.error, zlib.error) as problem:
        raise ValueError(f"no HDR histogram: {problem}") from problem
    if cookie != _COMPRESSED or header[0] & ~0xF0 != _PLAIN & ~0xF0:
        raise ValueError("no HDR histogram of version 2")
    counts: list[int] = []
    place, end = _HEADER.size, _HEADER.size + header[1]
    while place < end:
        value, shift = 0, 0
        while True:  # LEB128, the ninth byte holds eight bits
            byte = plain[place]
            place += 1
            if shift == 56:
                value |= byte << 56
                break
            value |= (byte & 0x7F) << shift
            shift += 7
            if not byte & 0x80:
                break
        number = (value >> 1) ^ -(value & 1)
        if number < 0:
            counts += [0] * -number
        else:
            counts.append(number)
    return header, counts


def _zigzag(counts: Sequence[int]) -> bytes:
    out = bytearray()
    zeros = 0
    last = max((slot for slot, count in enumerate(counts) if count), default=-1)
    for count in [*counts[: last + 1], None]:
        if count == 0:
            zeros += 1
            continue
        if zeros:
            _leb128(out, -zeros)
            zeros = 0
        if count is not None:
            _leb128(out, count)
    return bytes(out)


def _leb128(out: bytearray, number: int) -> None:
    value = (number << 1) ^ (number >> 63)
    value &= (1 << 64) - 1
    for _ in range(8):
        if value < 0x80:
            out.append(value)
            return
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
