#!/usr/bin/env python3
"""Takes the folder of the build out of the bills of materials in wheels: ``bill.py WHEEL…``.

maturin has cargo-cyclonedx name each crate of the workspace by its absolute path, so two folders make two wheels of
one commit. Here the workspace is ``/routecast`` in all of them, and RECORD has the digests of what is written.
"""

from __future__ import annotations

import base64
import hashlib
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NAME = b"file:///routecast"


def take_out_the_folder(wheel: Path, root: Path = ROOT) -> None:
    """Rewrite the bills of materials of a wheel that was built in a folder; its other files stay as they are."""
    # A crate is file:///folder/crates/NAME, and ends at # where it is the folder itself.
    renamed = [(root.as_uri().encode() + after, NAME + after) for after in (b"/", b"#")]
    with zipfile.ZipFile(wheel) as archive:
        files = [(entry, archive.read(entry)) for entry in archive.infolist()]
    bills = {}
    for entry, data in files:
        if ".dist-info/sboms/" in entry.filename:
            bill = data
            for path, name in renamed:
                bill = bill.replace(path, name)
            bills[entry.filename] = bill
    if not bills:
        return
    scratch = wheel.with_suffix(".tmp")
    with zipfile.ZipFile(scratch, "w") as archive:
        for entry, data in files:
            if entry.filename.endswith(".dist-info/RECORD"):
                content = _record(data, bills)
            else:
                content = bills.get(entry.filename, data)
            archive.writestr(entry, content, entry.compress_type, 9)
    scratch.replace(wheel)


def _record(record: bytes, changed: dict[str, bytes]) -> bytes:
    """Return the list of the files with the digests and sizes of those that changed."""
    lines = []
    for line in record.decode().splitlines(keepends=True):
        name = line.rsplit(",", 2)[0]
        if name in changed:
            digest = base64.urlsafe_b64encode(hashlib.sha256(changed[name]).digest()).decode().rstrip("=")
            lines.append(f"{name},sha256={digest},{len(changed[name])}\n")
        else:
            lines.append(line)
    return "".join(lines).encode()


def main() -> int:
    """Take the folder out of the bills of the wheels of the command line."""
    if len(sys.argv) < 2:
        print("usage: bill.py WHEEL…", file=sys.stderr)
        return 2
    for wheel in sys.argv[1:]:
        take_out_the_folder(Path(wheel))
    return 0


if __name__ == "__main__":
    sys.exit(main())
