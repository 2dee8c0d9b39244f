"""Reads what a shared library says of itself: ELF, Mach-O and PE, 64 bits, little endian, without running it.

The formats are those of the System V ABI (ELF), of Apple's ``mach-o/loader.h`` and ``kern/cs_blobs.h`` (Mach-O), and of
Microsoft's PE format.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any


class UnreadableLibraryError(ValueError):
    """The bytes are no shared library that can be read here."""


@dataclass(frozen=True)
class Library:
    """A shared library."""

    kind: str
    """Format and processor: ``ELF aarch64``, ``Mach-O arm64``, ``PE x86-64``."""
    exports: frozenset[str]
    """Names of the functions and data that it has for others."""
    needs: tuple[str, ...]
    """Libraries that are loaded with it."""
    from_anywhere: frozenset[str]
    """Names that it wants of whatever is loaded, without a library or a version."""
    oldest_system: str
    """Oldest version of the C library or system that has what it wants; empty where the format does not say."""
    is_signed: bool = True
    """False where the system wants a signature and there is none, or one of other bytes."""


def read(data: bytes) -> Library:
    """Read a shared library.

    Raises
    ------
    UnreadableLibraryError
        It begins as none does, is of another kind than those above, or ends too early.
    """
    try:
        if data[:4] == b"\x7fELF":
            return _elf(data)
        if data[:4] == b"\xcf\xfa\xed\xfe":
            return _macho(data)
        if data[:2] == b"MZ":
            return _pe(data)
    except (struct.error, IndexError, UnicodeDecodeError) as problem:
        raise UnreadableLibraryError(f"what it says of itself does not fit its {len(data)} bytes: {problem}") from None
    raise UnreadableLibraryError(f"begins with {data[:4].hex() or 'nothing'}: neither ELF, Mach-O of 64 bits nor PE")


def _unpack(layout: str, data: bytes, offset: int) -> tuple[Any, ...]:
    if offset < 0:
        raise IndexError(f"offset {offset}")
    return struct.unpack_from("<" + layout, data, offset)


def _name(data: bytes, offset: int) -> str:
    """Return the text up to the next zero byte."""
    end = data.find(b"\0", offset) if 0 <= offset < len(data) else -1
    if end < 0:
        raise IndexError(f"no name at {offset}")
    return data[offset:end].decode()


_ELF_MACHINES = {62: "x86-64", 183: "aarch64"}
_SYMBOLS, _DYNAMIC, _VERSIONS_NEEDED, _VERSION_OF_SYMBOL = 11, 6, 0x6FFFFFFE, 0x6FFFFFFF


def _elf(data: bytes) -> Library:
    bits, order = data[4], data[5]
    kind, machine = _unpack("HH", data, 16)
    if (bits, order, kind) != (2, 1, 3):
        raise UnreadableLibraryError("is ELF, but no shared library of 64 bits, little endian")
    (table,) = _unpack("Q", data, 40)
    size, count = _unpack("HH", data, 58)
    sections = [_unpack("IIQQQQIIQQ", data, table + size * number) for number in range(count)]
    by_kind = {section[1]: section for section in sections}

    def place(kind: int) -> tuple[int, int, int]:
        """Return where a section is, how long, and where its names are."""
        if kind not in by_kind:
            return 0, 0, 0
        section = by_kind[kind]
        return section[4], section[5], sections[section[6]][4]

    start, length, names = place(_DYNAMIC)
    entries = [_unpack("qQ", data, start + at) for at in range(0, length, 16)]
    needs = tuple(_name(data, names + value) for tag, value in entries if tag == 1)
    start, length, names = place(_SYMBOLS)
    versions = place(_VERSION_OF_SYMBOL)[0]
    exports, from_anywhere = set(), set()
    for number in range(1, length // 24):
        at, info, _, section = _unpack("IBBH", data, start + 24 * number)
        version = _unpack("H", data, versions + 2 * number)[0] if versions else 1
        binding = info >> 4
        if section and binding:
            exports.add(_name(data, names + at))
        elif binding == 1 and version <= 1:
            from_anywhere.add(_name(data, names + at))
    glibc = [version for version in _versions_needed(data, *place(_VERSIONS_NEEDED)) if version.startswith("GLIBC_")]
    newest = max(glibc, key=lambda version: [int(part) for part in version[6:].split(".")], default="")
    machine_name = _ELF_MACHINES.get(machine, f"machine {machine}")
    return Library(
        f"ELF {machine_name}", frozenset(exports), needs, frozenset(from_anywhere), newest.replace("GLIBC_", "glibc ")
    )


def _versions_needed(data: bytes, start: int, length: int, names: int) -> Iterator[str]:
    while length:
        _, count, _, first, following = _unpack("HHIII", data, start)
        entry = start + first
        for _ in range(count):
            name, after = _unpack("II", data, entry + 8)
            yield _name(data, names + name)
            entry += after
        if not following:
            return
        start += following


_MACHO_MACHINES = {0x01000007: "x86-64", 0x0100000C: "arm64"}
_SYMBOL_TABLE, _INFO, _TRIE, _SIGNATURE, _BUILD, _OLDEST = 0x2, 0x22, 0x33, 0x1D, 0x32, 0x24
_LOADED = {0xC, 0x18, 0x1F, 0x20, 0x23}  # LC_LOAD_DYLIB, and weak, re-exported, lazy, upward
_OF_WHATEVER_IS_LOADED = {0, 0xFE}  # DYNAMIC_LOOKUP_ORDINAL; zig writes 0, the library itself, and binds as for 0xFE


def _macho(data: bytes) -> Library:
    machine, _, kind, count = _unpack("IIII", data, 4)
    if kind not in {6, 8}:
        raise UnreadableLibraryError("is Mach-O, but neither a dynamic library nor a bundle")
    needs: list[str] = []
    exports: set[str] = set()
    from_anywhere: set[str] = set()
    oldest, is_signed = "", machine != 0x0100000C  # only arm64 wants a signature
    at = 32
    for _ in range(count):
        command, size = _unpack("II", data, at)
        match command & 0x7FFFFFFF:
            case command if command in _LOADED:
                needs.append(_name(data, at + _unpack("I", data, at + 8)[0]))
            case command if command in {_INFO, _TRIE}:
                place, length = _unpack("II", data, at + (40 if command == _INFO else 8))
                exports |= set(_exported(data[place : place + length], 0, b"")) if length else set()
            case command if command == _SYMBOL_TABLE:
                from_anywhere |= set(_looked_up(data, at))
            case command if command == _SIGNATURE:
                is_signed = _has_signature_of_its_bytes(data, *_unpack("II", data, at + 8))
            case command if command in {_BUILD, _OLDEST}:
                (version,) = _unpack("I", data, at + (12 if command == _BUILD else 8))
                oldest = f"macOS {version >> 16}.{version >> 8 & 255}"
        at += size
    machine_name = _MACHO_MACHINES.get(machine, f"machine {machine:#x}")
    return Library(
        f"Mach-O {machine_name}", frozenset(exports), tuple(needs), frozenset(from_anywhere), oldest, is_signed
    )


def _looked_up(data: bytes, at: int) -> Iterator[str]:
    symbols, count, names = _unpack("III", data, at + 8)
    for number in range(count):
        name, kind, _, description = _unpack("IBBH", data, symbols + 16 * number)
        is_undefined = not kind & 0xE0 and kind & 0x0E == 0
        if is_undefined and description >> 8 in _OF_WHATEVER_IS_LOADED:
            yield _name(data, names + name).removeprefix("_")


def _exported(trie: bytes, at: int, before: bytes, depth: int = 0) -> Iterator[str]:
    """Yield the names below a node of a trie of exports, without the underscore that C puts before them."""
    if depth > 1000:
        raise IndexError("a trie of exports that goes round")
    size, at = _uleb(trie, at)
    if size:
        yield before.decode().removeprefix("_")
    at += size
    children = trie[at]
    at += 1
    for _ in range(children):
        end = trie.find(b"\0", at)
        if end < 0:
            raise IndexError("a trie of exports that ends within a name")
        below, following = _uleb(trie, end + 1)
        yield from _exported(trie, below, before + trie[at:end], depth + 1)
        at = following


def _uleb(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        at += 1
        shift += 7
        if not data[at - 1] & 0x80:
            return value, at


def _has_signature_of_its_bytes(data: bytes, place: int, length: int) -> bool:
    """Whether the directory of a signature has the digest of each page; these fields are big endian."""
    blob = data[place : place + length]
    magic, _, count = struct.unpack_from(">III", blob)
    if magic != 0xFADE0CC0:
        return False
    for number in range(count):
        kind, start = struct.unpack_from(">II", blob, 12 + 8 * number)
        if kind != 0:
            continue
        magic, _, _, _, digests, _, _, pages, limit = struct.unpack_from(">9I", blob, start)
        size, algorithm, _, page_bits = struct.unpack_from(">BBBB", blob, start + 36)
        page = 1 << page_bits
        if (magic, size, algorithm, limit, pages) != (0xFADE0C02, 32, 2, place, -(-place // page)):
            return False
        return all(
            hashlib.sha256(data[page * index : min(page * (index + 1), limit)]).digest()
            == blob[start + digests + size * index :][:size]
            for index in range(pages)
        )
    return False


_PE_MACHINES = {0x8664: "x86-64", 0xAA64: "arm64"}


def _pe(data: bytes) -> Library:
    (header,) = _unpack("I", data, 60)
    if data[header : header + 4] != b"PE\0\0":
        raise UnreadableLibraryError("begins as a program of MS-DOS does, and is none of Windows")
    machine, count, _, _, _, optional, flags = _unpack("HHIIIHH", data, header + 4)
    at = header + 24
    if _unpack("H", data, at)[0] != 0x20B or not flags & 0x2000:
        raise UnreadableLibraryError("is PE, but no DLL of 64 bits")
    sections = [_unpack("IIII", data, at + optional + 40 * number + 8) for number in range(count)]

    def offset(address: int) -> int:
        for size, start, stored, place in sections:
            if start <= address < start + max(size, stored):
                return int(place + address - start)
        raise IndexError(f"no section has the address {address:#x}")

    def directory(number: int) -> int:
        return int(_unpack("I", data, at + 112 + 8 * number)[0])

    exports: set[str] = set()
    if directory(0):
        table = offset(directory(0))
        names, place = _unpack("I", data, table + 24)[0], _unpack("I", data, table + 32)[0]
        for number in range(names):
            exports.add(_name(data, offset(_unpack("I", data, offset(place) + 4 * number)[0])))
    needs: list[str] = []
    # Descriptors of imports have the name of the library at 12, of delayed imports at 4.
    for number, size, field in ((1, 20, 12), (13, 32, 4)):
        table = offset(directory(number)) if directory(number) else 0
        while table and (name := _unpack("I", data, table + field)[0]):
            needs.append(_name(data, offset(name)))
            table += size
    machine_name = _PE_MACHINES.get(machine, f"machine {machine:#x}")
    return Library(f"PE {machine_name}", frozenset(exports), tuple(needs), frozenset(), "")
