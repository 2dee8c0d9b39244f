"""``routecast init``: a first study or router file, from measurements, from this machine, or from a few answers."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, TypeVar

import typer

from routecast.cli.console import read_series_points, remark, today
from routecast.cli.copies import copy_files, print_copies
from routecast.cli.options import AsJson, RenameOption
from routecast.errors import FileProblem, Problem, QuantityProblem, RoutecastError

__all__ = ["init"]

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_STUDY, _ROUTER = ".study.toml", ".router.toml"
_MAX_PPS = 1e12
"""One frame in each picosecond, the resolution of simulated time."""

Answer = TypeVar("Answer")


def init(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="What the study or the router is called; names the files.")
    ] = None,
    *,
    measurements: Annotated[
        Path | None,
        typer.Option("--measurements", metavar="FILE.csv", help="A table as `validate` takes it.", dir_okay=False),
    ] = None,
    router: Annotated[
        bool, typer.Option("--router", help="--measurements: write the calibrated router, not a study.")
    ] = False,
    series: Annotated[
        str | None, typer.Option("--series", metavar="NAME", help="--measurements: only the rows of this series.")
    ] = None,
    rename: RenameOption = None,
    from_host: Annotated[
        bool, typer.Option("--from-host", help="Write a router of this machine's cores and links.")
    ] = False,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Folder that takes the files.")] = Path(),
    force: Annotated[bool, typer.Option("--force", help="Overwrite files that differ.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write a study or router file that runs, with comments that say what is a guess.

    Of measurements it is a study; of this machine, or of what is asked on the terminal otherwise, a router.
    """
    if measurements is not None and from_host:
        raise QuantityProblem("", "--measurements and --from-host are two sources: give one of them")
    if measurements is None and (router or series is not None or rename):
        option = "--router" if router else "--series" if series is not None else "--rename"
        raise QuantityProblem("", f"{option} is for --measurements: give a table of measured rates too")
    if name is not None and not _NAME.fullmatch(name):
        message = (
            f"{name[:60]!r} is no name: a letter or digit, then letters, digits, dots, hyphens, 64 at most; "
            "--out DIR names a folder"
        )
        raise QuantityProblem(name, message)
    if measurements is not None:
        texts = _measured_texts(name, measurements, series, rename, is_router=router)
    elif from_host:
        texts = _host_texts(name or "host")
    else:
        texts = _answered_texts(name, out, force=force)
    copies = copy_files(texts, out, force=force, original="what init writes", elsewhere="another NAME, or --out DIR,")
    print_copies(*copies, as_json=as_json)
    first = next(iter(texts))
    remark(f"Next: routecast {'study' if first.endswith(_STUDY) else 'solve'} {out / first}")


def _measured_texts(
    name: str | None, file: Path, series: str | None, rename: Sequence[str] | None, *, is_router: bool
) -> dict[str, str]:
    """Return the texts of a study with its tables, or of the router that a table calibrates."""
    points = read_series_points(file, series, rename)
    names = list(dict.fromkeys(point.series for point in points))
    if len(names) > 1:
        listed = ", ".join(f'"{series_name}"' for series_name in names[:8]) + (", …" if len(names) > 8 else "")
        raise QuantityProblem("", f"{file}: a file holds one series, and the table has {listed}: choose one (--series)")
    name = name or re.sub(r"[^A-Za-z0-9._-]+", "-", file.name.partition(".")[0]).strip("-._")[:60] or "measured"
    if is_router:
        from routecast.calibration import router_file_of, validate

        router_file = router_file_of(validate(points, router="multicore"), source=str(file), today=today())
        for warning in router_file.warnings:
            remark(f"Not in the file: {warning}")
        return {f"{name}{_ROUTER}": router_file.text}
    from routecast.study.starting import study_texts

    texts = study_texts(name, points, source=str(file))
    _check_study(texts, name, file)
    return texts


def _check_study(texts: dict[str, str], name: str, source: Path) -> None:
    """Raise FileProblem, with messages about the table, if a study would not run."""
    from routecast.errors import ModelProblem
    from routecast.study.reading import read_study
    from routecast.study.tables.run import check_answerable

    with TemporaryDirectory() as folder:
        for file, text in texts.items():
            (Path(folder) / file).write_text(text, encoding="utf-8")
        try:
            check_answerable(read_study(Path(folder) / f"{name}{_STUDY}"))
        except ModelProblem as problem:
            first, *others = problem.problems
            more = f" (and {len(others)} more)" if others else ""
            message = f"its rates make a router that cannot be: {first}{more}; correct the rates or their unit"
            raise FileProblem(str(source), [Problem("", message)]) from problem
        except FileProblem as problem:
            raise FileProblem(str(source), problem.problems) from problem


def _host_texts(name: str) -> dict[str, str]:
    from routecast.hardware.probe_facts import clock, cpu_name, network_cards, packages
    from routecast.router.starting import host_start, router_text

    sockets, cores = packages()
    frequency_hz, frequency_source = clock()
    cards, remarks = network_cards()
    start = host_start(
        name=name,
        cpu=cpu_name(),
        cores=sockets * cores,
        frequency_hz=frequency_hz,
        frequency_source=frequency_source,
        cards=cards,
        remarks=remarks,
    )
    return {f"{name}{_ROUTER}": router_text(start, command="routecast init --from-host")}


def _answered_texts(name: str | None, out: Path, *, force: bool) -> dict[str, str]:
    """Ask on the terminal, and repeat a question after an invalid answer."""
    from routecast.quantity import parse_bit_rate_bps, parse_frame_bytes, parse_rate_pps
    from routecast.router.bounds import LINK_RATES_BPS, LONGEST_S
    from routecast.router.starting import GUESSED_CORE_PPS, Start, router_text

    if not sys.stdin.isatty():
        message = "init asks on a terminal, and stdin is none: give --measurements FILE.csv or --from-host"
        raise QuantityProblem("", message)
    name = name or _ask("Name of the router", "router", _valid_name)
    file = f"{name}{_ROUTER}"
    if not force and (out / file).exists():
        message = "is there already: --force overwrites it, another NAME keeps it"
        raise FileProblem(str(out / file), [Problem("", message)])
    cores = _ask("Cores that forward frames", "4", _whole_number(1, 1024))
    ports = _ask("Ports", "2", _whole_number(2, 64))
    link_bps = _ask(
        "Rate of each link", "10 Gbit/s", _within(parse_bit_rate_bps, *LINK_RATES_BPS, "a link has", "bit/s")
    )
    frames = _ask("Frame size", "64 B", lambda text: (text, parse_frame_bytes(text)))
    question = f"Most frames of {frames[0]} that one core forwards, if known"
    parse_pps = _within(parse_rate_pps, 1.0 / LONGEST_S, _MAX_PPS, "one core forwards", "frames/s")
    core_pps = _ask(question, "not known", lambda text: None if text == "not known" else parse_pps(text))
    start = Start(
        name=name,
        cores=cores,
        ports=ports,
        link_bps=link_bps,
        core_pps=core_pps or GUESSED_CORE_PPS,
        service_note="one core, as answered" if core_pps else "guess: what one core takes for a frame",
        frames=frames[0],
        frame_bytes=float(frames[1]),
    )
    return {file: router_text(start, command="routecast init")}


def _ask(question: str, default: str, read: Callable[[str], Answer]) -> Answer:
    def valid_answer(text: str) -> Answer:
        try:
            return read(text.strip())
        except RoutecastError as problem:
            raise typer.BadParameter(str(problem)) from problem

    try:
        answer: Answer = typer.prompt(question, default=default, value_proc=valid_answer, err=True)
    except typer.Abort as abort:
        if isinstance(abort.__context__, KeyboardInterrupt):
            raise KeyboardInterrupt from None
        raise QuantityProblem("", f"{question}: no answer, and nothing was written") from None
    return answer


def _valid_name(text: str) -> str:
    if not _NAME.fullmatch(text):
        raise QuantityProblem(text, "a name is a letter or digit, then letters, digits, dots, hyphens, 64 at most")
    return text


def _within(parse: Callable[[str], float], low: float, high: float, subject: str, unit: str) -> Callable[[str], float]:
    def read(text: str) -> float:
        value = parse(text)
        if not low <= value <= high:
            raise QuantityProblem(text, f"got {text[:40]!r}: {subject} from {low:g} to {high:g} {unit}")
        return value

    return read


def _whole_number(low: int, high: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not text.isascii() or not text.isdigit() or len(text) > 6 or not low <= int(text) <= high:
            raise QuantityProblem(text, f"got {text[:20]!r}: a whole number from {low} to {high}")
        return int(text)

    return read
