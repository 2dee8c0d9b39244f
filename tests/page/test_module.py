"""The module of the package: what its sources make, without a trace of the machine that made it."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
RECIPE = ROOT / "crates" / "wasm" / "compile.py"
SHIPPED = ROOT / "packages" / "routecast" / "routecast" / "data" / "wasm"


@pytest.fixture(scope="module")
def recipe() -> ModuleType:
    spec = importlib.util.spec_from_file_location("compile_wasm", RECIPE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def made_with() -> dict[str, str]:
    return tomllib.loads((SHIPPED / "simulator.toml").read_text())


def test_the_module_is_as_new_as_its_sources(recipe: ModuleType, made_with: dict[str, str]) -> None:
    assert made_with["sources_sha256"] == recipe.sources(), (
        "data/wasm/simulator.wasm is older than its sources: run `make wasm` and commit what it makes"
    )
    assert made_with["module_sha256"] == hashlib.sha256((SHIPPED / "simulator.wasm").read_bytes()).hexdigest()


def test_a_change_of_a_source_a_profile_or_a_dependency_is_reported(recipe: ModuleType, tmp_path: Path) -> None:
    files = ["Cargo.toml", "Cargo.lock", "crates/wasm/compile.py"]
    for crate in ("crates/sim", "crates/wasm"):
        files += [
            f"{crate}/Cargo.toml",
            *(str(path.relative_to(ROOT)) for path in (ROOT / crate / "src").rglob("*.rs")),
        ]
    for name in files:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    same = recipe.sources(tmp_path)
    assert same == recipe.sources()

    def changed(name: str, old: str, new: str) -> bool:
        path = tmp_path / name
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))
        other = recipe.sources(tmp_path)
        path.write_text(text)
        return bool(other != same)

    assert changed("crates/sim/src/random.rs", "mix(seed)", "mix(!seed)")
    assert changed("Cargo.toml", 'panic = "abort"', 'panic = "unwind"')
    lock = (ROOT / "Cargo.lock").read_text()
    version = re.search(r'name = "rand_distr"\nversion = "(.*)"', lock)
    assert version is not None
    assert changed("Cargo.lock", f'name = "rand_distr"\nversion = "{version[1]}"', 'name = "rand_distr"\nversion = "9"')
    # The tester's dependencies are none of the module's.
    aya = re.search(r'name = "aya"\nversion = "(.*)"', lock)
    assert aya is not None
    assert not changed("Cargo.lock", f'name = "aya"\nversion = "{aya[1]}"', 'name = "aya"\nversion = "9"')


def test_the_module_has_one_import_and_no_path_of_a_machine(recipe: ModuleType) -> None:
    octets = (SHIPPED / "simulator.wasm").read_bytes()
    assert octets.startswith(b"\0asm\x01\0\0\0")
    text = octets.decode("latin-1")
    for path in ("/home/", "/root/", "/tmp/", ".cargo", ".rustup", str(ROOT)):
        assert path not in text, path
    # Section 2, one entry: module "env", name "progress", a function.
    assert b"\x01\x03env\x08progress\x00" in octets


@pytest.mark.slow
def test_the_module_is_what_the_compiler_makes_of_its_sources(
    recipe: ModuleType, made_with: dict[str, str], tmp_path: Path
) -> None:
    if not recipe.has_target():
        pytest.skip(f"no rustc with the target {recipe.TARGET}: rustup target add {recipe.TARGET}")
    if recipe.compiler() != made_with["compiler"]:
        pytest.skip(f"{recipe.compiler()} is here, {made_with['compiler']} made the module")
    target = ROOT / "target" / "wasm-compared"
    done = subprocess.run(
        [sys.executable, RECIPE, tmp_path],
        check=False,
        capture_output=True,
        text=True,
        env=os.environ | {"CARGO_TARGET_DIR": str(target)},
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "simulator.toml").read_text() == (SHIPPED / "simulator.toml").read_text()
    assert (tmp_path / "simulator.wasm").read_bytes() == (SHIPPED / "simulator.wasm").read_bytes()
