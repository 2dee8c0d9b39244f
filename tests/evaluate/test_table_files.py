"""Tables as spreadsheets and European programs write them."""

from __future__ import annotations

import io
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from routecast.errors import FileProblem
from routecast.evaluate.point_table import read_table
from routecast.quantity.table_file import csv_cells, parse_rename

ROWS = (("cores", "frame_bytes", "throughput_mpps"), (1, 64, 1.9), (2, 64, 3.75))
RATES_PPS = [1.9e6, 3.75e6]


def rates(path: Path | str, **options: dict[str, str]) -> list[float]:
    return [point.throughput_pps for point in read_table(path, **options).points]


def test_a_csv_of_a_european_program_has_decimal_commas(tmp_path: Path) -> None:
    path = tmp_path / "points.csv"
    path.write_text("cores;frame_bytes;throughput_mpps\n1;64;1,9\n2;64;3,75\n")
    assert rates(path) == pytest.approx(RATES_PPS)
    path.write_text("sep=;\r\ncores;frame_bytes;throughput\r\n1;64;1,9 Mpps\r\n2;64;3,75 Mpps\r\n")
    assert rates(path) == pytest.approx(RATES_PPS)
    path.write_text("cores;frame_bytes;throughput_pps\n1;64;1.900.000,0\n2;64;3.750.000,5\n")
    assert rates(path) == pytest.approx([1.9e6, 3_750_000.5])
    path.write_text("cores;frame;throughput_mpps\n1;7x64, 4x594, 1x1518;1,9\n")
    assert read_table(path).points[0].frame_bytes == pytest.approx(361.833, abs=1e-3)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-8-sig"])
def test_unicode_text_of_excel_is_read(encoding: str, tmp_path: Path) -> None:
    path = tmp_path / "points.csv"
    mark = "\ufeff" if encoding.endswith("e") else ""
    text = "cores\tframe_bytes\tthroughput_mpps\r\n1\t64\t1,9\r\n2\t64\t3,75\r\n"
    path.write_bytes((mark + text).encode(encoding))
    assert rates(path) == pytest.approx(RATES_PPS)


def test_another_encoding_is_named(tmp_path: Path) -> None:
    path = tmp_path / "points.csv"
    path.write_bytes("cores,throughput_mpps,series\n1,1.9,Größe\n".encode("cp1252"))
    table = read_table(path)
    assert table.points[0].series == "Größe"
    assert any("Windows-1252" in remark for remark in table.remarks)


def test_a_thousand_or_a_decimal_is_asked_where_nothing_tells() -> None:
    for text in ("a;b\n1,900;2\n", "a;b\n1,5;2.500\n"):
        with pytest.raises(FileProblem, match="decimal or a thousands separator"):
            csv_cells(text, name="t")
    assert csv_cells("a;b\n1,900;2,5\n", name="t")[1] == ["1.900", "2.5"]
    assert csv_cells("a;b\n1.900;2.5\n", name="t")[1] == ["1.900", "2.5"]


def test_columns_have_other_names(tmp_path: Path) -> None:
    path = tmp_path / "points.csv"
    path.write_text("n,size,rate\n1,64,1.9e6\n2,64,3.75e6\n")
    names = parse_rename(["n=cores", "size=frame_bytes", "rate=throughput_pps"])
    assert rates(path, rename=names) == pytest.approx(RATES_PPS)
    with pytest.raises(FileProblem, match="has no column 'speed' to rename: its columns are n, size, rate"):
        read_table(path, rename={"speed": "throughput_pps"})
    for wrong in (["rate"], ["=x"], ["a=b", "a=c"]):
        with pytest.raises(FileProblem, match="--rename"):
            parse_rename(wrong)


def xlsx(path: Path, sheets: dict[str, tuple[tuple[object, ...], ...]]) -> Path:
    """Write a workbook with another program's writer."""
    openpyxl = pytest.importorskip("openpyxl", reason="PyPI openpyxl is not installed")
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(list(row))
    book.save(path)
    return path


def minimal_xlsx(path: Path, cells: str) -> Path:
    """Write the least workbook that has one sheet with these cells."""
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    package = "http://schemas.openxmlformats.org/package/2006/relationships"
    parts = {
        "[Content_Types].xml": '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"/>',
        "_rels/.rels": f'<Relationships xmlns="{package}"><Relationship Id="r1" Type="{office}/officeDocument" '
        'Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{main}" xmlns:r="{office}"><sheets>'
        '<sheet name="Rates" sheetId="1" r:id="r1"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{package}"><Relationship Id="r1" '
        f'Type="{office}/worksheet" Target="worksheets/sheet1.xml"/></Relationships>',
        "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{main}"><sheetData>{cells}</sheetData></worksheet>',
    }
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in parts.items():
            archive.writestr(name, f'<?xml version="1.0"?>{text}')
    return path


def text_cell(place: str, text: str) -> str:
    return f'<c r="{place}" t="inlineStr"><is><t>{text}</t></is></c>'


HEAD = "".join(
    text_cell(place, text) for place, text in (("A1", "cores"), ("B1", "frame_bytes"), ("C1", "throughput_mpps"))
)
DATA = '<row r="2"><c r="A2"><v>1</v></c><c r="B2"><v>64</v></c><c r="C2"><v>1.9</v></c></row>'


def test_a_sheet_is_a_table_of_points(tmp_path: Path) -> None:
    pytest.importorskip("python_calamine", reason="PyPI python-calamine is not installed")
    path = minimal_xlsx(tmp_path / "rates.xlsx", f'<row r="1">{HEAD}</row>{DATA}')
    assert rates(path) == pytest.approx(RATES_PPS[:1])
    assert rates(f"{path}#Rates") == pytest.approx(RATES_PPS[:1])
    with pytest.raises(FileProblem, match="has no sheet 'Other': its sheets are Rates"):
        read_table(f"{path}#Other")


def test_the_sheet_with_a_table_is_found_and_two_are_asked_for(tmp_path: Path) -> None:
    pytest.importorskip("python_calamine", reason="PyPI python-calamine is not installed")
    notes = (("written", "by"), ("me", 3))
    path = xlsx(tmp_path / "rates.xlsx", {"Notes": notes, "Rates": ROWS, "Empty": ()})
    assert rates(path) == pytest.approx(RATES_PPS)
    both = xlsx(tmp_path / "both.xlsx", {"A": ROWS, "B": ROWS})
    with pytest.raises(FileProblem, match=r"its sheets are A, B: choose one, both.xlsx#NAME"):
        read_table(both)
    assert rates(f"{both}#B") == pytest.approx(RATES_PPS)


def test_an_opendocument_sheet_is_read(tmp_path: Path) -> None:
    pytest.importorskip("python_calamine", reason="PyPI python-calamine is not installed")
    opendocument = pytest.importorskip("odf.opendocument", reason="PyPI odfpy is not installed")
    from odf.table import Table, TableCell, TableRow
    from odf.text import P

    document = opendocument.OpenDocumentSpreadsheet()
    table = Table(name="Rates")
    for row in ROWS:
        line = TableRow()
        for value in row:
            kind = {"valuetype": "string"} if isinstance(value, str) else {"valuetype": "float", "value": value}
            cell = TableCell(**kind)
            cell.addElement(P(text=str(value)))
            line.addElement(cell)
        line.addElement(TableCell(numbercolumnsrepeated=16381))  # LibreOffice fills the sheet to its edge
        table.addElement(line)
    rest = TableRow(numberrowsrepeated=1048573)
    rest.addElement(TableCell(numbercolumnsrepeated=16384))
    table.addElement(rest)
    document.spreadsheet.addElement(table)
    document.save(str(tmp_path / "rates.ods"))
    assert rates(tmp_path / "rates.ods") == pytest.approx(RATES_PPS)


def test_a_small_file_that_would_be_a_huge_sheet_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("python_calamine", reason="PyPI python-calamine is not installed")
    far = '<row r="1048576"><c r="XFD1048576"><v>1</v></c></row>'
    with pytest.raises(FileProblem, match="more than 2,000,000 cells"):
        read_table(minimal_xlsx(tmp_path / "far.xlsx", f'<row r="1">{HEAD}</row>{far}'))
    with zipfile.ZipFile(tmp_path / "bomb.xlsx", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/a.xml", b" " * 201_000_000)
    with pytest.raises(FileProblem, match="unpacks to more than"):
        read_table(tmp_path / "bomb.xlsx")


def test_what_is_no_spreadsheet_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("python_calamine", reason="PyPI python-calamine is not installed")
    good = minimal_xlsx(tmp_path / "good.xlsx", f'<row r="1">{HEAD}</row>{DATA}').read_bytes()
    empty = io.BytesIO()
    with zipfile.ZipFile(empty, "w"):
        pass
    for content in (b"", b"PK", b"cores,throughput\n", empty.getvalue(), good[: len(good) // 2], good[:-60]):
        path = tmp_path / "bad.xlsx"
        path.write_bytes(content)
        with pytest.raises(FileProblem, match="spreadsheet"):
            read_table(path)


def test_without_its_reader_a_spreadsheet_says_how_to_install_it(tmp_path: Path) -> None:
    path = minimal_xlsx(tmp_path / "rates.xlsx", f'<row r="1">{HEAD}</row>{DATA}')
    program = (
        "import sys; sys.modules['python_calamine'] = None\n"
        "from routecast.evaluate.point_table import read_table\n"
        "from routecast.errors import FileProblem\n"
        f"try: read_table({str(path)!r})\n"
        "except FileProblem as problem: print(problem)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert "pip install 'routecast[spreadsheet]'" in done.stdout


def test_a_remark_has_separators_of_its_own() -> None:
    text = "# measured twice; the second day\nload_ratio,power_w\n0,50\n"
    assert csv_cells(text, name="x", comments=False)[1:] == [["load_ratio", "power_w"], ["0", "50"]]
