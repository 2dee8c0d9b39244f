"""Folders and archives of SNDlib's demand matrices, in both of its formats."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from routecast.errors import FileProblem
from routecast.plan.series.reading import read_series

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
    with pytest.raises(FileProblem, match=r"readme\.txt: is no demand matrix of SNDlib: it gives no time"):
        read_series(whole)
    (whole / "readme.txt").write_text(matrix("20040301-0015", [1.0], "native", unit="KBITPERSEC"))
    with pytest.raises(FileProblem, match="KBITPERSEC: all matrices must be in one unit"):
        read_series(whole)


def test_an_empty_folder_and_a_broken_archive_say_so(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "broken.tgz").write_bytes(b"no archive")
    with pytest.raises(FileProblem, match="has no demand matrix"):
        read_series(tmp_path / "empty")
    with pytest.raises(FileProblem, match="cannot be read"):
        read_series(tmp_path / "broken.tgz")


@pytest.mark.parametrize("form", ["native", "xml"])
def test_a_demand_in_a_comment_is_none(tmp_path: Path, form: str) -> None:
    whole = folder(tmp_path / "matrices", form, {**THREE, "20040301-0000": [1.5]})
    (first,) = whole.glob("*-0000.*")
    more = {
        "native": "#D9 ( A B ) 1 1000.0 UNLIMITED\n",
        "xml": '<!-- <demand id="D9"><demandValue>1000.0</demandValue></demand> -->\n',
    }
    end = {"native": ")\nADMISSIBLE", "xml": " </demands>"}
    text = first.read_text(encoding="utf-8")
    assert text.count(end[form]) == 1
    first.write_text(text.replace(end[form], more[form] + end[form]), encoding="utf-8")
    assert read_series(whole).l2_bps[0] == pytest.approx(1.5e6)


@pytest.mark.parametrize(
    ("written", "read", "bps"),
    [
        # The encoding, prefixes and routing units of XML, and text that only looks like a demand.
        ('encoding="UTF-8"?>', 'encoding="ISO-8859-1"?><!-- Orlowski, Pi\xf3ro -->', 1.5e6),
        ("<demandValue> 1.5", "<routingUnit>2</routingUnit><demandValue> 1.5", 3.0e6),
        (" <demands>", '<x:demands xmlns:x="urn:x"><x:demand/></x:demands><demands>', 1.5e6),
        (" <demands>", "<![CDATA[<demand><demandValue>7</demandValue></demand>]]> <demands>", 1.5e6),
    ],
)
def test_xml_is_read_as_xml(tmp_path: Path, written: str, read: str, bps: float) -> None:
    whole = folder(tmp_path / "matrices", "xml", {**THREE, "20040301-0000": [1.5]})
    (first,) = whole.glob("*-0000.*")
    text = first.read_text(encoding="utf-8")
    assert text.count(written) == 1
    first.write_bytes(text.replace(written, read).encode("latin-1"))
    assert read_series(whole).l2_bps[0] == pytest.approx(bps)


@pytest.mark.parametrize(
    ("form", "written", "read", "says"),
    [
        ("xml", "<network", '<!DOCTYPE n [<!ENTITY a "1">]><network', "has a document type or entities"),
        ("xml", "</network>", "", "is no XML"),
        ("xml", "UTF-8", "utf-99", "is no XML"),
        ("xml", "> 0.5 <", "> nan <", 'a demand is no number: got "nan"'),
        ("xml", "> 0.5 <", "> -1 <", 'a demand is no number: got "-1"'),
        ("xml", "demandValue", "value", "a demand is no number"),
        ("native", "1 0.5 UN", "1 half UN", 'a demand is no number: got "half"'),
        ("native", "1 0.5 UNLIMITED", "0.5", r'got "D0 \( A B \) 0.5 \)'),
        ("native", ")\nADMISSIBLE_PATHS (\n)\n", "", r'got "" among the demands'),
    ],
)
def test_a_matrix_that_cannot_be_read_is_named(tmp_path: Path, form: str, written: str, read: str, says: str) -> None:
    whole = folder(tmp_path / "matrices", form, THREE)
    (first,) = whole.glob("*-0000.*")
    text = first.read_text(encoding="utf-8")
    assert written in text
    first.write_text(text.replace(written, read), encoding="utf-8")
    with pytest.raises(FileProblem, match=rf"{first.name}: .*({says})"):
        read_series(whole)


def test_entities_that_stand_for_entities_are_not_expanded(tmp_path: Path) -> None:
    whole = folder(tmp_path / "matrices", "xml", THREE)
    laughs = "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 12))
    bomb = f'<!DOCTYPE n [<!ENTITY a0 "ha">{laughs}]><network><meta><time>&a11;</time></meta></network>'
    (whole / "bomb.xml").write_text(bomb, encoding="utf-8")
    with pytest.raises(FileProblem, match=r"bomb\.xml: has a document type or entities"):
        read_series(whole)


def archive_of(path: Path, name: str, size_bytes: int) -> Path:
    """Write an archive with one file of so many zeros, which shrink to a thousandth."""

    class Zeros(io.RawIOBase):
        def read(self, size: int = -1) -> bytes:
            return b"\0" * size

    member = tarfile.TarInfo(name)
    member.size = size_bytes
    with tarfile.open(path, "w:gz") as archive:
        archive.addfile(member, Zeros())
    return path


@pytest.mark.slow
def test_an_archive_that_unpacks_to_far_more_than_it_is_is_refused(tmp_path: Path) -> None:
    bomb = archive_of(tmp_path / "bomb.tgz", "zeros.bin", 60_000_000)
    assert bomb.stat().st_size < 100_000
    with pytest.raises(FileProblem, match="unpacks to more than"):
        read_series(bomb)
    matrix_of_zeros = archive_of(tmp_path / "large.tgz", "demands.xml", 30_000_000)
    with pytest.raises(FileProblem, match=r"demands\.xml: has 30,000,000 bytes: .* at most 20,000,000"):
        read_series(matrix_of_zeros)


def test_a_matrix_in_a_folder_is_a_file_of_some_size(tmp_path: Path) -> None:
    whole = folder(tmp_path / "matrices", "xml", THREE)
    with (whole / "large.xml").open("wb") as file:
        file.truncate(30_000_000)
    (whole / "zero.xml").symlink_to("/dev/zero")
    with pytest.raises(FileProblem) as caught:
        read_series(whole)
    assert "large.xml: has at least 30,000,000 bytes, larger than 20,000,000" in str(caught.value)
    assert "zero.xml: cannot be read: it is a device, no demand matrix" in str(caught.value)
