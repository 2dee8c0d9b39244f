"""Self-contained HTML pages of prose, key numbers, tables, figures and a live panel.

A page loads nothing: it contains its style and scripts, and its content security policy forbids all other sources. It
follows the reader's light or dark setting and prints in black on white. Figures are SVG, and a script makes them
interactive.
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
    plain: dict[str, object] = {}
    for field in fields(mark):
        value = getattr(mark, field.name)
        if value != field.default or field.name == "colour":
            plain[field.name] = [_number(entry) for entry in value] if isinstance(value, tuple) else _number(value)
    return plain


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
    """A picture as SVG text; its caption is below it, or, if it has a title, above it under the title."""

    svg: str
    caption: str
    title: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """An important statement with a large title; ``mood`` sets its colour."""

    mood: Literal["good", "fair", "bad"]
    title: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Names with values; values keep their line breaks."""

    title: str
    rows: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """A list of short statements; a folded list is closed until the reader opens it."""

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
    """A link to another page: its file, its title and its content."""

    href: str
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Links:
    """Links to other pages."""

    pages: tuple[Linked, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Live:
    """A live panel: its data, its scripts, and the figure that replaces it without scripts and in print.

    The last script runs after the definition of ``liveData``, the compressed data.
    """

    data: Mapping[str, object]
    figure: Figure
    scripts: Callable[[], Sequence[str]]


Block = Prose | Tiles | Table | Figure | Drawing | Notice | Facts | Listing | Folded | Live | Links


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A part of the page with a title; ``lead`` is its result in one sentence.

    A section that is not listed belongs to the previous listed section. Figures with a single x are omitted.
    """

    anchor: str
    title: str
    lead: str = ""
    blocks: tuple[Block, ...] = ()
    is_listed: bool = True

    def __post_init__(self) -> None:
        blocks = tuple(block for block in self.blocks if not (isinstance(block, Figure) and block.is_one_point))
        object.__setattr__(self, "blocks", blocks)

    @classmethod
    def of(cls, anchor: str, title: str, lead: str, *blocks: Block | bool | None) -> Section:
        """Return a section without the blocks that are False or None, as in ``has_notes and Listing(...)``."""
        present = tuple(block for block in blocks if not isinstance(block, bool | None))
        return cls(anchor=anchor, title=title, lead=lead, blocks=present)


_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z*])")


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A page with a question, an answer and sections; ``provenance`` is pairs of name and value.

    ``is_folded``: the page opens with the first sentence of the answer, and shows the others on demand.
    """

    title: str
    question: str
    answer: str
    sections: tuple[Section, ...]
    provenance: tuple[tuple[str, str], ...] = ()
    source: str = ""
    is_folded: bool = False

    @property
    def answer_parts(self) -> tuple[str, str]:
        """What the page opens with, and what it shows on demand."""
        if not self.is_folded:
            return self.answer, ""
        first, *others = _SENTENCE_END.split(self.answer, maxsplit=1)
        return first, "".join(others)

    def figures(self) -> tuple[Figure, ...]:
        """Return the figures of the page, in order."""
        return tuple(block for section in self.sections for block in section.blocks if isinstance(block, Figure))

    @property
    def live(self) -> Live | None:
        """The live panel of the page, or None; a page has at most one."""
        return next((b for section in self.sections for b in section.blocks if isinstance(b, Live)), None)


def render_page(page: Page) -> str:
    """Return the page as one HTML document."""
    from jinja2 import Environment, PackageLoader, StrictUndefined  # heavy; only pages need it

    environment = Environment(
        loader=PackageLoader("routecast.show", "look"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["inline"] = _inline
    folder = files("routecast.show") / "look"
    scripts = _scripts(page)
    template = environment.get_template("section.html.j2")

    def section(section: Section, *, is_folded: bool) -> str:
        return template.render(
            section=section,
            is_folded=is_folded,
            most_rows=_MAX_OPEN_ROWS,
            kind=lambda block: type(block).__name__,
            table_html=lambda table: _trusted(table_html(table)),
            drawn=lambda figure: _trusted(draw(figure)),
            trusted=_trusted,
        )

    sections, words = [], 0
    for page_section in page.sections:
        html = section(page_section, is_folded=False)
        words += _words(html)
        sections.append(_trusted(html if words <= _MAX_OPEN_WORDS else section(page_section, is_folded=True)))
    return environment.get_template("page.html.j2").render(
        page=page,
        sections=sections,
        style=_trusted((folder / "page.css").read_text(encoding="utf-8")),
        policy=_policy(scripts, is_live=page.live is not None),
        scripts=[_trusted(script) for script in scripts],
    )


_MAX_OPEN_ROWS = 12
"""Longer tables are folded."""

_MAX_OPEN_WORDS = 1_400
"""Sections after this number of words are folded."""


def _words(html: str) -> int:
    """Count the words of a part of a page that are visible before the reader unfolds anything."""
    shown = re.sub(r"<details.*?</details>|<svg.*?</svg>", " ", html, flags=re.DOTALL)
    return len(re.sub(r"<[^>]+>", " ", shown).split())


def _scripts(page: Page) -> list[str]:
    """Return the scripts of a page, including their data."""
    figures, live = page.figures(), page.live
    if not figures and live is None:
        return []
    folder = files("routecast.show") / "look"

    def text(name: str) -> str:
        return (folder / name).read_text(encoding="utf-8")

    data = _script_json([_figure_json(figure) for figure in figures])
    scripts = [text("figures.js"), f"const figures = {data};\n{text('page.js')}"]
    if live is not None:
        packed = base64.b64encode(gzip.compress(_script_json(live.data).encode(), 9, mtime=0)).decode("ascii")
        *first, last = live.scripts()
        scripts += [*first, f'const liveData = "{packed}";\n{last}']
    return scripts


def _policy(scripts: Sequence[str], *, is_live: bool) -> str:
    """Return the content security policy, which allows only these scripts and no network access."""
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
    """Return JSON that cannot end the script element that contains it."""
    return json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":")).replace("</", "<\\/")


def _inline(text: str) -> Markup:
    html = escape(text, quote=False)
    html = re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", html)
    return _trusted(re.sub(r"`(.+?)`", r"<code>\1</code>", html))
