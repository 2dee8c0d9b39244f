"""``routecast size``: how many cores a target needs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from routecast.cli.console import (
    check_figure_file,
    check_output_file,
    data,
    print_csv,
    print_json,
    print_table,
    progress_bar,
    read_measured_table,
    read_series_points,
    refuse_two_forms,
    remark,
    write_figure,
)
from routecast.cli.device import GraphicsOptions
from routecast.cli.options import AsCsv, AsJson, FigureFile, NoiseOption, RenameOption, grouped, ratio_option
from routecast.errors import QuantityProblem

if TYPE_CHECKING:
    from routecast.evaluate.targets import Target as Bound
    from routecast.show.figures import Figure
    from routecast.show.page import Live
    from routecast.size import Sizing, Target

__all__ = ["size"]

_function_option = partial(typer.Option, rich_help_panel="A function on a host")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Question:
    """The question about a router."""

    target: Target
    counts: tuple[int, ...]
    bounds: tuple[Bound, ...]
    noise_ratio: float | None
    series: str | None
    rename: tuple[str, ...]
    over: frozenset[str]
    where: GraphicsOptions


_DIMENSIONS = ("cores", "clock", "host")


def _free_dimensions(text: str, *, is_router: bool, is_function: bool) -> frozenset[str]:
    from routecast.quantity.did_you_mean import did_you_mean

    keys = [key.strip() for key in text.split(",")]
    for key in keys:
        if key not in _DIMENSIONS:
            raise QuantityProblem(key, f'--over "{key[:60]}" is nothing to choose: {did_you_mean(key, _DIMENSIONS)}')
        if (key == "clock" and not is_router) or (key == "host" and not is_function):
            owner = "a router file with P-states" if key == "clock" else "a --function; a table is carried with --host"
            raise QuantityProblem(key, f"--over {key} is of {owner}")
    return frozenset(keys)


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetOptions:
    """The target, and the numbers of cores that may meet it."""

    target: Annotated[str, typer.Option("--target", metavar="RATE", help='Rate to forward: "40 Gbit/s" or "20 Mpps".')]
    frames: Annotated[
        str,
        typer.Option(
            "--frames", "--frame", metavar="SIZE", help='Frames of the target: "1518 B", IMIX, "7x64, 4x594, 1x1518".'
        ),
    ] = "64 B"
    cores: Annotated[
        str, typer.Option("--cores", metavar="COUNTS", help='Counts to choose from: "1..64" or "1,2,4,8".')
    ] = "1..64"
    confidence: Annotated[
        str, typer.Option("--confidence", metavar="RATIO", help="Probability that the target is met.")
    ] = "95%"
    loss: Annotated[
        float,
        ratio_option(
            "--loss", help="Share of the target that may be lost, such as 0.1%.", bounds={"zero_allowed": True}
        ),
    ] = 0.0
    latency: Annotated[
        str | None,
        typer.Option(
            "--latency",
            metavar="BOUND",
            help='Bound on the latency at the target: "p99 < 100 us"; simulated where costs are stated.',
        ),
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HostOptions:
    """A function instead of a file, the hosts that run it, and what may vary beside the cores."""

    function: Annotated[
        str | None,
        _function_option(
            "--function",
            metavar="NAME",
            help="Instead of a file: a network function, as for `function`; beside --host what the router does.",
        ),
    ] = None
    host: Annotated[
        str | None,
        _function_option(
            "--host",
            metavar="HARDWARE",
            help="Host that the table was measured on, to carry it to another one with --on.",
        ),
    ] = None
    on: Annotated[
        list[str] | None,
        _function_option(
            "--on",
            metavar="HARDWARE",
            help="Host that is sized: a name of `hardware list`, or a *.hardware.toml; may be repeated.",
        ),
    ] = None
    over: Annotated[
        str,
        typer.Option(
            "--over",
            metavar="KEYS",
            help="What may vary: cores; also clock for a router file with P-states; also host for a --function.",
        ),
    ] = "cores"

    def refuse_contradictions(self, file: Path | None) -> None:
        """Raise QuantityProblem unless the options and the file are one question."""
        is_router = file is not None and file.suffix == ".toml"
        if (file is None) == (self.function is None) and not (file and self.host):
            message = "give a table or a router file, or a function with --function: one of them"
            raise QuantityProblem(str(file or ""), message)
        if self.host is not None and (file is None or is_router or not self.on):
            message = "--host is where a table was measured, and --on where it is to run: give all three"
            raise QuantityProblem(self.host, message)
        if self.on and self.function is None and self.host is None:
            message = (
                "--on needs the --host that the table was measured on, or a --function: a router file has its costs"
            )
            raise QuantityProblem(self.on[0], message)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableOptions:
    """The rows of a table of measurements, and how well they repeat."""

    noise: NoiseOption = None
    series: Annotated[str | None, typer.Option("--series", metavar="NAME", help="Only the rows of this series.")] = None
    rename: RenameOption = None


@grouped
def size(
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="[FILE]",
            help="Measured maximum throughputs (.csv, .parquet), or a router (.router.toml).",
            dir_okay=False,
        ),
    ] = None,
    *,
    wanted: TargetOptions,
    hosts: HostOptions,
    table: TableOptions,
    where: GraphicsOptions,
    figure: FigureFile = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE.html", help="Write the answer as a page.", dir_okay=False)
    ] = None,
    as_csv: AsCsv = False,
    as_json: AsJson = False,
) -> None:
    """Print how many cores a target needs, with which probability, and the measurements that would narrow it.

    Of a table, rows with calibrate = true calibrate (all rows with a rate, without that column); columns as for
    `validate`. Of a router file, or a function on a host, the description is taken as exact and no probability is
    known: the closed form finds the count, the simulator confirms it.
    """
    refuse_two_forms(as_csv=as_csv, as_json=as_json)
    check_figure_file(figure)
    check_output_file(out, "--out")
    question = _question(file, wanted, hosts, table, where)
    hosts.refuse_contradictions(file)
    sizings = _sizings(file, hosts, question)
    if figure is not None and len(sizings) > 1:
        names = ", ".join(sizing.series for sizing in sizings)
        message = f"a figure shows one of {names}: choose it"
        raise typer.BadParameter(message, param_hint="--figure")
    if as_json:
        print_json({"series": [sizing.to_json() for sizing in sizings]})
    elif as_csv:
        documents = [sizing.to_json() for sizing in sizings]
        print_csv({"series": sizing["series"], **row} for sizing in documents for row in sizing["counts"])
    else:
        _print(sizings)
    if figure is not None:
        _draw(sizings[0], figure)
    if out is not None:
        source = str(file) if file is not None else hosts.function or ""
        live, latency = _live(file, hosts.host, sizings, question), _latency(file, hosts.host, sizings, question)
        _write_page(sizings, out, source=source, live=live, latency=latency)
    unanswered = [sizing for sizing in sizings if sizing.least is None or sizing.has_open_bound]
    if unanswered:
        named = f" for {', '.join(sizing.series for sizing in unanswered)}" if len(sizings) > 1 else ""
        is_open = all(sizing.least is not None for sizing in unanswered)
        is_refuted = is_open and all(sizing.latency.refuted for sizing in unanswered)
        unknown = "the bound on the latency cannot be met" if is_refuted else "the latency is not measured"
        why = unknown if is_open else "no number of cores is certain enough"
        remark(f"{why}{named}: exit code 1")
        raise typer.Exit(1)


def _question(
    file: Path | None, wanted: TargetOptions, hosts: HostOptions, table: TableOptions, where: GraphicsOptions
) -> _Question:
    from routecast.calibration.fitted import MAX_CORES
    from routecast.evaluate.targets import parse_targets
    from routecast.quantity import parse_ratio
    from routecast.quantity.value_list import parse_counts
    from routecast.size import Target

    bounds = parse_targets([wanted.latency]) if wanted.latency else ()
    if any(bound.quantity == "loss" for bound in bounds):
        raise QuantityProblem(wanted.latency or "", "--latency bounds the latency: give the loss with --loss")
    confidence_ratio = parse_ratio(wanted.confidence)
    is_router = file is not None and file.suffix == ".toml"
    where.check()
    if where.device is not None and file is not None and not is_router:
        raise QuantityProblem(str(file), "--device is of router files and functions: a table is not simulated")
    return _Question(
        target=Target.parse(wanted.target, wanted.frames, confidence_ratio=confidence_ratio, loss_ratio=wanted.loss),
        counts=parse_counts(wanted.cores, most=MAX_CORES),
        bounds=bounds,
        noise_ratio=table.noise,
        series=table.series,
        rename=tuple(table.rename or ()),
        over=_free_dimensions(hosts.over, is_router=is_router, is_function=file is None),
        where=where,
    )


def _sizings(file: Path | None, hosts: HostOptions, question: _Question) -> tuple[Sizing, ...]:
    """Return the answers of a table carried to other hosts, a function, a router file, or a table."""
    if file is not None and hosts.host is not None:
        return tuple(_size_on_hosts(file, hosts.host, hosts.on or [], hosts.function, question))
    if hosts.function is not None:
        return tuple(_size_function(hosts.function, hosts.on or [], question))
    assert file is not None
    return _size_file(file, question) if file.suffix == ".toml" else _size_table(file, question)


def _draw(sizing: Sizing, figure: Path) -> None:
    from routecast.size.views import probability_figure, rate_figure

    is_measured = sizing.counts[0].probability is not None
    write_figure(probability_figure(sizing) if is_measured else rate_figure(sizing), figure)


def _write_page(
    sizings: tuple[Sizing, ...], out: Path, *, source: str, live: Live | None, latency: Figure | None
) -> None:
    from routecast.quantity.whole_file import write_whole
    from routecast.show.page import render_page
    from routecast.size.views import size_page

    write_whole(out, render_page(size_page(sizings, source=source, live=live, latency=latency)))
    remark(f"wrote {out}")


def _live(file: Path | None, host: str | None, sizings: Sequence[Sizing], question: _Question) -> Live | None:
    """Return the live panel of the page: of one measured series, or of a file."""
    if file is None or host is not None or len(sizings) != 1:
        return None
    from routecast.evaluate.points import of_series
    from routecast.explore.measured import StartConditions
    from routecast.explore.views import live_of_points, live_of_router
    from routecast.quantity.bounded_file import read_text
    from routecast.quantity.toml_file import parse_toml

    (sizing,), target = sizings, question.target
    start = StartConditions(
        frames=target.frames,
        rate_pps=target.rate_pps,
        cores=sizing.least.cores if sizing.least else None,
        counts=tuple(count.cores for count in sizing.counts),
    )
    if file.suffix == ".toml":
        document = parse_toml(read_text(file, kind="router file"), str(file))
        return live_of_router(document, start=start, subject=str(file), folder=file.parent)[0]
    points = of_series(read_measured_table(file, question.rename).points, question.series)
    return live_of_points(points, start=start, noise_ratio=question.noise_ratio)[0]


def _latency(file: Path | None, host: str | None, sizings: Sequence[Sizing], question: _Question) -> Figure | None:
    """Return the figure of the latency over the load: of one measured series that has rows of it."""
    if file is None or host is not None or len(sizings) != 1 or file.suffix == ".toml":
        return None
    from routecast.evaluate.points import of_series

    (sizing,) = sizings
    points = of_series(read_measured_table(file, question.rename).points, question.series)
    if sizing.recipe is None or sizing.conditions is None or not any(point.latency for point in points):
        return None
    from routecast.calibration.latency.views import latency_figure  # only of tables that have it

    return latency_figure(sizing.recipe.fitted(), points, sizing.conditions)


def _size_table(file: Path, question: _Question) -> tuple[Sizing, ...]:
    from routecast.size import size as size_points

    points = read_series_points(file, question.series, question.rename)
    names = tuple(dict.fromkeys(point.series for point in points))
    return tuple(
        size_points(
            [point for point in points if point.series == name],
            question.target,
            counts=question.counts,
            noise_ratio=question.noise_ratio,
            bounds=question.bounds,
        )
        for name in names
    )


def _size_on_hosts(
    file: Path, host: str, others: Sequence[str], name: str | None, question: _Question
) -> Iterator[Sizing]:
    from dataclasses import replace

    from routecast.calibration.carried import carry
    from routecast.errors import FileProblem
    from routecast.function.chain import read_chain
    from routecast.hardware.catalogue import read_hardware
    from routecast.size import size as size_points

    points = read_series_points(file, question.series, question.rename)
    names = dict.fromkeys(point.series for point in points)
    if len(names) > 1:
        raise QuantityProblem(str(file), f"has the series {', '.join(names)}: choose the one to carry with --series")
    function = read_chain(name) if name else None
    measured_host = read_hardware(host)
    for other in others:
        try:
            target_host = read_hardware(other)
        except FileProblem as problem:
            max_cores = max(point.cores for point in points)
            message = (
                f"{problem}\nThe rates on that host are not known. Probe it (`routecast hardware probe` writes its "
                f"file there), or measure 1 core and {max_cores} cores on it"
            )
            raise QuantityProblem(other, message) from problem
        move = carry(measured_host, target_host, question.target.frames, function=function)
        result = size_points(
            points,
            question.target,
            counts=question.counts,
            noise_ratio=question.noise_ratio,
            bounds=question.bounds,
            move=move,
        )
        yield replace(result, series=f"{result.series or file.stem} on {target_host.name}")


def _size_file(file: Path, question: _Question) -> tuple[Sizing, ...]:
    from routecast.quantity import format_frequency
    from routecast.quantity.bounded_file import read_text
    from routecast.quantity.toml_file import parse_toml
    from routecast.size.modelled import at_clock, clocks_of, router_of_document, size_router

    _refuse_table_options(question, "a router file")
    document = parse_toml(read_text(file, kind="router file"), str(file))
    name = str(document.get("name", file.name.removesuffix(".router.toml")))
    routers = router_of_document(document, question.target, subject=str(file), folder=file.parent)
    variants = {name: routers}
    if "clock" in question.over:
        pool, clocks = clocks_of(routers(question.counts[0])[0])
        if not clocks:
            raise QuantityProblem(
                str(file), f"{file} states no P-states to choose a clock from: leave out --over clock"
            )
        variants = {f"{name} at {format_frequency(clock)}": at_clock(routers, pool, clock) for clock in clocks}
    prepare = question.where.for_many()
    with progress_bar("size") as progress:
        return tuple(
            size_router(
                router,
                question.target,
                counts=question.counts,
                name=variant,
                bounds=question.bounds,
                prepare=prepare,
                on_progress=progress,
            )
            for variant, router in variants.items()
        )


def _size_function(name: str, hosts: Sequence[str], question: _Question) -> Iterator[Sizing]:
    from routecast.function.chain import read_chain
    from routecast.function.estimate import operations_without_cost
    from routecast.hardware.catalogue import HOST, hardware_names, host_file, read_hardware
    from routecast.size.modelled import router_of_function, size_router

    _refuse_table_options(question, "a function")
    function = read_chain(name)
    if "host" in question.over:
        others = [host for host in hardware_names() if host not in hosts]
        missing = {host: operations_without_cost(function, read_hardware(host)) for host in others}
        hosts = [*hosts, *(host for host in others if not missing[host])]
        for host, operations in missing.items():
            if operations:
                remark(f"{host} is left out: it gives no cost of {', '.join(operations)}")
    if not hosts and not host_file().is_file():
        raise QuantityProblem(
            "", "say the host with --on, a name of `hardware list`, or probe this one: hardware probe"
        )
    prepare = question.where.for_many()
    for host in hosts or [HOST]:
        hardware = read_hardware(host)
        counts = [count for count in question.counts if count <= hardware.cpu.cores]
        if not counts:
            raise QuantityProblem(host, f"{hardware.name} has {hardware.cpu.cores} cores: give --cores within that")
        with progress_bar("size") as progress:
            yield size_router(
                router_of_function(function, hardware, question.target),
                question.target,
                counts=counts,
                name=f"{function.name} on {hardware.name}",
                bounds=question.bounds,
                notes=("the costs are estimated from elementary operations, nothing of this router was measured",),
                prepare=prepare,
                on_progress=progress,
            )


def _refuse_table_options(question: _Question, subject: str) -> None:
    for option, value in (("--noise", question.noise_ratio), ("--series", question.series)):
        if value is not None:
            raise QuantityProblem(str(value), f"{option} is of tables of measurements: {subject} has none")


def _print(sizings: Sequence[Sizing]) -> None:
    """Print the answer for each router, with the counts around it, open facts and the next measurements."""
    from routecast.size.views import compared_table, counts_table, describe_next

    if len(sizings) > 1:
        print_table(data(), compared_table(sizings))
    for sizing in sizings:
        if len(sizings) > 1:
            data().print(sizing.series, style="bold", markup=False)
        data().print(f"{sizing.answer}.", markup=False)
        data().print()
        print_table(data(), counts_table(sizing))
        for fact in sizing.facts:
            data().print(f"Ask first: {fact.text}.", markup=False)
        for text in describe_next(sizing):
            data().print(f"Next: {text}.", markup=False)
        for text in sizing.remarks:
            data().print(f"{text[0].upper()}{text[1:]}.", markup=False)
