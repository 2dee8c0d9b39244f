"""``routecast multistage predict`` and ``up``; the commands of a router that is up are in :mod:`.verbs`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from routecast.cli.console import data, print_json, print_table, remark
from routecast.cli.options import AsJson

if TYPE_CHECKING:
    from routecast.multistage.appliance import Appliance

__all__ = ["predict", "up"]

_POLLS_EVERY_S = 0.1
_TIMEOUT_S = 30.0
"""Longest time in which a router comes up or goes down, s."""
_BACKGROUND_PROCESSES: list[object] = []
"""Processes that hold a router after the end of this one; a reference to each, because its deletion would warn."""

FileArgument = Annotated[Path, typer.Argument(metavar="FILE", help="A *.multistage.toml.")]


def up(
    file: FileArgument,
    *,
    background: Annotated[
        bool, typer.Option("--background", help="Hold the router in another process; `down` takes it down.")
    ] = False,
    prometheus: Annotated[
        int | None,
        typer.Option("--prometheus", metavar="PORT", min=0, max=65_535, help="Serve http://127.0.0.1:PORT/metrics."),
    ] = None,
) -> None:
    """Set up a router and hold it until Ctrl-C takes it down.

    If the process of a router is killed, the router continues to forward. `up` with the same file then takes it over
    without losing a frame.
    """
    from routecast.multistage.appliance import Appliance
    from routecast.quantity.bounded_file import read_text

    router = Appliance(read_text(file, kind="multistage router"), subject=str(file), on_remark=remark)
    if background:
        _start_in_background(file, router.name, prometheus)
        return
    with router:
        _hold(router, prometheus)
    remark(f"{router.name} is down")


def _hold(router: Appliance, prometheus: int | None) -> None:
    import threading
    from contextlib import ExitStack, closing

    from routecast.multistage._control import ControlServer

    stopped = threading.Event()
    with ExitStack() as servers:
        if prometheus is not None:
            from routecast.lab.testbed.metrics_server import MetricsServer
            from routecast.multistage._metrics import metrics

            pages = servers.enter_context(closing(MetricsServer(prometheus, lambda: metrics(router.status()))))
            remark(f"http://127.0.0.1:{pages.port}/metrics")
        servers.enter_context(closing(ControlServer(router, stopped.set)))
        hosts = ", ".join(f"{wire.host_ipv4} in {router.layout.netns(wire.name)}" for wire in router.file.segment)
        remark(f"{router.name} is up; hosts: {hosts}; Ctrl-C takes it down")
        stopped.wait()


def _start_in_background(file: Path, name: str, prometheus: int | None) -> None:
    import subprocess
    import tempfile
    import time
    from contextlib import suppress

    from routecast.errors import EnvironmentProblem
    from routecast.multistage._client import send_request

    options = [] if prometheus is None else ["--prometheus", str(prometheus)]
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "routecast", "multistage", "up", str(file), *options],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        deadline = time.monotonic() + _TIMEOUT_S
        while process.poll() is None and time.monotonic() < deadline:
            with suppress(EnvironmentProblem):
                send_request(name, "status")
                if process.poll() is None:  # else another process answered
                    _BACKGROUND_PROCESSES.append(process)
                    remark(
                        f"{name} is up, held by process {process.pid}; `routecast multistage down {name}` takes it down"
                    )
                    return
            time.sleep(_POLLS_EVERY_S)
        log.seek(0)
        message = log.read().strip().rpartition("routecast: ")[2] or "it left no message"
        if process.poll() is None:
            process.terminate()
        raise EnvironmentProblem(message)


def predict(
    file: FileArgument,
    *,
    load: Annotated[str, typer.Option("--load", metavar="RATE", help="Offered load, such as 80 kpps.")],
    flows: Annotated[
        int, typer.Option("--flows", metavar="N", min=1, max=64_511, help="Number of UDP flows of the load.")
    ] = 1024,
    router: Annotated[
        list[str] | None,
        typer.Option(
            "--router",
            metavar="NAME=FILE",
            help="A *.router.toml, such as a calibrated one, whose capacity back-end router NAME has instead of its "
            "cap; FILE alone is for all others; may be repeated.",
        ),
    ] = None,
    frame: Annotated[
        str,
        typer.Option(
            "--frame", "--frames", metavar="SIZE", help="Frame size or mix at which router files are evaluated."
        ),
    ] = "64 B",
    as_json: AsJson = False,
) -> None:
    """Predict the throughput of a router, and the loss by the failure of each element, without setting it up.

    The flows go from the host of the first network to the host of the second, with source ports from 1024. The
    throughput is known if every back-end router has a cap, or a router file (--router, or the key `model`), whose
    closed form is evaluated.
    """
    from routecast.evaluate.plain import plain
    from routecast.load.frames import FrameMix
    from routecast.multistage._model import FlowChoices, failures_of, models_of, udp_flows
    from routecast.multistage._tables import failures_table, forwarding_table
    from routecast.multistage.reading import read_multistage
    from routecast.quantity import format_pps, parse_rate_pps

    rate_pps = parse_rate_pps(load)
    multistage = read_multistage(file)
    frames = FrameMix.parse(frame)
    models = models_of(multistage, router or (), folder=file.parent, frames=frames)
    choices = FlowChoices.of(multistage, udp_flows(multistage, flows))
    prediction = failures_of(multistage, choices, rate_pps=rate_pps, models=models)
    if as_json:
        print_json(plain(prediction | {"frame": frame}))
        return
    print_table(data(), forwarding_table(prediction["routers"], frame))
    print_table(data(), failures_table(prediction["failures"], format_pps(rate_pps)))
    pps = prediction["forwarded_pps"]
    unknown = "unknown without a cap or a model of every back-end router"
    data().print(f"Forwarded: {unknown if pps is None else format_pps(pps)}", markup=False, highlight=False)
