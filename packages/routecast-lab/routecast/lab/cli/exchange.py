"""``routecast import`` and ``routecast export``: results of other tools as trials, trials as files for other tools."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from routecast.cli.console import data, print_json, print_table, remark
from routecast.cli.options import AsJson, RenameOption
from routecast.quantity.whole_file import write_whole

if TYPE_CHECKING:
    from routecast.lab.benchmark.exchange import Record

__all__ = ["ExportFormat", "ImportFormat", "export_trials", "import_trials"]


class ImportFormat(StrEnum):
    """Formats that are read."""

    AUTO = "auto"
    IPERF3 = "iperf3"
    UTI = "uti"
    NFVBENCH = "nfvbench"
    TRAFFICGEN = "trafficgen"
    TREX = "trex"
    TREX_STATS = "trex-stats"
    DPERF = "dperf"
    MOONGEN = "moongen"
    MOONGEN_HISTOGRAM = "moongen-histogram"
    SIITPERF = "siitperf"
    HGRM = "hgrm"
    HLOG = "hlog"
    BENCHMARK = "benchmark"
    CSV = "csv"
    PARQUET = "parquet"


class ExportFormat(StrEnum):
    """Formats that are written."""

    UTI = "uti"
    CSV = "csv"
    VALIDATE = "validate"
    NS3 = "ns3"


File = Annotated[Path, typer.Argument(metavar="FILE", help="Results of a tool.", dir_okay=False)]
FileOrRouter = Annotated[
    Path, typer.Argument(metavar="FILE", help="Results of a tool; for ns3 a router file.", dir_okay=False)
]
Files = Annotated[list[Path], typer.Argument(metavar="FILE...", help="Results of tools: files, or folders of them.")]
ReadOption = Annotated[ImportFormat, typer.Option("--from", help="Format of FILE; auto tells it by its keys.")]
FrameOption = Annotated[
    str | None, typer.Option("--frame", "--frames", metavar="SIZE", help="Frame size, for files that do not say it.")
]


def import_trials(
    files: Files,
    *,
    format_name: Annotated[
        ImportFormat, typer.Option("--format", help="Format of FILE; auto tells it by its keys.")
    ] = ImportFormat.AUTO,
    frame: FrameOption = None,
    cores: Annotated[
        int | None, typer.Option("--cores", min=1, help="Cores that forwarded, for files that do not say them.")
    ] = None,
    link: Annotated[
        str | None, typer.Option("--link", metavar="RATE", help="Rate of a port, for files that do not say it.")
    ] = None,
    load: Annotated[
        str | None,
        typer.Option(
            "--load", metavar="RATE", help="Rate that was offered, for files of latencies that do not say it."
        ),
    ] = None,
    series: Annotated[
        str | None, typer.Option("--series", metavar="NAME", help="One name for all: the router and what it does.")
    ] = None,
    rename: RenameOption = None,
    latency_unit: Annotated[
        str | None,
        typer.Option("--latency-unit", metavar="UNIT", help="Unit of latencies, for files that do not say it: us."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="Write FILE.parquet or FILE.csv, which `size` and `validate` read, too.",
            dir_okay=False,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Read results of other testers as trials, and print them as a table.

    TRex, NFVbench, bench-trafficgen, CSIT, iperf3, dperf, MoonGen and siitperf are read, HDR histograms, and tables as
    CSV, Parquet or spreadsheets.
    """
    read = _records(files, format_name, frame, rename, latency_unit)
    records = _with_load(_with_conditions(read, cores, link, series), load)
    if out is not None:
        _write_records(records, out)
    if as_json:
        print_json({**_named(files), "trials": [record.to_json() for record in records]})
        return
    from routecast.lab.benchmark.tables import records_table

    print_table(data(), records_table(files[0].name if len(files) == 1 else f"{len(files)} files", records))
    for line in _trial_notes(records):
        data().print(line, markup=False, style="dim")


def export_trials(
    file: FileOrRouter,
    *,
    format_name: Annotated[ExportFormat, typer.Option("--format", help="What to write.")],
    source: ReadOption = ImportFormat.AUTO,
    frame: FrameOption = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="PATH", help="File to write; a folder for several UTI test cases."),
    ] = None,
    goal: Annotated[
        str | None, typer.Option("--goal", help="validate: only trials of this goal, such as ndr or mrr.")
    ] = None,
    cores: Annotated[
        int | None, typer.Option("--cores", min=1, help="validate: cores, for files that do not say them.")
    ] = None,
    link: Annotated[
        str | None, typer.Option("--link", metavar="RATE", help="validate: rate of a port, '10 Gbit/s'.")
    ] = None,
    calibrate: Annotated[
        str, typer.Option("--calibrate", metavar="SIZES", help="validate: frame sizes whose rows calibrate, '64,1518'.")
    ] = "",
) -> None:
    """Write trials as CSIT UTI 1.5.1, CSV, or a table for `routecast validate`; a router for ns-3."""
    if format_name is ExportFormat.NS3:
        _write_text(_router_for_ns3(file), out)
        return
    from routecast.lab.benchmark.exchange import csv_text, uti_documents, validate_text

    records = _records([file], source, frame, None)
    if format_name is ExportFormat.CSV:
        _write_text(csv_text(records), out)
    elif format_name is ExportFormat.VALIDATE:
        from routecast.quantity import parse_bit_rate_bps, parse_frame_bytes

        sizes = [float(parse_frame_bytes(part.strip())) for part in calibrate.split(",") if part.strip()]
        text = validate_text(
            records,
            name=str(file),
            goal=goal,
            cores=cores,
            link_bps=parse_bit_rate_bps(link) if link else None,
            calibrate_bytes=sizes,
            on_remark=remark,
        )
        _write_text(text, out)
    else:
        documents = uti_documents(records, name=str(file))
        texts = {name: json.dumps(document, indent=1, allow_nan=False) + "\n" for name, document in documents.items()}
        if len(texts) == 1:
            _write_text(next(iter(texts.values())), out)
        elif out is None:
            raise typer.BadParameter(f"{file} holds {len(texts)} test cases: give --out FOLDER for a file of each")
        else:
            out.mkdir(parents=True, exist_ok=True)
            for name, text in texts.items():
                write_whole(out / f"{name}.json", text)
            remark(f"Wrote {len(texts)} test cases to {out}")


def _router_for_ns3(file: Path) -> str:
    from routecast.lab.ns3 import ns3_document
    from routecast.router.files import read_router

    return json.dumps(ns3_document(read_router(file)), indent=1, allow_nan=False, ensure_ascii=False) + "\n"


def _records(
    files: Sequence[Path],
    format_name: ImportFormat,
    frame: str | None,
    rename: Sequence[str] | None,
    latency_unit: str | None = None,
) -> tuple[Record, ...]:
    from routecast.lab.benchmark.exchange import read_many
    from routecast.quantity import parse_duration_s
    from routecast.quantity.table_file import parse_rename

    renamed = parse_rename(rename or ())
    unit_s = parse_duration_s(f"1 {latency_unit}") if latency_unit else None
    records = read_many(files, format_name=format_name.value, rename=renamed, latency_unit_s=unit_s, on_remark=remark)
    if frame is None:
        return records
    from routecast.load.frames import FrameMix

    frames = FrameMix.parse(frame)
    return tuple(record.with_frames(frames) for record in records)


def _with_conditions(
    records: Sequence[Record], cores: int | None, link: str | None, series: str | None
) -> tuple[Record, ...]:
    """Return records with the conditions that their files do not say, and one name for all."""
    from routecast.quantity import parse_bit_rate_bps

    link_bps = parse_bit_rate_bps(link) if link else math.nan
    return tuple(
        replace(
            record,
            cores=record.cores or cores,
            link_bps=record.link_bps if math.isfinite(record.link_bps) else link_bps,
            facts={**record.facts, **({"series": series} if series else {})},
        )
        for record in records
    )


def _with_load(records: Sequence[Record], load: str | None) -> tuple[Record, ...]:
    """Return records of which those with a latency and without a rate have the rate of ``load``.

    Raises QuantityProblem: the load is no rate, or is one of bits and the size of the frames is not known.
    """
    from routecast.errors import QuantityProblem
    from routecast.load.frames import FrameMix
    from routecast.load.offered import IntendedRate

    if load is None:
        return tuple(records)
    rate = IntendedRate.parse(load)

    def loaded(record: Record) -> Record:
        trial = record.trial
        if trial.latency is None or math.isfinite(trial.offered_pps):
            return record
        if not record.frame_bytes >= 64.0:
            raise QuantityProblem(load, f"--load {load}: the file does not say its frame size: give --frame")
        offered_pps = rate.pps(record.mix or FrameMix.fixed(round(record.frame_bytes)))
        return replace(record, trial=replace(trial, intended_pps=offered_pps, offered_pps=offered_pps))

    return tuple(map(loaded, records))


def _named(files: Sequence[Path]) -> dict[str, object]:
    return {"file": str(files[0])} if len(files) == 1 else {"files": [str(file) for file in files]}


def _write_records(records: Sequence[Record], out: Path) -> None:
    from routecast.lab.benchmark.exchange import csv_text, write_parquet

    if out.suffix.lower() == ".parquet":
        write_parquet(records, out)
    elif out.suffix.lower() == ".csv":
        write_whole(out, csv_text(records))
    else:
        raise typer.BadParameter(f"{out}: give a name that ends in .parquet or .csv", param_hint="--out")
    remark(f"Wrote {len(records)} trials to {out}")


def _write_text(text: str, out: Path | None) -> None:
    if out is None:
        typer.echo(text, nl=False)
    else:
        write_whole(out, text)
        remark(f"Wrote {out}")


def _trial_notes(records: Sequence[Record]) -> list[str]:
    """Return each reason and note once, with the numbers of its trials unless it is of all."""
    numbers: dict[str, list[int]] = {}
    for number, record in enumerate(records, start=1):
        trial = record.trial
        for text in (*(f"✗ {reason}" for reason in trial.invalid), *(f"Note: {note}" for note in trial.notes)):
            numbers.setdefault(text, []).append(number)
    lines = []
    for text, trials in numbers.items():
        trial_list = ", ".join(map(str, trials[:6])) + (", …" if len(trials) > 6 else "")
        lines.append(f"{text}." if len(trials) == len(records) else f"{text} (trial {trial_list}).")
    return lines
