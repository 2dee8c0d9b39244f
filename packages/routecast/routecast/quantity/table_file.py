"""Tables that people have: CSV of several regions and encodings, Excel and OpenDocument sheets, as cells of text.

====================================  ==============================================================================
file                                  reading
====================================  ==============================================================================
``.xlsx``, ``.xlsm``, ``.ods``        the sheet that ``FILE.xlsx#Sheet`` names, or the only one with a table
UTF-8, UTF-16 with a byte order mark  Excel writes "Unicode text" in UTF-16, with tabs
Windows-1252                          "CSV" of Excel in Western Europe
commas, semicolons, tabs              as the first row has them; ``sep=;`` in a line of its own is Excel's
decimal commas                        between semicolons or tabs only; a number that may as well have a thousands
                                      separator is refused, because no other cell tells which it is
====================================  ==============================================================================
"""

from __future__ import annotations

import csv
import io
import re
import zipfile
from collections.abc import Callable, Mapping, Sequence
from datetime import date, time
from pathlib import Path
from typing import Final

from routecast.errors import FileProblem, Problem
from routecast.quantity.bounded_file import MAX_FILE_BYTES, read_bytes

__all__ = ["csv_cells", "is_spreadsheet", "parse_rename", "read_sheet", "read_table_text", "rename_heads"]

SPREADSHEETS: Final = (".xlsx", ".xlsm", ".ods")
MAX_CELLS: Final = 2_000_000
"""Most cells of a sheet, the empty ones between its corners included."""
_MAX_UNPACKED_BYTES: Final = 200_000_000

_NO_TEXT: Final = re.compile(rb"[\x00-\x08\x0b\x0e-\x1f\x7f\x81\x8d\x8f\x90\x9d]")
_SEPARATORS: Final = ((";", "semicolons"), ("\t", "tabs"))
_NUMBER: Final = re.compile(r"([+-]?[\d.,]*\d)(\s*[^\d\s][^\d]*)?")
_COMMA: Final = re.compile(r"[+-]?(?:\d+,\d+|\d{1,3}(?:\.\d{3})+,\d+)")
_EITHER: Final = re.compile(r"[+-]?[1-9]\d{0,2}([.,])\d{3}")
_POINT: Final = re.compile(r"[+-]?\d+\.\d+")
_CELL: Final = re.compile(rb'<(?:\w+:)?c\b[^>]*?\br="([A-Z]{1,4})(\d{1,8})"')
_ODS_ROW: Final = re.compile(rb"<table:table-row\b([^>]*)>(.*?)</table:table-row>", re.DOTALL)
_ODS_REPEATED: Final = re.compile(rb'number-(?:columns|rows)-repeated="(\d{1,12})"')
_ODS_VALUE: Final = re.compile(rb"<text:p|office:value")


def _ignore(text: str) -> None:
    """Take no notice of a note."""


def read_table_text(
    path: Path, *, kind: str, max_file_bytes: int = MAX_FILE_BYTES, on_note: Callable[[str], None] = _ignore
) -> str:
    """Return the text of a table in UTF-8, in UTF-16 with a byte order mark, or else in Windows-1252.

    Windows-1252 differs from ASCII in letters and signs only, so that numbers cannot be misread. ``on_note``: called
    with a sentence where the encoding is assumed. Raises FileProblem: as
    :func:`routecast.quantity.bounded_file.read_bytes`, or the content is no text.
    """
    content = read_bytes(path, kind=kind, max_file_bytes=max_file_bytes)
    is_utf16 = content.startswith((b"\xff\xfe", b"\xfe\xff"))
    try:
        return content.decode("utf-16" if is_utf16 else "utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as problem:
        if not is_utf16 and not _NO_TEXT.search(content):
            on_note("The file is not in UTF-8: its letters are read as Windows-1252")
            return content.decode("cp1252", errors="replace")
        encoding = "UTF-16" if is_utf16 else "UTF-8"
        message = f"cannot be read as text: byte {problem.start} is not {encoding}, so this is no {kind}"
        raise FileProblem(str(path), [Problem("", f"{message}; save it as CSV UTF-8")]) from problem


def csv_cells(text: str, *, name: str, comments: bool = True) -> list[list[str]]:
    """Return the cells of CSV text with commas, semicolons or tabs between them, numbers with decimal points.

    ``comments``: whether lines that start with ``#`` are skipped. Raises FileProblem: the text is not CSV, or a number
    may have a decimal comma as well as a thousands separator.
    """
    lines = [line for line in io.StringIO(text, newline="") if not (comments and line.lstrip().startswith("#"))]
    stated = next(
        (separator for separator, _ in _SEPARATORS if lines and lines[0].strip(' \r\n"') == f"sep={separator}"), ""
    )
    lines = lines[1:] if stated else lines
    written = [line for line in lines if line.strip()]
    # Remarks have separators of their own.
    head = next((line for line in written if not line.lstrip().startswith("#")), next(iter(written), ""))
    outside_quotes = re.sub(r'"[^"]*"', "", head)
    separator = stated or next((separator for separator, _ in _SEPARATORS if separator in outside_quotes), ",")
    try:
        rows = list(csv.reader(lines, delimiter=separator, skipinitialspace=True, strict=True))
    except csv.Error as error:
        raise FileProblem(name, [Problem("", f"is not CSV: {error}")]) from None
    return rows if separator == "," else _with_points(rows, name)


def _with_points(rows: list[list[str]], name: str) -> list[list[str]]:
    """Return rows with decimal points; European programs write semicolons between cells and commas in numbers."""
    numbers = [
        (number, match[1])
        for number, row in enumerate(rows, start=1)
        for cell in row
        if (match := _NUMBER.fullmatch(cell.strip()))
    ]
    has_commas = any(_COMMA.fullmatch(text) and not _EITHER.fullmatch(text) for _, text in numbers)
    has_points = any(_POINT.fullmatch(text) and not _EITHER.fullmatch(text) for _, text in numbers)
    if has_commas and has_points:
        raise FileProblem(
            name, [Problem("", "has numbers with decimal commas and with decimal points: write one kind")]
        )
    mark = "," if has_commas else "." if has_points else ""
    problems = [
        Problem(f"row {number}", f'got "{text}": is it a decimal or a thousands separator? Write it without, or as 1.9')
        for number, text in numbers
        if (either := _EITHER.fullmatch(text)) and either[1] != mark and (mark or "," in text)
    ]
    if problems:
        raise FileProblem(name, problems[:20])
    return [[_with_point(cell) for cell in row] for row in rows] if has_commas else rows


def _with_point(cell: str) -> str:
    match = _NUMBER.fullmatch(cell.strip())
    if match is None or not _COMMA.fullmatch(match[1]):
        return cell
    return match[1].replace(".", "").replace(",", ".") + (match[2] or "")


def is_spreadsheet(path: Path) -> bool:
    """Whether a path names a spreadsheet, with or without a sheet."""
    return _file_and_sheet(path)[0].suffix.lower() in SPREADSHEETS


def _file_and_sheet(path: Path) -> tuple[Path, str]:
    text = str(path)
    file, mark, sheet = text.rpartition("#")
    return (Path(file), sheet) if mark and file.lower().endswith(SPREADSHEETS) else (path, "")


def read_sheet(path: Path, *, kind: str, is_head: Callable[[Sequence[str]], bool]) -> list[list[str]]:
    """Return the cells of a sheet as text.

    ``path``: ``FILE.xlsx``, or ``FILE.xlsx#Sheet``; ``is_head``: whether a row is the head of such a table, by which
    the sheet is chosen where none is named. Raises FileProblem: the file cannot be read or is too large, the reader
    (python-calamine, the extra ``spreadsheet``) is not installed, or the sheet is not known.
    """
    file, sheet = _file_and_sheet(path)
    content = read_bytes(file, kind=kind, max_file_bytes=MAX_FILE_BYTES)
    try:
        from python_calamine import CalamineError, CalamineWorkbook
    except ImportError:
        message = (
            "is a spreadsheet, whose reader is not installed: pip install 'routecast[spreadsheet]', or save it as CSV"
        )
        raise FileProblem(str(path), [Problem("", message)]) from None
    _check_unpacked(content, str(path))
    try:
        book = CalamineWorkbook.from_filelike(io.BytesIO(content))
        names = [sheet] if sheet in book.sheet_names else [] if sheet else list(book.sheet_names)
        tables = {name: _sheet_rows(book.get_sheet_by_name(name).to_python()) for name in names}
    except (CalamineError, OSError, ValueError) as error:
        raise FileProblem(str(path), [Problem("", f"cannot be read as a spreadsheet: {error}")]) from None
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # of the reader's Rust code, which is no Exception
            raise
        raise FileProblem(str(path), [Problem("", "cannot be read as a spreadsheet: its reader failed")]) from None
    listed = ", ".join(book.sheet_names)
    if sheet and not names:
        raise FileProblem(str(path), [Problem("", f"has no sheet {sheet[:60]!r}: its sheets are {listed}")])
    filled = [name for name, rows in tables.items() if len(rows) > 1]
    chosen = filled if len(filled) == 1 else [name for name in filled if is_head(tables[name][0])]
    if len(chosen) != 1:
        what = "no sheet with a table" if not filled else f"{len(chosen) or len(filled)} sheets that may be the table"
        message = f"has {what}; its sheets are {listed}: choose one, {file.name}#NAME"
        raise FileProblem(str(path), [Problem("", message)])
    return tables[chosen[0]]


def _check_unpacked(content: bytes, name: str) -> None:
    """Raise FileProblem for a file whose few bytes would become too many cells."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            if sum(entry.file_size for entry in archive.infolist()) > _MAX_UNPACKED_BYTES:
                message = f"unpacks to more than {_MAX_UNPACKED_BYTES:,} bytes: no table; save the sheet as CSV"
                raise FileProblem(name, [Problem("", message)])
            for entry in archive.infolist():
                if entry.filename.endswith(".xml"):
                    part = archive.read(entry)
                    columns, rows = 1, 1
                    for match in _CELL.finditer(part):
                        columns, rows = max(columns, _column_number(match[1])), max(rows, int(match[2]))
                    if columns * rows > MAX_CELLS or _repeated_cells(part) > MAX_CELLS:
                        message = f"has a sheet of more than {MAX_CELLS:,} cells: no table; save the part as CSV"
                        raise FileProblem(name, [Problem(entry.filename, message)])
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, OSError, ValueError) as error:
        raise FileProblem(name, [Problem("", f"cannot be read as a spreadsheet: {error}")]) from None
    except Exception as error:
        if type(error).__module__ != "zlib":
            raise
        raise FileProblem(name, [Problem("", f"cannot be read as a spreadsheet: {error}")]) from None


def _repeated_cells(part: bytes) -> int:
    """Return the cells that the rows with values of an OpenDocument sheet stand for."""
    cells = 0
    for attributes, body in (match.groups() for match in _ODS_ROW.finditer(part)):
        if _ODS_VALUE.search(body):
            rows = max((int(match[1]) for match in _ODS_REPEATED.finditer(attributes)), default=1)
            # The last cells of a row are often one that is repeated to the edge of the sheet.
            filled = body[: max(body.rfind(b"<text:p"), body.rfind(b"office:value"))]
            cells += rows * sum(int(match[1]) for match in _ODS_REPEATED.finditer(filled))
    return cells


def _column_number(letters: bytes) -> int:
    number = 0
    for letter in letters:
        number = 26 * number + letter - 64
    return number


def _sheet_rows(rows: Sequence[Sequence[object]]) -> list[list[str]]:
    texts = [[_cell_text(cell) for cell in row] for row in rows]
    texts = [row for row in texts if any(row) and not row[0].lstrip().startswith("#")]
    width = max((number for row in texts for number, cell in enumerate(row, start=1) if cell), default=0)
    least = min((number for row in texts for number, cell in enumerate(row) if cell), default=0)
    return [row[least:width] for row in texts]


def _cell_text(cell: object) -> str:
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, float):
        return str(int(cell)) if cell.is_integer() and abs(cell) < 1e15 else repr(cell)
    if isinstance(cell, date | time):
        return cell.isoformat()
    return "" if cell is None else str(cell).strip()


def parse_rename(texts: Sequence[str]) -> dict[str, str]:
    """Read ``"rate=throughput_pps"``: the head of a file, and the name that it has here.

    Raises FileProblem: a text has no ``=``, or a head is named twice.
    """
    renamed: dict[str, str] = {}
    for text in texts:
        old, mark, new = text.rpartition("=")
        old, new = old.strip(), new.strip()
        if not mark or not old or not new:
            message = f"got {text[:60]!r}: write HEAD=NAME, such as rate=throughput_pps"
            raise FileProblem("--rename", [Problem("", message)])
        if old in renamed:
            raise FileProblem("--rename", [Problem("", f"names {old[:60]!r} twice: keep one")])
        renamed[old] = new
    return renamed


def rename_heads(rows: list[list[str]], rename: Mapping[str, str], *, name: str) -> list[list[str]]:
    """Return rows whose heads have other names.

    Raises FileProblem: the table has no such head.
    """
    if not rename:
        return rows
    place = next((number for number, row in enumerate(rows) if any(cell.strip() for cell in row)), None)
    heads = [] if place is None else [cell.strip() for cell in rows[place]]
    problems = [
        Problem("row 1", f"has no column {old[:60]!r} to rename: its columns are {', '.join(heads)[:300]}")
        for old in rename
        if old not in heads
    ]
    if problems or place is None:
        raise FileProblem(name, problems or [Problem("", "is empty")])
    return [*rows[:place], [rename.get(head, head) for head in heads], *rows[place + 1 :]]
