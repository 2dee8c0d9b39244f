"""The page of a benchmark and its folder: answer, compliance, procedures, setup, trials and command."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Literal

from routecast.explore.views import live_of_points
from routecast.lab.benchmark.journal import SUMMARY
from routecast.lab.benchmark.points import points_of
from routecast.lab.benchmark.procedures import PROCEDURES
from routecast.lab.benchmark.procedures.procedure import as_sentence, plural
from routecast.lab.benchmark.tables import deviations_table, limits_table, not_run_table, procedure_table, trials_table
from routecast.lab.benchmark.values import BenchmarkResult, MixFacts
from routecast.quantity import format_bps, format_duration, format_ratio
from routecast.quantity.whole_file import write_whole
from routecast.show.drawing import draw
from routecast.show.page import Block, Facts, Folded, Listing, Notice, Page, Prose, Section, Tiles, render_page
from routecast.show.tables import Table

__all__ = ["benchmark_page", "flattened", "write_report"]

_SCHEMA = "benchmark.schema.json"
_MAX_LINE = 80
_MAX_ROWS = 24
"""Longer tables are folded."""
_MAX_WORDS = 60
"""Longer lists of statements are folded."""
_FIGURE_OF_ANSWER = ("throughput", "frame_loss")
"""Procedures whose figures open the page: the forwarded rate over frame size or load."""
_LEVELS: Mapping[str, tuple[Literal["good", "fair", "bad"], str]] = {
    "unconditional": ("good", "Unconditionally compliant"),
    "conditional": ("fair", "Conditionally compliant"),
    "not compliant": ("bad", "Not compliant"),
}
_EVALUATORS = {
    "measure": "measured on the wire",
    "simulate": "a simulation of a model: predictions, no measurements",
    "solve": "a closed form of a model: predictions, no measurements",
}


def write_report(result: BenchmarkResult, folder: Path) -> Path:
    """Write ``report.html``, ``figures/*.svg`` and ``benchmark.schema.json``, and a missing ``benchmark.json``.

    ``folder``: the benchmark's folder; created if missing. Every file is whole or absent. Returns the path of the page.
    """
    folder.mkdir(parents=True, exist_ok=True)
    page = benchmark_page(result)
    pictures = folder / "figures"
    for figure in page.figures():
        pictures.mkdir(exist_ok=True)
        write_whole(pictures / f"{figure.name}.svg", draw(figure))
    schema = (files("routecast") / "data" / "schemas" / _SCHEMA).read_text(encoding="utf-8")
    write_whole(folder / _SCHEMA, schema)
    if not (folder / SUMMARY).exists():
        result.write(folder / SUMMARY)
    write_whole(folder / "report.html", render_page(page))
    return folder / "report.html"


def _setup_facts(result: BenchmarkResult) -> tuple[Block, ...]:
    """Return the facts of router, tester, media and streams, and the profile's values (RFC 2544 sec. 7)."""
    setup = result.setup
    streams = "\n".join(
        f"{stream.name}: UDP over {stream.protocol}, {'both ways' if stream.bidirectional else 'one way'}, "
        f"{stream.networks} destination network{'s' if stream.networks != 1 else ''}"
        + (f", {stream.modifier}" if stream.modifier else "")
        for stream in setup.streams
    )
    media = (
        ("Evaluator", _EVALUATORS.get(setup.evaluator, setup.evaluator)),
        ("Media", setup.medium),
        ("Links", _links(result)),
        *([("Frame sizes", ", ".join(map(str, setup.frame_bytes)) + " B, FCS included")] if setup.frame_bytes else []),
        *([("Mixes of frame sizes", "\n".join(map(_mix, setup.mixes)))] if setup.mixes else []),
        ("Streams", streams),
        ("Frame format", setup.frame_format),
        ("Units", setup.load_unit),
    )
    unknown = (("", "no facts are known"),)
    parts = (
        ("Router (device under test)", tuple(flattened(setup.device)) or unknown),
        ("Tester", tuple(flattened(setup.tester)) or unknown),
        ("Media and streams", media),
        (f"Profile {result.profile_name}", tuple(flattened(result.profile))),
    )
    return tuple(Facts(title=title, rows=rows) for title, rows in parts if rows)


def _mix(mix: MixFacts) -> str:
    """Describe a mix by genome, sizes and shares, as RFC 6985 asks."""
    sizes = ", ".join(f"{size} B {format_ratio(share)}" for size, share in mix.share_by_bytes.items())
    custom = ", ".join(f"{letter} = {size} B" for letter, size in mix.custom_bytes.items())
    genome = f"genome {mix.genome}{f' ({custom})' if custom else ''}, " if mix.genome else ""
    order = "drawn at random" if mix.order == "random" else "in the order of the genome"
    return f"{mix.name}: {mix.mean_bytes:.6g} B on average, FCS included; {genome}{order} (RFC 6985): {sizes}"


def _links(result: BenchmarkResult) -> str:
    rates = list(dict.fromkeys(format_bps(rate) for rate in result.setup.link_bps if math.isfinite(rate)))
    return ", ".join(rates) or "of no known rate"


def flattened(value: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield name and value of every fact; a point joins the names of nested facts.

    Examples
    --------
    >>> list(flattened({"version": "6.1", "offloads": {"gro": True}, "lines": ["ip a", "ip r"]}))
    [('version', '6.1'), ('offloads · gro', 'yes'), ('lines', 'ip a; ip r')]
    """
    for key, entry in value.items():
        name = f"{prefix} · {key}" if prefix else str(key).replace("_", " ")
        if isinstance(entry, Mapping):
            if entry:
                yield from flattened(entry, name)
            else:
                yield name, "none"
        elif isinstance(entry, Sequence) and not isinstance(entry, str):
            yield name, _listed(entry)
        else:
            yield name, _text(entry)


def _listed(entries: Sequence[object]) -> str:
    if not entries:
        return "none"
    texts = list(map(_text, entries))
    line = ", ".join(texts) if all(isinstance(entry, int | float) for entry in entries) else "; ".join(texts)
    return line if len(line) < _MAX_LINE and "\n" not in line else "\n".join(texts)


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list | tuple):
        return ", ".join(map(_text, value))
    if isinstance(value, Mapping):
        return ", ".join(f"{key} = {_text(entry)}" for key, entry in value.items())
    return str(value)


_MEASURED_LATENCY = (
    'measured, under "Latency" on this page and at the loads there; the rates that calibrate this router give no other'
)


def benchmark_page(result: BenchmarkResult) -> Page:
    """Return the page: the answer and its figure, the compliance with RFC 2544, then each procedure."""
    opening = _opening(result)
    sections = [
        *_disturbed(result),
        *([Section(anchor="found", title="", blocks=opening, is_listed=False)] if opening else []),
        *_contradictions(result),
        *([Section.of("limits", "What limits", "", _long(limits_table(result)))] if result.limits else []),
        *_explorer(result),
        _compliance(result),
    ]
    sections += [_procedure(result, name, opening) for name in result.procedures]
    if result.not_run:
        sections.append(_not_run(result))
    sections += [_setup(result), _trials(result)]
    title = result.setup.device_title
    return Page(
        title=f"{title[:1].upper()}{title[1:]}: RFC 2544 benchmark",
        question=f"RFC 2544 and its updates, profile {result.profile_name}"
        + (f", {result.started_utc[:10]}" if result.started_utc else ""),
        answer=" ".join(
            (
                _answer(result),
                f"{_LEVELS[result.compliance.level][1]} with RFC 2544.",
                *((f"**{as_sentence(result.shared_cores)}**",) if result.shared_cores else ()),
            )
        ),
        is_folded=not result.shared_cores,  # a disturbed run says so at once
        sections=tuple(sections),
        provenance=_provenance(result),
        source="RFC 2544, RFC 1242 and RFC 2285 define the terms; RFC 9004 replaces sec. 26.4, RFC 6201 sec. 26.6; RFC "
        "8219 adds statistics of latency, RFC 9971 the search. benchmark.json beside this page holds every figure "
        "(described in benchmark.schema.json), trials.parquet every trial.",
    )


def _disturbed(result: BenchmarkResult) -> Iterator[Section]:
    """Yield the notice of a disturbed machine, which opens the page."""
    if result.disturbed:
        notice = Notice(mood="bad", title="A disturbed machine", text=" ".join(map(as_sentence, result.disturbed)))
        yield Section(anchor="disturbed", title="", blocks=(notice,), is_listed=False)


def _contradictions(result: BenchmarkResult) -> Iterator[Section]:
    """Yield the section of contradictions, if there are any."""
    if result.contradictions:
        entries = tuple(f"{text}." for text in result.contradictions)
        yield Section.of(
            "contradictions",
            "What contradicts itself",
            "Figures of this report that cannot all be right, because the machine was disturbed or trials were too "
            "short.",
            Listing(title="Contradictions", entries=entries),
        )


def _opening(result: BenchmarkResult) -> tuple[Block, ...]:
    """Return the first figure with more than one point, and the tiles of all procedures."""
    figures = (
        figure
        for name in sorted(result.procedures, key=lambda name: name not in _FIGURE_OF_ANSWER)
        for figure in PROCEDURES[name].figures(result.by_procedure[name], result)
        if not figure.is_one_point
    )
    blocks = (
        block for name in result.procedures for block in PROCEDURES[name].opening(result.by_procedure[name], result)
    )
    return (*itertools.islice(figures, 1), *(block for block in blocks if isinstance(block, Tiles)))


def _explorer(result: BenchmarkResult) -> Iterator[Section]:
    """Yield an interactive router that the rates in overload calibrate, if there are any."""
    points, _ = points_of(result, cores=None)
    if points:
        of_series = [point for point in points if point.series == points[0].series]
        is_measured = "latency" in result.procedures
        live, _ = live_of_points(of_series, latency_reason=_MEASURED_LATENCY if is_measured else "not measured")
        yield Section(anchor="explore", title="", blocks=(live,), is_listed=False)


def _answer(result: BenchmarkResult) -> str:
    answers = [text for name in result.procedures for text in PROCEDURES[name].answers(result.by_procedure[name])]
    done = ", ".join(PROCEDURES[name].words for name in result.procedures) or "nothing"
    return answers[0] if answers else f"Procedures with a result: {done}."


def _compliance(result: BenchmarkResult) -> Section:
    compliance = result.compliance
    mood, title = _LEVELS[compliance.level]
    return Section.of(
        "compliance",
        "Compliance",
        "RFC 2544 sec. 5: a test that meets all MUSTs is conditionally compliant, one that meets all SHOULDs as "
        "well unconditionally.",
        Notice(mood=mood, title=title, text=compliance.statement),
        bool(compliance.deviations) and deviations_table(result),
        bool(result.notes) and _brief(Listing(title="Notes", entries=tuple(map(as_sentence, result.notes)))),
    )


def _procedure(result: BenchmarkResult, name: str, top: Sequence[Block]) -> Section:
    """Return the section of a procedure without the blocks at the top of the page."""
    procedure, answer = PROCEDURES[name], result.by_procedure[name]
    table, reasons = procedure_table(result, name), procedure.reasons(answer.rows)
    return Section.of(
        table.name,
        procedure.title,
        procedure.lead,
        *(block for block in procedure.opening(answer, result) if block not in top),
        *(figure for figure in procedure.figures(answer, result) if figure not in top),
        _long(replace(table, caption=" ".join(filter(None, (table.caption, procedure.explained))))),
        bool(reasons) and Listing(title="Without a figure, and why", entries=reasons),
        *(_brief(block) for block in procedure.closing(answer, result)),
    )


def _brief(block: Block) -> Block:
    """Fold a list that would push the next block out of sight."""
    if isinstance(block, Listing) and sum(len(entry.split()) for entry in block.entries) > _MAX_WORDS:
        return replace(block, is_folded=True)
    return block


def _long(table: Table) -> Table | Folded:
    """Fold a table that would push the next block out of sight."""
    if len(table.rows) <= _MAX_ROWS:
        return table
    return Folded(summary=f"{table.title}: show {plural(len(table.rows), 'row')}", table=table)


def _not_run(result: BenchmarkResult) -> Section:
    return Section.of(
        "not-run",
        "What was not run",
        "Parts of the standards that this run left out, with the reason.",
        not_run_table(result),
    )


def _setup(result: BenchmarkResult) -> Section:
    return Section(
        anchor="setup",
        title="Router, tester and profile",
        lead="RFC 2544 sec. 7 asks for the version and the exact configuration of the router with its disabled "
        "functions, sec. 8 for the frame formats.",
        blocks=_setup_facts(result),
    )


def _trials(result: BenchmarkResult) -> Section:
    table = trials_table(result)
    total = len(result.trials)
    invalid = f", {result.invalid_trials} of them invalid" if result.invalid_trials else ", all of them valid"
    resumed = f" {result.resumed_trials} were kept from a run that was interrupted." if result.resumed_trials else ""
    return Section.of(
        "trials",
        "Every trial",
        f"{plural(total, 'trial')}{invalid}.{resumed} An invalid trial is one in which the tester, not the router, "
        "failed: it is never a result.",
        Prose((table.caption,)),
        total > 0 and Folded(summary=f"Show {plural(total, 'trial')}", table=table),
    )


def _provenance(result: BenchmarkResult) -> tuple[tuple[str, str], ...]:
    versions = ", ".join(f"{name} {number}" for name, number in result.versions.items())
    rows = [("Command", f"`{result.command}`" if result.command else "–"), ("Profile", result.profile_name)]
    if result.started_utc:
        rows.append(("Started", result.started_utc))
    if math.isfinite(result.elapsed_s):
        rows.append(("Took", format_duration(float(f"{result.elapsed_s:.3g}"))))
    rows += [("Trials", f"{len(result.trials):,}, {result.invalid_trials} invalid"), ("Versions", versions or "–")]
    rows.append(("Units", result.setup.load_unit))
    return tuple(rows)
