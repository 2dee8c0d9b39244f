#!/usr/bin/env python3
"""Builds wheels for systems that this machine is not: ``portable.py FOLDER [TARGET…]``, ``make wheels-portable``.

zig links them, with the system libraries that it brings. Nothing of a wheel runs here: what its files say of themselves
is read (``library.py``), and a wheel that another system would not load is an error. Needs cargo, maturin with zig
(dependency group ``wheel``) and the targets of rustc (``rustup target add``).
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from email.parser import BytesParser
from pathlib import Path

from bill import take_out_the_folder
from library import Library, UnreadableLibraryError, read

ROOT = Path(__file__).resolve().parents[2]
LICENSE = "Apache-2.0 OR MIT"


@dataclass(frozen=True)
class System:
    """A system and a processor that wheels are made for."""

    target: str
    """What rustc calls it."""
    tags: tuple[str, ...]
    """Platform tags of a wheel."""
    kind: str
    """Format and processor of its libraries, as in ``library.Library.kind``."""
    suffix: str
    """End of the file name of an extension."""
    libraries: str
    """Expression of the names of libraries that each such system has, or that its Python brings."""
    oldest: str = ""
    """Oldest system that has what an extension may want, as in ``library.Library.oldest_system``."""
    options: tuple[str, ...] = ()
    """Options of maturin that others have no use for."""


SYSTEMS = (
    System(
        "aarch64-apple-darwin",
        ("macosx_11_0_arm64",),
        "Mach-O arm64",
        ".abi3.so",
        r"/usr/lib/lib(System\.B|iconv\.2|charset\.1)\.dylib|/System/Library/Frameworks/\w+\.framework/.*",
        "macOS 11.0",
    ),
    System(
        "x86_64-pc-windows-gnu",
        ("win_amd64",),
        "PE x86-64",
        ".pyd",
        r"python3|kernel32|kernelbase|ntdll|ws2_32|advapi32|bcrypt|bcryptprimitives|userenv|msvcrt|ucrtbase|api-ms-win-[\w-]+",
    ),
    System(
        "aarch64-unknown-linux-gnu",
        ("manylinux_2_17_aarch64", "manylinux2014_aarch64"),
        "ELF aarch64",
        ".abi3.so",
        r"lib(c|m|dl|pthread|rt|gcc_s)\.so\.\d|ld-linux-aarch64\.so\.1",
        "glibc 2.17",
        ("--compatibility", "manylinux2014", "--auditwheel", "check"),
    ),
)
PACKAGES = {".": "routecast/_core", "packages/routecast-noc": "routecast/noc/_noc"}
"""Folders of the packages that have an extension and run on each of the systems, and their extensions."""
LAB = re.compile(r"\.bpf\.|^routecast/(lab|multistage)/|/_lab\.")
"""Files of the lab, which runs on Linux only."""


class WheelProblemError(Exception):
    """What is wrong, where, and what to do."""


def problems(wheel: Path, extension: str, system: System) -> Iterator[str]:
    """Yield what is wrong with a wheel, a sentence each."""
    _, _, _, abi, platform = wheel.stem.split("-")
    if not set(platform.split(".")) <= set(system.tags):
        yield f"its platform tag is {platform}; {system.target} has {', '.join(system.tags)}"
    if abi != "abi3":
        yield f"its ABI tag is {abi}, so that each Python would need a wheel of its own; abi3 serves all"
    with zipfile.ZipFile(wheel) as archive:
        files = archive.namelist()
        metadata = [file for file in files if file.endswith(".dist-info/METADATA")]
        message = BytesParser().parsebytes(archive.read(metadata[0]) if metadata else b"")
        if message["License-Expression"] != LICENSE:
            yield f"its METADATA names the license {message['License-Expression'] or 'nowhere'}; it is {LICENSE}"
        for file in message.get_all("License-File", []):
            if not any(path.endswith(f".dist-info/licenses/{file}") for path in files):
                yield f"its METADATA names the license file {file}, which it does not hold"
        for file in files:
            if LAB.search(file):
                yield f"it holds {file}, which is of the lab"
            if os.fsencode(ROOT) in archive.read(file):
                yield f"{file} has the path of the folder that it was built in, so that no other folder makes the same"
        compiled = [file for file in files if file.endswith((".so", ".pyd", ".dll", ".dylib"))]
        if compiled != [extension + system.suffix]:
            yield f"its libraries are {', '.join(compiled) or 'none'}; Python looks for {extension}{system.suffix}"
        for file in compiled:
            data = archive.read(file)
            try:
                library = read(data)
            except UnreadableLibraryError as problem:
                yield f"{file} {problem}"
                continue
            yield from (f"{file} {problem}" for problem in faults(library, Path(extension).name, system))
            if b"license\0GPL" in data:
                yield f"{file} has eBPF programs, which are of the lab"


def faults(library: Library, module: str, system: System) -> Iterator[str]:
    """Yield why a system or its Python would not load a library, a half-sentence each."""
    if library.kind != system.kind:
        yield f"is {library.kind}, not {system.kind}"
    if f"PyInit_{module}" not in library.exports:
        yield f"does not export PyInit_{module}, which Python calls"
    for name in library.needs:
        if not re.fullmatch(system.libraries, name.lower().removesuffix(".dll") if system.suffix == ".pyd" else name):
            yield f"needs {name}, which is no part of the system or of Python"
    for name in sorted(library.from_anywhere):
        # Weak symbols of profilers and of the unwinder may be missing; these are looked up strongly.
        if not name.startswith(("Py", "_Py")):
            yield f"wants {name} of whatever is loaded, and Python does not have it"
    if system.oldest and library.oldest_system and _version(library.oldest_system) > _version(system.oldest):
        yield f"needs {library.oldest_system}; the tag promises {system.oldest}"
    if not library.is_signed:
        yield "has no signature of its bytes, and macOS ends what loads it"


def _version(text: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", text)]


def build(package: str, extension: str, system: System, folder: Path) -> Path:
    """Build the wheel of a package for a system, and return where it is.

    Raises
    ------
    WheelProblemError
        rustc lacks the target, or the build fails.
    """
    if not has_target(system.target):
        raise WheelProblemError(
            f"rustc has no standard library for {system.target}: rustup target add {system.target}, and run this again"
        )
    command = ["maturin", "build", "--release", "--quiet", "--zig", "--target", system.target, *system.options]
    with tempfile.TemporaryDirectory() as scratch:
        command += ["--out", scratch]
        if system.suffix == ".pyd":
            command += ["--", "-C", f"link-arg={_definition(extension)}"]
        # No Python of the system is here: what abi3 promises is enough to link against.
        environment = os.environ | {"PYO3_NO_PYTHON": "1"}
        done = subprocess.run(command, cwd=ROOT / package, env=environment, capture_output=True, text=True, check=False)
        built = [*Path(scratch).glob("*.whl")]
        if done.returncode or len(built) != 1:
            ending = "\n".join(f"  {line}" for line in (done.stdout + done.stderr).strip().splitlines()[-20:])
            raise WheelProblemError(
                f"{package} for {system.target}: `{shlex.join(command)}` ends with {done.returncode}:\n{ending}"
            )
        take_out_the_folder(built[0], ROOT)
        folder.mkdir(parents=True, exist_ok=True)
        return Path(shutil.move(built[0], folder / built[0].name))


def _definition(extension: str) -> Path:
    """Write which name a DLL exports, and return where that is.

    Without it zig exports all names. maturin (1.16) writes such a file too, but asks for PyInit_routecast._core, which
    is in no library; where it cannot write, it warns and goes on. So a folder stands in its place, with the right file.
    """
    target = ROOT / os.environ.get("CARGO_TARGET_DIR", "target")
    folder = target / "maturin" / f"{extension.replace('/', '.')}.def"
    if folder.is_file():
        folder.unlink()
    folder.mkdir(parents=True, exist_ok=True)
    module = Path(extension).name
    definition = folder / f"{module}.def"
    definition.write_text(f"LIBRARY {module}.pyd\nEXPORTS\n    PyInit_{module}\n", encoding="utf-8")
    return definition


def has_target(target: str) -> bool:
    """Whether rustc has the standard library of a target."""
    command = ["rustc", "--print", "target-libdir", "--target", target]
    try:
        answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return False
    return any(Path(answer).glob("libstd-*.rlib"))


def describe(wheel: Path) -> str:
    """Return what a wheel holds: size, kind of its extension, libraries that it needs."""
    with zipfile.ZipFile(wheel) as archive:
        (file,) = [file for file in archive.namelist() if file.endswith((".so", ".pyd"))]
        data = archive.read(file)
    library = read(data)
    oldest = f", {library.oldest_system} or newer" if library.oldest_system else ""
    return (
        f"   {wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB\n"
        f"   {file}: {library.kind}, {len(data) / 1e6:.1f} MB{oldest}; "
        f"exports {len(library.exports)}; needs {', '.join(sorted(library.needs, key=str.lower))}"
    )


def main() -> int:
    """Build the wheels of the command line and read them."""
    targets = {system.target: system for system in SYSTEMS}
    parser = argparse.ArgumentParser(description="Build wheels for other systems, and read what is in them.")
    parser.add_argument("folder", type=Path, help="where they go")
    parser.add_argument("targets", nargs="*", metavar="target", help=f"of {', '.join(targets)}; none: all")
    arguments = parser.parse_args()
    for target in arguments.targets:
        if target not in targets:
            parser.error(f"no wheel is made for {target}; allowed are {', '.join(targets)}")
    failed = False
    for target in arguments.targets or targets:
        for package, extension in PACKAGES.items():
            print(f"── {Path(extension).parent} for {target}", flush=True)
            try:
                wheel = build(package, extension, targets[target], arguments.folder)
            except (WheelProblemError, OSError) as problem:
                print(f"make wheels-portable: {problem}", file=sys.stderr)
                return 3
            wrong = [*problems(wheel, extension, targets[target])]
            for problem_of_wheel in wrong:
                print(f"make wheels-portable: {wheel.name}: {problem_of_wheel}", file=sys.stderr)
            failed = failed or bool(wrong)
            if not wrong:
                print(describe(wheel), flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
