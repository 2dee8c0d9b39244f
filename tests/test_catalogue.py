"""Files of one kind: a name is one that ships, a path is a user's own, and an unknown name suggests the nearest."""

from __future__ import annotations

from pathlib import Path

import pytest

from routecast.errors import FileProblem
from routecast.quantity.catalogue import Catalogue

PROCESSORS = Catalogue(
    kind="processor",
    folder="processors",
    suffix=".processor.toml",
    parse=lambda text, subject: (text, subject),
    further_names=("host",),
)


def test_a_name_is_read_from_the_package_and_called_by_its_file_name() -> None:
    text, subject = PROCESSORS.read("ixp2850")
    assert subject == "ixp2850.processor.toml"
    assert text == PROCESSORS.files()["ixp2850"].read_text(encoding="utf-8")
    assert [subject for _, subject in PROCESSORS.all()] == [f"{name}.processor.toml" for name in PROCESSORS.names()]


@pytest.mark.parametrize("name", ["own.toml", "folder/own", Path("own")])
def test_a_path_is_relative_to_the_folder_of_the_file_that_names_it(tmp_path: Path, name: str | Path) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("own", encoding="utf-8")
    assert PROCESSORS.read(name, tmp_path) == ("own", str(path))


@pytest.mark.parametrize(("name", "hint"), [("ixp2580", 'did you mean "ixp2850"'), ("hots", 'did you mean "host"')])
def test_an_unknown_name_suggests_the_nearest(name: str, hint: str) -> None:
    with pytest.raises(FileProblem, match=f'"{name}": is no processor that ships: {hint}'):
        PROCESSORS.find(name)
