"""Units and scales, labels and axes of factors, and the findings as sentences, for all views."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import Literal

from routecast.experiment._factors import label_of
from routecast.experiment.analysis.outcome import Analysis, Effect, Screened, Screening
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

_LARGEST = 700.0
"""The exponential of more overflows: a surface may predict logarithms far from all runs."""
_UNITS = {"bps": "bit/s", "pps": "pps", "s": "s", "w": "W", "j": "J", "hz": "Hz", "bytes": "B"}


def unit_of(path: str) -> str:
    """Return the unit of a path in a trial, by the end of its name.

    Examples
    --------
    >>> unit_of("l2_bps"), unit_of("latency.p99_s"), unit_of("resource[cpu].utilisation_ratio"), unit_of("attempts")
    ('bit/s', 's', '%', '')
    """
    end = path.rsplit(".", 1)[-1].split("[", 1)[0].rsplit("_", 1)[-1]
    return "%" if end == "ratio" else _UNITS.get(end, "")


@value
class Scale:
    """The scale of a response: its unit with one prefix for all values, and the inverse of its transform."""

    name: str = field("Name of the response")
    unit: str = field("Unit with its prefix; may be empty")
    step: float = field("Base units in one of it")
    base_unit: str = field("Without its prefix; empty where it takes none", default="")
    transform: Literal["none", "log", "reciprocal"] = field("Applied to the values before the analysis", default="none")

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

    def shown(self, base: float) -> float:
        """Return a value of the response in the shown unit."""
        return base / self.step

    def back(self, analysed: float) -> float:
        """Return the value of the response, in the shown unit, for an analysed number."""
        if self.transform == "log":
            return math.exp(min(analysed, _LARGEST)) / self.step
        if self.transform == "reciprocal":
            return 1.0 / analysed / self.step if analysed else float("nan")
        return analysed / self.step

    def ends(self, low: float | None, high: float | None) -> tuple[float, float] | None:
        """Return an interval of analysed numbers as one of the response, the lower end first."""
        if low is None or high is None:
            return None
        first, last = sorted((self.back(low), self.back(high)))
        return first, last

    def analysed(self, analysed: float) -> float:
        """Return an analysed number, or a difference of two, in the unit of :attr:`analysed_axis`."""
        return analysed / self.step if self.transform == "none" else analysed

    def text(self, analysed: float) -> str:
        """Write the value of the response for an analysed number."""
        return self.written(self.back(analysed))

    def written(self, shown: float) -> str:
        """Write a value of the response in the shown unit."""
        return f"{shown:.4g} {self.unit}".rstrip().replace("-", "−")

    def amount(self, analysed: float, sign: str = "") -> str:
        """Write a difference of analysed numbers, with a prefix of its own: 464 Mbit/s beside a mean in Gbit/s."""
        if self.transform != "none":
            return f"{analysed:{sign}.3g} on {self.analysed_axis}".replace("-", "−")
        step, unit = self.for_amounts((analysed,))
        if unit == "%":
            unit = "percentage points"  # 20 % above 50 % would be 60 %
        return f"{analysed / step:{sign}.3g} {unit}".rstrip().replace("-", "−")

    def for_amounts(self, analysed: Iterable[float]) -> tuple[float, str]:
        """Return what to divide differences of analysed numbers by, and their unit."""
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
_BESIDE_PX = 78
"""What a figure needs left and right of its axis (``routecast.show.drawing``)."""


def display_label(factor: Factor, coded: float) -> str:
    """Return the label of a level; between the levels of the file, numbers are rounded to four digits."""
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
    """Return a level with the name of its factor, unless the label contains the name: ``"no queue manager"``."""
    return label if factor.name.lower() in label.lower() else f"{factor.name} {label}"


def axis_of(factor: Factor, coded: Sequence[float], width_px: int) -> Axis:
    """Return the axis of a factor over coded levels, with as many labels as fit."""
    ticks = sorted({round(at, 9) for at in coded})
    low, high = min(ticks, default=-1.0), max(ticks, default=1.0)
    room = (width_px - _BESIDE_PX) / 1.3
    most = max(int(room / 46.0), 2)
    if len(ticks) > most:
        ticks = (
            [low + (high - low) * number / 2.0 for number in range(3)]
            if factor.is_quantity
            else [*ticks[:-1][:: len(ticks) // most + 1], high]
        )
    letters = max(int(room / max(len(ticks) - 1, 1) / _LETTER_PX) - 2, 4)
    labels = [display_label(factor, at) for at in ticks]
    if factor.is_quantity and len(ticks) > 2 and any(len(label) > letters for label in labels):
        ticks, labels, letters = [low, high], [display_label(factor, low), display_label(factor, high)], 16
    margin = 0.18 * (high - low or 2.0)
    px = (width_px - _BESIDE_PX) / (high - low + 2.0 * margin)
    kept = _without_overlaps(
        [(px * at, at, shortened(label, letters)) for at, label in zip(ticks, labels, strict=True)]
    )
    return Axis(
        title=factor.name,
        ticks=tuple(at for _, at, _ in kept),
        labels=tuple(label for _, _, label in kept),
        low=low - margin,
        high=high + margin,
    )


def _without_overlaps(ticks: Sequence[tuple[float, float, str]]) -> list[tuple[float, float, str]]:
    """Leave out ticks whose labels would overlap (levels may be unevenly spaced); keep the ends."""
    kept = list(ticks[:1])
    for tick in ticks[1:-1]:
        if all(_gap_px(*pair) >= _LETTER_PX for pair in ((kept[-1], tick), (tick, ticks[-1]))):
            kept.append(tick)
    return [*kept, *ticks[1:][-1:]]


def _gap_px(left: tuple[float, float, str], right: tuple[float, float, str]) -> float:
    return right[0] - left[0] - _LETTER_PX * (len(left[2]) + len(right[2])) / 2.0


def shortened(text: str, letters: int) -> str:
    """Return a text, cut if it is too long.

    Examples
    --------
    >>> shortened("without queue manager", 12)
    'without que…'
    """
    return text if len(text) <= letters else text[: max(letters - 1, 1)].rstrip() + "…"


_WORTH_NAMING = 0.01
_MOST_NAMED = 3
_BEYOND = 0.05
"""A sentence warns of a surface whose maximum is above every run by more than this part of the runs' range."""


def is_sample(experiment: Experiment) -> bool:
    """Return whether the combinations were sampled from ranges instead of combined from levels."""
    return experiment.design.kind in {"latin_hypercube", "sobol"}


def format_percent(ratio: float) -> str:
    """Write a share for a sentence.

    Examples
    --------
    >>> format_percent(0.757), format_percent(0.004)
    ('75.7 %', '0.4 %')
    """
    return f"{100.0 * ratio:.1f} %" if ratio >= 0.0005 or ratio == 0.0 else "less than 0.1 %"


def is_worth_reporting(effect: Effect) -> bool:
    """Return whether an effect gets a sentence: it is not insignificant, and has at least 1 % of the variation."""
    return effect.is_significant is not False and (effect.share_ratio or 0.0) >= _WORTH_NAMING


def describe_answer(results: Results, analysis: Analysis, scale: Scale) -> str:
    """Return the answer for one response: which factors matter, in which direction and how much, and which do not."""
    name, experiment = scale.name, results.experiment
    if analysis.mean is None:
        return f"No run has an answer, so nothing can be said of {name}."
    if analysis.sst == 0.0:
        return f"**{capitalised(name)}** does not vary: every run answered {scale.text(analysis.mean)}."
    if analysis.screening is not None and is_sample(experiment):
        return _describe_screening(analysis.screening, name)
    if experiment.design.kind == "central_composite":
        return _describe_curved(experiment, analysis, scale)
    effects = [effect for effect in analysis.effects if is_worth_reporting(effect)][:_MOST_NAMED]
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
    """Return which reported effects may instead be effects of at most two factors; empty if there are none.

    Interactions of three factors and more are left out: they are rare, and the table of effects has them.
    """
    pairs = []
    for effect in analysis.effects:
        simple = _simple_aliases(experiment, effect)
        if simple and is_worth_reporting(effect):
            pairs.append(f"what is called {effect.label} may be {' or '.join(simple)}")
    if not pairs:
        return ""
    text = capitalised("; ".join(pairs[:_MOST_NAMED]))
    return f"{text}. The simpler one is usually the cause; the other runs of the full design would settle it."


def _describe_curved(experiment: Experiment, analysis: Analysis, scale: Scale) -> str:
    """Return the share that each quantity explains by its slope and its curvature together."""
    names = {factor.letter: factor.name for factor in experiment.factors}
    shares: dict[tuple[str, ...], float] = {}
    for effect in analysis.effects:
        letters = tuple(dict.fromkeys(effect.letters))
        shares[letters] = shares.get(letters, 0.0) + (effect.share_ratio or 0.0)
    ranked = [
        (" x ".join(names.get(letter, letter) for letter in letters), format_percent(min(share, 1.0)))
        for letters, share in sorted(shares.items(), key=lambda pair: -pair[1])
        if letters and share >= _WORTH_NAMING
    ][:_MOST_NAMED]
    if not ranked:
        return _describe_no_effect(analysis, scale)
    first, share = ranked[0]
    text = (
        f"**{capitalised(first)}** matters most for {scale.name}: its slope and its bend explain"
        f" **{share}** of the variation."
    )
    if len(ranked) > 1:
        text += f" Then {', '.join(f'{name} ({part})' for name, part in ranked[1:])}."
    return text


def _simple_aliases(experiment: Experiment, effect: Effect, most: int = 2) -> list[str]:
    """Return the aliases of an effect with at most ``most`` factors, in the factors' names."""
    names = {factor.letter: factor.name for factor in experiment.factors}
    others = [alias.lstrip("+-−") for alias in effect.aliases]
    return [" x ".join(names.get(letter, letter) for letter in other) for other in others if len(other) <= most]


def headline(results: Results, analysis: Analysis, scale: Scale) -> str:
    """Return the first sentence of the answer."""
    return re.split(r"(?<=\.) (?=\*\*|[A-Z])", describe_answer(results, analysis, scale), maxsplit=1)[0]


def capitalised(text: str) -> str:
    """Return a text with its first letter as a capital; other letters stay."""
    return text[:1].upper() + text[1:]


def _describe_no_effect(analysis: Analysis, scale: Scale) -> str:
    text = f"No factor has a significant effect on **{scale.name}**."
    if analysis.error_df == 0:
        text = (
            f"No effect on **{scale.name}** stands out from the others, and without repeated runs nothing else says"
            " what noise is."
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
    """Return in which direction an effect goes, and how far."""
    factors = {factor.letter: factor for factor in experiment.factors}
    known = [factors[letter] for letter in effect.letters if letter in factors]
    if len(known) != len(effect.letters) or "^" in effect.name or not known:
        return ""
    aliases = _simple_aliases(experiment, effect, len(known))
    if aliases:  # the direction would be claimed of the wrong effect as well
        return f"it, or {', or '.join(aliases)}; these runs cannot tell which"
    if len(known) == 2:
        return _describe_interaction(analysis, known[0], known[1], scale)
    if len(known) != 1:
        return ""
    if effect.value is None:
        return _describe_levels(effect, scale)
    return _describe_two_levels(analysis, effect.value, known[0], scale, is_first=is_first)


def _describe_two_levels(analysis: Analysis, value: float, factor: Factor, scale: Scale, *, is_first: bool) -> str:
    high, low = factor.levels[-1].label, factor.levels[0].label
    if value < 0.0:
        high, low, value = low, high, -value
    mean = analysis.mean or 0.0
    if scale.transform == "log":
        up, down = math.exp(value), math.exp(-value)
        return f"with {high} it is {up:.3g} times, with {low} {down:.3g} times the typical {scale.text(mean)}"
    if scale.transform == "reciprocal":
        # The larger reciprocal is the smaller response.
        return f"with {low} it is typically {scale.text(mean - value)}, with {high} {scale.text(mean + value)}"
    of = f" of {scale.text(mean)}" if is_first else ""
    return f"with {high} it is {scale.amount(value)} above the mean{of}, with {low} as much below"


def _describe_levels(effect: Effect, scale: Scale) -> str:
    if not effect.levels:
        return ""
    ranked = sorted(effect.levels, key=lambda level: level.value)
    least, most = ranked[0], ranked[-1]
    if scale.transform == "reciprocal":
        least, most = most, least
    text = f"it is highest with {most.label}, lowest with {least.label}"
    if scale.transform == "none":
        return f"{text} ({scale.amount(most.value, '+')} and {scale.amount(least.value, '+')} about the mean)"
    return text


def _describe_interaction(analysis: Analysis, first: Factor, second: Factor, scale: Scale) -> str:
    """Return the change that the first factor makes at either end of the second."""
    depends = f"what {first.name} does depends on {second.name}"
    interaction = next((means for means in analysis.means if means.letters == (first.letter, second.letter)), None)
    values = {point.coded: point.value for point in interaction.points} if interaction else {}
    changes = []
    for level in (second.levels[0], second.levels[-1]):
        ends = [values.get((end.coded, level.coded)) for end in (first.levels[0], first.levels[-1])]
        if ends[0] is None or ends[1] is None:
            return depends
        changes.append(f"{_describe_change(ends[0], ends[1], scale)} ({describe_level(second, level.label)})")
    ends_of_first = f"from {first.levels[0].label} to {first.levels[-1].label}"
    return f"{depends}; going {ends_of_first} makes {changes[0]}, but {changes[1]}"


def _describe_change(first: float, last: float, scale: Scale) -> str:
    if abs(last - first) <= 1e-6 * max(abs(first), abs(last)):
        return "no difference"
    if scale.transform == "none":
        return scale.amount(last - first, "+")
    return f"a factor of {scale.back(last) / scale.back(first):.3g}"


def _describe_screening(screening: Screening, name: str) -> str:
    first, rest = screening.factors[0], screening.factors[1:]
    text = f"**{capitalised(first.name)}** matters most for {name}: {_describe_share(first, of=' of the variance')}."
    others = [factor for factor in rest if factor.importance >= _WORTH_NAMING]
    negligible = [factor.name for factor in rest if factor.importance < _WORTH_NAMING]
    if others:
        text += f" Then {', '.join(f'{factor.name} ({_describe_share(factor)})' for factor in others[:_MOST_NAMED])}."
    if negligible:
        text += f" Of little consequence: {', '.join(negligible)}."
    return text


def _describe_share(factor: Screened, of: str = "") -> str:
    """Return a factor's share of the variance, and in which direction it acts."""
    direction = ""
    if factor.srrc is not None and abs(factor.srrc) >= 0.1:
        direction = f", more of it brings {'more' if factor.srrc > 0.0 else 'less'}"
    if factor.first_order_ratio is None:
        return f"rank correlation {factor.importance:.2f}{direction}"
    alone = max(factor.first_order_ratio, 0.0)
    if factor.total_ratio is None or factor.total_ratio <= alone + _WORTH_NAMING:
        text = f"it explains **{format_percent(alone)}**{of}" if of else format_percent(alone)
        return text + direction
    # The order is that of the shares with interactions: the number that decides it comes first.
    total = format_percent(factor.total_ratio)
    text = f"it has a part in **{total}**{of}" if of else f"a part in {total}"
    return f"{text}, {format_percent(alone)} by itself{direction}"


def describe_surface(experiment: Experiment, analysis: Analysis, scale: Scale) -> str:
    """Return where the surface is flat; empty if it is nowhere flat, or for a sample only outside the tried range."""
    surface = analysis.surface
    if surface is None or surface.stationary is None:
        return ""
    flat = surface.stationary
    if not flat.is_inside:
        if is_sample(experiment):
            return ""
        return "Within what was tried the surface rises or falls to an edge: its flat point lies outside."
    factors = {factor.letter: factor for factor in experiment.factors}
    position = ", ".join(
        f"{factors[letter].name} {display_label(factors[letter], at)}"
        for letter, at in zip(surface.letters, flat.coded, strict=True)
    )
    value = scale.text(flat.response)
    kinds = {
        "maximum": f"The fitted surface is highest, {value}, at {position}.",
        "minimum": f"The fitted surface is lowest, {value}, at {position}.",
        "saddle": f"The fitted surface has a saddle, {value}, at {position}: it rises one way and falls another.",
        "ridge": f"The fitted surface hardly bends along one direction: a ridge through {position}, at {value}.",
    }
    sentence = kinds[flat.kind]
    answers = [value for cell in analysis.cells for value in cell.values]
    most, least = max(answers, default=math.inf), min(answers, default=-math.inf)
    if flat.kind == "maximum" and scale.transform == "none" and flat.response > most + _BEYOND * (most - least):
        sentence += (
            f" No run goes so far (the highest run has {scale.text(most)}): try runs there before relying on it."
        )
    if scale.transform == "none" and flat.response < 0.0 <= min(answers, default=-1.0):
        sentence += " No run answers below zero: there the surface does not follow them, and is no more than a sketch."
    return sentence


def describe_design(experiment: Experiment) -> str:
    """Return which combinations were tried, and why."""
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
            f" {', '.join(design.generators)}. That saves runs, and costs: some effects share their numbers."
        ),
        "central_composite": (
            f"{rows:,} combinations were tried: corners, points beyond or on the faces, and the middle, so that"
            " curves show as well as slopes."
        ),
        "latin_hypercube": (
            f"{rows:,} combinations were drawn so that each factor's range is covered evenly (Latin hypercube)."
        ),
        "sobol": f"{rows:,} combinations were drawn so that they fill the space evenly (Sobol sequence).",
        "listed": f"{rows:,} combinations were tried, as the file lists them.",
    }
    if repeats > 1:
        noise = f"Each was run {repeats} times with a seed of its own, so that noise can be distinguished from effects."
    elif experiment.evaluator == "solve":
        noise = "A formula answers the same every time: one run each is enough."
    elif centre > 1:
        noise = f"The middle was run {centre} times, the others once: it tells the noise."
    else:
        noise = "Each was run once: noise can only be judged from effects that are small."
    return f"{kinds[design.kind]} {noise}"
