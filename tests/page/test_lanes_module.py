"""Lanes compiled to WebAssembly count what they count on a processor, by its vectors and one by one."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TARGET = "wasm32-unknown-unknown"
ROUTERS = range(1, 41)
WAYS = ((0, 1), (1, 1), (1, 5))
"""Lanes one by one or by vectors, and segments."""

_RUN = """
const {readFileSync} = require('node:fs');
const {exports} = new WebAssembly.Instance(new WebAssembly.Module(readFileSync(process.argv[1])), {});
const [routers, ways] = JSON.parse(process.argv[2]);
const digest = (router, way) => BigInt.asUintN(64, exports.digest(router, ...way, 9)).toString();
console.log(JSON.stringify([exports.lanes(), routers.map(router => ways.map(way => digest(router, way)))]));
"""


def built(*options: str, flags: str = "") -> Path:
    """Build the example ``digest`` and return the folder that it is in."""
    command = [
        "cargo",
        "build",
        "--quiet",
        "--release",
        "--package",
        "routecast-lanes",
        "--example",
        "digest",
        *options,
    ]
    environment = os.environ | ({"CARGO_ENCODED_RUSTFLAGS": flags} if flags else {})
    subprocess.run(command, cwd=ROOT, check=True, env=environment)
    return Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target")


@pytest.mark.slow
def test_forty_routers_are_counted_alike_on_a_processor_and_in_webassembly() -> None:
    node = shutil.which("node")
    if node is None or shutil.which("cargo") is None:
        pytest.skip("needs cargo and node")
    libraries = subprocess.run(
        ["rustc", "--print", "target-libdir", "--target", TARGET], check=True, capture_output=True, text=True
    ).stdout.strip()
    if not any(Path(libraries).glob("libstd-*.rlib")):
        pytest.skip(f"needs rustup target add {TARGET}")
    native = ctypes.CDLL(str(built() / "release" / "examples" / "libdigest.so"))
    native.digest.restype = ctypes.c_uint64
    folder = built("--no-default-features", "--target", TARGET, flags="-Ctarget-feature=+simd128")
    module = folder / TARGET / "release" / "examples" / "digest.wasm"
    asked = json.dumps([list(ROUTERS), WAYS])
    done = subprocess.run([node, "-e", _RUN, module, asked], check=True, capture_output=True, text=True)
    lanes, found = json.loads(done.stdout)
    assert lanes == 4
    for router, digests in zip(ROUTERS, found, strict=True):
        here = {str(native.digest(router, *way, 9)) for way in WAYS}
        assert len(here) == 1, router
        assert set(digests) == here, router
