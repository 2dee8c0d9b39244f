"""``--device``: where lanes run, on the processor or on a graphics processor."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from routecast.cli.console import remark
from routecast.errors import QuantityProblem

if TYPE_CHECKING:
    from collections.abc import Callable

    from routecast.evaluate.simulate import Simulate
    from routecast.load.offered import OfferedLoad

__all__ = ["GraphicsOptions", "RunsOn"]


class RunsOn(StrEnum):
    """Where lanes run."""

    CPU = "cpu"
    GPU = "gpu"
    AUTO = "auto"


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphicsOptions:
    """Where lanes run."""

    device: Annotated[
        RunsOn | None,
        typer.Option(
            "--device",
            help="Run in lanes on the processor, on a graphics processor, or on what a short trial finds faster; both"
            " count the same frames.",
        ),
    ] = None
    adapter: Annotated[
        str | None, typer.Option("--adapter", metavar="NAME", help="--device: a part of the graphics processor's name.")
    ] = None

    def check(self, path: str = "auto") -> None:
        """Refuse what does not go together."""
        if self.device in {None, RunsOn.CPU} and self.adapter is not None:
            raise QuantityProblem("", "--adapter needs --device gpu or --device auto")
        if self.device is not None and path not in {"auto", "lanes"}:
            raise QuantityProblem("", f"--device runs lanes; leave out --path {path}")

    def for_many(self) -> Callable[[Simulate, OfferedLoad, float], Simulate]:
        """Return what :meth:`on_device` does, for many trials: the device is chosen at the first, and opened once."""
        chosen: list[Simulate] = []

        def prepare(simulator: Simulate, load: OfferedLoad, duration_s: float) -> Simulate:
            if not chosen:
                chosen.append(self.on_device(simulator, load, duration_s))
            return replace(simulator, path=chosen[0].path, device=chosen[0].device)

        return prepare

    def on_device(self, simulator: Simulate, load: OfferedLoad, duration_s: float) -> Simulate:
        """Return the simulator with the device that was asked for, or found to be faster.

        Raises GraphicsProblem: ``--device gpu``, and there is none.
        """
        if self.device is None:
            return simulator
        from routecast.evaluate.simulate.graphics import GraphicsProblem, faster, open_graphics

        in_lanes = replace(simulator, path="lanes")
        if self.device is RunsOn.CPU:
            return in_lanes
        try:
            graphics = open_graphics(self.adapter or "", software=self.device is RunsOn.GPU)
        except GraphicsProblem as problem:
            if self.device is RunsOn.GPU or self.adapter is not None:
                raise
            remark(f"--device auto: the processor, since {problem}")
            return in_lanes
        if self.device is RunsOn.AUTO and not faster(in_lanes, graphics, load, duration_s):
            remark(f"--device auto: the processor, which was faster than {graphics.adapter.name} in a short trial")
            return in_lanes
        remark(f"lanes run on {graphics.adapter}")
        return replace(in_lanes, device=graphics)
