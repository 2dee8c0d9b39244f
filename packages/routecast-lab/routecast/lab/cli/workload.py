"""``routecast workload``: the work of a packet in a kernel of a network processor."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from routecast.cli.console import data, print_json, share_bar
from routecast.cli.options import AsJson, grouped
from routecast.errors import ModelProblem, Problem

if TYPE_CHECKING:
    from routecast.lab.testbed.workload import Characterisation, Required, WorkloadCase
    from routecast.lab.testbed.workload.answer import CachegrindCounts

__all__ = ["workload"]


_packet_option = partial(typer.Option, rich_help_panel="Packets")
_line_rate_option = partial(typer.Option, rich_help_panel="Line rate")
_LIST = "list"


@dataclass(frozen=True, slots=True, kw_only=True)
class PacketOptions:
    """The packets that the kernel processes."""

    pcap: Annotated[
        Path | None,
        _packet_option("--pcap", metavar="FILE", help="Packets of a capture (pcap, pcapng) instead of generated ones."),
    ] = None
    frame: Annotated[
        str | None,
        _packet_option(
            "--frame",
            "--frames",
            metavar="SIZE",
            help='Size or mix of generated packets: "64 B", IMIX; else all sizes of RFC 2544, which tell the cost of '
            "a byte.",
        ),
    ] = None
    content: Annotated[
        str | None,
        _packet_option(
            "--content",
            metavar="KIND",
            help="Payload of generated packets: words (they compress; if not given) or random (they do not).",
        ),
    ] = None
    flows: Annotated[int, _packet_option("--flows", min=1, metavar="N", help="Flows of generated packets.")] = 1024

    def case(self, name: str, *, entries: int | None, seed: int) -> WorkloadCase:
        """Return the kernel with its packets and the entries of its table.

        Raises ModelProblem: an option is not valid, or has no effect beside ``--pcap``; FileProblem: there is no such
        kernel.
        """
        from routecast.lab.testbed.workload import WorkloadCase, read_kernel
        from routecast.load.frames import FrameMix
        from routecast.quantity.did_you_mean import did_you_mean

        kinds: dict[str, Literal["words", "random"]] = {"words": "words", "random": "random"}
        problems = []
        if self.content is not None and self.content not in kinds:
            problems.append(Problem("--content", f'got "{self.content}"; {did_you_mean(self.content, kinds)}'))
        for option, value in (("--frame", self.frame), ("--content", self.content)):
            if self.pcap is not None and value is not None:
                problems.append(Problem(option, "is of generated packets: leave it or --pcap out"))
        if problems:
            raise ModelProblem("routecast workload", problems)
        return WorkloadCase(
            kernel=read_kernel(name),
            entries=entries,
            frames=FrameMix.parse(self.frame) if self.frame else None,
            capture=self.pcap,
            content=kinds[self.content or "words"],
            flows=self.flows,
            seed=seed,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LineRateOptions:
    """The rate of a link to serve, and the processor that is to do it."""

    line_rate: Annotated[
        str | None,
        _line_rate_option("--line-rate", metavar="RATE", help='Rate of a link to serve, such as "10 Gbit/s".'),
    ] = None
    frequency: Annotated[
        str | None,
        _line_rate_option("--frequency", metavar="RATE", help='Of the processor that is to do it, such as "1.4 GHz".'),
    ] = None
    ipc: Annotated[float, _line_rate_option("--ipc", metavar="NUMBER", help="Instructions per cycle of a core.")] = 1.0

    def line_bps(self) -> float | None:
        """Return the rate of the link; raise QuantityProblem if it is no rate."""
        from routecast.quantity import parse_bit_rate_bps

        return parse_bit_rate_bps(self.line_rate) if self.line_rate else None

    def frequency_hz(self) -> float | None:
        """Return the clock of the processor; raise QuantityProblem if it is no frequency."""
        from routecast.quantity import parse_frequency_hz

        return parse_frequency_hz(self.frequency) if self.frequency else None

    def refuse_contradictions(self) -> None:
        """Raise ModelProblem if a value is out of range, or has no effect without a line rate."""
        line_bps, frequency_hz = self.line_bps(), self.frequency_hz()
        problems = []
        if line_bps is not None and line_bps <= 0.0:
            problems.append(Problem("--line-rate", "is 0: name the rate of a link, such as 10 Gbit/s"))
        if frequency_hz is not None and line_bps is None:
            problems.append(Problem("--frequency", "has no effect without --line-rate: add it, or leave it out"))
        if frequency_hz is not None and frequency_hz <= 0.0:
            problems.append(Problem("--frequency", "is 0: name a processor's, such as 1.4 GHz"))
        if not 0.0 < self.ipc <= 16.0:
            problems.append(Problem("--ipc", f"got {self.ipc:g}: a number above 0 and up to 16"))
        if problems:
            raise ModelProblem("routecast workload", problems)

    def required(self, answer: Characterisation) -> tuple[Required, ...]:
        """Return what the line rate takes at each size of a frame; nothing without a line rate."""
        from routecast.lab.testbed.workload import required

        line_bps = self.line_bps()
        if line_bps is None:
            return ()
        sizes = sorted({size.frame_bytes for size in answer.sizes})
        clock_hz = self.frequency_hz()
        return required(answer, line_bps, sizes, frequency_hz=clock_hz, instructions_per_cycle=self.ipc)


@grouped
def workload(
    name: Annotated[
        str, typer.Argument(metavar="NAME|list", help="A kernel; `list` tells which there are.", show_default=False)
    ] = _LIST,
    *,
    sent: PacketOptions,
    entries: Annotated[
        int | None,
        typer.Option("--entries", min=1, metavar="N", help="Entries of the kernel's table: routes, queues, counters."),
    ] = None,
    packets: Annotated[int, typer.Option("--packets", min=4, max=100_000, metavar="N", help="Packets to trace.")] = 512,
    instructions: Annotated[
        int,
        typer.Option(
            "--instructions",
            min=1000,
            max=100_000_000,
            metavar="N",
            help="The trace ends with the packet that reaches so many; some 6 µs each.",
        ),
    ] = 1_500_000,
    line: LineRateOptions,
    cachegrind: Annotated[
        bool, typer.Option("--cachegrind", help="Count again with valgrind's cachegrind: a second opinion.")
    ] = False,
    figure: Annotated[
        Path | None, typer.Option("--figure", metavar="FILE.svg", help="Draw misses over the size of the cache.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, max=2**64 - 1, help="Seed of all randomness.")] = 1,
    as_json: AsJson = False,
) -> None:
    """Characterise a kernel of CommBench or NpBench: instructions, memory accesses, caches, what a line rate takes."""
    from routecast.cli.console import check_figure_file, print_table, write_figure
    from routecast.evaluate.plain import plain
    from routecast.lab.testbed.workload.views import answer_tables, counted_table, miss_figure, required_table

    if name == _LIST:
        _list(as_json=as_json)
        return
    case = sent.case(name, entries=entries, seed=seed)
    line.refuse_contradictions()
    check_figure_file(figure)
    if cachegrind:
        from routecast.lab.testbed.cachegrind import require_valgrind

        require_valgrind()
    answer = _characterised(case, packets, instructions)
    required_rates = line.required(answer)
    counted = _cachegrind_counts(case) if cachegrind else None
    if figure is not None:
        write_figure(miss_figure(answer), figure)
    if as_json:
        document = answer.to_json()
        document["required"] = plain(required_rates)
        document["cachegrind"] = plain(counted)
        print_json(document)
        return
    console = data()
    for table in answer_tables(answer):
        print_table(console, table)
    if required_rates:
        print_table(console, required_table(required_rates, line.frequency_hz(), line.ipc))
    if counted is not None:
        print_table(console, counted_table(answer, counted))
    for note in _notes(answer):
        console.print(f"Note: {note}.", markup=False, style="dim")


def _list(*, as_json: bool) -> None:
    from dataclasses import asdict

    from routecast.cli.console import print_table
    from routecast.lab.testbed.workload import kernels
    from routecast.lab.testbed.workload.views import kernels_table

    if as_json:
        print_json({"kernels": [asdict(kernel) for kernel in kernels()]})
    else:
        print_table(data(), kernels_table())


def _characterised(case: WorkloadCase, packets: int, instructions: int) -> Characterisation:
    from routecast.lab.testbed.workload import characterise

    with share_bar(f"following {case.kernel.name}") as on_progress:
        return characterise(case, packets=packets, most_instructions=instructions, on_progress=on_progress)


def _cachegrind_counts(case: WorkloadCase) -> CachegrindCounts:
    from routecast.lab.testbed.workload.answer import count_workload

    with share_bar(f"counting {case.kernel.name} under valgrind") as on_progress:
        return count_workload(case, on_progress=on_progress)


def _notes(answer: Characterisation) -> list[str]:
    notes = []
    if not answer.complete:
        notes.append(
            f"the trace ended at its bound, after {answer.packets} packets that count: --instructions sets another"
        )
    if answer.skipped:
        notes.append(
            f"{answer.skipped} packets of the capture are not IPv4, or have no whole header, and were left out"
        )
    if answer.cut:
        notes.append(f"of {answer.cut} packets the capture holds a part only; sizes are those of the parts")
    if answer.more:
        notes.append(f"the capture has more packets than the first {answer.held}, which were taken")
    return notes
