"""Maps of a grid's links: every link in the colour of its load, both directions side by side."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise

from routecast.noc.topology import Direction, MeshLink, Topology, links
from routecast.show.drawing import heading_rows

SCALE = ((0.0, "#d5dae1"), (0.3, "#9cc3c9"), (0.55, "#f0c24b"), (0.8, "#e2762f"), (1.0, "#a11d33"))
"""Loads and their colours; colours of loads in between are interpolated."""
RIM_COLOUR = "#2346c8"
MARGIN_PX, BAR_PX, TITLE_PX, GUTTER_PX = 14, 84, 40, 22
SMALL_PITCH_PX = 30
"""Below this distance between routers, bars are wider and routers smaller."""
WIDE_GRID_COLUMNS = 8
"""Grids with more columns have at most two panels in a row."""
_ROUNDING = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class MapPanel:
    """One network on a map: its title, and the load of every link in capacities."""

    title: str
    loads: tuple[float, ...]
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkMap:
    """One or more networks on the same grid, side by side.

    ``name``: the file's stem; ``panels_per_row``: for instance the planes of one allocation; chosen if not given.
    """

    name: str
    title: str
    caption: str
    topology: Topology
    panels: tuple[MapPanel, ...]
    panels_per_row: int | None = None


def colour_of(load: float) -> str:
    """Return the colour of a load, 0..1; loads above 1 have the colour of 1.

    Examples
    --------
    >>> colour_of(0.0), colour_of(2.0)
    ('#d5dae1', '#a11d33')
    """
    at = min(max(load, 0.0), 1.0)
    for (low, first), (high, second) in pairwise(SCALE):
        if at <= high:
            share = (at - low) / (high - low)
            ends = [[int(colour[i : i + 2], 16) for i in (1, 3, 5)] for colour in (first, second)]
            return "#" + "".join(f"{round(a + share * (b - a)):02x}" for a, b in zip(*ends, strict=True))
    return SCALE[-1][1]


def draw_link_map(link_map: LinkMap, *, width_px: int = 760, has_heading: bool = False) -> str:
    """Return the map as one SVG document that follows the reader's light or dark setting.

    Two bars beside each other are the two directions between two routers, with traffic on the right; the most loaded
    links have a blue rim. A bar shows its name and load under the pointer.
    """
    topology, panels = link_map.topology, link_map.panels
    heading, top = heading_rows(link_map.title, link_map.caption, width_px) if has_heading else ([], MARGIN_PX // 2)
    panels_per_row = _panels_per_row(link_map)
    panel_px = (width_px - BAR_PX - 2 * MARGIN_PX - (panels_per_row - 1) * GUTTER_PX) / panels_per_row
    margin = 0.75 if topology.is_torus else 0.36
    pitch = min(panel_px / (topology.columns - 1 + 2 * margin), 96.0)
    grid_px = pitch * (topology.rows - 1 + 2 * margin)
    parts = list(heading)
    for number, panel in enumerate(panels):
        left = MARGIN_PX + (number % panels_per_row) * (panel_px + GUTTER_PX)
        panel_top = top + (number // panels_per_row) * (grid_px + TITLE_PX + 8)
        parts += _panel(topology, panel, left, panel_top, pitch, margin)
    rows = math.ceil(len(panels) / panels_per_row)
    height = top + rows * (grid_px + TITLE_PX + 8)
    used_px = min(panels_per_row, len(panels)) * (panel_px + GUTTER_PX) - GUTTER_PX
    if panels_per_row == 1:
        used_px = pitch * (topology.columns - 1 + 2 * margin)
    parts += _colour_bar(MARGIN_PX + used_px + 18, top + TITLE_PX, max(min(grid_px, 260.0), 110.0))
    height = max(height, top + TITLE_PX + 150.0)
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width_px} {height:.0f}" role="img"'
            f' aria-label="{escape(link_map.title)}" font-family="system-ui, sans-serif" font-size="12">',
            "<style>text{fill:#3a3f47}.n{fill:#5a616b}.v{font-size:9px;fill:#20242a}"
            "@media(prefers-color-scheme:dark){text{fill:#c3c8d0}.n{fill:#596270}.m{stroke:#7f9bff}.v{fill:#e8ebef}}</style>",
            *parts,
            "</svg>",
            "",
        ]
    )


def _panels_per_row(link_map: LinkMap) -> int:
    count = len(link_map.panels)
    if link_map.panels_per_row is not None:
        return max(1, min(link_map.panels_per_row, 4))
    if count < 3:
        return max(count, 1)
    return 2 if link_map.topology.columns > WIDE_GRID_COLUMNS or count == 4 else 3


def _panel(topology: Topology, panel: MapPanel, left: float, top: float, pitch: float, margin: float) -> list[str]:
    parts = []
    if panel.title:
        parts.append(f'<text x="{left:.1f}" y="{top + 14:.1f}" font-weight="600">{escape(panel.title)}</text>')
    if panel.note:
        parts.append(f'<text x="{left:.1f}" y="{top + 30:.1f}" font-size="11">{escape(panel.note)}</text>')
    origin = (left + margin * pitch, top + TITLE_PX + margin * pitch)
    side = (0.34 if pitch >= SMALL_PITCH_PX else 0.28) * pitch
    largest = max(panel.loads, default=0.0)
    is_labelled = pitch >= 62.0
    for number, link in enumerate(links(topology)):
        load = panel.loads[number]
        has_rim = largest > 0.0 and load >= largest * (1.0 - _ROUNDING)
        name = f"{topology.link_name(number)}: {load:.4g}"
        for x, y in _bars(topology, link, origin, pitch):
            parts += _bar(link.direction, x, y, pitch, load, name=name, has_rim=has_rim, is_labelled=is_labelled)
    for router in range(topology.router_count):
        x, y = _centre(topology, router, origin, pitch)
        parts.append(
            f'<rect class="n" x="{x - side / 2:.1f}" y="{y - side / 2:.1f}" width="{side:.1f}"'
            f' height="{side:.1f}" rx="{side / 8:.1f}"><title>{topology.router_name(router)}</title></rect>'
        )
    return parts


def _centre(topology: Topology, router: int, origin: tuple[float, float], pitch: float) -> tuple[float, float]:
    x, y = topology.position(router)
    return origin[0] + x * pitch, origin[1] + y * pitch


def _bars(
    topology: Topology, link: MeshLink, origin: tuple[float, float], pitch: float
) -> Sequence[tuple[float, float]]:
    """Return the middle of a link, or the middles of the two stubs of a link that closes a ring."""
    (sx, sy), (tx, ty) = (_centre(topology, router, origin, pitch) for router in (link.source, link.target))
    dx, dy = link.direction.step
    forward = (sx + dx * pitch / 2, sy + dy * pitch / 2)
    if abs(tx - (sx + dx * pitch)) + abs(ty - (sy + dy * pitch)) < 1.0:
        return (forward,)
    return (forward, (tx - dx * pitch / 2, ty - dy * pitch / 2))


def _bar(
    direction: Direction, x: float, y: float, pitch: float, load: float, *, name: str, has_rim: bool, is_labelled: bool
) -> list[str]:
    """Return an arrow-shaped bar around the middle of its link, on the right side of its direction."""
    dx, dy = direction.step
    width, offset = (0.125, 0.092) if pitch >= SMALL_PITCH_PX else (0.18, 0.125)
    half, width, tip = 0.27 * pitch, width * pitch, 0.09 * pitch
    # On the right of the direction: a link to the east runs below the middle, to the south on its left.
    cx, cy = x - dy * offset * pitch, y + dx * offset * pitch
    forward, right = (dx, dy), (-dy, dx)
    corners = ((-half, -width / 2), (half - tip, -width / 2), (half, 0.0), (half - tip, width / 2), (-half, width / 2))
    path = "L".join(
        f"{cx + a * forward[0] + b * right[0]:.1f} {cy + a * forward[1] + b * right[1]:.1f}" for a, b in corners
    )
    # The rim lies under the bar, so that the colour of a thin bar stays visible.
    rim_width = max(2.6, 0.05 * pitch)
    stroke = f' class="m" stroke="{RIM_COLOUR}" stroke-width="{rim_width:.1f}" paint-order="stroke"' if has_rim else ""
    parts = [f'<path d="M{path}Z" fill="{colour_of(load)}"{stroke}><title>{escape(name)}</title></path>']
    if is_labelled and load > 0.0:
        # Outside the pair of bars, where no other link's number stands.
        label_offset = 0.23 * pitch
        tx, ty = x - dy * label_offset, y + dx * label_offset
        rotation = "" if direction.is_horizontal else f' transform="rotate(-90 {tx:.1f} {ty:.1f})"'
        weight = ' font-weight="700"' if has_rim else ""
        parts.append(
            f'<text class="v" x="{tx:.1f}" y="{ty + 3:.1f}" text-anchor="middle"{rotation}{weight}>{load:.2f}</text>'
        )
    return parts


def _colour_bar(left: float, top: float, height: float) -> list[str]:
    steps = 50
    parts = [
        f'<rect x="{left:.1f}" y="{top + height * (1 - (k + 1) / steps):.1f}" width="12"'
        f' height="{height / steps + 0.6:.1f}" fill="{colour_of((k + 0.5) / steps)}"/>'
        for k in range(steps)
    ]
    parts += [
        f'<text x="{left + 17:.1f}" y="{top + height * (1 - at) + 4:.1f}" font-size="11">{at:g}</text>'
        for at in (0.0, 0.25, 0.5, 0.75, 1.0)
    ]
    parts.append(f'<text x="{left - 4:.1f}" y="{top - 12:.1f}" font-size="11">link load</text>')
    below = top + height + 20
    parts.append(
        f'<rect x="{left:.1f}" y="{below - 9:.1f}" width="11" height="9" fill="none" class="m"'
        f' stroke="{RIM_COLOUR}" stroke-width="1.6"/>'
    )
    parts.append(f'<text x="{left + 17:.1f}" y="{below:.1f}" font-size="11">largest</text>')
    return parts
