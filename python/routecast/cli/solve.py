"""``routecast solve``: one trial by closed form."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from routecast.cli.console import data, print_json
from routecast.cli.offered import (
    ArrivalsOption,
    BurstOption,
    FlowsOption,
    FrameOption,
    LoadOption,
    PeakOption,
    RandomFlowsOption,
    frames_asked,
    offered_load,
)

__all__ = ["RouterFile", "solve"]

RouterFile = Annotated[Path, typer.Argument(metavar="FILE.router.toml", help="The router.", dir_okay=False)]


def solve(
    file: RouterFile,
    *,
    load: LoadOption = None,
    frame: FrameOption = None,
    flows: FlowsOption = None,
    random_flows: RandomFlowsOption = False,
    arrivals: ArrivalsOption = None,
    burst_frames: BurstOption = 32.0,
    peak_ratio: PeakOption = 4.0,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of random flows.")] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="Print the trial as one JSON document.")] = False,
) -> None:
    """Answer by closed form, in milliseconds: throughput, loss, latency where theory knows it, and the bottleneck."""
    from routecast.cli.console import print_trial
    from routecast.evaluate.solve import Solve
    from routecast.router.files import read_router_and_load

    model, default = read_router_and_load(file, frames=frames_asked(frame))
    offered = offered_load(
        default,
        ports=len(model.ports),
        load=load,
        frame=frame,
        flows=flows,
        random_flows=random_flows,
        arrivals=arrivals,
        burst_frames=burst_frames,
        peak_ratio=peak_ratio,
        seed=seed,
    )
    trial = Solve(model=model).trial(offered, 1.0)
    if as_json:
        print_json(trial.to_json())
    else:
        print_trial(data(), trial)
