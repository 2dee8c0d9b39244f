"""One self-contained HTML page: prose, tiles of key numbers, tables, figures, a live panel.

The page loads nothing: it contains style and scripts, and its content security policy forbids all else. It follows the
reader's light or dark setting and prints in black on white. Figures stand in it as SVG, which a script makes lively.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING, Literal

from routecast.show.drawing import draw
from routecast.show.figures import Axis, Figure, Mark
from routecast.show.tables import Table, table_html

if TYPE_CHECKING:
    from markupsafe import Markup

__all__ = [
    "Block",
    "Drawing",
    "Facts",
    "Folded",
    "Linked",
    "Links",
    "Listing",
    "Live",
    "Notice",
    "Page",
    "Prose",
    "Section",
    "Tile",
    "Tiles",
    "render_page",
]


def _figure_json(figure: Figure) -> dict[str, object]:
    """Return the data of ``look/figures.js``: numbers to six digits, null for numbers that are not finite."""
    return {
        "name": figure.name,
        "title": figure.title,
        "height_px": figure.height_px,
        "x": _plain(figure.x),
        "y": _plain(figure.y),
        "marks": [{"kind": type(mark).__name__.lower(), **_plain(mark)} for mark in figure.marks],
    }


def _plain(mark: Axis | Mark) -> dict[str, object]:
    """Return the fields that differ from their defaults, and the colour."""
    differing: dict[str, object] = {}
    for each in fields(mark):
        given = getattr(mark, each.name)
        if given != each.default or each.name == "colour":
            differing[each.name] = [_number(entry) for entry in given] if isinstance(given, tuple) else _number(given)
    return differing


def _number(entry: object) -> object:
    if not isinstance(entry, float):
        return entry
    return float(f"{entry:.6g}") if math.isfinite(entry) else None


@dataclass(frozen=True, slots=True)
class Prose:
    """Paragraphs; ``**strong**`` and ```code``` are the only markup."""

    paragraphs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Tile:
    """One key number with its meaning and a value to compare with."""

    value: str
    meaning: str
    beside: str = ""


@dataclass(frozen=True, slots=True)
class Tiles:
    """A row of key numbers."""

    tiles: tuple[Tile, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """A picture given as SVG text, with its caption: below, or under the title above it where it has one."""

    svg: str
    caption: str
    title: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """An important statement: ``mood`` sets its colour, ``title`` stands first and large."""

    mood: Literal["good", "fair", "bad"]
    title: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Names and values; a value of several lines keeps its lines."""

    title: str
    rows: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """A list of short statements; if it is folded, it is closed until the reader opens it."""

    title: str
    entries: tuple[str, ...]
    is_folded: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Folded:
    """A long table, closed until the reader opens it."""

    summary: str
    table: Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Linked:
    """A page beside this one: its file, its title and what it shows."""

    href: str
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Links:
    """Pages beside this one."""

    pages: tuple[Linked, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Live:
    """A live panel: its data, its scripts, and the figure that stands there without scripts and in print.

    The last script runs after ``liveData``, the packed data, is defined.
    """

    data: Mapping[str, object]
    figure: Figure
    scripts: Callable[[], Sequence[str]]


Block = Prose | Tiles | Table | Figure | Drawing | Notice | Facts | Listing | Folded | Live | Links


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A titled part of the page; ``lead`` is its finding in one sentence.

    A section that is not listed belongs to the listed one before it. A figure whose marks have a single x is left out.
    """

    anchor: str
    title: str
    lead: str = ""
    blocks: tuple[Block, ...] = ()
    is_listed: bool = True

    def __post_init__(self) -> None:
        shown = tuple(each for each in self.blocks if not (isinstance(each, Figure) and each.is_one_point))
        object.__setattr__(self, "blocks", shown)

    @classmethod
    def of(cls, anchor: str, title: str, lead: str, *blocks: Block | bool | None) -> Section:
        """Return a section; ``has_notes and Listing(...)`` is a block that may be left out."""
        there = tuple(block for block in blocks if not isinstance(block, bool | None))
        return cls(anchor=anchor, title=title, lead=lead, blocks=there)


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """The page: its question, its parts, and ``made``, its provenance as pairs of name and value."""

    title: str
    question: str
    answer: str
    sections: tuple[Section, ...]
    made: tuple[tuple[str, str], ...] = ()
    source: str = ""

    def figures(self) -> tuple[Figure, ...]:
        """Return the page's figures in their order."""
        return tuple(block for section in self.sections for block in section.blocks if isinstance(block, Figure))

    @property
    def live(self) -> Live | None:
        """The page's live panel, if it has one; a page has one at most."""
        return next((b for section in self.sections for b in section.blocks if isinstance(b, Live)), None)


def render_page(page: Page) -> str:
    """Return the page as one HTML document."""
    from jinja2 import Environment, PackageLoader, StrictUndefined  # only who reports pays for it

    environment = Environment(
        loader=PackageLoader("routecast.show", "look"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["inline"] = _inline
    room = files("routecast.show") / "look"
    scripts = _scripts(page)
    part = environment.get_template("section.html.j2")

    def section(section: Section, *, is_folded: bool) -> str:
        return part.render(
            section=section,
            is_folded=is_folded,
            most_rows=_MOST_ROWS,
            kind=lambda block: type(block).__name__,
            table_html=lambda table: _trusted(table_html(table)),
            drawn=lambda figure: _trusted(draw(figure)),
            trusted=_trusted,
        )

    sections, words = [], 0
    for each in page.sections:
        html = section(each, is_folded=False)
        words += _words(html)
        sections.append(_trusted(html if words <= _MOST_WORDS else section(each, is_folded=True)))
    return environment.get_template("page.html.j2").render(
        page=page,
        sections=sections,
        style=_trusted((room / "page.css").read_text(encoding="utf-8")),
        policy=_policy(scripts, is_live=page.live is not None),
        scripts=[_trusted(script) for script in scripts],
    )


_MOST_ROWS = 12
"""A longer table is folded."""

_MOST_WORDS = 1_400
"""Sections beyond so many words are folded."""


def _words(html: str) -> int:
    """Count the words that stand in a part of a page before anything is unfolded."""
    shown = re.sub(r"<details.*?</details>|<svg.*?</svg>", " ", html, flags=re.DOTALL)
    return len(re.sub(r"<[^>]+>", " ", shown).split())


def _scripts(page: Page) -> list[str]:
    """Return the scripts that a page needs, the data that they show in them."""
    figures, live = page.figures(), page.live
    if not figures and live is None:
        return []
    room = files("routecast.show") / "look"

    def text(name: str) -> str:
        return (room / name).read_text(encoding="utf-8")

    data = _script_json([_figure_json(figure) for figure in figures])
    scripts = [text("figures.js"), f"const figures = {data};\n{text('page.js')}"]
    if live is not None:
        packed = base64.b64encode(gzip.compress(_script_json(live.data).encode(), 9, mtime=0)).decode("ascii")
        *first, last = live.scripts()
        scripts += [*first, f'const liveData = "{packed}";\n{last}']
    return scripts


def _policy(scripts: Sequence[str], *, is_live: bool) -> str:
    """Return the content security policy: these scripts and no others, nothing from anywhere."""
    hashes = [f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'" for script in scripts]
    live = ["'wasm-unsafe-eval'"] if is_live else []
    policy = [
        "default-src 'none'",
        "style-src 'unsafe-inline'",
        "img-src data: blob:",
        "base-uri 'none'",
        "form-action 'none'",
    ]
    if scripts:
        policy.append(f"script-src {' '.join([*hashes, *live])}")
    if is_live:
        policy.append("worker-src blob:")
    return "; ".join(policy)


def _trusted(html: str) -> Markup:
    from markupsafe import Markup

    return Markup(html)  # every caller passes text that this package made and escaped


def _script_json(data: object) -> str:
    """JSON that cannot end the script element it stands in."""
    return json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":")).replace("</", "<\\/")


def _inline(text: str) -> Markup:
    html = escape(text, quote=False)
    html = re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", html)
    return _trusted(re.sub(r"`(.+?)`", r"<code>\1</code>", html))
