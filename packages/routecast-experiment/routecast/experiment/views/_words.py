"""Units and scales of responses, labels and axes of factors, and the sentences on the findings."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import Literal

from routecast.experiment._factors import label_of
from routecast.experiment.analysis.outcome import Analysis, Effect, FactorImportance, Screening
from routecast.experiment.model import Experiment, Factor, Results
from routecast.quantity.format import prefixed
from routecast.quantity.schema import field, value
from routecast.show.figures import Axis

__all__ = [
    "Scale",
    "axis_of",
    "capitalised",
    "describe_answer",
    "describe_confounding",
    "describe_design",
    "describe_level",
    "describe_row",
    "describe_surface",
    "display_label",
    "format_percent",
    "headline",
    "is_sample",
    "is_worth_reporting",
    "scale_of",
    "shortened",
    "unit_of",
]

_MAX_EXPONENT = 700.0
"""Exponent above which the exponential overflows: a surface may predict logarithms far from all runs."""
_UNITS = {"bps": "bit/s", "pps": "pps", "s": "s", "w": "W", "j": "J", "hz": "Hz", "bytes": "B"}


def unit_of(path: str) -> str:
    """Return the unit of a path in a trial, which the end of its name tells.

    Examples
    --------
    >>> unit_of("l2_bps"), unit_of("latency.p99_s"), unit_of("resource[cpu].utilisation_ratio"), unit_of("attempts")
    ('bit/s', 's', '%', '')
    """
    end = path.rsplit(".", 1)[-1].split("[", 1)[0].rsplit("_", 1)[-1]
    return "%" if end == "ratio" else _UNITS.get(end, "")


@value
class Scale:
    """The scale of a response: its shown unit, which has one prefix for all values, and its transform."""

    name: str = field("Name of the response")
    unit: str = field("Shown unit, with its prefix; may be empty")
    step: float = field("Number of base units in the shown unit")
    base_unit: str = field("Unit without a prefix; empty if the unit takes no prefix", default="")
    transform: Literal["none", "log", "reciprocal"] = field(
        "Transform of the values before the analysis", default="none"
    )

    @property
    def axis(self) -> str:
        """Title of an axis of the response itself."""
        return f"{self.name} [{self.unit}]" if self.unit else self.name

    @property
    def analysed_axis(self) -> str:
        """Title of an axis of the transformed response."""
        if self.transform == "log":
            return f"ln {self.name}"
        return f"1 / {self.name}" if self.transform == "reciprocal" else self.axis

    def untransformed(self, analysed: float) -> float:
        """Return the value of the response, in the shown unit, for an analysed number."""
        if self.transform == "log":
            return math.exp(min(analysed, _MAX_EXPONENT)) / self.step
        if self.transform == "reciprocal":
            return 1.0 / analysed / self.step if analysed else float("nan")
        return analysed / self.step

    def ends(self, low: float | None, high: float | None) -> tuple[float, float] | None:
        """Return the ends of an interval in the shown unit, the lower end first, from those of analysed numbers."""
        if low is None or high is None:
            return None
        first, last = sorted((self.untransformed(low), self.untransformed(high)))
        return first, last

    def analysed(self, analysed: float) -> float:
        """Return an analysed number, or a difference of two, in the unit of :attr:`analysed_axis`."""
        return analysed / self.step if self.transform == "none" else analysed

    def format_analysed(self, analysed: float) -> str:
        """Return the text of the response for an analysed number."""
        return self.format_shown(self.untransformed(analysed))

    def format_shown(self, shown: float) -> str:
        """Return the text of a value in the shown unit."""
        return f"{shown:.4g} {self.unit}".rstrip().replace("-", "−")

    def format_difference(self, analysed: float, sign: str = "") -> str:
        """Return the text of a difference of analysed numbers with its own prefix: Mbit/s next to a mean in Gbit/s."""
        if self.transform != "none":
            return f"{analysed:{sign}.3g} on {self.analysed_axis}".replace("-", "−")
        step, unit = self.difference_unit((analysed,))
        if unit == "%":
            unit = "percentage points"  # 20 % above 50 % could mean 60 %
        return f"{analysed / step:{sign}.3g} {unit}".rstrip().replace("-", "−")

    def difference_unit(self, analysed: Iterable[float]) -> tuple[float, str]:
        """Return the divisor of differences of analysed numbers, and their unit."""
        if self.transform != "none":
            return 1.0, ""
        return prefixed(analysed, self.base_unit) if self.base_unit else (self.step, self.unit)


def scale_of(results: Results, response: str) -> Scale:
    """Return the scale of a response of an experiment."""
    declared = next(candidate for candidate in results.experiment.responses if candidate.name == response)
    unit = unit_of(declared.of)
    if unit == "%":
        return Scale(name=response, unit="%", step=0.01, transform=declared.transform)
    if unit == "B":
        return Scale(name=response, unit="B", step=1.0, transform=declared.transform)
    step, unit_with_prefix = prefixed(results.values(response), unit)
    return Scale(name=response, unit=unit_with_prefix, step=step, base_unit=unit, transform=declared.transform)


_LETTER_PX = 6.6
_MARGINS_PX = 78
"""Width that a figure needs left and right of its axis (``routecast.show.drawing``)."""


def display_label(factor: Factor, coded: float) -> str:
    """Return the label of a level, with numbers rounded to four digits if it is not a level of the file."""
    label = label_of(factor, coded)
    if any(label == level.label for level in factor.levels):
        return label
    return re.sub(r"\d+\.\d+", lambda number: f"{float(number[0]):.4g}", label)


def describe_row(experiment: Experiment, row: int) -> str:
    """Return the levels of a row of the design: ``"packet size 78 B, queue manager full"``."""
    coded = experiment.design.coded[row]
    return ", ".join(
        describe_level(factor, display_label(factor, at)) for factor, at in zip(experiment.factors, coded, strict=True)
    )


def describe_level(factor: Factor, label: str) -> str:
    """Return the label of a level after the name of its factor, unless the label contains the name."""
    return label if factor.name.lower() in label.lower() else f"{factor.name} {label}"


def axis_of(factor: Factor, coded: Sequence[float], width_px: int) -> Axis:
    """Return the axis of a factor over coded levels, with as many labels as fit into the width."""
    ticks = sorted({round(level, 9) for level in coded})
    low, high = min(ticks, default=-1.0), max(ticks, default=1.0)
    room = (width_px - _MARGINS_PX) / 1.3
    max_ticks = max(int(room / 46.0), 2)
    if len(ticks) > max_ticks:
        ticks = (
            [low + (high - low) * number / 2.0 for number in range(3)]
            if factor.is_quantity
            else [*ticks[:-1][:: len(ticks) // max_ticks + 1], high]
        )
    letters = max(int(room / max(len(ticks) - 1, 1) / _LETTER_PX) - 2, 4)
    labels = [display_label(factor, tick) for tick in ticks]
    if factor.is_quantity and len(ticks) > 2 and any(len(label) > letters for label in labels):
        ticks, labels, letters = [low, high], [display_label(factor, low), display_label(factor, high)], 16
    margin = 0.18 * (high - low or 2.0)
    px = (width_px - _MARGINS_PX) / (high - low + 2.0 * margin)
    labelled = _without_overlaps(
        [(px * tick, tick, shortened(label, letters)) for tick, label in zip(ticks, labels, strict=True)]
    )
    return Axis(
        title=factor.name,
        ticks=tuple(tick for _, tick, _ in labelled),
        labels=tuple(label for _, _, label in labelled),
        low=low - margin,
        high=high + margin,
    )


def _without_overlaps(ticks: Sequence[tuple[float, float, str]]) -> list[tuple[float, float, str]]:
    """Return the first and the last tick, and those between whose labels do not overlap others."""
    separate = list(ticks[:1])
    for tick in ticks[1:-1]:
        if all(_gap_px(*pair) >= _LETTER_PX for pair in ((separate[-1], tick), (tick, ticks[-1]))):
            separate.append(tick)
    return [*separate, *ticks[1:][-1:]]


def _gap_px(left: tuple[float, float, str], right: tuple[float, float, str]) -> float:
    return right[0] - left[0] - _LETTER_PX * (len(left[2]) + len(right[2])) / 2.0


def shortened(text: str, letters: int) -> str:
    """Return a text, cut to a number of letters.

    Examples
    --------
    >>> shortened("without queue manager", 12)
    'without que…'
    """
    return text if len(text) <= letters else text[: max(letters - 1, 1)].rstrip() + "…"


_MIN_SHARE_RATIO = 0.01
_MAX_NAMED = 3
_BEYOND_RUNS_RATIO = 0.05
"""A maximum that exceeds all runs by more than this part of their range gets a warning."""


def is_sample(experiment: Experiment) -> bool:
    """Return whether the combinations are sampled from ranges instead of combined from levels."""
    return experiment.design.kind in {"latin_hypercube", "sobol"}


def format_percent(ratio: float) -> str:
    """Return the text of a share.

    Examples
    --------
    >>> format_percent(0.757), format_percent(0.004)
    ('75.7 %', '0.4 %')
    """
    return f"{100.0 * ratio:.1f} %" if ratio >= 0.0005 or ratio == 0.0 else "less than 0.1 %"


def is_worth_reporting(effect: Effect) -> bool:
    """Return whether an effect may be significant and explains at least 1 % of the variation."""
    return effect.is_significant is not False and (effect.share_ratio or 0.0) >= _MIN_SHARE_RATIO


def describe_answer(results: Results, analysis: Analysis, scale: Scale) -> str:
    """Return the sentences on a response: which factors affect it, in which direction, and how much."""
    name, experiment = scale.name, results.experiment
    if analysis.mean is None:
        return f"No run has an answer, so nothing is known of {name}."
    if analysis.sst == 0.0:
        return f"**{capitalised(name)}** does not vary: every run answered {scale.format_analysed(analysis.mean)}."
    if analysis.screening is not None and is_sample(experiment):
        return _describe_screening(analysis.screening, name)
    if experiment.design.kind == "central_composite":
        return _describe_curved(experiment, analysis, scale)
    effects = [effect for effect in analysis.effects if is_worth_reporting(effect)][:_MAX_NAMED]
    effects = effects or [effect for effect in analysis.effects if effect.is_significant][:1]
    if not effects:
        return _describe_no_effect(analysis, scale)
    sentences = []
    for number, effect in enumerate(effects):
        share = format_percent(effect.share_ratio or 0.0)
        transform = {"none": "", "log": "the logarithm of ", "reciprocal": "the reciprocal of "}[scale.transform]
        of = f" of the variation of {transform}{name}" if number == 0 else ""
        direction = _describe_direction(experiment, analysis, effect, scale, is_first=number == 0)
        direction = f": {direction}" if direction else ""
        sentences.append(f"**{capitalised(effect.label)}** explains **{share}**{of}{direction}.")
    return " ".join([*sentences, _describe_negligible(experiment, analysis)]).strip()


def describe_confounding(experiment: Experiment, analysis: Analysis) -> str:
    """Return a sentence on reported effects that may instead be effects of one or two factors; empty without any.

    Interactions of three and more factors are left out: they are rare, and the table of effects has them.
    """
    pairs = []
    for effect in analysis.effects:
        simple = _simple_aliases(experiment, effect)
        if simple and is_worth_reporting(effect):
            pairs.append(f"the effect of {effect.label} may be that of {' or '.join(simple)}")
    if not pairs:
        return ""
    text = capitalised("; ".join(pairs[:_MAX_NAMED]))
    return f"{text}. The effect with fewer factors is usually the cause; the other runs of the full design would tell."


def _describe_curved(experiment: Experiment, analysis: Analysis, scale: Scale) -> str:
    """Return the sentences on a surface: the share that slope and curvature together give each quantity."""
    names = {factor.letter: factor.name for factor in experiment.factors}
    shares: dict[tuple[str, ...], float] = {}
    for effect in analysis.effects:
        letters = tuple(dict.fromkeys(effect.letters))
        shares[letters] = shares.get(letters, 0.0) + (effect.share_ratio or 0.0)
    ranked = [
        (" x ".join(names.get(letter, letter) for letter in letters), format_percent(min(share, 1.0)))
        for letters, share in sorted(shares.items(), key=lambda pair: -pair[1])
        if letters and share >= _MIN_SHARE_RATIO
    ][:_MAX_NAMED]
    if not ranked:
        return _describe_no_effect(analysis, scale)
    first, share = ranked[0]
    text = (
        f"**{capitalised(first)}** matters most for {scale.name}: its slope and its curvature explain"
        f" **{share}** of the variation."
    )
    if len(ranked) > 1:
        text += f" Next: {', '.join(f'{name} ({part})' for name, part in ranked[1:])}."
    return text


def _simple_aliases(experiment: Experiment, effect: Effect, max_factors: int = 2) -> list[str]:
    """Return the aliases of an effect with at most ``max_factors`` factors, in the factors' names."""
    names = {factor.letter: factor.name for factor in experiment.factors}
    others = [alias.lstrip("+-−") for alias in effect.aliases]
    return [" x ".join(names.get(letter, letter) for letter in other) for other in others if len(other) <= max_factors]


def headline(results: Results, analysis: Analysis, scale: Scale) -> str:
    """Return the first sentence on a response."""
    return re.split(r"(?<=\.) (?=\*\*|[A-Z])", describe_answer(results, analysis, scale), maxsplit=1)[0]


def capitalised(text: str) -> str:
    """Return a text with a capital first letter; other letters stay as they are."""
    return text[:1].upper() + text[1:]


def _describe_no_effect(analysis: Analysis, scale: Scale) -> str:
    text = f"No factor has a significant effect on **{scale.name}**."
    if analysis.error_df == 0:
        text = (
            f"No effect on **{scale.name}** stands out from the others, and without repeated runs there is no other"
            " estimate of the noise."
        )
    largest = next((effect for effect in analysis.effects if effect.share_ratio is not None), None)
    if largest is not None:
        text += (
            f" The largest, {largest.label}, explains {format_percent(largest.share_ratio or 0.0)} of the variation."
        )
    return text


def _describe_negligible(experiment: Experiment, analysis: Analysis) -> str:
    letters = {(factor.letter,) for factor in experiment.factors}
    effects = [
        f"{effect.label} ({format_percent(effect.share_ratio)})"
        for effect in analysis.effects
        if effect.letters in letters and "^" not in effect.name
        and not is_worth_reporting(effect) and effect.share_ratio is not None
    ]  # fmt: skip
    return f"Of little consequence: {', '.join(effects)}." if effects else ""


def _describe_direction(
    experiment: Experiment, analysis: Analysis, effect: Effect, scale: Scale, *, is_first: bool
) -> str:
    """Return the direction and the size of an effect; empty for squares and interactions of three or more factors."""
    factors = {factor.letter: factor for factor in experiment.factors}
    members = [factors[letter] for letter in effect.letters if letter in factors]
    if len(members) != len(effect.letters) or "^" in effect.name or not members:
        return ""
    aliases = _simple_aliases(experiment, effect, len(members))
    if aliases:  # the direction may be that of an alias
        return f"it, or {', or '.join(aliases)}; these runs cannot tell which"
    if len(members) == 2:
        return _describe_interaction(analysis, members[0], members[1], scale)
    if len(members) != 1:
        return ""
    if effect.value is None:
        return _describe_levels(effect, scale)
    return _describe_two_levels(analysis, effect.value, members[0], scale, is_first=is_first)


def _describe_two_levels(analysis: Analysis, value: float, factor: Factor, scale: Scale, *, is_first: bool) -> str:
    high, low = factor.levels[-1].label, factor.levels[0].label
    if value < 0.0:
        high, low, value = low, high, -value
    mean = analysis.mean or 0.0
    if scale.transform == "log":
        up, down = math.exp(value), math.exp(-value)
        return (
            f"with {high} it is {up:.3g} times, with {low} {down:.3g} times the typical {scale.format_analysed(mean)}"
        )
    if scale.transform == "reciprocal":
        # The larger reciprocal is the smaller response.
        larger, smaller = scale.format_analysed(mean - value), scale.format_analysed(mean + value)
        return f"with {low} it is typically {larger}, with {high} {smaller}"
    of_mean = f" of {scale.format_analysed(mean)}" if is_first else ""
    return f"with {high} it is {scale.format_difference(value)} above the mean{of_mean}, with {low} as much below"


def _describe_levels(effect: Effect, scale: Scale) -> str:
    if not effect.levels:
        return ""
    ranked = sorted(effect.levels, key=lambda level: level.value)
    lowest, highest = ranked[0], ranked[-1]
    if scale.transform == "reciprocal":
        lowest, highest = highest, lowest
    text = f"it is highest with {highest.label}, lowest with {lowest.label}"
    if scale.transform == "none":
        highest_from_mean, lowest_from_mean = (scale.format_difference(end.value, "+") for end in (highest, lowest))
        return f"{text} ({highest_from_mean} and {lowest_from_mean} from the mean)"
    return text


def _describe_interaction(analysis: Analysis, first: Factor, second: Factor, scale: Scale) -> str:
    """Return the change by the first factor at the lowest and the highest level of the second."""
    depends = f"the effect of {first.name} depends on {second.name}"
    interaction = next((means for means in analysis.means if means.letters == (first.letter, second.letter)), None)
    values = {point.coded: point.value for point in interaction.points} if interaction else {}
    changes = []
    for level in (second.levels[0], second.levels[-1]):
        ends = [values.get((end.coded, level.coded)) for end in (first.levels[0], first.levels[-1])]
        if ends[0] is None or ends[1] is None:
            return depends
        changes.append(f"{_describe_change(ends[0], ends[1], scale)} ({describe_level(second, level.label)})")
    ends_of_first = f"from {first.levels[0].label} to {first.levels[-1].label}"
    return f"{depends}; the step {ends_of_first} makes {changes[0]}, but {changes[1]}"


def _describe_change(first: float, last: float, scale: Scale) -> str:
    if abs(last - first) <= 1e-6 * max(abs(first), abs(last)):
        return "no difference"
    if scale.transform == "none":
        return scale.format_difference(last - first, "+")
    return f"a factor of {scale.untransformed(last) / scale.untransformed(first):.3g}"


def _describe_screening(screening: Screening, name: str) -> str:
    first, rest = screening.factors[0], screening.factors[1:]
    text = f"**{capitalised(first.name)}** matters most for {name}: {_describe_share(first, ' of the variance')}."
    others = [factor for factor in rest if factor.importance >= _MIN_SHARE_RATIO]
    negligible = [factor.name for factor in rest if factor.importance < _MIN_SHARE_RATIO]
    if others:
        text += f" Next: {', '.join(f'{factor.name} ({_describe_share(factor)})' for factor in others[:_MAX_NAMED])}."
    if negligible:
        text += f" Of little consequence: {', '.join(negligible)}."
    return text


def _describe_share(factor: FactorImportance, of_variance: str = "") -> str:
    """Return a factor's share of the variance and the direction of its effect; ``of_variance``: makes it a sentence."""
    direction = ""
    if factor.srrc is not None and abs(factor.srrc) >= 0.1:
        direction = f", raising it {'raises' if factor.srrc > 0.0 else 'lowers'} the response"
    if factor.first_order_ratio is None:
        return f"rank correlation {factor.importance:.2f}{direction}"
    alone = max(factor.first_order_ratio, 0.0)
    if factor.total_ratio is None or factor.total_ratio <= alone + _MIN_SHARE_RATIO:
        text = f"it explains **{format_percent(alone)}**{of_variance}" if of_variance else format_percent(alone)
        return text + direction
    # The share with interactions decides the order of the factors, so it comes first.
    total = format_percent(factor.total_ratio)
    text = f"with interactions it explains **{total}**{of_variance}" if of_variance else f"with interactions {total}"
    return f"{text}, alone {format_percent(alone)}{direction}"


def describe_surface(experiment: Experiment, analysis: Analysis, scale: Scale) -> str:
    """Return a sentence on the stationary point of the surface; empty without one, or outside the range of a sample."""
    surface = analysis.surface
    if surface is None or surface.stationary is None:
        return ""
    stationary = surface.stationary
    if not stationary.is_inside:
        if is_sample(experiment):
            return ""
        return "In the tried range the surface rises or falls to an edge: its stationary point lies outside."
    factors = {factor.letter: factor for factor in experiment.factors}
    position = ", ".join(
        f"{factors[letter].name} {display_label(factors[letter], coded)}"
        for letter, coded in zip(surface.letters, stationary.coded, strict=True)
    )
    value = scale.format_analysed(stationary.response)
    kinds = {
        "maximum": f"The fitted surface is highest, {value}, at {position}.",
        "minimum": f"The fitted surface is lowest, {value}, at {position}.",
        "saddle": f"The fitted surface has a saddle, {value}, at {position}: it rises one way and falls another.",
        "ridge": f"The fitted surface hardly curves in one direction: a ridge passes through {position}, at {value}.",
    }
    sentence = kinds[stationary.kind]
    if scale.transform != "none":
        return sentence
    answers = [value for cell in analysis.cells for value in cell.values]
    highest, lowest = max(answers, default=math.inf), min(answers, default=-math.inf)
    if stationary.kind == "maximum" and stationary.response > highest + _BEYOND_RUNS_RATIO * (highest - lowest):
        highest_text = scale.format_analysed(highest)
        sentence += f" No run is that high (the highest has {highest_text}): try runs there before you rely on it."
    if stationary.response < 0.0 <= lowest:
        sentence += " No run answers below zero, so the surface does not follow the response there."
    return sentence


def describe_design(experiment: Experiment) -> str:
    """Return sentences on the tried combinations and on the estimate of the noise."""
    design, factors = experiment.design, experiment.factors
    rows, repeats = len(design.coded), design.replications
    centre = sum(not any(row) for row in design.coded)
    counts = " x ".join(str(len(factor.levels)) for factor in factors)
    every = f"Every combination of the levels was tried: {counts} = {rows:,}."
    kinds = {
        "full": every,
        "multilevel": every,
        "fractional": (
            f"Of the {2 ** len(factors):,} combinations {rows:,} were tried, chosen by"
            f" {', '.join(design.generators)}. This saves runs, but some effects share one estimate."
        ),
        "central_composite": (
            f"{rows:,} combinations were tried: corners, points beyond or on the faces, and the middle, so that"
            " curvature shows as well as slopes."
        ),
        "latin_hypercube": (
            f"{rows:,} combinations were drawn so that each factor's range is covered evenly (Latin hypercube)."
        ),
        "sobol": f"{rows:,} combinations were drawn so that they fill the space evenly (Sobol sequence).",
        "listed": f"{rows:,} combinations were tried, as the file lists them.",
    }
    if repeats > 1:
        noise = f"Each was run {repeats} times, with a seed each, so that effects can be distinguished from noise."
    elif experiment.evaluator == "solve":
        noise = "A formula gives the same answer every time, so each was run once."
    elif centre > 1:
        noise = f"The middle was run {centre} times, to estimate the noise, and the others once."
    else:
        noise = "Each was run once, so only the small effects show how large the noise is."
    return f"{kinds[design.kind]} {noise}"
