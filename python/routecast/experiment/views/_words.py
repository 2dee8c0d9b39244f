"""What was found, in sentences that need no book of statistics.

What the levels of a design are called, and the axis of a factor.

How a response is written: its unit with one prefix for all its values, and back from a transform.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import Literal

from routecast.errors import RoutecastError
from routecast.experiment._factors import level_at
from routecast.experiment.analysis.outcome import Analysis, Effect, Screened
from routecast.experiment.model import Experiment, Factor, Results
from routecast.quantity.format import prefixed
from routecast.quantity.schema import field, value
from routecast.show.figures import Axis

_LARGEST = 700.0
"""Beyond this a logarithm stands for no number that a computer has: a surface may be asked far from all runs."""
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
    """Turns analysed numbers into what a reader sees."""

    name: str = field("Of the response")
    unit: str = field("With its prefix; may be empty")
    step: float = field("Base units in one of it")
    base_unit: str = field("Without its prefix; empty where it takes none", default="")
    transform: Literal["none", "log", "reciprocal"] = field("What the analysis has done to the values", default="none")

    @property
    def axis(self) -> str:
        """Title of an axis of the response itself."""
        return f"{self.name} [{self.unit}]" if self.unit else self.name

    @property
    def analysed_axis(self) -> str:
        """Title of an axis of what was analysed."""
        if self.transform == "log":
            return f"ln {self.name}"
        return f"1 / {self.name}" if self.transform == "reciprocal" else self.axis

    def shown(self, base: float) -> float:
        """Return a value of the response in the shown unit."""
        return base / self.step

    def back(self, analysed: float) -> float:
        """Return the value of the response, in the shown unit, that an analysed number stands for."""
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
        """Write the value of the response that an analysed number stands for."""
        return self.written(self.back(analysed))

    def written(self, shown: float) -> str:
        """Write a value of the response that is given in the shown unit."""
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
    """Return how a response of an experiment is written."""
    declared = next(candidate for candidate in results.experiment.responses if candidate.name == response)
    unit = unit_of(declared.of)
    if unit == "%":
        return Scale(name=response, unit="%", step=0.01, transform=declared.transform)
    if unit == "B":
        return Scale(name=response, unit="B", step=1.0, transform=declared.transform)
    step, shown = prefixed(results.values(response), unit)
    return Scale(name=response, unit=shown, step=step, base_unit=unit, transform=declared.transform)


_LETTER_PX = 6.6
_SAME = 1e-9
_BESIDE_PX = 78
"""What a figure needs left and right of its axis (``report/drawing.py``)."""


def label_of(factor: Factor, coded: float) -> str:
    """Return what a level is called; of a quantity also between and beyond the levels of the file."""
    for level in factor.levels:
        if abs(level.coded - coded) < _SAME:
            return level.label
    try:
        label = level_at(factor, coded).label
    except RoutecastError:
        return f"{coded:+.3g}"
    return re.sub(r"\d+\.\d+", lambda number: f"{float(number[0]):.4g}", label)


def run_said(experiment: Experiment, row: int) -> str:
    """Write the levels of a row of the design: ``"packet size 78 B, queue manager full"``."""
    coded = experiment.design.coded[row]
    return ", ".join(
        level_said(factor, label_of(factor, at)) for factor, at in zip(experiment.factors, coded, strict=True)
    )


def level_said(factor: Factor, label: str) -> str:
    """Write a level with its factor's name, which the label may hold already: ``"no queue manager"``."""
    return label if factor.name.lower() in label.lower() else f"{factor.name} {label}"


def axis_of(factor: Factor, coded: Sequence[float], width_px: int) -> Axis:
    """Return the axis of a factor over coded levels, with the levels' labels as far as they have room."""
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
    labels = [label_of(factor, at) for at in ticks]
    if factor.is_quantity and len(ticks) > 2 and any(len(label) > letters for label in labels):
        ticks, labels, letters = [low, high], [label_of(factor, low), label_of(factor, high)], 16
    margin = 0.18 * (high - low or 2.0)
    px = (width_px - _BESIDE_PX) / (high - low + 2.0 * margin)
    shown = _apart([(px * at, at, shortened(label, letters)) for at, label in zip(ticks, labels, strict=True)])
    return Axis(
        title=factor.name,
        ticks=tuple(at for _, at, _ in shown),
        labels=tuple(label for _, _, label in shown),
        low=low - margin,
        high=high + margin,
    )


def _apart(ticks: Sequence[tuple[float, float, str]]) -> list[tuple[float, float, str]]:
    """Leave out ticks whose labels would run into others, as of levels that are not evenly spaced; the ends stay."""
    kept = list(ticks[:1])
    for tick in ticks[1:-1]:
        if all(_gap_px(*pair) >= _LETTER_PX for pair in ((kept[-1], tick), (tick, ticks[-1]))):
            kept.append(tick)
    return [*kept, *ticks[1:][-1:]]


def _gap_px(left: tuple[float, float, str], right: tuple[float, float, str]) -> float:
    return right[0] - left[0] - _LETTER_PX * (len(left[2]) + len(right[2])) / 2.0


def shortened(text: str, letters: int) -> str:
    """Cut a text that is too long.

    Examples
    --------
    >>> shortened("without queue manager", 12)
    'without que…'
    """
    return text if len(text) <= letters else text[: max(letters - 1, 1)].rstrip() + "…"


_WORTH_NAMING = 0.01
_MOST_NAMED = 3
_BEYOND = 0.05
"""A surface that tops every run by more than this part of their range is said to."""


def is_sample(experiment: Experiment) -> bool:
    """Return whether combinations were drawn from ranges rather than set up level by level."""
    return experiment.design.kind in {"latin_hypercube", "sobol"}


def percent_said(ratio: float) -> str:
    """Write a share for a sentence.

    Examples
    --------
    >>> percent_said(0.757), percent_said(0.004)
    ('75.7 %', '0.4 %')
    """
    return f"{100.0 * ratio:.1f} %" if ratio >= 0.0005 or ratio == 0.0 else "less than 0.1 %"


def is_told(effect: Effect) -> bool:
    """Return whether an effect is worth a sentence: not lost in noise, and more than 1 % of all variation."""
    return effect.is_significant is not False and (effect.share_ratio or 0.0) >= _WORTH_NAMING


def answer_said(results: Results, analysis: Analysis, scale: Scale) -> str:
    """Return the answer for one response: what matters, which way, how much; and what does not matter."""
    name = scale.name
    if analysis.mean is None:
        return f"No run has an answer, so nothing can be said of {name}."
    if analysis.sst == 0.0:
        return f"**{_upper(name)}** does not vary: every run answered {scale.text(analysis.mean)}."
    if analysis.screening is not None and is_sample(results.experiment):
        return _screened_said(analysis, name)
    if results.experiment.design.kind == "central_composite":
        return _curved_said(results.experiment, analysis, scale)
    named = [effect for effect in analysis.effects if is_told(effect)][:_MOST_NAMED]
    named = named or [effect for effect in analysis.effects if effect.is_significant][:1]
    if not named:
        return _nothing_said(analysis, scale)
    experiment = results.experiment
    sentences = []
    for number, effect in enumerate(named):
        share = percent_said(effect.share_ratio or 0.0)
        of = f" of the variation of {_analysed(scale)}" if number == 0 else ""
        how = _how(experiment, analysis, effect, scale, is_first=number == 0)
        sentences.append(f"**{_upper(effect.label)}** explains **{share}**{of}{': ' + how if how else ''}.")
    return " ".join([*sentences, _quiet_said(experiment, analysis)]).strip()


def _analysed(scale: Scale) -> str:
    return {"none": "", "log": "the logarithm of ", "reciprocal": "the reciprocal of "}[scale.transform] + scale.name


def shared_said(experiment: Experiment, analysis: Analysis) -> str:
    """Say which effects worth a sentence may be a simple other one; empty where none may.

    Interactions of three factors and more are left out: they are rare, and the table of effects has them.
    """
    pairs = []
    for effect in analysis.effects:
        if not is_told(effect):
            continue
        simple = _aliases_said(experiment, effect)
        if simple:
            pairs.append(f"what is called {effect.label} may be {' or '.join(simple)}")
    if not pairs:
        return ""
    text = "; ".join(pairs[:_MOST_NAMED])
    return f"{_upper(text)}. The simpler one is usually the cause; the other runs of the full design would settle it."


def _curved_said(experiment: Experiment, analysis: Analysis, scale: Scale) -> str:
    """Say what each quantity does, slope and bend together."""
    names = {factor.letter: factor.name for factor in experiment.factors}
    shares: dict[tuple[str, ...], float] = {}
    for effect in analysis.effects:
        letters = tuple(dict.fromkeys(effect.letters))
        shares[letters] = shares.get(letters, 0.0) + (effect.share_ratio or 0.0)
    ranked = sorted(shares.items(), key=lambda pair: -pair[1])
    sentences = [
        (" x ".join(names.get(letter, letter) for letter in letters), share)
        for letters, share in ranked
        if letters and share >= _WORTH_NAMING
    ][:_MOST_NAMED]
    if not sentences:
        return _nothing_said(analysis, scale)
    first, share = sentences[0]
    text = (
        f"**{_upper(first)}** matters most for {scale.name}: its slope and its bend explain"
        f" **{percent_said(min(share, 1.0))}** of the variation."
    )
    if len(sentences) > 1:
        text += f" Then {', '.join(f'{name} ({percent_said(min(part, 1.0))})' for name, part in sentences[1:])}."
    return text


def _aliases_said(experiment: Experiment, effect: Effect, most: int = 2) -> list[str]:
    """Return the effects of at most so many factors, in the factors' names, that cannot be told from an effect."""
    names = {factor.letter: factor.name for factor in experiment.factors}
    others = [alias.lstrip("+-−") for alias in effect.aliases]
    return [" x ".join(names.get(letter, letter) for letter in other) for other in others if len(other) <= most]


def headline(results: Results, analysis: Analysis, scale: Scale) -> str:
    """Return the first sentence of the answer."""
    return re.split(r"(?<=\.) (?=\*\*|[A-Z])", answer_said(results, analysis, scale), maxsplit=1)[0]


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]


def _nothing_said(analysis: Analysis, scale: Scale) -> str:
    text = f"No factor has an effect on **{scale.name}** that is told from the noise."
    if analysis.error_df == 0:
        text = (
            f"No effect on **{scale.name}** stands out from the others, and without repeated runs nothing else says"
            " what noise is."
        )
    largest = next((effect for effect in analysis.effects if effect.share_ratio is not None), None)
    if largest is not None:
        text += f" The largest, {largest.label}, explains {percent_said(largest.share_ratio or 0.0)} of the variation."
    return text


def _quiet_said(experiment: Experiment, analysis: Analysis) -> str:
    quiet = [
        f"{effect.label} ({percent_said(effect.share_ratio)})"
        for effect in analysis.effects
        if len(effect.letters) == 1 and "^" not in effect.name
        and not is_told(effect) and effect.share_ratio is not None
        and effect.letters[0] in {factor.letter for factor in experiment.factors}
    ]  # fmt: skip
    return f"Of little consequence: {', '.join(quiet)}." if quiet else ""


def _how(experiment: Experiment, analysis: Analysis, effect: Effect, scale: Scale, *, is_first: bool) -> str:
    """Say which way an effect goes, and how far."""
    factors = {factor.letter: factor for factor in experiment.factors}
    known = [factors[letter] for letter in effect.letters if letter in factors]
    if len(known) != len(effect.letters) or "^" in effect.name or not known:
        return ""
    others = _aliases_said(experiment, effect, len(known))
    if others:  # which way this one goes would be told of the wrong one as well
        return f"it, or {', or '.join(others)}; these runs cannot tell which"
    if len(known) == 2:
        return _depends(analysis, known[0], known[1], scale)
    if len(known) != 1:
        return ""
    if effect.value is None:
        return _by_level(effect, scale)
    return _two_ways(analysis, effect.value, known[0], scale, is_first=is_first)


def _two_ways(analysis: Analysis, value: float, factor: Factor, scale: Scale, *, is_first: bool) -> str:
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
    gain = scale.amount(value)
    of = f" of {scale.text(mean)}" if is_first else ""
    return f"with {high} it is {gain} above the mean{of}, with {low} as much below"


def _by_level(effect: Effect, scale: Scale) -> str:
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


def _depends(analysis: Analysis, first: Factor, second: Factor, scale: Scale) -> str:
    """Say how far the first factor carries at the ends of the second."""
    interaction = next((mean for mean in analysis.means if mean.letters == (first.letter, second.letter)), None)
    if interaction is None:
        return f"what {first.name} does depends on {second.name}"
    by_pair = {point.coded: point.value for point in interaction.points}
    reaches = []
    for level in (second.levels[0], second.levels[-1]):
        ends = [by_pair.get((end.coded, level.coded)) for end in (first.levels[0], first.levels[-1])]
        if ends[0] is None or ends[1] is None:
            return f"what {first.name} does depends on {second.name}"
        reaches.append(f"{_change(ends[0], ends[1], scale)} ({level_said(second, level.label)})")
    return (
        f"what {first.name} does depends on {second.name}; going from {first.levels[0].label} to"
        f" {first.levels[-1].label} makes {reaches[0]}, but {reaches[1]}"
    )


def _change(first: float, last: float, scale: Scale) -> str:
    if abs(last - first) <= 1e-6 * max(abs(first), abs(last)):
        return "no difference"
    if scale.transform == "none":
        return scale.amount(last - first, "+")
    return f"a factor of {scale.back(last) / scale.back(first):.3g}"


def _screened_said(analysis: Analysis, name: str) -> str:
    assert analysis.screening is not None  # the caller asked
    ranked = analysis.screening.factors
    first, rest = ranked[0], ranked[1:]
    sentence = f"**{_upper(first.name)}** matters most for {name}: {_part(first, of=' of the variance')}."
    others = [index for index in rest if index.importance >= _WORTH_NAMING]
    quiet = [index for index in rest if index.importance < _WORTH_NAMING]
    if others:
        sentence += f" Then {', '.join(f'{index.name} ({_part(index)})' for index in others[:_MOST_NAMED])}."
    if quiet:
        sentence += f" Of little consequence: {', '.join(index.name for index in quiet)}."
    return sentence


def _part(screened: Screened, of: str = "") -> str:
    """Say a factor's part in the variance, and which way it goes."""
    way = ""
    if screened.srrc is not None and abs(screened.srrc) >= 0.1:
        way = f", more of it brings {'more' if screened.srrc > 0.0 else 'less'}"
    if screened.first_order_ratio is None:
        return f"rank correlation {screened.importance:.2f}{way}"
    alone = max(screened.first_order_ratio, 0.0)
    if screened.total_ratio is None or screened.total_ratio <= alone + _WORTH_NAMING:
        text = f"it explains **{percent_said(alone)}**{of}" if of else percent_said(alone)
        return text + way
    # The order is that of the parts with interactions: the number that decides it comes first.
    whole = percent_said(screened.total_ratio)
    text = f"it has a part in **{whole}**{of}" if of else f"a part in {whole}"
    text += f", {percent_said(alone)} by itself"
    return text + way


def surface_said(experiment: Experiment, analysis: Analysis, scale: Scale) -> str:
    """Say where the surface is flat; empty where it is nowhere within what was tried."""
    surface = analysis.surface
    if surface is None or surface.stationary is None:
        return ""
    flat = surface.stationary
    if not flat.is_inside:
        if is_sample(experiment):
            return ""
        return "Within what was tried the surface rises or falls to an edge: its flat point lies outside."
    factors = {factor.letter: factor for factor in experiment.factors}
    place = ", ".join(
        f"{factors[letter].name} {label_of(factors[letter], at)}"
        for letter, at in zip(surface.letters, flat.coded, strict=True)
    )
    value = scale.text(flat.response)
    kinds = {
        "maximum": f"The fitted surface is highest, {value}, at {place}.",
        "minimum": f"The fitted surface is lowest, {value}, at {place}.",
        "saddle": f"The fitted surface has a saddle, {value}, at {place}: it rises one way and falls another.",
        "ridge": f"The fitted surface hardly bends along one direction: a ridge through {place}, at {value}.",
    }
    sentence = kinds[flat.kind]
    answered = [value for cell in analysis.cells for value in cell.values]
    most, least = max(answered, default=math.inf), min(answered, default=-math.inf)
    if flat.kind == "maximum" and scale.transform == "none" and flat.response > most + _BEYOND * (most - least):
        sentence += (
            f" No run goes so far (the highest run has {scale.text(most)}): try runs there before relying on it."
        )
    if scale.transform == "none" and flat.response < 0.0 <= min(answered, default=-1.0):
        sentence += " No run answers below zero: there the surface does not follow them, and is no more than a sketch."
    return sentence


def design_said(experiment: Experiment) -> str:
    """Say which combinations were tried, and why so."""
    design, factors = experiment.design, experiment.factors
    rows, repeats = len(design.coded), design.replications
    middle = sum(not any(row) for row in design.coded)
    counts = " x ".join(str(len(factor.levels)) for factor in factors)
    kinds = {
        "full": f"Every combination of the levels was tried: {counts} = {rows:,}.",
        "multilevel": f"Every combination of the levels was tried: {counts} = {rows:,}.",
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
    sentence = kinds[design.kind]
    if repeats > 1:
        sentence += f" Each was run {repeats} times with a seed of its own, so that noise can be told from effects."
    elif experiment.evaluator == "solve":
        sentence += " A formula answers the same every time: one run each is enough."
    elif middle > 1:
        sentence += f" The middle was run {middle} times, the others once: it tells the noise."
    else:
        sentence += " Each was run once: noise can only be judged from effects that are small."
    return sentence
