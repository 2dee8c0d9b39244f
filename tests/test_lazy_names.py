"""Names that are loaded when they are first used are what they are declared to be, whatever was imported before."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import pytest
from house import files_below

import routecast

LAZY = [
    str(path.parent.relative_to(Path(routecast.__file__).parents[1])).replace("/", ".")
    for path in files_below(Path(routecast.__file__).parent, "__init__.py")
    if "lazy_names(" in path.read_text(encoding="utf-8")
]


@pytest.mark.parametrize("room", LAZY)
def test_no_submodule_has_the_name_of_what_the_room_gives(room: str) -> None:
    # Importing such a module would put it in the place of the function or class.
    module = importlib.import_module(room)
    folder = Path(str(module.__file__)).parent
    assert not [name for name in module.__all__ if (folder / f"{name}.py").exists() or (folder / name).is_dir()]
    for name in module.__all__:
        assert not isinstance(getattr(module, name), type(sys))
    assert set(module.__all__) <= set(dir(module))


def test_functions_of_calibration_are_functions_after_their_modules_were_imported() -> None:
    code = (
        "import routecast.cli.validate, routecast.study.tables.run; from routecast.calibration import fit, validate\n"
    )
    code += "assert callable(fit) and callable(validate)"
    subprocess.run([sys.executable, "-c", code], check=True)
