"""Who explains the variation, as bars: the largest first (Pareto), noise at the end."""

from __future__ import annotations

from html import escape

from routecast.experiment.analysis.outcome import Analysis
from routecast.report.drawing import heading_rows
from routecast.report.experiment.levels import shortened

__all__ = ["NOISE", "QUIET", "STRONG", "shares_svg"]

STRONG, QUIET, NOISE = "#3f6fb5", "#9db9e0", "#9aa1ab"
_WIDTH_PX, _ROW_PX, _BAR_PX = 760, 26, 16
_MOST = 14
_LETTER_PX = 6.8
_VALUE_PX = 150


def shares_svg(analysis: Analysis, *, title: str, caption: str = "", has_heading: bool = False) -> str:
    """Return the shares of the variation as an SVG document; empty where nothing varies."""
    ranked = [(one.label, one.share_ratio, _colour(one.is_significant)) for one in analysis.effects]
    rows = [(label, share, colour) for label, share, colour in ranked if share is not None]
    if not rows:
        return ""
    rest = rows[_MOST:]
    shown = rows[:_MOST]
    if rest:
        shown.append((f"{len(rest)} more", sum(share for _, share, _ in rest), QUIET))
    if analysis.error_share_ratio is not None and analysis.error_df > 0:
        shown.append(("errors (noise)", analysis.error_share_ratio, NOISE))
    letters = min(max(len(label) for label, _, _ in shown), 38)
    left = int(_LETTER_PX * letters) + 14
    longest = max([share for _, share, _ in shown] + [1e-9])
    room = _WIDTH_PX - left - _VALUE_PX
    parts, top = heading_rows(title, caption, _WIDTH_PX) if has_heading else ([], 4)
    so_far = 0.0
    for label, share, colour in shown:
        middle = top + _ROW_PX // 2
        width = max(room * share / longest, 1.0)
        so_far += share
        beside = f"{100.0 * share:.1f} %"
        if 0.0 < so_far <= 1.001 and share > 0.0005 and abs(so_far - share) > 0.0005:
            beside += f"  ({100.0 * so_far:.1f} % so far)"
        parts += [
            f'<text x="{left - 8}" y="{middle + 4}" text-anchor="end">{escape(shortened(label, 38))}'
            f"<title>{escape(label)}</title></text>",
            f'<rect x="{left}" y="{middle - _BAR_PX // 2}" width="{width:.1f}" height="{_BAR_PX}" rx="2"'
            f' fill="{colour}"/>',
            f'<text x="{left + width + 8:.1f}" y="{middle + 4}">{beside}</text>',
        ]
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


def _colour(is_significant: bool | None) -> str:
    return QUIET if is_significant is False else STRONG
