"""HDR histograms as CSIT, TRex and NFVbench write them: base64 of the compressed V2 encoding."""

from __future__ import annotations

import itertools

from routecast.evaluate.trial import Delay


def classes_of_hdr(text: str) -> tuple[tuple[int, int, int], ...] | None:
    """Return the classes that have a count as (least value, greatest value, count), in the histogram's unit.

    None if the text is no HDR histogram.
    """
    from routecast import _core  # the compiled part is loaded where it is used

    try:
        return tuple(_core.hdr_classes(text))
    except ValueError:
        return None


def delay_of_hdr(text: str, *, unit_s: float) -> Delay | None:
    """Return the delay of an HDR histogram (base64) with a unit of ``unit_s`` seconds; None without one."""
    classes = classes_of_hdr(text)
    if not classes:
        return None
    total = sum(count for _, _, count in classes)

    def percentile_s(ratio: float) -> float:
        passed = itertools.accumulate(count for *_, count in classes)
        reached = (most for (_, most, _), frames in zip(classes, passed, strict=True) if frames >= ratio * total)
        return next(reached, classes[-1][1]) * unit_s

    return Delay(
        mean_s=sum(0.5 * (least + most) * count for least, most, count in classes) / total * unit_s,
        min_s=classes[0][0] * unit_s,
        p50_s=percentile_s(0.5),
        p90_s=percentile_s(0.9),
        p99_s=percentile_s(0.99),
        p999_s=percentile_s(0.999),
        max_s=classes[-1][1] * unit_s,
        method=f"HDR histogram of {total:,} frames",
        hdr_base64=text,
    )
