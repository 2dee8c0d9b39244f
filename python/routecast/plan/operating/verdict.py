"""Why no setting meets the targets, and how near the nearest comes."""

from __future__ import annotations

from routecast.plan.operating.search import Found
from routecast.quantity import format_pps

__all__ = ["why_none"]


def why_none(found: Found, rate_pps: float) -> str:
    """Say which targets nothing meets, what is the best reachable, and what comes nearest to all of them."""
    if not found.judged:
        largest = max(found.overloaded, key=lambda one: one.outlook.lossless_pps)
        return (
            f"every setting is overloaded at {format_pps(rate_pps)}: the most is "
            f"{format_pps(largest.outlook.lossless_pps)}, with {largest.candidate.setting}"
        )
    turned_down = {id(one): check for one, check in found.rejected}
    lines = []
    for number, target in enumerate(found.targets):
        if any(target.is_kept_by(one.values[number]) for one in found.judged):
            continue
        best = found.reachable(number)
        if best is None:
            lines.append(
                f"{target}: the evaluator knows this quantity of no setting: take --evaluator simulate, and trials "
                "that are long enough for frames to arrive (--duration)"
            )
        else:
            value = target.shown(best.values[number])
            lines.append(f"{target}: the best reachable is {value}, with {best.setting}")
    if not lines:
        lines.append("each target is met by some setting, but no setting meets all of them")
        if any(one.is_met for one in found.judged):
            lines[0] = "settings that met all targets in the search do not in the longer check"
    nearest = found.nearest
    if nearest is not None:
        shown = ", ".join(
            f"{target.quantity} {target.shown(value)}"
            for target, value in zip(found.targets, nearest.values, strict=True)
        )
        check = turned_down.get(id(nearest))
        if check is not None:
            shown = ", ".join(
                f"{target.quantity} {target.shown(low)} to {target.shown(high)}"
                for target, (_, low, high) in zip(found.targets, check.values, strict=True)
            )
        lines.append(f"nearest to all is {nearest.setting} with {shown}")
    overloaded = f"; {len(found.overloaded)} more are overloaded" if found.overloaded else ""
    return f"no setting meets the targets{overloaded}\n  " + "\n  ".join(lines)
