"""``routecast multistage``: a router of many machines in network namespaces."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from routecast.cli.console import data, print_json, print_table, remark
from routecast.cli.options import AsJson

if TYPE_CHECKING:
    from routecast.multistage.appliance import Appliance

__all__ = ["add", "audit", "down", "drain", "fail", "predict", "remove", "restore", "status", "trace", "up", "weight"]

_POLLS_EVERY_S = 0.1
_TIMEOUT_S = 30.0
"""Longest time in which a router comes up or goes down, s."""
_RATE_INTERVAL_S = 0.2
_BACKGROUND_PROCESSES: list[object] = []
"""Processes that hold a router after the end of this one; a reference to each, because its deletion would warn."""

FileArgument = Annotated[Path, typer.Argument(metavar="FILE", help="A *.multistage.toml.")]
Router = Annotated[str, typer.Argument(metavar="ROUTER", help="A back-end router.", show_default=False)]
Element = Annotated[
    str, typer.Argument(metavar="ELEMENT", help="A back-end router or a load balancer.", show_default=False)
]
Name = Annotated[
    str | None, typer.Option("--name", metavar="NAME", help="Name of the router; required if this machine has several.")
]
WeightOption = Annotated[
    float | None, typer.Option("--weight", metavar="W", help="Relative share of the flows; 1 if not given.")
]


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
    from routecast.multistage._tables import metrics
    from routecast.testbed.metrics_server import MetricsServer

    stopped = threading.Event()
    with ExitStack() as servers:
        if prometheus is not None:
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
    from routecast.multistage._control import send_request

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
                    remark(f"{name} is up, held by process {process.pid}; `routecast multistage down` takes it down")
                    return
            time.sleep(_POLLS_EVERY_S)
        log.seek(0)
        message = log.read().strip().rpartition("routecast: ")[2] or "it left no message"
        if process.poll() is None:
            process.terminate()
        raise EnvironmentProblem(message)


def status(
    name: Name = None,
    *,
    once: Annotated[
        bool, typer.Option("--once", help="Print once and exit; the default if stdout is no terminal.")
    ] = False,
    interval: Annotated[
        float, typer.Option("--interval", metavar="S", min=0.05, max=60.0, help="Interval of the rates, s.")
    ] = 1.0,
    as_json: AsJson = False,
) -> None:
    """Show the states and rates of all elements, repeatedly until Ctrl-C."""
    import time

    from routecast.multistage._control import chosen_router, send_request
    from routecast.multistage._tables import balancers_table, routers_table, with_rates

    router = chosen_router(name)
    before = send_request(router, "status")
    while True:
        time.sleep(interval)
        after = send_request(router, "status")
        rates = with_rates(before, after)
        before = after
        if as_json:
            print_json(rates)
            return
        console = data()
        if not once and console.is_terminal:
            console.clear()
        for table in (balancers_table(rates), routers_table(rates)):
            print_table(console, table)
        if once or not console.is_terminal:
            return


def drain(
    router: Router,
    *,
    idle: Annotated[
        str, typer.Option("--idle", metavar="TIME", help="Time without a frame after which a flow has ended.")
    ] = "5 s",
    deadline: Annotated[
        str, typer.Option("--deadline", metavar="TIME", help="Time after which other routers get the remaining flows.")
    ] = "60 s",
    name: Name = None,
) -> None:
    """Give a back-end router no new flows; it keeps its present flows until they end."""
    from routecast.quantity import parse_duration_s

    _request(name, "drain", element=router, idle_s=parse_duration_s(idle), deadline_s=parse_duration_s(deadline))
    remark(f"{router} drains; `routecast multistage status` shows when it is drained")


def add(
    router: Router,
    *,
    weight: WeightOption = None,
    cap: Annotated[
        str | None,
        typer.Option("--cap", metavar="RATE", help="Highest forwarding rate of an emulated machine, such as 50 kpps."),
    ] = None,
    forwarding: Annotated[
        str, typer.Option("--forwarding", metavar="linux|nftables|xdp", help="Program that forwards the frames.")
    ] = "linux",
    rules: Annotated[int | None, typer.Option("--rules", metavar="N", help="Number of nftables rules.", min=0)] = None,
    name: Name = None,
) -> None:
    """Add a back-end router, or give a drained back-end router its flows again."""
    _request(name, "add", element=router, weight=weight, cap=cap, forwarding=forwarding, rules=rules)
    remark(f"{router} takes flows")


def remove(router: Router, *, name: Name = None) -> None:
    """Remove a back-end router: other routers get its flows, and frames in flight still arrive."""
    _request(name, "remove", element=router)
    remark(f"{router} is removed")


def weight(
    router: Router,
    share: Annotated[float, typer.Argument(metavar="W", help="Relative share of the flows.", show_default=False)],
    *,
    name: Name = None,
) -> None:
    """Set the weight of a back-end router, and thereby its share of the flows."""
    _request(name, "set_weight", element=router, weight=share)
    remark(f"{router} has weight {share:g}")


def predict(
    file: FileArgument,
    *,
    load: Annotated[str, typer.Option("--load", metavar="RATE", help="Offered load, such as 80 kpps.")],
    flows: Annotated[
        int, typer.Option("--flows", metavar="N", min=1, max=64_511, help="Number of UDP flows of the load.")
    ] = 1024,
    as_json: AsJson = False,
) -> None:
    """Predict the throughput of a router, and the loss by the failure of each element, without setting it up.

    The flows go from the host of the first network to the host of the second, with source ports from 1024. The
    throughput is known if every back-end router has a cap.
    """
    from routecast.evaluate.plain import plain
    from routecast.multistage._model import FlowChoices, failures_of, udp_flows
    from routecast.multistage._tables import failures_table
    from routecast.multistage.reading import read_multistage
    from routecast.quantity import format_pps, parse_rate_pps

    rate_pps = parse_rate_pps(load)
    router = read_multistage(file)
    prediction = failures_of(router, FlowChoices.of(router, udp_flows(router, flows)), rate_pps=rate_pps)
    if as_json:
        print_json(plain(prediction))
        return
    print_table(data(), failures_table(prediction["failures"], format_pps(rate_pps)))
    pps = prediction["forwarded_pps"]
    unknown = "unknown without a cap of every back-end router"
    data().print(f"Forwarded: {unknown if pps is None else format_pps(pps)}", markup=False, highlight=False)


def _describe_predicted_loss(name: str | None, element: str) -> str:
    """Return the predicted loss by the failure of an element at the current rates; empty without such an element."""
    import time

    from routecast.multistage._control import chosen_router, send_request
    from routecast.multistage._tables import with_rates
    from routecast.multistage.prediction import predicted_death, predicted_takeover

    router = chosen_router(name)
    before = send_request(router, "status")
    time.sleep(_RATE_INTERVAL_S)
    status = with_rates(before, send_request(router, "status"))
    for member in status["routers"]:
        if member["name"] != element:
            continue
        if member["in_pps"] <= 0.0 or not any(row["out_pps"] > 0.0 for row in status["routers"] if row is not member):
            return "unknown: the router has no traffic, or no other router returns frames"
        detector = status["detector"]
        death = predicted_death(
            rate_pps=member["in_pps"], silence_s=detector["silence_s"], unanswered_frames=detector["unanswered"]
        )
        return f"its flows are lost for {death.detection_s * 1e3:.1f} ms: {death.lost_frames:.0f} frames"
    for balancer in status["balancers"]:
        if balancer["name"] != element:
            continue
        if balancer["state"] != "active":
            return "no frame is lost: the load balancer is a standby"
        if not any(row["state"] != "active" and not row["fault"] for row in status["balancers"]):
            return "all frames are lost until the load balancer is restored: there is no standby"
        death = predicted_takeover(rate_pps=sum(port["in_pps"] for port in balancer["ports"].values()))
        return f"all frames are lost for about {death.detection_s * 1e3:.0f} ms: {death.lost_frames:.0f} frames"
    return ""


def fail(
    element: Element,
    *,
    kind: Annotated[
        str,
        typer.Option("--kind", metavar="link|hang", help="Its interfaces go down, or it silently drops all frames."),
    ] = "link",
    name: Name = None,
) -> None:
    """Inject a fault into an element, after a prediction of the loss."""
    if prediction := _describe_predicted_loss(name, element):
        remark(f"predicted: {prediction}")
    _request(name, "fail", element=element, kind=kind)
    remark(f"{element} has failed ({kind}); `routecast multistage restore {element}` restores it")


def restore(element: Element, *, name: Name = None) -> None:
    """Remove the fault of an element: it is set up again, and gets frames after it has answered probe frames."""
    _request(name, "restore", element=element)
    remark(f"{element} is restored")


def trace(
    protocol: Annotated[str, typer.Argument(metavar="PROTOCOL", help="udp, tcp, …", show_default=False)],
    source: Annotated[str, typer.Argument(metavar="FROM", help="ADDRESS:PORT, or an address.", show_default=False)],
    destination: Annotated[str, typer.Argument(metavar="TO", help="ADDRESS:PORT, or an address.", show_default=False)],
    *,
    name: Name = None,
    as_json: AsJson = False,
) -> None:
    """Print the back-end router of a flow, and the reasons."""
    path = _request(name, "trace", protocol=protocol, source=source, destination=destination)
    if as_json:
        print_json(path)
        return
    data().print(f"{path['router'] or 'none'}: {'; '.join(path['because'])}", markup=False, highlight=False)


def audit(name: Name = None, *, as_json: AsJson = False) -> None:
    """Compare the tables, addresses, routes and neighbours of all elements; exit with 1 if they differ."""
    from routecast.errors import CriterionFailed
    from routecast.multistage._tables import audit_table

    result = _request(name, "audit")
    if as_json:
        print_json(result)
    else:
        print_table(data(), audit_table(result))
    if result["problems"]:
        raise CriterionFailed("; ".join(result["problems"]))
    if not as_json:
        remark("the tables of all elements agree")


def down(name: Name = None) -> None:
    """Take a router down, whether a process holds it or not."""
    import time

    from routecast.errors import EnvironmentProblem
    from routecast.multistage._control import chosen_router, send_request, standing_routers
    from routecast.testbed import state

    router = chosen_router(name)
    try:
        send_request(router, "down")
    except EnvironmentProblem:
        state.remove(router)
    deadline = time.monotonic() + _TIMEOUT_S
    while router in standing_routers():
        if time.monotonic() > deadline:
            raise EnvironmentProblem(f"{router} does not go down within {_TIMEOUT_S:g} s")
        time.sleep(_POLLS_EVERY_S)
    remark(f"{router} is down")


def _request(name: str | None, request: str, **arguments: Any) -> Any:
    from routecast.multistage._control import chosen_router, send_request

    return send_request(chosen_router(name), request, **arguments)
