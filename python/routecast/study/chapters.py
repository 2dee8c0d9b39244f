"""The report of a study: its chapters, from what was measured to how the page was made."""

from __future__ import annotations

import math

from routecast.quantity import format_bps, format_duration, format_pps
from routecast.report.page import Block, Drawing, Page, Prose, Section, Tile, Tiles
from routecast.study.picture import router_picture
from routecast.study.plots import error_figure, throughput_figure
from routecast.study.result import Estimate, StudyResult
from routecast.study.tabulate import (
    calibration_table,
    comparison_table,
    error_table,
    forecast_table,
    hypothesis_table,
    limited_by,
    parameter_table,
)

__all__ = ["percent", "study_page"]


def percent(ratio: float, digits: int = 2) -> str:
    """Write a ratio in percent; a dash where it is unknown.

    Examples
    --------
    >>> percent(0.00534)
    '0.53 %'
    """
    return "–" if math.isnan(ratio) else f"{100.0 * ratio:.{digits}f} %"


def study_page(result: StudyResult) -> Page:
    """Return the page of a study."""
    study, errors = result.study, result.errors()
    ours = errors["solve" if errors["solve"].points else "simulate"]
    answer = f"Calibrated from **{_calibrating(result)}**, "
    if ours.points:
        answer += (
            f"routecast predicts {ours.points} others within **{percent(ours.mean_abs_error_ratio)}** on average and "
            f"{percent(ours.max_abs_error_ratio)} at worst."
        )
    else:
        answer += "routecast has no other point to be judged by."
    sections = [_measured(result), _predicted(result), _explained(result)]
    sections += [
        _scenario(result, name) for name in result.scenarios if not _is_measured_router(result, result.scenarios[name])
    ]
    if result.next_points:
        sections.append(_next(result))
    forecast = _headline(result)
    return Page(
        title=study.title,
        question=study.question,
        answer=f"{answer} {forecast}".strip(),
        sections=tuple(sections),
        made=_made(result),
        source=study.source,
    )


def _unbroken(name: str) -> str:
    """Keep a name like ns-3 on one line."""
    return name.replace("-", "\u2011")


def _calibrating(result: StudyResult) -> str:
    count = len(result.calibrating)
    return f"{count} measured point{'s' if count != 1 else ''}"


def _is_measured_router(result: StudyResult, points: tuple[Estimate, ...]) -> bool:
    router = result.study.router
    return all(point.cores == router.cores and point.link_bps == router.link for point in points)


def _headline(result: StudyResult) -> str:
    for name, points in result.scenarios.items():
        if not _is_measured_router(result, points):
            best = result.spoken_of(name)
            load = {
                best.flows > best.cores: f", {best.flows} random flows",
                best.flows < best.cores: f", {best.busy_cores} of them busy,",
            }.get(True, "")
            return (
                f"With {_cores(best.cores)}{load} and links of {format_bps(best.link_bps)} it would forward "
                f"**{format_pps(best.predicted_pps)}** of {best.frame_bytes}-byte frames "
                f"(95 % interval {_range(best)}), limited by the {limited_by(best.limit)}."
            )
    return ""


def _cores(count: int) -> str:
    return f"{count} core{'s' if count != 1 else ''}"


def _range(point: Estimate) -> str:
    return f"{point.low_pps / 1e6:.2f} to {point.high_pps / 1e6:.2f} Mpps"


def _measured(result: StudyResult) -> Section:
    study = result.study
    prose = tuple(text for text in (study.router.description, study.load.description) if text)
    return Section(
        anchor="measured",
        title="What was measured",
        lead=(
            f"The maximum throughput of one router at {len(result.comparisons)} combinations of flows and frame size; "
            f"{_calibrating(result)} calibrate{'s' if len(result.calibrating) == 1 else ''} the model."
        ),
        blocks=(
            Drawing(
                svg=router_picture(study.router),
                caption=(
                    "One direction is drawn. The hash gives all frames of a flow to one core, each core has a queue "
                    "of its own, and what does not fit into a queue is lost."
                ),
            ),
            Prose(prose),
            calibration_table(result),
            *([Prose(tuple(f"{note[0].upper()}{note[1:]}." for note in result.notes))] if result.notes else []),
        ),
    )


def _predicted(result: StudyResult) -> Section:
    errors, everywhere = result.errors(), result.errors_everywhere()
    ours, sim = errors["solve"], errors["simulate"]
    main = ours if ours.points else sim
    inside = sum(row.is_covered for row in result.held_out)
    tiles = [
        Tile(
            value=percent(main.mean_abs_error_ratio),
            meaning="mean absolute error, held-out points",
            beside=f"median {percent(main.median_abs_error_ratio)}",
        ),
        Tile(
            value=percent(main.max_abs_error_ratio),
            meaning="largest error, held-out points",
            beside=f"{result.study.measurements.reported}: {percent(errors['reported'].max_abs_error_ratio)}"
            if errors["reported"].points
            else "",
        ),
        Tile(
            value=f"{inside} of {len(result.held_out)}",
            meaning="held-out points inside their 95 % interval",
        ),
    ]
    if everywhere["reported"].points:
        tiles.insert(
            1,
            Tile(
                value=percent(errors["reported"].mean_abs_error_ratio),
                meaning=f"the same, {_unbroken(result.study.measurements.reported)}",
                beside=f"over all points {percent(everywhere['reported'].mean_abs_error_ratio)}",
            ),
        )
    blocks: list[Block] = [Tiles(tuple(tiles))]
    for name, points in result.scenarios.items():
        if _is_measured_router(result, points):
            blocks += [
                throughput_figure(result, name, unit="pps"),
                throughput_figure(result, name, unit="l1_bps"),
            ]
    blocks += [error_figure(result), error_table(result), comparison_table(result)]
    return Section(
        anchor="predicted",
        title="What was predicted, and how wrong it is",
        lead=_agreement(result),
        blocks=tuple(blocks),
    )


def _agreement(result: StudyResult) -> str:
    pairs = [
        abs(row.estimate.simulated_pps / row.estimate.solved_pps - 1.0)
        for row in result.comparisons
        if math.isfinite(row.estimate.simulated_pps) and math.isfinite(row.estimate.solved_pps)
    ]
    inside = f"{percent(result.coverage_ratio, 0)} of the held-out measurements lie inside their 95 % intervals."
    if not pairs:
        return inside
    return f"{inside} The closed form and the packet-level simulation differ by at most {percent(max(pairs))}."


def _explained(result: StudyResult) -> Section:
    prose = (
        "S is the frame size in bytes, k the number of busy cores. A frame costs a core the constant time T_c and the "
        "time T_d for each of its bytes; c(k) says how many times longer that takes because other cores work too: they "
        "share caches, memory and locks. A core forwards at most the inverse of that time. Whatever is smallest, the "
        "cores' work, a flow's share of its link or the link, limits the router."
    )
    blocks: list[Block] = [Prose((prose,)), parameter_table(result)]
    if len(result.hypotheses) > 1:
        blocks.append(hypothesis_table(result))
    return Section(
        anchor="why",
        title="Why: the law behind the prediction",
        lead=f"Each frame keeps a core busy for `{result.law}`.",
        blocks=tuple(blocks),
    )


def _scenario(result: StudyResult, name: str) -> Section:
    scenario = next(scenario for scenario in result.study.scenario if scenario.name == name)
    return Section(
        anchor=name,
        title=f"Forecast: {scenario.title[:1].lower()}{scenario.title[1:]}",
        lead=_forecast_lead(result, name),
        blocks=(
            throughput_figure(result, name, unit="pps"),
            throughput_figure(result, name, unit="l1_bps"),
            forecast_table(result, name),
        ),
    )


def _forecast_lead(result: StudyResult, name: str) -> str:
    point = result.spoken_of(name)
    flows = f" under {point.flows} random flows" if point.flows > point.cores else ""
    text = (
        f"{point.busy_cores} busy core{'s' if point.busy_cores > 1 else ''}{flows} "
        f"forward{'s' if point.busy_cores == 1 else ''} {format_pps(point.predicted_pps)} of "
        f"{point.frame_bytes}-byte frames (95 % interval {_range(point)})"
    )
    line_bps = 0.999 * min(result.study.router.ports, point.flows) * point.link_bps
    curve = next(curve for curve in result.curves[name] if curve.flows == point.flows)
    filling = [
        size
        for size, rate_pps in zip(curve.frame_bytes, curve.predicted_pps, strict=True)
        if rate_pps * 8.0 * (size + 20) >= line_bps
    ]
    if filling:
        return f"{text}; from about {filling[0]} bytes on, the links are the bottleneck."
    text += f", limited by the {limited_by(point.limit)}"
    like = sorted((p for p in result.scenarios[name] if p.flows == point.flows), key=lambda one: one.frame_bytes)
    other = next((p for p in like if p.limit != point.limit), None)
    if other is None:
        return f"{text} at every frame size."
    return f"{text}, from {other.frame_bytes} bytes on by the {limited_by(other.limit)}."


def _next(result: StudyResult) -> Section:
    return Section(
        anchor="next",
        title="What to measure next",
        lead="These measurements would narrow the intervals most, in this order.",
        blocks=(Prose(tuple(f"{i}. {text}" for i, text in enumerate(result.next_points, start=1))),),
    )


def _made(result: StudyResult) -> tuple[tuple[str, str], ...]:
    made, study = result.made, result.study
    resumed = f", {made.resumed_trials} of them kept from an interrupted run" if made.resumed_trials else ""
    return (
        *made.rows(
            ("Evaluators", " and ".join(study.evaluate.evaluators)),
            ("Trials", f"{made.trials}{resumed}"),
            ("Simulated time", f"{format_duration(study.evaluate.duration)} of overload per trial"),
            ("Seed", str(made.seed)),
        ),
        (
            "Terms",
            "throughput in bit/s counts the 20 bytes that a frame occupies on the wire besides its own (S1, S2)",
        ),
    )
