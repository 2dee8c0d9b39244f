"""The picture of a placement: servers as boxes with their cores and threads, links with their load (fig. 3.12)."""

from __future__ import annotations

import math
from html import escape

from routecast.plan.placement.answer import PlacementAnswer
from routecast.plan.placement.told import Seat
from routecast.quantity import format_pps, format_ratio
from routecast.report.figures import palette

__all__ = ["placement_svg"]

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
    answer: PlacementAnswer,
    server: str,
    cores: int,
    seats: list[Seat],
    colour_of: dict[str, str],
    left: int,
    top: int,
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
