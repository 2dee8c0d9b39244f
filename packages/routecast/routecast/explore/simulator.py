"""The scripts of a page with a live router: the compiled simulator, and the panel that runs it."""

from __future__ import annotations

import base64
import gzip
from importlib.resources import files
from pathlib import Path

__all__ = ["live_scripts", "simulator_policy", "simulator_script"]


def simulator_script(module: Path | None = None) -> str:
    """Return the class ``Simulator`` and its compiled module ``simulatorModule``, for a ``<script>``.

    ``new Simulator(simulatorModule).run({scenario})`` is the page's ``routecast._core.simulate``
    (``look/simulator.js``). ``module`` replaces the compiled module of the package.
    """
    package = files("routecast")
    compiled = (module or package / "data" / "wasm" / "simulator.wasm").read_bytes()
    text = base64.b64encode(gzip.compress(compiled, 9, mtime=0)).decode("ascii")
    script = (package / "explore" / "look" / "simulator.js").read_text(encoding="utf-8")
    return f'{script}\nconst simulatorModule = "{text}";\n'


def live_scripts() -> tuple[str, ...]:
    """Return the scripts of a live panel; the last runs after ``liveData`` is defined."""
    folder = files("routecast.explore") / "look"
    texts = ((folder / f"{name}.js").read_text(encoding="utf-8") for name in ("panel", "planes", "explorer"))
    return simulator_script(), *texts


def simulator_policy() -> str:
    """Return the content security policy of a page with the simulator: no network, no eval."""
    return (
        "default-src 'none'; script-src 'unsafe-inline' 'wasm-unsafe-eval'; worker-src blob:; "
        "style-src 'unsafe-inline'; img-src data:"
    )
