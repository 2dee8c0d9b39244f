"""Folders and archives of SNDlib's demand matrices, in both of its formats."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

from routecast.errors import FileProblem
from routecast.load.series.reading import read_series

NATIVE = """?SNDlib native format; type: network; version: 1.0
# network demandMatrix

META (
  granularity = 5min
  time = {time}
  unit = {unit}
)
NODES (
  A ( -84.3833 33.75 )
  B ( -85.50 34.50 )
)
LINKS (
)
DEMANDS (
{demands})
ADMISSIBLE_PATHS (
)
"""
XML = """<?xml version="1.0" encoding="UTF-8"?>
<network xmlns="http://sndlib.zib.de/network" version="1.0">
 <meta><granularity>5min</granularity><time>{time}</time><unit>{unit}</unit></meta>
 <networkStructure><nodes><node id="A"/><node id="B"/></nodes></networkStructure>
 <demands>
{demands} </demands>
</network>
"""


def matrix(time: str, values: list[float], form: str, unit: str = "MBITPERSEC") -> str:
    if form == "native":
        demands = "".join(f"  D{n} ( A B ) 1 {value} UNLIMITED\n" for n, value in enumerate(values))
        return NATIVE.format(time=time, unit=unit, demands=demands)
    demands = "".join(
        f'  <demand id="D{n}"><source>A</source><target>B</target>\n  <demandValue> {value} </demandValue></demand>\n'
        for n, value in enumerate(values)
    )
    return XML.format(time=time, unit=unit, demands=demands)


def folder(path: Path, form: str, matrices: dict[str, list[float]]) -> Path:
    path.mkdir()
    for time, values in matrices.items():
        name = f"demandMatrix-{time}.{'txt' if form == 'native' else 'xml'}"
        (path / name).write_text(matrix(time, values, form), encoding="utf-8")
    return path


THREE = {"20040301-0005": [1.5, 2.25], "20040301-0000": [0.5], "20040301-0010": [4.0, 0.25, 1e-3]}


@pytest.mark.parametrize("form", ["native", "xml"])
def test_each_matrix_is_a_step_with_the_sum_of_its_demands(tmp_path: Path, form: str) -> None:
    series = read_series(folder(tmp_path / "matrices", form, THREE))
    assert series.step_s == 300.0
    assert series.l2_bps == pytest.approx((0.5e6, 3.75e6, 4.251e6))


def test_an_archive_says_the_same_as_its_folder(tmp_path: Path) -> None:
    whole = folder(tmp_path / "matrices", "xml", THREE)
    with tarfile.open(tmp_path / "matrices.tgz", "w:gz") as archive:
        archive.add(whole, arcname="matrices")
    assert read_series(tmp_path / "matrices.tgz").l2_bps == read_series(whole).l2_bps


def test_a_matrix_without_demands_is_missing_and_no_silence(tmp_path: Path) -> None:
    whole = folder(tmp_path / "matrices", "native", {**THREE, "20040301-0005": []})
    with pytest.raises(FileProblem, match="1 step missing"):
        read_series(whole)
    assert read_series(whole, gaps="hold").l2_bps[1] == pytest.approx(0.5e6)


def test_what_is_no_matrix_is_named_and_so_is_another_unit(tmp_path: Path) -> None:
    whole = folder(tmp_path / "matrices", "native", THREE)
    (whole / "readme.txt").write_text("about these matrices", encoding="utf-8")
    with pytest.raises(FileProblem, match=r"readme\.txt: is no demand matrix of SNDlib: it says no time"):
        read_series(whole)
    (whole / "readme.txt").write_text(matrix("20040301-0015", [1.0], "native", unit="KBITPERSEC"))
    with pytest.raises(FileProblem, match="KBITPERSEC: all matrices must be in one unit"):
        read_series(whole)


def test_an_empty_folder_and_a_broken_archive_say_so(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "broken.tgz").write_bytes(b"no archive")
    with pytest.raises(FileProblem, match="holds no demand matrix"):
        read_series(tmp_path / "empty")
    with pytest.raises(FileProblem, match="cannot be read"):
        read_series(tmp_path / "broken.tgz")
