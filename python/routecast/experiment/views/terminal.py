"""An experiment on a terminal: its plan, the effects of each response, what they mean in plain words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from routecast.experiment.analysis import Analysis, Effect
from routecast.experiment.designs.fractional import fraction_of
from routecast.experiment.model import Experiment, Results
from routecast.experiment.runs import levels_of_row
from routecast.experiment.views.scale import scale_of
from routecast.experiment.views.words import answer_said, surface_said
from routecast.show.tables import Column, Table, percent

__all__ = ["MOST_ROWS", "alias_lines", "analysis_lines", "design_table", "missing_tables", "terminal_effects"]

MOST_ROWS = 64
MOST_EFFECTS = 12
MOST_NAMED = 5
MOST_ALIASES = 4


def design_table(experiment: Experiment) -> Table:
    """Return which combinations of levels are tried."""
    design = experiment.design
    replicated = f", {design.replications} runs of each" if design.replications > 1 else ""
    kind = design.kind.replace("_", " ")

    def level(number: int) -> Column:
        factor = experiment.factors[number]
        return Column.text(f"{factor.letter}: {factor.name}", lambda row: levels_of_row(experiment, row)[number].label)

    return Table.of(
        range(min(len(design.coded), MOST_ROWS)),
        Column("Row", "", "d", lambda row: row + 1),
        *map(level, range(len(experiment.factors))),
        name="design",
        title=f"{kind[:1].upper()}{kind[1:]}: {len(design.coded):,} combinations{replicated}",
    )


def alias_lines(experiment: Experiment) -> list[str]:
    """Return what a fraction confounds; nothing of other designs."""
    fraction = fraction_of(experiment.design, experiment.factors)
    if fraction is None:
        return []
    lines = [f"Resolution {fraction.resolution}, defining relation {' = '.join(('I', *fraction.defining_relation))}."]
    chains = [" = ".join(chain) for chain in fraction.alias_chains() if len(chain) > 1]
    return lines + ([f"Cannot be told apart: {'; '.join(chains)}."] if chains else [])


def terminal_effects(results: Results, analysis: Analysis) -> Table:
    """Return the largest effects in Jain's notation; those told from noise are strong."""
    scale = scale_of(results, analysis.response)
    effects = analysis.effects[:MOST_EFFECTS]
    left_out = len(analysis.effects) - len(effects)

    def interval(low: float | None, high: float | None) -> str:
        if low is None or high is None:
            return ""
        return f"{scale.analysed(low):.4g} to {scale.analysed(high):.4g}".replace("-", "−")

    def amount(value: float | None) -> float | None:
        return None if value is None else scale.analysed(value)

    rows: list[tuple[str, str, float | None, float | None, str]] = [
        (f"q_{one.name}", one.label, one.share_ratio, amount(one.value), interval(one.low, one.high)) for one in effects
    ]
    if analysis.mean is not None:
        rows.insert(0, ("q_0", "mean", None, amount(analysis.mean), interval(analysis.mean_low, analysis.mean_high)))
    if analysis.error_df:
        what = "what the model leaves" if analysis.s_e is None else "noise, and what the model leaves"
        rows.append(("e", what, analysis.error_share_ratio, None, ""))
    strong = {f"q_{one.name}" for one in effects if one.is_significant is True}
    return Table.of(
        rows,
        Column.text("", lambda row: row[0]),
        Column.text("Effect of", lambda row: row[1]),
        Column("Explains", "%", percent, lambda row: row[2]),
        Column("Effect", scale.unit if analysis.transform == "none" else "", getter=lambda row: row[3]),
        Column.text(
            f"{100.0 * analysis.confidence:.3g} % interval", lambda row: row[4], wide=not any(row[4] for row in rows)
        ),
        name="effects",
        title=f"Effects on {scale.analysed_axis}",
        caption=f"{left_out} smaller effects are in the report." if left_out else "",
        strong=lambda row: row[0] in strong,
    )


def analysis_lines(results: Results, analysis: Analysis) -> list[str]:
    """Return in words what the effects on one response mean, and what must be known beside them."""
    scale = scale_of(results, analysis.response)
    said = [answer_said(results, analysis, scale), surface_said(results.experiment, analysis, scale)]
    lines = dict.fromkeys([*said, *_remarks(results.experiment, analysis)])
    return [line.replace("**", "") for line in lines if line]


def _remarks(experiment: Experiment, analysis: Analysis) -> list[str]:
    """Return what must be known beside the effects: the noise, what is confounded, what to do next."""
    confounded = [one for one in analysis.effects if one.aliases]
    together = [f"q_{one.name} = {_summed(one)}" for one in confounded[:MOST_NAMED]]
    more = "; …" if len(confounded) > MOST_NAMED else ""
    lines = [f"These runs cannot tell apart: {'; '.join(together)}{more}."] if together else []
    lines += [f"Noise: {analysis.noise}."] if analysis.noise else []
    lines += _first(analysis.not_told_apart) if analysis.missing else _confounded(experiment, analysis)
    if analysis.residuals is not None:
        lines += [f"Doubt: {one.verdict}." for one in analysis.residuals.checks if one.is_doubtful]
    lines += [f"Note: {one}." for one in analysis.notes]
    return lines + [f"Next: {one}." for one in analysis.advice]


def _confounded(experiment: Experiment, analysis: Analysis) -> list[str]:
    """Return what the design itself confounds: of a fraction its defining relation says it all."""
    fraction = fraction_of(experiment.design, experiment.factors)
    if fraction is None:
        return _first(analysis.not_told_apart)
    words = fraction.defining_relation
    more = " = …" if len(words) > MOST_ALIASES else ""
    return [f"A fraction of resolution {fraction.resolution}: I = {' = '.join(words[:MOST_ALIASES])}{more}."]


def _summed(effect: Effect) -> str:
    """Return what an effect stands for: itself and its aliases, of many only the shortest, which are likely largest."""
    shown = effect.aliases[:MOST_ALIASES]
    return " ".join((effect.name, *shown, *(["…"] if len(effect.aliases) > len(shown) else [])))


def _first(lines: Sequence[str]) -> list[str]:
    shown = list(lines[:MOST_NAMED])
    return shown + ([f"… and {len(lines) - len(shown)} more."] if len(lines) > len(shown) else [])


def missing_tables(results: Results) -> Iterator[Table]:
    """Yield which runs have no answer, and which are not steady, with the reasons."""
    lack = any(answer.problem and answer.values for answer in results.answers)
    without = "Runs that lack answers" if lack else "Runs without an answer"

    def levels(row: int) -> str:
        return ", ".join(level.label for level in levels_of_row(results.experiment, row))

    for title, key in ((without, "problem"), ("Runs that are not steady", "unsteady")):
        pairs = zip(results.runs, results.answers, strict=True)
        found = [(run, getattr(answer, key)) for run, answer in pairs if getattr(answer, key)]
        if not found:
            continue
        more = len(found) - MOST_NAMED
        yield Table.of(
            found[:MOST_NAMED],
            Column("Row", "", "d", lambda one: one[0].row + 1),
            Column("Run", "", "d", lambda one: one[0].replication + 1),
            Column.text("Levels", lambda one: levels(one[0].row)),
            Column.text("Why", lambda one: " ".join(str(one[1]).split())),
            name=key,
            title=f"{title}: {len(found)} of {len(results.runs)}",
            caption=f"{more} more: results.parquet has them all." if more > 0 else "",
        )
