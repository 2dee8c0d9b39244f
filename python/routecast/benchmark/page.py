"""The page of a benchmark and its folder: how compliant it is, what was found, with what, how to do it again."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

from routecast.benchmark.journal import SUMMARY
from routecast.benchmark.points import points_of
from routecast.benchmark.procedures import PROCEDURES
from routecast.benchmark.procedures.procedure import as_sentence, plural
from routecast.benchmark.result import BenchmarkResult, MixFacts
from routecast.benchmark.tables import deviations_table, limits_table, not_run_table, procedure_table, trials_table
from routecast.explore.views import live_of_points
from routecast.quantity import format_bps, format_duration, format_ratio
from routecast.quantity.whole_file import write_whole
from routecast.show.drawing import draw
from routecast.show.page import Block, Facts, Folded, Listing, Notice, Page, Prose, Section, Tiles, render_page
from routecast.show.tables import Table

__all__ = ["benchmark_page", "flattened", "write_report"]

_SCHEMA = "benchmark.schema.json"


def write_report(result: BenchmarkResult, folder: Path) -> Path:
    """Write ``report.html``, ``figures/*.svg``, ``benchmark.schema.json``; and ``benchmark.json`` if it is not there.

    ``folder``: the benchmark's folder; made if missing. Every file is whole or absent. Returns the page.
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


_LONGEST_LINE = 80


def setup_facts(result: BenchmarkResult) -> tuple[Block, ...]:
    """Return router, tester, media and streams, and the profile's values.

    All facts of router and tester, nested as they are, as names and values (RFC 2544 sec. 7).
    """
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
    parts = (
        ("Router (device under test)", tuple(flattened(setup.device)) or (("", "nothing is known of it"),)),
        ("Tester", tuple(flattened(setup.tester)) or (("", "nothing is known of it"),)),
        ("Media and streams", media),
        (f"Profile {result.profile_name}", tuple(flattened(result.profile))),
    )
    return tuple(Facts(title=title, rows=rows) for title, rows in parts if rows)


def _mix(mix: MixFacts) -> str:
    """State a mix as RFC 6985 wants it: genome, sizes and their shares."""
    sizes = ", ".join(f"{size} B {format_ratio(share)}" for size, share in mix.share_by_bytes.items())
    custom = ", ".join(f"{letter} = {size} B" for letter, size in mix.custom_bytes.items())
    genome = f"genome {mix.genome}{f' ({custom})' if custom else ''}, " if mix.genome else ""
    order = "drawn at random" if mix.order == "random" else "in the order of the genome"
    return f"{mix.name}: {mix.mean_bytes:.6g} B on average, FCS included; {genome}{order} (RFC 6985): {sizes}"


def _links(result: BenchmarkResult) -> str:
    """Write the rates of the links."""
    rates = list(dict.fromkeys(format_bps(rate) for rate in result.setup.link_bps if math.isfinite(rate)))
    return ", ".join(rates) or "of no known rate"


_EVALUATORS = {
    "measure": "measured on the wire",
    "simulate": "a simulation of a model: predictions, no measurements",
    "solve": "a closed form of a model: predictions, no measurements",
}


def flattened(value: Mapping[str, object], before: str = "") -> Iterator[tuple[str, str]]:
    """Yield name and value of every fact; names of nested ones are joined by a point.

    Examples
    --------
    >>> list(flattened({"version": "6.1", "offloads": {"gro": True}, "lines": ["ip a", "ip r"]}))
    [('version', '6.1'), ('offloads · gro', 'yes'), ('lines', 'ip a; ip r')]
    """
    for key, entry in value.items():
        name = f"{before} · {key}" if before else str(key).replace("_", " ")
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
    texts = [
        ", ".join(f"{key} = {_text(part)}" for key, part in entry.items())
        if isinstance(entry, Mapping)
        else _text(entry)
        for entry in entries
    ]
    line = ", ".join(texts) if all(isinstance(entry, int | float) for entry in entries) else "; ".join(texts)
    return line if len(line) < _LONGEST_LINE and "\n" not in line else "\n".join(texts)


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


_MOST_ROWS = 24

_MOST_WORDS = 60
"""Longer lists of statements are folded."""

_OF_RATES = ("throughput", "frame_loss")
"""Procedures whose figures show the answer best: what is forwarded of which rate."""

_LEVELS = {
    "unconditional": ("good", "Unconditionally compliant"),
    "conditional": ("fair", "Conditionally compliant"),
    "not compliant": ("bad", "Not compliant"),
}


def benchmark_page(result: BenchmarkResult) -> Page:
    """Return the page: the answer and its figure, how far that complies with RFC 2544, then each procedure."""
    opening = _opening(result)
    sections = [
        *_disturbed(result),
        *([Section(anchor="found", title="", blocks=opening, is_listed=False)] if opening else []),
        *_contradictions(result),
        *([Section.of("limits", "What limits", "", _long(limits_table(result)))] if result.limits else []),
        *_turned(result),
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
        sections=tuple(sections),
        made=_made(result),
        source="RFC 2544, RFC 1242 and RFC 2285 define the terms; RFC 9004 renews sec. 26.4, RFC 6201 sec. 26.6, RFC "
        "8219 adds statistics of latency, RFC 9971 the search. benchmark.json beside this page holds every figure "
        "(benchmark.schema.json says how), trials.parquet every trial.",
    )


def _disturbed(result: BenchmarkResult) -> Iterator[Section]:
    """Open the page of a run on a disturbed machine with that."""
    if result.disturbed:
        notice = Notice(mood="bad", title="A disturbed machine", text=" ".join(map(as_sentence, result.disturbed)))
        yield Section(anchor="disturbed", title="", blocks=(notice,), is_listed=False)


def _contradictions(result: BenchmarkResult) -> Iterator[Section]:
    """Return what in the result contradicts something else in it, where there is any."""
    if result.contradictions:
        entries = tuple(f"{text}." for text in result.contradictions)
        yield Section.of(
            "contradictions",
            "What contradicts itself",
            "Figures of this report that cannot all be right: the machine was disturbed, or trials were too short.",
            Listing(title="Contradictions", entries=entries),
        )


def _opening(result: BenchmarkResult) -> tuple[Block, ...]:
    """Return what the page opens with: the first figure that shows a course, and the key numbers."""
    blocks: list[Block] = []
    for name in sorted(result.procedures, key=lambda name: name not in _OF_RATES):
        figures = PROCEDURES[name].figures(result.found[name], result)
        first = next((figure for figure in figures if not figure.is_one_point), None)
        if first is not None:
            blocks.append(first)
            break
    for name in result.procedures:
        blocks += (block for block in PROCEDURES[name].opening(result.found[name], result) if isinstance(block, Tiles))
    return tuple(blocks)


def _turned(result: BenchmarkResult) -> Iterator[Section]:
    """Return the router to turn, calibrated from the rates in overload, where there is one at least."""
    points, _ = points_of(result, cores=None)
    if points:
        live, _ = live_of_points([point for point in points if point.series == points[0].series])
        yield Section(anchor="explore", title="", blocks=(live,), is_listed=False)


def _answer(result: BenchmarkResult) -> str:
    answers = [text for name in result.procedures for text in PROCEDURES[name].answers(result.found[name])]
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
        Notice(
            mood="good" if mood == "good" else "fair" if mood == "fair" else "bad",
            title=title,
            text=compliance.statement,
        ),
        bool(compliance.deviations) and deviations_table(result),
        bool(result.notes) and _brief(Listing(title="Notes", entries=tuple(map(as_sentence, result.notes)))),
    )


def _procedure(result: BenchmarkResult, name: str, shown: Sequence[Block]) -> Section:
    """Return the section of a procedure: its figures and its table, and what has no figure, with the reason.

    What is ``shown`` at the top of the page does not stand here again.
    """
    procedure, answer = PROCEDURES[name], result.found[name]
    table, reasons = procedure_table(result, name), procedure.reasons(answer.rows)
    return Section.of(
        table.name,
        procedure.title,
        procedure.lead,
        *(block for block in procedure.opening(answer, result) if block not in shown),
        *(figure for figure in procedure.figures(answer, result) if figure not in shown),
        _long(replace(table, caption=" ".join(filter(None, (table.caption, procedure.explained))))),
        bool(reasons) and Listing(title="Without a figure, and why", entries=reasons),
        *(_brief(block) for block in procedure.closing(answer, result)),
    )


def _brief(block: Block) -> Block:
    """Fold a list of statements that would push what follows out of sight."""
    if isinstance(block, Listing) and sum(len(entry.split()) for entry in block.entries) > _MOST_WORDS:
        return replace(block, is_folded=True)
    return block


def _long(table: Table) -> Table | Folded:
    """Fold a table that would push what follows out of sight."""
    if len(table.rows) <= _MOST_ROWS:
        return table
    return Folded(summary=f"{table.title}: show {plural(len(table.rows), 'row')}", table=table)


def _not_run(result: BenchmarkResult) -> Section:
    return Section.of(
        "not-run",
        "What was not run",
        "What the standards know and this run left out, with the reason.",
        not_run_table(result),
    )


def _setup(result: BenchmarkResult) -> Section:
    return Section(
        anchor="setup",
        title="What was tested, and with what",
        lead="RFC 2544 sec. 7 asks for the version and the exact configuration of the router, what is disabled "
        "included; sec. 8 for the frame formats.",
        blocks=setup_facts(result),
    )


def _trials(result: BenchmarkResult) -> Section:
    table = trials_table(result)
    total = len(result.trials)
    invalid = f", {result.invalid_trials} of them invalid" if result.invalid_trials else ", all of them valid"
    resumed = f" {result.resumed_trials} were kept from a run that was interrupted." if result.resumed_trials else ""
    blocks: tuple[Block, ...] = (Prose((table.caption,)),)
    if total:
        blocks = (Prose((table.caption,)), Folded(summary=f"Show {plural(total, 'trial')}", table=table))
    return Section(
        anchor="trials",
        title="Every trial",
        lead=f"{plural(total, 'trial')}{invalid}.{resumed} An invalid trial is one in which the tester, not the "
        "router, failed: it is never a result.",
        blocks=blocks,
    )


def _made(result: BenchmarkResult) -> tuple[tuple[str, str], ...]:
    versions = ", ".join(f"{name} {number}" for name, number in result.versions.items())
    again = f"`{result.command}`" if result.command else "–"
    rows = [("Command", again), ("Profile", result.profile_name)]
    if result.started_utc:
        rows.append(("Started", result.started_utc))
    if math.isfinite(result.elapsed_s):
        rows.append(("Took", format_duration(float(f"{result.elapsed_s:.3g}"))))
    rows += [("Trials", f"{len(result.trials):,}, {result.invalid_trials} invalid"), ("Versions", versions or "–")]
    rows.append(("Units", result.setup.load_unit))
    return tuple(rows)
