"""A picture of the measured router: links, the NIC's hash, a queue for each core, the cores."""

from __future__ import annotations

from html import escape

from routecast.quantity import format_bps
from routecast.study.document import StudyRouter

__all__ = ["router_picture"]

WIDTH_PX = 760
ROW_PX = 46
MOST_CORES_DRAWN = 8


def router_picture(router: StudyRouter) -> str:
    """Return the picture as SVG text; it takes its colours from the page, or a light default."""
    cores = min(router.cores, MOST_CORES_DRAWN)
    height = max(cores * ROW_PX + 78, 220)
    middle = height / 2 + 8
    link = escape(format_bps(router.link))
    parts = [
        _box(10, middle - 32, 118, 64, "tester", f"{link} a link"),
        _box(632, middle - 32, 118, 64, "tester", "receives"),
        f'<rect class="router" x="188" y="26" width="384" height="{height - 40}" rx="10"/>',
        f'<text class="name" x="380" y="17" text-anchor="middle">router · {router.cores} cores</text>',
        _box(208, middle - 30, 84, 60, "NIC", "hash of flow"),
        _arrow(128, middle, 208, middle),
    ]
    top = middle - (cores - 1) * ROW_PX / 2
    for core in range(cores):
        at = top + core * ROW_PX
        parts += [
            _curve(292, middle, 342, at),
            _queue(344, at),
            _arrow(406, at, 432, at),
            f'<rect class="core" x="432" y="{at - 15:.0f}" width="76" height="30" rx="5"/>',
            f'<text x="470" y="{at + 4:.0f}" text-anchor="middle">core {core}</text>',
            _curve(508, at, 560, middle),
        ]
    parts += [
        f'<text class="soft" x="375" y="{top - 24:.0f}" text-anchor="middle">{router.queue} frames each</text>',
        _arrow(560, middle, 632, middle),
    ]
    style = (
        "<style>.rp text{font:13px system-ui,'Liberation Sans',sans-serif;fill:var(--ink,#24282e)}"
        ".rp .name{font-weight:600}.rp .soft{font-size:11.5px;fill:var(--soft,#666c76)}"
        ".rp rect{fill:var(--card,#fff);stroke:var(--soft,#8a909a)}.rp .router{fill:var(--mark,#f3efe4);stroke:none}"
        ".rp .core{fill:#3f6fb533;stroke:#3f6fb5}.rp path{fill:none;stroke:var(--soft,#8a909a);stroke-width:1.3}"
        ".rp .tip{fill:var(--soft,#8a909a);stroke:none}</style>"
    )
    label = f"Flows enter by a link; the NIC gives each to one of {router.cores} cores by its hash."
    return (
        f'<svg class="rp" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH_PX} {height:.0f}" role="img" '
        f'aria-label="{label}">{style}{"".join(parts)}</svg>'
    )


def _box(x: float, y: float, width: float, height: float, name: str, note: str) -> str:
    middle = x + width / 2
    return (
        f'<rect x="{x}" y="{y:.0f}" width="{width}" height="{height}" rx="6"/>'
        f'<text class="name" x="{middle}" y="{y + height / 2 - 3:.0f}" text-anchor="middle">{name}</text>'
        f'<text class="soft" x="{middle}" y="{y + height / 2 + 14:.0f}" text-anchor="middle">{note}</text>'
    )


def _queue(x: float, y: float) -> str:
    slots = "".join(f'<path d="M{x + 16 + 11 * i:.0f} {y - 11:.0f}v22"/>' for i in range(4))
    return f'<path d="M{x} {y - 11:.0f}h60v22h-60"/>{slots}'


def _tip(x: float, y: float) -> str:
    return f'<path class="tip" d="M{x} {y:.1f}l-8 -4v8Z"/>'


def _arrow(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<path d="M{x1} {y1:.1f}L{x2 - 6} {y2:.1f}"/>{_tip(x2, y2)}'


def _curve(x1: float, y1: float, x2: float, y2: float) -> str:
    bend = (x1 + x2) / 2
    return f'<path d="M{x1} {y1:.1f}C{bend} {y1:.1f} {bend} {y2:.1f} {x2} {y2:.1f}"/>'
