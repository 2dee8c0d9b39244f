"""A placement's folder: the answers as JSON, the elements as CSV, the pictures, the page."""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Sequence
from html import escape
from pathlib import Path

from routecast.plan.placement.answer import PlacementAnswer, Seat
from routecast.plan.placement.views.tables import elements_table, links_table, mappings_table
from routecast.plan.placement.views.words import (
    cores_said,
    decision_said,
    figure_said,
    headline,
    mapping_said,
    value_said,
)
from routecast.quantity import format_pps, format_ratio
from routecast.show.figures import palette
from routecast.show.page import Block, Drawing, Listing, Notice, Page, Prose, Section, Tile, Tiles, render_page

__all__ = ["answers_json", "write_placement"]


# The picture of a placement: servers as boxes with their cores and threads, links with their load (fig. 3.12).


_BOX_PX, _GAP_PX, _PAD_PX, _ROW_PX = 232, 24, 10, 17
_WIDTH_PX = 790
_LETTER_PX = 6.1


def placement_svg(answer: PlacementAnswer) -> str:
    """Return the picture as an SVG document that follows the reader's light or dark setting."""
    problem, placement = answer.problem, answer.best.placement
    hosts = {name: group for group in problem.servers for name in group.names}
    kinds = [group.name for group in problem.elements]
    colours = dict(zip(kinds, palette(len(kinds), ordered=False), strict=True))
    colour_of = {name: colours[group.name] for group in problem.elements for name in group.names}
    seats = {server: [seat for seat in answer.seats if seat.server == server] for server in placement.used}
    columns = max((_WIDTH_PX + _GAP_PX) // (_BOX_PX + _GAP_PX), 1)
    parts: list[str] = []
    left, top, tallest = 0, 28, 0
    for number, (server, mine) in enumerate(seats.items()):
        if number and number % columns == 0:
            left, top, tallest = 0, top + tallest + _GAP_PX, 0
        body, height = _server(answer, server, hosts[server].cores, mine, colour_of, left, top)
        parts += body
        left, tallest = left + _BOX_PX + _GAP_PX, max(tallest, height)
    top += tallest + 26
    for link in answer.links[:12]:
        width = 180.0 * min(link.used_ratio, 1.0)
        hot = "#c8524a" if link.used_ratio > 0.999 else "#3f6fb5"
        said = f"{link.name}: {format_ratio(link.used_ratio)} used, full at {format_pps(link.capacity_pps)}"
        parts += [
            f'<rect x="0" y="{top - 10}" width="180" height="11" class="b"/>',
            f'<rect x="0" y="{top - 10}" width="{width:.1f}" height="11" fill="{hot}"/>',
            f'<text x="190" y="{top}">{escape(said)}</text>',
        ]
        top += 20
    title = f"{problem.name}, {problem.frames.name}"
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="-2 0 {_WIDTH_PX + 4} {top}" role="img"'
            f' aria-label="{escape(title)}" font-family="system-ui, sans-serif" font-size="11">',
            "<style>text{fill:#3a3f47}.b{fill:none;stroke:#8889}.c{fill:#8881;stroke:#8886}"
            "@media(prefers-color-scheme:dark){text{fill:#c3c8d0}}</style>",
            f'<text x="0" y="14" font-size="13" font-weight="600">{escape(title)}</text>',
            *parts,
            "</svg>",
            "",
        ]
    )


def _server(
    answer: PlacementAnswer, server: str, cores: int, seats: list[Seat], colour_of: dict[str, str], left: int, top: int
) -> tuple[list[str], int]:
    by_core: dict[int | None, list[tuple[str, str]]] = {core: [] for core in range(cores)}
    anywhere: list[tuple[str, str]] = []
    for seat in seats:
        for thread, pin in seat.threads.items() or [("", ())]:
            where = anywhere if len(pin) != 1 else by_core[pin[0]]
            beside = f" ({'+'.join(map(str, pin))})" if len(pin) > 1 else ""
            where.append((seat.element, f"{seat.element} {thread}{beside}".strip()))
    used = answer.best.prediction.used_ratio(server)
    capacity = answer.best.prediction.capacity_pps(server)
    full = f", full at {format_pps(capacity)}" if math.isfinite(capacity) else ""
    rows = [(f"core {core}", own) for core, own in by_core.items() if own]
    idle = [str(core) for core, own in by_core.items() if not own]
    if anywhere:
        rows.append(("any core", anywhere))
    elif idle:
        rows.append((f"core {', '.join(idle)}: no thread", []))
    body, at = [], top + 44
    for label, own in rows:
        height = 8 + _ROW_PX * max(len(own) + 1, 1)
        body.append(
            f'<rect x="{left + _PAD_PX}" y="{at}" width="{_BOX_PX - 2 * _PAD_PX}" height="{height}" rx="3" class="c"/>'
        )
        body.append(f'<text x="{left + 2 * _PAD_PX}" y="{at + 15}">{escape(label)}</text>')
        for number, (element, said) in enumerate(own):
            y = at + 15 + _ROW_PX * (number + 1)
            mark = colour_of[element]
            body.append(
                f'<rect x="{left + 2 * _PAD_PX}" y="{y - 9}" width="9" height="9" fill="{mark}"/>'
                f'<text x="{left + 2 * _PAD_PX + 14}" y="{y}">{escape(_short(said))}</text>'
            )
        at += height + 6
    height = at - top + 4
    head = [
        f'<rect x="{left}" y="{top}" width="{_BOX_PX}" height="{height}" rx="5" class="b"/>',
        f'<text x="{left + _PAD_PX}" y="{top + 17}" font-weight="600">{escape(server)}</text>',
        f'<text x="{left + _PAD_PX}" y="{top + 34}">{escape(f"{format_ratio(used)} busy{full}")}</text>',
    ]
    return [*head, *body], height


def _short(text: str) -> str:
    most = int((_BOX_PX - 4 * _PAD_PX - 14) / _LETTER_PX)
    return text if len(text) <= most else text[: most - 1] + "…"


# The page of a placement: the answer, the picture, the tables; a part for each frame size.


def placement_page(answers: Sequence[PlacementAnswer]) -> Page:
    """Return the page of a file's placements."""
    first = answers[0]
    problem = first.problem
    elements = ", ".join(f"{group.count} {group.name}" for group in problem.elements)
    servers = ", ".join(f"{group.number} {group.name}" for group in problem.servers)
    return Page(
        title=f"Placement: {problem.name}",
        question=f"Where to put {elements} on {servers}, and on which cores?",
        answer=" ".join(
            f"{one.problem.frames.name}: {mapping_said(one.best.placement)} ({figure_said(one, one.best)})."
            for one in answers
        ),
        sections=tuple(_section(number, one) for number, one in enumerate(answers)),
        made=(
            ("objective", problem.goal.objective),
            ("throughput", problem.goal.throughput),
            ("offered load", format_pps(problem.offered_pps)),
            ("balancing", problem.balancing),
            ("technologies", ", ".join(dict.fromkeys(group.technology.name for group in problem.servers))),
        ),
    )


def _section(number: int, answer: PlacementAnswer) -> Section:
    lines = headline(answer)
    check = answer.best.check
    blocks: list[Block] = [
        Tiles(
            (
                Tile(figure_said(answer, answer.best), answer.problem.goal.objective),
                Tile(value_said(answer, answer.bound), "by prediction no mapping is better", answer.bound_says),
                Tile(format_pps(answer.by_work), "work alone allows", "no contention at all"),
            )
        ),
        Prose(lines[1:]),
        Drawing(
            svg=placement_svg(answer),
            caption="Servers with their cores and the threads on them; links between servers with their load.",
        ),
        mappings_table(answer),
        elements_table(answer),
    ]
    if check is not None and check.differs:
        text = "The closed form and the simulation of the best mapping differ by more than 5 %; trust the simulation."
        blocks.insert(0, Notice(mood="fair", title="Prediction and simulation differ", text=text))
    decided = decision_said(answer)
    if decided:
        title, text = "Simulation puts another mapping first", " ".join(decided)
        if answer.met is False:
            blocks.insert(0, Notice(mood="bad", title="The target is not met", text=text))
        else:
            blocks.insert(0, Notice(mood="fair", title=title, text=text))
    if answer.links:
        blocks.append(links_table(answer))
    if answer.notes:
        blocks.append(Listing(title="Notes", entries=answer.notes))
    return Section(anchor=f"placement-{number}", title=answer.problem.frames.name, lead=lines[0], blocks=tuple(blocks))


def answers_json(answers: Sequence[PlacementAnswer]) -> dict[str, object]:
    """Return all answers as one document."""
    return {"name": answers[0].problem.name, "answers": [answer.to_json() for answer in answers]}


def write_placement(answers: Sequence[PlacementAnswer], out: Path) -> None:
    """Write ``placement.json``, ``elements.csv``, ``figures/*.svg``, ``report.html``; the folder is made if missing."""
    (out / "figures").mkdir(parents=True, exist_ok=True)
    text = json.dumps(answers_json(answers), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    (out / "placement.json").write_text(text, encoding="utf-8")
    for answer in answers:
        stem = re.sub(r"[^A-Za-z0-9]+", "-", answer.problem.frames.name).strip("-").lower()
        (out / "figures" / f"placement-{stem}.svg").write_text(placement_svg(answer), encoding="utf-8")
    with (out / "elements.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["frames", "element", "server", "cores", "carries_pps", "alone_pps"])
        for answer in answers:
            for seat in answer.seats:
                row = [answer.problem.frames.name, seat.element, seat.server, cores_said(seat.threads)]
                writer.writerow([*row, f"{seat.carries_pps:.6g}", f"{seat.alone_pps:.6g}"])
    (out / "report.html").write_text(render_page(placement_page(answers)), encoding="utf-8")
