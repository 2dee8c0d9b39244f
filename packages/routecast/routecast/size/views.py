"""Tables, figures and the page of the answer to a sizing question."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from routecast.calibration.counts import Count, cores
from routecast.calibration.next_points import describe_precision
from routecast.evaluate.views import arrivals_note
from routecast.quantity import format_ratio, format_span
from routecast.show.figures import Axis, Figure, Line, Points
from routecast.show.page import Folded, Listing, Live, Notice, Page, Section, Tile, Tiles
from routecast.show.tables import Column, Table, scaled
from routecast.size._answer import Sizing, describe_point

__all__ = ["compared_table", "counts_table", "describe_next", "probability_figure", "rate_figure", "size_page"]

_AROUND = 6
_MEASURED = (
    "Probability that one measurement reaches the target{kept}. Outside: conditions beyond the measurements, such as "
    "more than twice the most measured cores, frames that were never measured, or an unknown link."
)
_DESCRIBED = (
    "{rate}: by closed form; other columns are at the target. Loss: the greatest that is possible as far as the closed "
    "form knows, none if that is at most a frame in 10,000, or what the simulator counted for the answer; queues may "
    "overflow without overload."
)
_PROBABILITY_CAPTION = "Of each number of cores, beside the probability that was asked for."
_TOGETHER_CAPTION = (
    "Of each number of cores: that it reaches the rate and keeps {bounds}, beside the probability that was asked for."
)
_OPENING_HEIGHT_PX = 200
"""The answering figure stands on the first screen, under the answer."""
_CERTAIN, _TARGET = "#4aa36a", "#c8524a"


def counts_table(sizing: Sizing, *, whole: bool = False) -> Table:
    """Return the table of the counts around the answer, or of all counts, with probability, rate and limit."""
    counts = sizing.counts if whole else _around(sizing)
    is_measured = any(count.probability is not None for count in counts)
    has_power = any(math.isfinite(count.power_w) for count in counts)
    mpps = scaled(1e-6, ".4g")
    kept = "" if sizing.has_open_bound else "".join(f" and keeps {bound}" for bound in sizing.bounds)
    caption = _MEASURED.format(kept=kept) if is_measured else _DESCRIBED.format(rate=_described_rate(sizing))
    return Table.of(
        counts,
        Column("Cores", "", "d", lambda count: count.cores),
        is_measured and Column("Probability", "", ".3f", lambda count: count.probability),
        Column("Rate" if is_measured else _described_rate(sizing), "Mpps", mpps, lambda count: count.rate_pps),
        not is_measured and Column.text("Loss", _loss_text),
        is_measured and Column("Low", "Mpps", mpps, lambda count: count.low_pps, group="95 %"),
        is_measured and Column("High", "Mpps", mpps, lambda count: count.high_pps, group="95 %"),
        bool(sizing.bounds)
        and not sizing.has_open_bound
        and Column(sizing.bounds[0].quantity, "us", scaled(1e6, ".4g"), lambda count: count.latency_s),
        has_power and Column("Power", "W", getter=lambda count: count.power_w),
        Column.text("Limit", lambda count: count.limit),
        is_measured and Column.text("Outside", lambda count: ", ".join(count.outside)),
        name="size",
        title=f"Cores for {sizing.target.rate_bps / 1e9:.4g} Gbit/s of {sizing.target.frames.name}",
        caption=f"{caption} {arrivals_note([sizing.latency.arrivals])}".rstrip(),
        strong=lambda count: sizing.least is not None and count.cores == sizing.least.cores,
    )


def _described_rate(sizing: Sizing) -> str:
    return "Can be forwarded" if sizing.target.loss_ratio else "Overloads nothing"


def _loss_text(count: Count) -> str:
    ratio = count.known_loss_ratio
    if count.frames_simulated and ratio == 0.0:
        return f"none of {count.frames_simulated:.2g}"
    return "not known" if math.isnan(ratio) else format_ratio(ratio) if ratio > 0.0 else "none"


def compared_table(sizings: Sequence[Sizing]) -> Table:
    """Return the table of the least counts of several routers."""
    has_power = any(sizing.least is not None and math.isfinite(sizing.least.power_w) for sizing in sizings)
    return Table.of(
        sizings,
        Column.text("Router", lambda sizing: sizing.series),
        Column("Cores", "", "d", lambda sizing: sizing.least.cores if sizing.least else None),
        Column("Rate", "Mpps", scaled(1e-6, ".4g"), lambda sizing: sizing.least.rate_pps if sizing.least else None),
        has_power and Column("Power", "W", getter=lambda sizing: sizing.least.power_w if sizing.least else None),
        name="compared",
        title=f"Least cores for {sizings[0].target.rate_bps / 1e9:.4g} Gbit/s of {sizings[0].target.frames.name}",
        caption="A dash: no count is known to suffice.",
    )


def _around(sizing: Sizing) -> tuple[Count, ...]:
    """Return the counts around the answer, or else around the most probable count, and the first and last counts."""
    middle = sizing.least or max(sizing.counts, key=lambda count: (count.probability or 0.0, count.rate_pps))
    index = [count.cores for count in sizing.counts].index(middle.cores)
    last = len(sizing.counts) - 1
    indices = {0, last, *range(max(0, index - _AROUND), min(last, index + _AROUND) + 1)}
    return tuple(sizing.counts[number] for number in sorted(indices))


def _probability_or_nan(probability: float | None) -> float:
    return math.nan if probability is None else probability


def describe_next(sizing: Sizing) -> tuple[str, ...]:
    """Return sentences about the measurements that would narrow the number of cores most; none where it is known."""
    return tuple(
        f"measure {describe_point(measurement.point)}: the number of cores is then expected to be known within "
        f"{describe_precision(measurement.width_after)}, now {describe_precision(measurement.width_before)}"
        for measurement in sizing.next
        if measurement.narrows
    )


def probability_figure(sizing: Sizing) -> Figure:
    """Return the probability that the target is met, over the number of cores."""
    x = tuple(float(count.cores) for count in sizing.counts)
    ratio = sizing.target.confidence_ratio
    marks: list[Line | Points] = [
        Line(name="probability", x=x, y=tuple(_probability_or_nan(count.probability) for count in sizing.counts)),
        Line(name=f"wanted, {ratio:.4g}", x=(x[0], x[-1]), y=(ratio, ratio), colour=_TARGET, dashed=True),
    ]
    if sizing.least is not None:
        least = sizing.least
        marks.append(
            Points(
                name=f"least, {cores(least.cores)}",
                x=(float(least.cores),),
                y=(_probability_or_nan(least.probability),),
                colour=_CERTAIN,
                size_px=11,
                labels=(cores(least.cores),),
                is_labelled=True,
            )
        )
    return Figure(
        name="probability",
        title=f"Probability of {sizing.target.rate_bps / 1e9:.4g} Gbit/s of {sizing.target.frames.name}{_kept(sizing)}",
        caption=sizing.answer + ".",
        x=Axis(title="cores"),
        y=Axis(title="probability", low=0.0, high=1.0),
        marks=tuple(marks),
    )


def _kept(sizing: Sizing) -> str:
    """Return the bounds that the probability is of, too, behind the rate."""
    return "" if sizing.has_open_bound else "".join(f", {bound}" for bound in sizing.bounds)


def rate_figure(sizing: Sizing) -> Figure:
    """Return the predicted rate with its 95 % interval over the number of cores, beside the target."""
    x = tuple(float(count.cores) for count in sizing.counts)
    target_mpps = sizing.target.forwarded_pps / 1e6
    return Figure(
        name="rate",
        title="Maximum throughput",
        caption="Predicted rate, with the 95 % interval of one measurement where it was calibrated, and the target.",
        x=Axis(title="cores"),
        y=Axis(title="rate [Mpps]", low=0.0),
        marks=(
            Line(
                name="predicted",
                x=x,
                y=tuple(count.rate_pps / 1e6 for count in sizing.counts),
                low=tuple(count.low_pps / 1e6 for count in sizing.counts if math.isfinite(count.low_pps)),
                high=tuple(count.high_pps / 1e6 for count in sizing.counts if math.isfinite(count.low_pps)),
            ),
            Line(name="target", x=(x[0], x[-1]), y=(target_mpps, target_mpps), colour=_TARGET, dashed=True),
        ),
    )


def size_page(
    sizings: tuple[Sizing, ...], *, source: str, live: Live | None = None, latency: Figure | None = None
) -> Page:
    """Return the page of a sizing question, with a section for each series.

    ``live``: a live panel; ``latency``: the figure of the latency over the load. Both are of the only series.
    """
    target = sizings[0].target
    frames = f"{target.frames.name}{_bounds(sizings[0])}"
    return Page(
        title="How many cores?",
        question=f"How many cores forward {target.rate_bps / 1e9:.4g} Gbit/s of {frames}?",
        answer=" ".join(f"{_name(sizing, sizings)}{sizing.answer}." for sizing in sizings),
        sections=tuple(_sections(sizings, live, latency)),
        source=source,
    )


def _bounds(sizing: Sizing) -> str:
    return f" with {' and '.join(map(str, sizing.bounds))}" if sizing.bounds else ""


def _sections(sizings: tuple[Sizing, ...], live: Live | None, latency: Figure | None) -> Iterator[Section]:
    """Yield the answer with its figure, the live panel, the latency, and what the answer rests on, for each series."""
    for number, sizing in enumerate(sizings):
        yield _opening(number, sizing)
        if live is not None and number == 0:
            yield Section(anchor="explore", title="", blocks=(live,), is_listed=False)
        if latency is not None and number == 0:
            yield Section(anchor="latency", title="Latency", blocks=(latency,))
        yield _grounds(number, sizing)


def _opening(number: int, sizing: Sizing) -> Section:
    """Return the section with the count, the load and the figure that answers."""
    least = sizing.least
    is_measured = _is_measured(sizing)
    probability_text = (
        f"probability {_probability_or_nan(least.probability):.3g}"
        if least and is_measured
        else "probability not known"
    )
    ends = f"{least.low_pps / 1e6:.4g} to {least.high_pps / 1e6:.4g} with 95 %" if least and is_measured else ""
    tiles = least is not None and Tiles(
        (
            Tile(str(least.cores), "cores, the least", probability_text),
            Tile(f"{least.rate_pps / 1e6:.4g} Mpps", "they forward", ends),
            Tile(f"{sizing.target.rate_pps / 1e6:.4g} Mpps", "are offered", f"headroom {sizing.headroom_ratio:.1%}"),
        )
    )
    failure_notice = least is None and Notice(
        mood="bad",
        title="No number of cores is certain",
        text=f"Tried: {format_span(cores(sizing.counts[0].cores), cores(sizing.counts[-1].cores))}.",
    )
    figure = probability_figure(sizing) if is_measured else rate_figure(sizing)
    # The answer is the sentence above the figure, so its caption does not say it again.
    caption = "" if number else _probability_caption(sizing) if is_measured else figure.caption
    section = Section.of(
        f"size-{number}",
        sizing.series,
        "",
        replace(figure, caption=caption, height_px=_OPENING_HEIGHT_PX),
        tiles,
        failure_notice,
    )
    return replace(_renamed(section, number), is_listed=bool(sizing.series))


def _probability_caption(sizing: Sizing) -> str:
    """Name what the probabilities are of: the rate, or the rate and the bounds on the latency together."""
    if not sizing.bounds or sizing.has_open_bound:
        return _PROBABILITY_CAPTION
    return _TOGETHER_CAPTION.format(bounds=" and ".join(map(str, sizing.bounds)))


def _grounds(number: int, sizing: Sizing) -> Section:
    """Return the section with rates and counts, what would narrow them, and what limits the answer."""
    is_measured = _is_measured(sizing)
    fact_texts = tuple(fact.text for fact in sizing.facts)
    near, whole = counts_table(sizing), counts_table(sizing, whole=True)
    rates = rate_figure(sizing)
    section = Section.of(
        f"counts-{number}",
        "",
        "",
        is_measured and (replace(rates, caption="") if number else rates),
        replace(near, caption="") if number else near,
        len(whole.rows) > len(near.rows) and Folded(summary="All counts", table=replace(whole, caption="")),
        bool(fact_texts) and Listing(title="Facts that would narrow it", entries=fact_texts),
        bool(sizing.next) and Listing(title="Measure next", entries=describe_next(sizing)),
        bool(sizing.remarks) and Listing(title="Before you rely on it", entries=sizing.remarks),
    )
    return replace(_renamed(section, number), is_listed=False)


def _is_measured(sizing: Sizing) -> bool:
    return any(count.probability is not None for count in sizing.counts)


def _renamed(section: Section, number: int) -> Section:
    """Rename the figures of a section, because names are unique in a page."""
    blocks = tuple(
        replace(block, name=f"{block.name}-{number}") if isinstance(block, Figure) else block
        for block in section.blocks
    )
    return replace(section, blocks=blocks)


def _name(sizing: Sizing, sizings: tuple[Sizing, ...]) -> str:
    return f"{sizing.series}: " if len(sizings) > 1 else ""
