"""The page of a benchmark: how compliant it is, what was found, with what, and how to do it again."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from routecast.benchmark.result import BenchmarkResult, LatencyResult, ThroughputResult, ThroughputRow
from routecast.quantity import format_bps, format_duration, format_power
from routecast.report.benchmark.figures import frame_loss_figures, latency_figures, throughput_figure
from routecast.report.benchmark.tables import (
    FRAME,
    STREAM,
    Row,
    back_to_back_table,
    frame_loss_table,
    known,
    latency_statistics_table,
    latency_table,
    rate_column,
    reasons,
    recovery_table,
    reset_table,
    throughput_table,
)
from routecast.report.benchmark.texts import frames_per_second, links, percent_of, plural, stream_of, time
from routecast.report.page import Block, Facts, Folded, Listing, Notice, Page, Prose, Section, Tile, Tiles
from routecast.report.tables import Column, Table

__all__ = ["benchmark_page", "flattened"]


# All facts of router and tester, nested as they are, as names and values (RFC 2544 sec. 7).


_LONGEST_LINE = 80


def setup_facts(result: BenchmarkResult) -> tuple[Block, ...]:
    """Return router, tester, media and streams, and the profile's values."""
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
        ("Links", links(result)),
        ("Frame sizes", ", ".join(map(str, setup.frame_bytes)) + " B, FCS included"),
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


# Tables of the run itself: in what it differs from the standards, what it left out, every trial.


def deviations_table(result: BenchmarkResult) -> Table:
    """Return every way in which the run differs from the standards, the MUSTs first to the eye."""
    found = result.compliance.deviations
    return Table.of(
        found,
        Column.text("Document", "document"),
        Column.text("Sec.", "section"),
        Column.text("Level", "requirement"),
        Column.text("Asked for", "wanted", wrap=True),
        Column.text("Done", "done", wrap=True),
        name="deviations",
        title="Deviations",
        caption="What the standards ask for, and what was done instead. Shaded rows are MUSTs.",
        strong=lambda one: one.requirement == "MUST",
    )


def not_run_table(result: BenchmarkResult) -> Table:
    """Return what the standards know and this run left out."""
    return Table.of(
        result.not_run,
        Column.text("Section", "section"),
        Column.text("What", "what", wrap=True),
        Column.text("Why", "reason", wrap=True),
        name="not-run",
        title="Not run",
    )


def trials_table(result: BenchmarkResult) -> Table:
    """Return every trial in the order of the run; invalid ones stand out with their reason."""
    invalid = result.invalid_trials
    table = Table(
        name="trials",
        title="Every trial",
        caption=f"In the order of the run. Shaded rows are invalid ({invalid}): they are no result and were run again.",
        columns=(
            Column("#", "", "d"),
            Column.text("Procedure"),
            STREAM,
            FRAME,
            Column.text("For"),
            Column("Attempt", "", "d"),
            Column("Length", "", time),
            rate_column("Intended", "rates"),
            rate_column("Offered", "rates"),
            rate_column("Forwarded", "rates"),
            Column("Sent", "", ",d", group="frames"),
            Column("Received", "", ",d", group="frames"),
            Column("Lost", "", ",d", group="frames"),
            Column("Twice", "", ",d", group="frames"),
            Column("Reordered", "", ",d", group="frames"),
            Column("Corrupt", "", ",d", group="frames"),
            Column("Loss", "", percent_of),
            Column("Median", "", time, group="latency"),
            Column("99 %", "", time, group="latency"),
            Column.text("Invalid because"),
        ),
        rows=tuple(
            (
                record.number,
                record.procedure.replace("_", " "),
                record.stream,
                record.frame_bytes,
                record.purpose,
                record.attempt,
                record.trial.duration_s,
                record.trial.intended_pps,
                record.trial.offered_pps,
                record.trial.forwarded_pps,
                record.trial.offered_frames,
                record.trial.forwarded_frames,
                record.trial.dropped_frames,
                record.trial.duplicated_frames,
                record.trial.reordered_frames,
                record.trial.corrupted_frames,
                record.trial.loss_ratio,
                record.trial.latency.p50_s if record.trial.latency else None,
                record.trial.latency.p99_s if record.trial.latency else None,
                "; ".join(record.trial.invalid),
            )
            for record in result.trials
        ),
        strong=frozenset(number for number, record in enumerate(result.trials) if not record.trial.is_valid),
    )
    return known(table)


_MOST_ROWS = 24
_MOST_TILES = 4

_LEVELS = {
    "unconditional": ("good", "Unconditionally compliant"),
    "conditional": ("fair", "Conditionally compliant"),
    "not compliant": ("bad", "Not compliant"),
}


def benchmark_page(result: BenchmarkResult) -> Page:
    """Return the page: the compliance statement first, then RFC 2544's sections in their order."""
    sections = [_compliance(result), *_procedures(result)]
    if result.not_run:
        sections.append(_not_run(result))
    sections += [_setup(result), _trials(result)]
    title = result.setup.device_title
    return Page(
        title=f"{title[:1].upper()}{title[1:]}: RFC 2544 benchmark",
        question=f"RFC 2544 and its updates, profile {result.profile_name}"
        + (f", {result.started_utc[:10]}" if result.started_utc else ""),
        answer=_answer(result),
        sections=tuple(sections),
        made=_made(result),
        source="RFC 2544, RFC 1242 and RFC 2285 define the terms; RFC 9004 renews sec. 26.4, RFC 6201 sec. 26.6, RFC "
        "8219 adds statistics of latency, RFC 9971 the search. benchmark.json beside this page holds every figure "
        "(benchmark.schema.json says how), trials.parquet every trial.",
    )


def _answer(result: BenchmarkResult) -> str:
    if result.throughput and result.throughput.advertised:
        return f"Throughput: **{result.throughput.advertised[0]}**."
    if result.throughput and not _headlines(result.throughput):
        return "**No throughput was found**: the reasons stand beneath the table."
    done = ", ".join(name.replace("_", " ") for name in result.procedures) or "nothing"
    return f"Procedures with a result: {done}."


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
        bool(result.notes) and Prose(tuple(f"**Note.** {_ended(note)}" for note in result.notes)),
    )


def _procedures(result: BenchmarkResult) -> Iterator[Section]:
    if result.throughput:
        yield _throughput(result, result.throughput)
    if result.latency:
        yield _latency(result, result.latency)
    if result.frame_loss:
        yield Section.of(
            "frame-loss",
            "Frame loss rate",
            "What part of the frames is lost when more is offered than the router can forward. From the maximum "
            "rate downwards, until two trials in a row lose nothing.",
            *frame_loss_figures(result.frame_loss),
            _long(frame_loss_table(result.frame_loss)),
            *_open(result.frame_loss.rows),
        )
    if result.back_to_back:
        yield Section.of(
            "back-to-back",
            "Back-to-back frames",
            "The longest burst at the maximum rate that the router takes without loss: a measure of its buffers.",
            Prose((_ended(result.back_to_back.algorithm),)),
            back_to_back_table(result.back_to_back),
            *_open(result.back_to_back.rows),
        )
    if result.recovery:
        yield Section.of(
            "recovery",
            "System recovery",
            "How long the router goes on losing frames after an overload of 110 % has ended.",
            recovery_table(result.recovery),
            *_open(result.recovery.rows),
        )
    if result.reset:
        statements = tuple(
            f"{row.statement[:1].upper()}{row.statement[1:]}." for row in result.reset.rows if row.statement
        )
        yield Section.of(
            "reset",
            "Reset",
            "How long the router forwards nothing when it, or a part of it, is restarted.",
            bool(statements) and Prose(statements),
            reset_table(result.reset),
            *_open(result.reset.rows, of_kind=True),
        )


def _open(rows: Sequence[Row], *, of_kind: bool = False) -> tuple[Listing, ...]:
    """List what has no figure, and why."""
    entries = reasons(rows)
    if of_kind:
        entries = tuple(dict.fromkeys(f"{getattr(row, 'kind', '')}: {row.reason}." for row in rows if row.reason))
    return (Listing(title="Without a figure, and why", entries=entries),) if entries else ()


def _long(table: Table) -> Table | Folded:
    """Fold a table that would push what follows out of sight."""
    if len(table.rows) <= _MOST_ROWS:
        return table
    return Folded(summary=f"{table.title}: show {plural(len(table.rows), 'row')}", table=table)


def _throughput(result: BenchmarkResult, throughput: ThroughputResult) -> Section:
    blocks: list[Block] = []
    tiles = tuple(_throughput_tile(result, row) for row in _headlines(throughput))
    if tiles:
        blocks.append(Tiles(tiles))
    found = "measured" if result.setup.evaluator == "measure" else "predicted"
    figure = throughput_figure(throughput, found=found)
    if figure:
        blocks.append(figure)
    blocks += [throughput_table(throughput), *_open(throughput.rows)]
    setup = result.setup
    protocols = " and ".join(dict.fromkeys(f"UDP over {stream.protocol}" for stream in setup.streams))
    said = (f"Protocol: {protocols}.", f"Stream format: {setup.frame_format}.", f"Media: {setup.medium}.")
    blocks.append(Listing(title="Conditions", entries=said))
    if throughput.advertised:
        entries = tuple(f"{text}." for text in throughput.advertised)
        blocks.append(Listing(title="What may be advertised, as sec. 26.1 wants it", entries=entries))
    searched = (f"Search: {throughput.search}.",) if throughput.search else ()
    if searched or result.search_statements:
        entries = (*searched, *result.search_statements)
        blocks.append(Listing(title="How it was searched (RFC 9971)", entries=entries))
    return Section(
        anchor="throughput",
        title="Throughput",
        lead="The greatest rate at which the router forwards every frame, for each frame size.",
        blocks=tuple(blocks),
    )


def _headlines(throughput: ThroughputResult) -> list[ThroughputRow]:
    """Smallest and largest frame of the first stream without loss, else of the first goal."""
    known = [row for row in throughput.rows if math.isfinite(row.throughput_pps)]
    if not known:
        return []
    strict = [row for row in known if row.loss_ratio == 0.0] or known
    first = [row for row in strict if (row.stream, row.goal) == (strict[0].stream, strict[0].goal)]
    ends = sorted(first, key=lambda row: row.frame_bytes)
    if len(ends) > 1:
        return [ends[0], ends[-1]]
    others = (row for row in known if row.stream == ends[0].stream and row not in ends)
    return [*ends, *others][:_MOST_TILES]


def _ended(text: str) -> str:
    """Write a text as a sentence."""
    return f"{text[:1].upper()}{text[1:]}" + ("" if text.endswith((".", "!", "?")) else ".")


def _throughput_tile(result: BenchmarkResult, row: ThroughputRow) -> Tile:
    stream = stream_of(result, row.stream)
    protocol = f"UDP over {stream.protocol}" if stream else "UDP"
    named = protocol if stream and stream.name == stream.protocol else f"{protocol}, {row.stream}"
    loss = "no loss" if row.loss_ratio == 0.0 else f"at most {percent_of(row.loss_ratio)} loss"
    return Tile(
        frames_per_second(row.throughput_pps),
        f"frames/s of {row.frame_bytes} bytes, {loss}",
        f"theoretical limit {frames_per_second(row.theoretical_pps)} frames/s "
        f"({percent_of(row.of_theoretical_ratio)}); {named}; {format_bps(row.l1_bps)} on the wire{_watts(row)}",
    )


def _watts(row: ThroughputRow) -> str:
    """Write the power at the throughput with what it covers; nothing where there is none."""
    if row.power is None:
        return ""
    return f"; {format_power(row.power.mean_w)} and {1e6 * row.power.packet_j:.4g} uJ a packet ({row.power.scope})"


def _latency(result: BenchmarkResult, latency: LatencyResult) -> Section:
    at_throughput = [row for row in latency.rows if row.rate_ratio == 1.0 and math.isfinite(row.latency_s.mean)]
    lead = "How late a frame leaves the router, at the rate found as throughput."
    if at_throughput:
        least = min(at_throughput, key=lambda row: row.latency_s.mean)
        most = max(at_throughput, key=lambda row: row.latency_s.mean)
        ends = [time(row.latency_s.mean).replace(" ", "\u00a0") for row in (least, most)]
        lead += f" The average is {ends[0]}." if least is most else f" Averages are from {ends[0]} to {ends[1]}."
    return Section.of(
        "latency",
        "Latency",
        lead,
        Prose((f"**Definition.** {_ended(latency.definition)}",)),
        latency_table(latency),
        *_open(latency.rows),
        *latency_figures(latency),
        latency_statistics_table(latency),
    )


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
