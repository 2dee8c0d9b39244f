"""``routecast solve``: one trial by closed form."""

from __future__ import annotations

from routecast.cli.console import data, print_csv, print_json, refuse_two_forms
from routecast.cli.options import AsCsv, AsJson, ModelLoadOptions, RouterFile, Seed, frames_option, grouped

__all__ = ["solve"]


@grouped
def solve(
    file: RouterFile, *, load: ModelLoadOptions, seed: Seed = 1, as_csv: AsCsv = False, as_json: AsJson = False
) -> None:
    """Answer by closed form, in milliseconds: throughput, loss, latency where theory knows it, and the bottleneck."""
    from routecast.cli.console import print_trial
    from routecast.evaluate.solve import Solve
    from routecast.router.files import read_router_and_load

    refuse_two_forms(as_csv=as_csv, as_json=as_json)
    model, default = read_router_and_load(file, frames=frames_option(load.frame))
    offered = load.offered(default, ports=len(model.ports), seed=seed)
    trace = offered.arrivals.trace
    trial = Solve(model=model).trial(offered, 1.0 if trace is None else trace.length_s)
    if as_json:
        print_json(trial.to_json())
    elif as_csv:
        print_csv([trial.to_json()])
    else:
        print_trial(data(), trial)
