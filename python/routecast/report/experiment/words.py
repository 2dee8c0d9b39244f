"""What was found, in sentences that need no book of statistics."""

from __future__ import annotations

from routecast.experiment.analysis.outcome import Analysis, Effect
from routecast.experiment.analysis.screening import Screened
from routecast.experiment.model import Experiment, Factor, Results
from routecast.report.experiment.levels import label_of
from routecast.report.experiment.scale import Scale

__all__ = ["answer_said", "design_said", "is_told", "percent_said", "surface_said"]

_WORTH_NAMING = 0.01
_MOST_NAMED = 3


def percent_said(ratio: float) -> str:
    """Write a share for a sentence.

    Examples
    --------
    >>> percent_said(0.757), percent_said(0.004)
    ('75.7 %', '0.4 %')
    """
    return f"{100.0 * ratio:.1f} %" if ratio >= 0.0005 or ratio == 0.0 else "less than 0.1 %"


def is_told(effect: Effect) -> bool:
    """Return whether an effect is worth a sentence: told from noise, or, without noise, more than 1 % of all."""
    if effect.is_significant is False:
        return False
    return (effect.share_ratio or 0.0) >= _WORTH_NAMING or effect.is_significant is True


def answer_said(results: Results, analysis: Analysis, scale: Scale) -> str:
    """Return the answer for one response: what matters, which way, how much; and what does not matter."""
    name = scale.name
    if analysis.mean is None:
        return f"No run has an answer, so nothing can be said of {name}."
    if analysis.sst == 0.0:
        return f"**{_upper(name)}** does not vary: every run answered {scale.text(analysis.mean)}."
    if analysis.screening is not None:
        return _screened_said(analysis, name)
    named = [one for one in analysis.effects if is_told(one) and one.share_ratio is not None][:_MOST_NAMED]
    if not named:
        return _nothing_said(analysis, scale)
    experiment = results.experiment
    sentences = []
    for number, effect in enumerate(named):
        share = percent_said(effect.share_ratio or 0.0)
        of = f" of the variation of {name}" if number == 0 else ""
        how = _how(experiment, analysis, effect, scale)
        sentences.append(f"**{_upper(effect.label)}** explains **{share}**{of}{': ' + how if how else ''}.")
    return " ".join([*sentences, _quiet_said(experiment, analysis)]).strip()


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]


def _nothing_said(analysis: Analysis, scale: Scale) -> str:
    text = f"No factor has an effect on **{scale.name}** that is told from the noise."
    largest = next((one for one in analysis.effects if one.share_ratio is not None), None)
    if largest is not None:
        text += f" The largest, {largest.label}, explains {percent_said(largest.share_ratio or 0.0)} of the variation."
    return text


def _quiet_said(experiment: Experiment, analysis: Analysis) -> str:
    quiet = [
        f"{one.label} ({percent_said(one.share_ratio)})"
        for one in analysis.effects
        if len(one.letters) == 1 and "^" not in one.name and not is_told(one) and one.share_ratio is not None
        and one.letters[0] in {factor.letter for factor in experiment.factors}
    ]  # fmt: skip
    return f"Of no consequence: {', '.join(quiet)}." if quiet else ""


def _how(experiment: Experiment, analysis: Analysis, effect: Effect, scale: Scale) -> str:
    """Say which way an effect goes, and how far."""
    factors = {factor.letter: factor for factor in experiment.factors}
    known = [factors[letter] for letter in effect.letters if letter in factors]
    if len(known) != len(effect.letters) or "^" in effect.name or not known:
        return ""
    if len(known) == 2:
        return _depends(analysis, known[0], known[1], scale)
    if len(known) != 1:
        return ""
    if effect.value is None:
        return _by_level(effect, scale)
    return _two_ways(analysis, effect.value, known[0], scale)


def _two_ways(analysis: Analysis, value: float, factor: Factor, scale: Scale) -> str:
    high, low = factor.levels[-1].label, factor.levels[0].label
    if value < 0.0:
        high, low, value = low, high, -value
    mean = analysis.mean or 0.0
    if scale.transform == "log":
        up, down = scale.gain(value), scale.gain(-value)
        return f"with {high} it is {up}, with {low} {down} the typical {scale.text(mean)}"
    if scale.transform == "reciprocal":
        # The larger reciprocal is the smaller response.
        return (
            f"with {low} it is typically {scale.text(mean - value)}, with {high} {scale.text(mean + value)}"
        )
    gain = scale.written(scale.analysed(value), 3)
    return f"with {high} it is {gain} above the mean of {scale.text(mean)}, with {low} as much below"


def _by_level(effect: Effect, scale: Scale) -> str:
    if not effect.levels:
        return ""
    ranked = sorted(effect.levels, key=lambda one: one.value)
    least, most = ranked[0], ranked[-1]
    if scale.transform == "reciprocal":
        least, most = most, least
    said = f"it is highest with {most.label}, lowest with {least.label}"
    if scale.transform == "none":
        return f"{said} ({scale.gain(most.value)} and {scale.gain(least.value)} about the mean)"
    return said


def _depends(analysis: Analysis, first: Factor, second: Factor, scale: Scale) -> str:
    """Say how far the first factor carries at the ends of the second."""
    found = next((one for one in analysis.means if one.letters == (first.letter, second.letter)), None)
    if found is None:
        return f"how much {first.name} does depends on {second.name}"
    by_pair = {point.coded: point.value for point in found.points}
    reaches = []
    for level in (second.levels[0], second.levels[-1]):
        ends = [by_pair.get((end.coded, level.coded)) for end in (first.levels[0], first.levels[-1])]
        if ends[0] is None or ends[1] is None:
            return f"how much {first.name} does depends on {second.name}"
        change = scale.back(ends[1]) - scale.back(ends[0])
        reaches.append(f"{change:+.3g} {scale.unit}".rstrip().replace("-", "−") + f" with {level.label}")
    return (
        f"how much {first.name} does depends on {second.name}; from {first.levels[0].label} to"
        f" {first.levels[-1].label} it makes {reaches[0]}, but {reaches[1]}"
    )


def _screened_said(analysis: Analysis, name: str) -> str:
    assert analysis.screening is not None  # the caller asked
    ranked = analysis.screening.factors
    first, rest = ranked[0], ranked[1:]
    said = f"**{_upper(first.name)}** matters most for {name}: {_part(first)}."
    others = [one for one in rest if one.importance >= _WORTH_NAMING]
    quiet = [one for one in rest if one.importance < _WORTH_NAMING]
    if others:
        said += f" Then {', '.join(f'{one.name} ({_part(one)})' for one in others[:_MOST_NAMED])}."
    if quiet:
        said += f" Of no consequence: {', '.join(one.name for one in quiet)}."
    return said


def _part(one: Screened) -> str:
    """Say a factor's part in the variance."""
    way = ""
    if one.srrc is not None and abs(one.srrc) >= 0.1:
        way = ", more of it raises the response" if one.srrc > 0.0 else ", more of it lowers the response"
    if one.first_order_ratio is None:
        return f"rank correlation {one.importance:.2f}{way}"
    said = f"it explains {percent_said(max(one.first_order_ratio, 0.0))} of the variance"
    if one.total_ratio is not None and one.total_ratio > one.first_order_ratio + _WORTH_NAMING:
        said += f", {percent_said(one.total_ratio)} with its interactions"
    return said + way


def surface_said(experiment: Experiment, analysis: Analysis, scale: Scale) -> str:
    """Say where the surface is flat; empty where it is nowhere within what was tried."""
    surface = analysis.surface
    if surface is None or surface.stationary is None:
        return ""
    flat = surface.stationary
    factors = {factor.letter: factor for factor in experiment.factors}
    place = ", ".join(
        f"{factors[letter].name} {label_of(factors[letter], at)}"
        for letter, at in zip(surface.letters, flat.coded, strict=True)
    )
    value = scale.text(flat.response)
    if not flat.is_inside:
        return "Within what was tried the surface rises or falls to an edge: its flat point lies outside."
    kinds = {
        "maximum": f"The fitted surface is highest, {value}, at {place}.",
        "minimum": f"The fitted surface is lowest, {value}, at {place}.",
        "saddle": f"The fitted surface has a saddle, {value}, at {place}: it rises one way and falls another.",
        "ridge": f"The fitted surface hardly bends along one direction: a ridge through {place}, at {value}.",
    }
    return kinds[flat.kind]


def design_said(experiment: Experiment) -> str:
    """Say which combinations were tried, and why so."""
    design, factors = experiment.design, experiment.factors
    rows, repeats = len(design.coded), design.replications
    counts = " x ".join(str(len(factor.levels)) for factor in factors)
    kinds = {
        "full": f"Every combination of the levels was tried: {counts} = {rows:,}.",
        "multilevel": f"Every combination of the levels was tried: {counts} = {rows:,}.",
        "fractional": (
            f"Of the {2 ** len(factors):,} combinations {rows:,} were tried, chosen so that as little as possible is"
            f" confused: {', '.join(design.generators)}. That saves runs; some effects share their numbers."
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
    said = kinds[design.kind]
    if repeats > 1:
        said += (
            f" Each was run {repeats} times with a seed of its own, so that noise can be told from effects."
        )
    elif experiment.evaluator == "solve":
        said += " A closed form answered: it answers the same every time, so one run each is enough."
    else:
        said += " Each was run once: noise can only be judged from effects that are small."
    return said
