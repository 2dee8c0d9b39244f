"""Quotations of the papers: their numbers, and the texts that they are looked up in."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

PAPERS = "ROUTECAST_PAPERS"
"""Folder with the texts of the papers, ``*.txt``: quotations are looked up in them."""

PREFIXES = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9}
NUMBER = re.compile(r"(?<![\w.])(\d{1,3}(?:,\d{3})+|\d+(?:\.\d+)?)\s?(%|[kMG](?=pps|bps|b/s|\b))?")


def numbers(quote: str) -> set[float]:
    """Return the numbers of a quotation, as they are written and with the prefix of their unit."""
    result = set()
    for digits, unit in NUMBER.findall(quote):
        number = float(digits.replace(",", ""))
        result |= {number, number / 100.0 if unit == "%" else number * PREFIXES[unit]}
    return result


def papers() -> list[str]:
    """Return the texts of the papers in plain letters; the test is skipped where they are not."""
    folder = os.environ.get(PAPERS)
    if not folder:
        pytest.skip(f"{PAPERS} names no folder with the texts of the papers, which are not ours to ship")
    texts = [plain(path.read_text(encoding="utf-8")) for path in sorted(Path(folder).glob("*.txt"))]
    assert texts
    return texts


def plain(text: str) -> str:
    """Return a text on one line, without hyphens at the ends of lines, signs of emphasis, spaces before punctuation."""
    text = re.sub(r"\\text\{([^}]*)\}", r"\1", text.replace("\\approx", "≈").replace("\\sim", "~"))
    text = re.sub(r"<sup>\d+</sup>", "", text)  # marks of footnotes
    text = re.sub(r"(?<=\w)-\s*\n\s*(?=[a-z])", "", text)
    return re.sub(r" (?=[.,)])|(?<=\() ", "", " ".join(re.sub(r"[$*`\\]", "", text).split()))
