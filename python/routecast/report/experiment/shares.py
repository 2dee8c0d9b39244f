"""Who explains the variation, as bars: the largest first (Pareto), what is left over at the end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from routecast.experiment.analysis.outcome import Analysis
from routecast.experiment.analysis.outcome.screening import Screening
from routecast.report.drawing import heading_rows
from routecast.report.experiment.levels import shortened

__all__ = ["NOISE", "QUIET", "STRONG", "Bar", "bars_svg", "effect_bars", "screening_bars"]

STRONG, QUIET, NOISE = "#3f6fb5", "#9db9e0", "#9aa1ab"
_WIDTH_PX, _ROW_PX, _BAR_PX = 760, 26, 16
_MOST = 14
_LETTER_PX = 6.8


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A bar: its length, a paler one behind it that may be longer, and what is written beside it."""

    label: str
    ratio: float
    behind_ratio: float = 0.0
    colour: str = STRONG
    said: str


def effect_bars(analysis: Analysis, *, rest: str = "errors (noise)") -> tuple[Bar, ...]:
    """Return the shares of the variation by effect; none where nothing varies."""
    rows = [
        (one.label, one.share_ratio, QUIET if one.is_significant is False else STRONG)
        for one in analysis.effects
        if one.share_ratio is not None
    ]
    if not rows:
        return ()
    shown, more = rows[:_MOST], rows[_MOST:]
    if more:
        shown.append((f"{len(more)} more", sum(share for _, share, _ in more), QUIET))
    if analysis.error_share_ratio is not None and analysis.error_df > 0:
        shown.append((rest, analysis.error_share_ratio, NOISE))
    bars, so_far = [], 0.0
    for number, (label, share, colour) in enumerate(shown):
        so_far += share
        said = f"{100.0 * share:.1f} %"
        if analysis.is_balanced and number and share > 0.0005:
            said += f" ({100.0 * so_far:.1f} % so far)"
        bars.append(Bar(label=label, ratio=share, colour=colour, said=said))
    return tuple(bars)


def screening_bars(screening: Screening) -> tuple[Bar, ...]:
    """Return each factor's share of the variance alone, and behind it the share that it has a part in."""
    bars = []
    for one in screening.factors[:_MOST]:
        if one.first_order_ratio is None:
            return ()
        alone = max(one.first_order_ratio, 0.0)
        total = max(one.total_ratio or 0.0, alone)
        said = f"{100.0 * total:.1f} %"
        if total - alone > 0.001:
            said += f" ({100.0 * alone:.1f} % by itself)"
        bars.append(Bar(label=one.name, ratio=alone, behind_ratio=total, said=said))
    return tuple(bars)


def bars_svg(bars: Sequence[Bar], *, title: str, caption: str = "", has_heading: bool = False) -> str:
    """Return bars as an SVG document that follows the reader's light or dark setting."""
    letters = min(max(len(bar.label) for bar in bars), 38)
    left = int(_LETTER_PX * letters) + 14
    longest = max(1e-9, *(max(bar.ratio, bar.behind_ratio) for bar in bars))
    # A text stands behind its bar: the longest bar leaves room for the longest text.
    room = _WIDTH_PX - left - 20 - int(_LETTER_PX * max(len(bar.said) for bar in bars))
    parts, top = heading_rows(title, caption, _WIDTH_PX) if has_heading else ([], 4)
    for bar in bars:
        middle = top + _ROW_PX // 2
        width = max(room * bar.ratio / longest, 1.0)
        behind = room * bar.behind_ratio / longest
        parts.append(
            f'<text x="{left - 8}" y="{middle + 4}" text-anchor="end">{escape(shortened(bar.label, 38))}'
            f"<title>{escape(bar.label)}</title></text>"
        )
        parts += [
            f'<rect x="{left}" y="{middle - _BAR_PX // 2}" width="{wide:.1f}" height="{_BAR_PX}" rx="2"'
            f' fill="{colour}"/>'
            for wide, colour in ((behind, QUIET), (width, bar.colour))
            if wide > 0.0
        ]
        parts.append(
            f'<text x="{left + max(width, behind) + 8:.1f}" y="{middle + 4}">{escape(bar.said)}</text>'
        )
        top += _ROW_PX
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH_PX} {top + 4}" role="img"'
            f' aria-label="{escape(title)}" font-family="system-ui, sans-serif" font-size="12">',
            "<style>text{fill:#3a3f47}@media(prefers-color-scheme:dark){text{fill:#c3c8d0}}</style>",
            *parts,
            "</svg>",
            "",
        ]
    )
