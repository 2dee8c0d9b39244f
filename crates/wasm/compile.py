#!/usr/bin/env python3
"""The one recipe of the simulator's WebAssembly module: ``compile.py FOLDER`` writes ``simulator.wasm`` there.

Beside it comes ``simulator.toml``: the compiler that made it, and digests of the module and of its sources. The same
compiler makes the same bytes in any folder: no path of the machine is in them. ``make wasm`` writes into the package;
``tests/page/test_module.py`` compares what is there with the sources. Needs cargo and the target
(``rustup target add wasm32-unknown-unknown``).
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
CRATE = "crates/wasm"
TARGET = "wasm32-unknown-unknown"
PROFILE = "wasm"


def sources(root: Path = ROOT) -> str:
    """Return a digest of all that decides what the module is, but the compiler."""
    digest = hashlib.sha256()

    def add(name: str, data: bytes) -> None:
        digest.update(f"{name}\n{len(data)}\n".encode() + data)

    workspace = tomllib.loads((root / "Cargo.toml").read_text(encoding="utf-8"))
    add("profiles", _text({name: workspace["profile"][name] for name in ("release", PROFILE)}))
    wanted: set[str] = set()
    for crate in sorted(_crates(root, CRATE)):
        folder = root / crate
        manifest = tomllib.loads((folder / "Cargo.toml").read_text(encoding="utf-8"))
        dependencies = {name: _dependency(workspace, name, how) for name, how in manifest["dependencies"].items()}
        # Tests and what they need are not in the module.
        manifest.pop("dev-dependencies", None)
        add(f"{crate}/Cargo.toml", _text([manifest, dependencies]))
        wanted |= {name for name, how in dependencies.items() if not (how.get("optional") or "path" in how)}
        for path in sorted((folder / "src").rglob("*.rs")):
            add(path.relative_to(root).as_posix(), path.read_bytes())
    add("Cargo.lock", _text(_locked(root, wanted)))
    add("compile.py", (root / CRATE / "compile.py").read_bytes())
    return digest.hexdigest()


def _text(data: object) -> bytes:
    return json.dumps(data, sort_keys=True).encode()


def _dependency(workspace: dict[str, Any], name: str, how: dict[str, Any] | str) -> dict[str, Any]:
    given: dict[str, Any] = {"version": how} if isinstance(how, str) else dict(how)
    if given.pop("workspace", False):
        shared = workspace["workspace"]["dependencies"][name]
        given |= {"version": shared} if isinstance(shared, str) else shared
    return given


def _crates(root: Path, crate: str) -> Iterator[str]:
    """Yield the crates of the workspace that one is made of."""
    yield crate
    manifest = tomllib.loads((root / crate / "Cargo.toml").read_text(encoding="utf-8"))
    for how in manifest["dependencies"].values():
        if "path" in how:
            yield from _crates(root, Path(os.path.normpath(Path(crate) / how["path"])).as_posix())


def _locked(root: Path, wanted: set[str]) -> list[list[str]]:
    """Name, version and checksum of packages and of all that they need."""
    packages: dict[str, list[dict[str, Any]]] = {}
    for package in tomllib.loads((root / "Cargo.lock").read_text(encoding="utf-8"))["package"]:
        packages.setdefault(package["name"], []).append(package)
    found: dict[tuple[str, str], str] = {}
    pending = sorted(wanted)
    while pending:
        name, _, version = pending.pop().partition(" ")
        for package in packages[name]:
            key = (name, package["version"])
            if key not in found and version in ("", package["version"]):
                found[key] = package.get("checksum", "")
                pending += package.get("dependencies", [])
    return [[*key, checksum] for key, checksum in sorted(found.items())]


def compiler() -> str:
    """Return what ``rustc --version`` says.

    Raises
    ------
    OSError
        There is no rustc.
    """
    return _output("rustc", "--version")


def has_target() -> bool:
    """Whether rustc has the standard library of the target."""
    try:
        return any(Path(_output("rustc", "--print", "target-libdir", "--target", TARGET)).glob("libstd-*.rlib"))
    except (OSError, subprocess.CalledProcessError):
        return False


def _output(*command: str) -> str:
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


def _flags(target: Path) -> list[str]:
    """Return flags that take the paths of this machine out of the module."""
    commit = next(line.split()[1] for line in _output("rustc", "-vV").splitlines() if line.startswith("commit-hash"))
    registry = Path(os.environ.get("CARGO_HOME") or Path.home() / ".cargo") / "registry" / "src"
    renamed = {ROOT: "/routecast", target: "/target"}
    renamed |= dict.fromkeys(sorted(registry.glob("*")), "/registry")
    renamed[Path(_output("rustc", "--print", "sysroot")) / "lib/rustlib/src/rust"] = f"/rustc/{commit}"
    return [f"--remap-path-prefix={path}={name}" for path, name in renamed.items()]


def compile_into(folder: Path) -> None:
    """Compile the module and write it and what it was made with."""
    _output("cargo", "fetch", "--quiet", "--locked", "--target", TARGET)
    target = Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target").resolve()
    flags = _flags(target)
    command = ["cargo", "build", "--quiet", "--locked", "--package", "routecast-wasm"]
    command += ["--profile", PROFILE, "--target", TARGET, "--target-dir", str(target)]
    # Nothing that this shell sets may change the profile.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("CARGO_PROFILE_")}
    environment["CARGO_ENCODED_RUSTFLAGS"] = "\x1f".join(flags)
    subprocess.run(command, cwd=ROOT, check=True, env=environment)
    folder.mkdir(parents=True, exist_ok=True)
    module = folder / "simulator.wasm"
    shutil.copyfile(target / TARGET / PROFILE / "routecast_wasm.wasm", module)
    (folder / "simulator.toml").write_text(
        "# What simulator.wasm was made with: make wasm.\n"
        f'compiler = "{compiler()}"\n'
        f'sources_sha256 = "{sources()}"\n'
        f'module_sha256 = "{hashlib.sha256(module.read_bytes()).hexdigest()}"\n',
        encoding="utf-8",
    )


def main() -> int:
    """Write the module into the folder of the command line."""
    if len(sys.argv) != 2:
        print("usage: compile.py FOLDER", file=sys.stderr)
        return 2
    if not has_target():
        print(f"no rustc with the target {TARGET}: rustup target add {TARGET}", file=sys.stderr)
        return 3
    compile_into(Path(sys.argv[1]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
