"""Wheels for other systems are read, not run: what the reader says of files made here, byte by byte.

Layouts: System V ABI (ELF), Apple's ``mach-o/loader.h`` and ``kern/cs_blobs.h``, Microsoft's PE format. ``make
wheels-portable`` reads the wheels that it builds in this way.
"""

from __future__ import annotations

import base64
import hashlib
import importlib
import re
import struct
import sys
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType

import pytest

import routecast._core

ROOT = Path(__file__).parents[2]
EXTENSION = Path(str(routecast._core.__file__))
NAMES = ("bill", "library", "portable")


@pytest.fixture(scope="module")
def scripts() -> Iterator[dict[str, ModuleType]]:
    sys.path.insert(0, str(ROOT / "packages" / "wheels"))
    yield {name: importlib.import_module(name) for name in NAMES}
    sys.path.pop(0)
    for name in NAMES:
        del sys.modules[name]


@pytest.fixture(scope="module")
def library(scripts: dict[str, ModuleType]) -> ModuleType:
    return scripts["library"]


def pe(*, machine: int = 0x8664, dll: str = "python3.dll", export: str = "PyInit__core") -> bytes:
    """Make a DLL of one section, whose addresses are its places in the file."""
    header = b"MZ".ljust(60, b"\0") + struct.pack("<I", 64) + b"PE\0\0"
    header += struct.pack("<HHIIIHH", machine, 1, 0, 0, 0, 240, 0x2000)
    optional = struct.pack("<H", 0x20B).ljust(112, b"\0") + struct.pack("<IIII", 512, 40, 640, 40)
    header += optional.ljust(240, b"\0") + b".rdata\0\0" + struct.pack("<IIII", 512, 512, 512, 512)
    exports = struct.pack("<10I", 0, 0, 0, 0, 1, 1, 1, 0, 560, 0).ljust(48, b"\0") + struct.pack("<I", 564)
    exports += export.encode() + b"\0"
    imports = struct.pack("<5I", 0, 0, 0, 700, 0) + bytes(20)
    data = header.ljust(512, b"\0") + exports
    data = (data.ljust(640, b"\0") + imports).ljust(700, b"\0")
    return (data + dll.encode()).ljust(1024, b"\0")


def macho(*, wanted: str = "PyLong_Type", loaded: str = "/usr/lib/libSystem.B.dylib") -> bytes:
    """Make a signed library for arm64 and macOS 11.0 that exports PyInit__core and looks a name up."""
    name = b"_PyInit__core\0"
    # A root with an edge, and below it a node of three bytes without edges.
    trie = bytes([0, 1]) + name + bytes([len(name) + 3]) + bytes([3, 0, 0x80, 1, 0])
    strings = b"\0_" + wanted.encode() + b"\0"
    symbols = struct.pack("<IBBHQ", 1, 1, 0, 0xFE00, 0)
    commands = [
        struct.pack("<IIIIII", 0xC, 24 + 64, 24, 0, 0, 0) + loaded.encode().ljust(64, b"\0"),
        struct.pack("<IIIIII", 0x32, 24, 1, 11 << 16, 11 << 16, 0),
        struct.pack("<IIII", 0x80000033, 16, 4096, len(trie)),
        struct.pack("<IIIIII", 0x2, 24, 4200, 1, 4300, len(strings)),
        struct.pack("<IIII", 0x1D, 16, 5000, 500),
    ]
    size = sum(map(len, commands))
    header = struct.pack("<IIIIIIII", 0xFEEDFACF, 0x0100000C, 0, 6, len(commands), size, 0, 0)
    data = (header + b"".join(commands)).ljust(4096, b"\0") + trie
    data = (data.ljust(4200, b"\0") + symbols).ljust(4300, b"\0") + strings
    data = data.ljust(5000, b"\0")
    digests = b"".join(hashlib.sha256(data[at : at + 4096]).digest() for at in range(0, len(data), 4096))
    directory = struct.pack(">9I", 0xFADE0C02, 44 + len(digests), 0x20400, 2, 44, 0, 0, 2, 5000)
    directory += struct.pack(">BBBBI", 32, 2, 0, 12, 0) + digests
    return data + struct.pack(">IIIII", 0xFADE0CC0, 20 + len(directory), 1, 0, 20) + directory


def test_an_elf_library_says_what_it_is_needs_and_exports(library: ModuleType) -> None:
    """The extension of the checkout, and the same with the number that the ABI gives to aarch64."""
    data = EXTENSION.read_bytes()
    native = library.read(data)
    assert "PyInit__core" in native.exports
    assert "libc.so.6" in native.needs
    assert re.fullmatch(r"glibc 2\.\d+", native.oldest_system)
    assert all(name.startswith(("Py", "_Py")) for name in native.from_anywhere)
    assert library.read(data[:18] + struct.pack("<H", 183) + data[20:]).kind == "ELF aarch64"


def test_a_dll_says_what_it_is_needs_and_exports(library: ModuleType) -> None:
    read = library.read(pe())
    assert (read.kind, read.exports, read.needs) == ("PE x86-64", {"PyInit__core"}, ("python3.dll",))
    assert library.read(pe(machine=0xAA64)).kind == "PE arm64"


def test_a_macho_library_says_what_it_is_needs_exports_and_wants(library: ModuleType) -> None:
    read = library.read(macho())
    assert (read.kind, read.exports, read.needs) == ("Mach-O arm64", {"PyInit__core"}, ("/usr/lib/libSystem.B.dylib",))
    assert (read.oldest_system, read.from_anywhere) == ("macOS 11.0", {"PyLong_Type"})


def test_a_signature_of_other_bytes_is_none(library: ModuleType) -> None:
    data = bytearray(macho())
    assert library.read(bytes(data)).is_signed
    data[4900] ^= 1
    assert not library.read(bytes(data)).is_signed


@pytest.mark.parametrize("data", [b"", b"\x7fELF", b"#!/bin/sh\n", b"MZ", pe()[:500], macho()[:90], macho()[:4097]])
def test_what_is_no_library_or_ends_too_early_is_an_error(library: ModuleType, data: bytes) -> None:
    with pytest.raises(library.UnreadableLibraryError):
        library.read(data)


@pytest.mark.parametrize(
    ("target", "data", "faults"),
    [
        ("x86_64-pc-windows-gnu", pe(), []),
        ("x86_64-pc-windows-gnu", pe(dll="KERNEL32.dll"), []),
        ("x86_64-pc-windows-gnu", pe(dll="libgcc_s_seh-1.dll"), ["needs libgcc_s_seh-1.dll"]),
        ("x86_64-pc-windows-gnu", pe(dll="python311.dll"), ["needs python311.dll"]),
        ("x86_64-pc-windows-gnu", pe(export="init"), ["does not export PyInit__core"]),
        ("x86_64-pc-windows-gnu", pe(machine=0xAA64), ["is PE arm64, not PE x86-64"]),
        ("aarch64-apple-darwin", macho(), []),
        ("aarch64-apple-darwin", macho(loaded="/opt/lib/libz.dylib"), ["needs /opt/lib/libz.dylib"]),
        ("aarch64-apple-darwin", macho(wanted="getentropy"), ["wants getentropy"]),
        ("aarch64-apple-darwin", pe(), ["is PE x86-64, not Mach-O arm64", "needs python3.dll"]),
    ],
)
def test_what_a_system_would_not_load_is_named(
    scripts: dict[str, ModuleType], target: str, data: bytes, faults: Sequence[str]
) -> None:
    (system,) = (system for system in scripts["portable"].SYSTEMS if system.target == target)
    named = [*scripts["portable"].faults(scripts["library"].read(data), "_core", system)]
    assert len(named) == len(faults)
    assert all(text.startswith(fault) for text, fault in zip(named, faults, strict=True))


def made_wheel(folder: Path, root: Path) -> Path:
    """Make a wheel as maturin does in a folder: its bill names the folder, its record what it holds."""
    information = "routecast-0.1.0.dist-info"
    bill = f'{{"bom-ref": "path+{root.as_uri()}/crates/py#routecast-py@0.1.0"}}'
    metadata = "Metadata-Version: 2.4\nName: routecast\nLicense-Expression: Apache-2.0 OR MIT\n"
    files = {"routecast/_core.pyd": pe(), f"{information}/METADATA": metadata.encode()}
    files[f"{information}/sboms/routecast-py.cyclonedx.json"] = bill.encode()
    record = [f"{name},sha256={digest(data)},{len(data)}" for name, data in files.items()]
    files[f"{information}/RECORD"] = "\n".join([*record, f"{information}/RECORD,,", ""]).encode()
    folder.mkdir()
    wheel = folder / "routecast-0.1.0-cp311-abi3-win_amd64.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0)), data)
    return wheel


def digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")


def test_two_folders_make_the_same_wheel(scripts: dict[str, ModuleType], tmp_path: Path) -> None:
    roots = [Path("/home/ann/routecast"), Path("/srv/build 2")]
    wheels = [made_wheel(tmp_path / str(number), root) for number, root in enumerate(roots)]
    assert wheels[0].read_bytes() != wheels[1].read_bytes()
    for wheel, root in zip(wheels, roots, strict=True):
        scripts["bill"].take_out_the_folder(wheel, root)
    assert wheels[0].read_bytes() == wheels[1].read_bytes()
    with zipfile.ZipFile(wheels[0]) as archive:
        (record,) = [name for name in archive.namelist() if name.endswith("RECORD")]
        rows = [line.rsplit(",", 2) for line in archive.read(record).decode().splitlines()]
        assert [name for name, _, _ in rows] == archive.namelist()
        for name, digest_of_file, size in rows[:-1]:
            data = archive.read(name)
            assert (digest_of_file, int(size)) == (f"sha256={digest(data)}", len(data))


def test_what_is_wrong_with_a_wheel_is_named(scripts: dict[str, ModuleType], tmp_path: Path) -> None:
    portable = scripts["portable"]
    windows = next(system for system in portable.SYSTEMS if system.suffix == ".pyd")
    wheel = made_wheel(tmp_path / "wheel", Path("/home/ann/routecast"))
    assert [*portable.problems(wheel, "routecast/_core", windows)] == []
    with zipfile.ZipFile(wheel, "a") as archive:
        archive.writestr("routecast/lab/_lab.pyd", pe(export="PyInit__lab") + b"license\0GPL")
    wrong = " ".join(portable.problems(wheel, "routecast/_core", windows))
    assert "holds routecast/lab/_lab.pyd, which is of the lab" in wrong
    assert "routecast/lab/_lab.pyd has eBPF programs" in wrong
    other = wheel.rename(wheel.with_name("routecast-0.1.0-cp311-cp311-linux_x86_64.whl"))
    wrong = " ".join(portable.problems(other, "routecast/_core", windows))
    assert "its platform tag is linux_x86_64" in wrong
    assert "its ABI tag is cp311" in wrong


def test_a_target_that_rustc_lacks_is_named_with_the_line_that_adds_it(
    scripts: dict[str, ModuleType], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(scripts["portable"], "has_target", lambda target: False)
    monkeypatch.setattr(sys, "argv", ["portable.py", str(tmp_path), "aarch64-apple-darwin"])
    assert scripts["portable"].main() == 3
    assert "rustup target add aarch64-apple-darwin" in capsys.readouterr().err
