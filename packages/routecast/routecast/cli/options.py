"""Options that commands share, declared once, in groups."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from functools import lru_cache, partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_type_hints

import typer

from routecast.errors import QuantityProblem

if TYPE_CHECKING:
    from routecast.load.arrivals import Arrivals
    from routecast.load.flows import FlowSet
    from routecast.load.frames import FrameMix
    from routecast.load.offered import OfferedLoad
    from routecast.load.trace import RecordedFrames

__all__ = [
    "AsCsv",
    "AsJson",
    "FigureFile",
    "FlowsOption",
    "FrameOption",
    "LoadOptions",
    "ModelLoadOptions",
    "NoiseOption",
    "RenameOption",
    "RouterFile",
    "Seed",
    "frames_option",
    "grouped",
    "ratio_option",
]

Command = TypeVar("Command", bound=Callable[..., object])

RouterFile = Annotated[Path, typer.Argument(metavar="FILE.router.toml", help="The router.", dir_okay=False)]
AsCsv = Annotated[bool, typer.Option("--csv", help="Print CSV in base units.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
RenameOption = Annotated[
    list[str] | None,
    typer.Option("--rename", metavar="HEAD=NAME", help="A column of the table by another name: rate=throughput_pps."),
]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Seed of all randomness.")]
FigureFile = Annotated[
    Path | None, typer.Option("--figure", metavar="FILE.svg", help="Draw the answer.", dir_okay=False)
]


def ratio_option(option: str, *, help: str, bounds: Mapping[str, bool] | None = None, **settings: Any) -> Any:  # noqa: A002
    """Declare an option that takes a share as a number or in percent.

    ``bounds`` are those of :func:`routecast.quantity.parse_ratio`, ``settings`` those of :func:`typer.Option`.
    """

    def read(text: str | float) -> float:
        from routecast.quantity import parse_ratio

        try:
            return parse_ratio(str(text), **(bounds or {}))
        except QuantityProblem as problem:
            raise QuantityProblem(problem.text, f"{option}: {problem}") from None

    return typer.Option(option, metavar="RATIO", help=help, parser=read, **settings)


NoiseOption = Annotated[
    float | None,
    ratio_option(
        "--noise",
        help="Standard deviation of a measured rate over the rate, such as 3%; else from repeated or published ones.",
    ),
]


def grouped(command: Command) -> Command:
    """Replace each parameter of a command that is a dataclass by one option for each field."""
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {name: hint for name, hint in hints.items() if is_dataclass(hint)}
    parameters: list[inspect.Parameter] = []
    for parameter in inspect.signature(command).parameters.values():
        if parameter.name not in groups:
            parameters.append(parameter.replace(annotation=hints[parameter.name]))
            continue
        group = groups[parameter.name]
        field_hints = get_type_hints(group, include_extras=True)
        parameters += [
            inspect.Parameter(
                field.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=inspect.Parameter.empty if field.default is MISSING else field.default,
                annotation=field_hints[field.name],
            )
            for field in fields(group)
        ]

    @wraps(command)
    def run(**values: Any) -> object:
        group_values = {
            name: group(**{field.name: values.pop(field.name) for field in fields(group)})
            for name, group in groups.items()
        }
        return command(**values, **group_values)

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run  # type: ignore[return-value]


_load_option = partial(typer.Option, rich_help_panel="Offered load")

FrameOption = Annotated[
    str | None,
    _load_option(
        "--frame",
        "--frames",
        metavar="SIZE",
        help='Frame size or mix: "64 B", IMIX, "genome aaafg", "7x64, 4x594, 1x1518".',
    ),
]
FlowsOption = Annotated[int | None, _load_option("--flows", min=1, max=1_000_000, metavar="N", help="Number of flows.")]


_MEAN_BURST_FRAMES = 32.0
_PEAK_RATIO = 4.0
"""Defaults of on_off."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadOptions:
    """The offered load: that of the router's file, changed by the command line."""

    load: Annotated[
        str | None,
        _load_option(
            "--load",
            metavar="RATE",
            help='Intended load over all ports, e.g. "14 Mpps", or "10 Gbit/s" with gap and preamble.',
        ),
    ] = None
    frame: FrameOption = None
    flows: FlowsOption = None
    arrivals: Annotated[
        str | None,
        _load_option(
            "--arrivals",
            metavar="PROCESS",
            help="cbr, poisson, on_off, or a trace: a capture (- is stdin), or a FILE.csv (time_s, frame_bytes, flow).",
        ),
    ] = None
    burst_frames: Annotated[
        float | None,
        _load_option(
            "--burst-frames",
            min=1.0,
            max=1e9,
            metavar="FRAMES",
            help="--arrivals on_off: mean length of a burst; 32 without.",
        ),
    ] = None
    peak_ratio: Annotated[
        float | None,
        _load_option(
            "--peak-ratio",
            min=1.0,
            max=1e9,
            metavar="RATIO",
            help="--arrivals on_off: rate within a burst over the mean rate; 4 without.",
        ),
    ] = None

    inner_flows: Annotated[
        bool,
        _load_option("--inner-flows", help="A capture's flows: those inside MPLS and tunnels, not the outer ones."),
    ] = False
    split_mtu: Annotated[
        int | None,
        _load_option(
            "--split-mtu", metavar="BYTES", help="Split super-packets of a capture (GRO, TSO) to this MTU: 1500."
        ),
    ] = None

    def offered(self, default: OfferedLoad | None, *, ports: int, seed: int) -> OfferedLoad:
        """Return the load to offer: options first, then the file's, then one flow of 64-byte frames per port.

        ``default`` is the file's as :func:`~routecast.router.files.read_router_and_load` returns it for the frames of
        ``--frame``.

        Raises RoutecastError: an option is not valid, or neither the file nor ``--load`` gives a rate.
        """
        from routecast.load.flows import FlowSet
        from routecast.load.frames import FrameMix
        from routecast.load.offered import IntendedRate, OfferedLoad

        process = self._arrivals()
        if process is not None and process.trace is not None:
            return self._recorded(process.trace, None, ports=ports, seed=seed)
        if process is None and default is not None and default.arrivals.trace is not None:
            return self._recorded(default.arrivals.trace, default, ports=ports, seed=seed)
        frames = frames_option(self.frame) or (default.frames if default else FrameMix.fixed(64))
        if self.load:
            rate_pps = IntendedRate.parse(self.load).pps(frames)
        elif default:
            rate_pps = default.rate_pps
        else:
            raise QuantityProblem(
                "", 'the file has no [load]: give a rate with --load, e.g. --load "14 Mpps" or "10 Gbit/s"'
            )
        base = default or OfferedLoad(rate_pps=rate_pps, flows=FlowSet.crafted(ports, ports=ports))
        return OfferedLoad(
            rate_pps=rate_pps,
            frames=frames,
            flows=self._flow_set(base.flows, ports=ports, seed=seed),
            arrivals=process or base.arrivals,
        )

    def set_options(self) -> list[str]:
        """Return the names of the options with a value."""
        return [f"--{field.name.replace('_', '-')}" for field in fields(self) if getattr(self, field.name)]

    def _recorded(self, trace: RecordedFrames, default: OfferedLoad | None, *, ports: int, seed: int) -> OfferedLoad:
        """Return the load of a trace: that of the file, whose load is ``default``, or that of ``--arrivals``."""
        from routecast.cli.console import remark
        from routecast.load.offered import IntendedRate, recorded_load
        from routecast.quantity import format_pps

        for option, given in (("--frame", self.frame), ("--flows", self.flows)):
            if given:
                raise QuantityProblem(
                    str(given),
                    f"{option} {given} beside a trace: sizes and flows are those of its frames; leave it out",
                )
        load = default or recorded_load(trace, ports=ports)
        flows = self._flow_set(load.flows, ports=ports, seed=seed)
        if flows is not load.flows:
            if trace.flows:
                message = "--random-flows beside a capture: its flows have addresses; leave it out"
                raise QuantityProblem("", message)
            load = replace(load, flows=flows)
        if self.load:
            rate_pps = IntendedRate.parse(self.load).pps(load.frames)
            if not math.isfinite(trace.rate_pps):
                message = "--load: all frames of the trace come at one instant, which no rate scales; leave it out"
                raise QuantityProblem(self.load, message)
            remark(
                f"--load scales the times of the trace by {trace.rate_pps / rate_pps:.4g}: "
                f"{format_pps(rate_pps)} instead of {format_pps(trace.rate_pps)}"
            )
            load = load.at(rate_pps)
        return load

    def _flow_set(self, default: FlowSet, *, ports: int, seed: int) -> FlowSet:
        return type(default).crafted(self.flows, ports=ports) if self.flows else default

    @property
    def is_recording(self) -> bool:
        """Whether the arrivals come from a file, or from the standard input."""
        text = self.arrivals or ""
        if text in {"", "cbr", "poisson", "on_off"}:
            return False
        return text == "-" or bool(Path(text).suffix) or Path(text).exists()

    def _arrivals(self) -> Arrivals | None:
        from routecast.load.arrivals import Arrivals
        from routecast.quantity.did_you_mean import did_you_mean

        text = self.arrivals
        if not self.is_recording:
            from routecast.cli.console import remark

            for option, given in (("--inner-flows", self.inner_flows), ("--split-mtu", self.split_mtu)):
                if given:
                    remark(f"{option} has no effect: it is for the --arrivals of a capture")
        if text != "on_off":
            from routecast.cli.console import remark

            for option, value in (("--burst-frames", self.burst_frames), ("--peak-ratio", self.peak_ratio)):
                if value is not None:
                    remark(f"{option} has no effect: it is for --arrivals on_off")
        if not text:
            return None
        if text == "cbr":
            return Arrivals.cbr()
        if text == "poisson":
            return Arrivals.poisson()
        if text == "on_off":
            return Arrivals.on_off(
                burst_frames=_MEAN_BURST_FRAMES if self.burst_frames is None else self.burst_frames,
                peak_ratio=_PEAK_RATIO if self.peak_ratio is None else self.peak_ratio,
            )
        if self.is_recording:
            return _trace_of(text, inner=self.inner_flows, split_mtu=self.split_mtu or 0)
        hint = did_you_mean(text, ("cbr", "poisson", "on_off"))
        raise QuantityProblem(
            text, f"--arrivals {text!r} is no arrival process; {hint}, or the file of a trace: a capture or a FILE.csv"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelLoadOptions(LoadOptions):
    """Further options of the load of a model."""

    random_flows: Annotated[
        bool,
        _load_option(
            "--random-flows",
            help="Random flows, spread by the NIC's hash; otherwise they are crafted to spread evenly.",
        ),
    ] = False

    def _flow_set(self, default: FlowSet, *, ports: int, seed: int) -> FlowSet:
        flows = LoadOptions._flow_set(self, default, ports=ports, seed=seed)
        return type(flows).random(len(flows.flows), seed=seed, ports=ports) if self.random_flows else flows


@lru_cache(maxsize=1)
def _trace_of(path: str, *, inner: bool, split_mtu: int) -> Arrivals:
    """Return the arrivals of a file, which commands with many loads read once."""
    from routecast.load.arrivals import Arrivals

    return Arrivals.from_trace(path, inner=inner, split_mtu=split_mtu)


def frames_option(frame: str | None) -> FrameMix | None:
    """Return the frames of ``--frame``, None without it."""
    from routecast.load.frames import FrameMix

    return FrameMix.parse(frame) if frame else None
