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

_LISTENS_EVERY_S = 0.1
_COMES_UP_WITHIN_S = 30.0
_GOES_DOWN_WITHIN_S = 30.0
_RATES_OVER_S = 0.2
_HOLDERS: list[object] = []
"""Processes that were started to hold a router: they outlive this one."""

FileArgument = Annotated[Path, typer.Argument(metavar="FILE", help="A *.multistage.toml.")]
Router = Annotated[str, typer.Argument(metavar="ROUTER", help="A back-end router.", show_default=False)]
Element = Annotated[
    str, typer.Argument(metavar="ELEMENT", help="A back-end router or a load balancer.", show_default=False)
]
Name = Annotated[
    str | None,
    typer.Option("--name", metavar="NAME", help="Which router of many machines; needed where several stand."),
]
WeightOption = Annotated[
    float | None, typer.Option("--weight", metavar="W", help="Its share of the flows, relative; 1 if not given.")
]


def up(
    file: FileArgument,
    *,
    background: Annotated[
        bool, typer.Option("--background", help="Leave it to a process of its own; `down` takes it down.")
    ] = False,
    prometheus: Annotated[
        int | None,
        typer.Option("--prometheus", metavar="PORT", min=0, max=65_535, help="Serve http://127.0.0.1:PORT/metrics."),
    ] = None,
) -> None:
    """Set up a router and hold it: Ctrl-C takes it down.

    A router whose process was killed continues to forward; `up` with the same file takes it over, without losing a
    frame.
    """
    from routecast.multistage.appliance import Appliance
    from routecast.quantity.bounded_file import read_text

    text = read_text(file, kind="multistage router")
    router = Appliance(text, subject=str(file), on_remark=remark)
    if background:
        _start_in_background(file, router.name, prometheus)
        return
    with router:
        _hold(router, prometheus)
    remark(f"{router.name} is down")


def _hold(router: Appliance, prometheus: int | None) -> None:
    import threading

    from routecast.multistage._control import ControlServer
    from routecast.multistage._tables import metrics
    from routecast.testbed.metrics_server import MetricsServer

    ends = threading.Event()
    pages = None if prometheus is None else MetricsServer(prometheus, lambda: metrics(router.status()))
    server = ControlServer(router, ends.set)
    try:
        if pages is not None:
            remark(f"http://127.0.0.1:{pages.port}/metrics")
        hosts = ", ".join(f"{wire.host_ipv4} in {router.layout.netns(wire.name)}" for wire in router.file.segment)
        remark(f"{router.name} is up; hosts: {hosts}; Ctrl-C takes it down")
        while not ends.wait(_LISTENS_EVERY_S):
            pass
    finally:
        server.close()
        if pages is not None:
            pages.close()


def _start_in_background(file: Path, name: str, prometheus: int | None) -> None:
    import subprocess
    import tempfile
    import time

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
        deadline = time.monotonic() + _COMES_UP_WITHIN_S
        while process.poll() is None and time.monotonic() < deadline:
            try:
                send_request(name, "status")
            except EnvironmentProblem:
                time.sleep(_LISTENS_EVERY_S)
                continue
            if process.poll() is None:
                _HOLDERS.append(process)
                remark(f"{name} is up, held by process {process.pid}; `routecast multistage down` takes it down")
                return
        log.seek(0)
        message = log.read().strip().rpartition("routecast: ")[2] or "it left no message"
        if process.poll() is None:
            process.terminate()
        raise EnvironmentProblem(message)


def status(
    name: Name = None,
    *,
    once: Annotated[
        bool, typer.Option("--once", help="Print one table and end; the default where stdout is no terminal.")
    ] = False,
    interval: Annotated[
        float, typer.Option("--interval", metavar="S", min=0.05, max=60.0, help="Time over which rates are taken, s.")
    ] = 1.0,
    as_json: AsJson = False,
) -> None:
    """Show the elements with their rates, again and again until Ctrl-C."""
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
        str, typer.Option("--idle", metavar="TIME", help="A flow that has no frame for so long has ended.")
    ] = "5 s",
    deadline: Annotated[
        str, typer.Option("--deadline", metavar="TIME", help="After this time the remaining flows go to others.")
    ] = "60 s",
    name: Name = None,
) -> None:
    """Give a back-end router no new flows, and let it keep those that it has until they end."""
    from routecast.quantity import parse_duration_s

    _request(name, "drain", element=router, idle_s=parse_duration_s(idle), deadline_s=parse_duration_s(deadline))
    remark(f"{router} drains; `routecast multistage status` shows when it gets nothing any more")


def add(
    router: Router,
    *,
    weight: WeightOption = None,
    cap: Annotated[
        str, typer.Option("--cap", metavar="RATE", help="Emulate a machine that forwards so much, such as 50 kpps.")
    ] = "",
    forwarding: Annotated[
        str, typer.Option("--forwarding", metavar="linux|nftables|xdp", help="What forwards in it.")
    ] = "linux",
    rules: Annotated[int | None, typer.Option("--rules", metavar="N", help="Rules of nftables.", min=0)] = None,
    name: Name = None,
) -> None:
    """Add a back-end router, or give one that was drained its flows again."""
    settings = {"cap": cap or None, "forwarding": forwarding, "rules": rules}
    values = {key: value for key, value in settings.items() if value is not None}
    _request(name, "add", element=router, weight=weight, **values)
    remark(f"{router} takes flows")


def remove(router: Router, *, name: Name = None) -> None:
    """Remove a back-end router: its flows go to others, and what is on its way arrives."""
    _request(name, "remove", element=router)
    remark(f"{router} is out")


def weight(
    router: Router,
    share: Annotated[float, typer.Argument(metavar="W", help="Its share of the flows, relative.", show_default=False)],
    *,
    name: Name = None,
) -> None:
    """Give a back-end router another share of the flows."""
    _request(name, "set_weight", element=router, weight=share)
    remark(f"{router} has weight {share:g}")


def predict(
    file: FileArgument,
    *,
    load: Annotated[str, typer.Option("--load", metavar="RATE", help="What comes in, such as 80 kpps.")],
    flows: Annotated[
        int, typer.Option("--flows", metavar="N", min=1, max=64_511, help="UDP flows that it has.")
    ] = 1024,
    as_json: AsJson = False,
) -> None:
    """Print the throughput of a router, and the loss at the failure of each element; nothing is put up.

    The flows go from the host of the first network to that of the second, with source ports from 1024 on. What is
    forwarded is known where each back-end router has a cap.
    """
    from routecast.evaluate.plain import plain
    from routecast.multistage._model import FlowChoices, failures_of, udp_flows
    from routecast.multistage._tables import failures_table
    from routecast.multistage.reading import read_multistage
    from routecast.quantity import format_pps, parse_rate_pps

    rate_pps = parse_rate_pps(load)
    read = read_multistage(file)
    deaths = failures_of(read, FlowChoices.of(read, udp_flows(read, flows)), rate_pps=rate_pps)
    if as_json:
        print_json(plain(deaths))
        return
    print_table(data(), failures_table(deaths["failures"], format_pps(rate_pps)))
    forwarded = deaths["forwarded_pps"]
    text = "not known: not every back-end router has a cap" if forwarded is None else format_pps(forwarded)
    data().print(f"Forwarded: {text}", markup=False, highlight=False)


def _describe_predicted_loss(name: str | None, element: str) -> str:
    """Return a sentence on the loss by the failure of an element at the current rates."""
    import time

    from routecast.multistage._control import chosen_router, send_request
    from routecast.multistage._tables import with_rates
    from routecast.multistage.prediction import predicted_death, predicted_takeover

    router = chosen_router(name)
    before = send_request(router, "status")
    time.sleep(_RATES_OVER_S)
    rates = with_rates(before, send_request(router, "status"))
    for machine in rates["routers"]:
        if machine["name"] != element:
            continue
        others = [other for other in rates["routers"] if other is not machine and other["out_pps"] > 0.0]
        if machine["in_pps"] <= 0.0 or not others:
            return "not known: it has no traffic, or no other router returns any"
        detector = rates["detector"]
        dead = predicted_death(
            rate_pps=machine["in_pps"], silence_s=detector["silence_s"], unanswered_frames=detector["unanswered"]
        )
        return f"its flows are away for {dead.detection_s * 1e3:.1f} ms, {dead.lost_frames:.0f} frames"
    for machine in rates["balancers"]:
        if machine["name"] != element:
            continue
        if machine["state"] != "active":
            return "nothing is lost: it stands by"
        if not any(other["state"] != "active" and not other["fault"] for other in rates["balancers"]):
            return "everything is lost until it is mended: no second load balancer stands by"
        dead = predicted_takeover(rate_pps=sum(port["in_pps"] for port in machine["ports"].values()))
        return f"everything is away for about {dead.detection_s * 1e3:.0f} ms, {dead.lost_frames:.0f} frames"
    return ""


def fail(
    element: Element,
    *,
    kind: Annotated[
        str, typer.Option("--kind", metavar="link|hang", help="Its links go down; or it drops all without a word.")
    ] = "link",
    name: Name = None,
) -> None:
    """Let an element fail, to see what that costs; its prediction is printed before."""
    foretold = _describe_predicted_loss(name, element)
    if foretold:
        remark(f"predicted: {foretold}")
    _request(name, "fail", element=element, kind=kind)
    remark(f"{element} has failed ({kind}); `routecast multistage restore {element}` mends it")


def restore(element: Element, *, name: Name = None) -> None:
    """Mend an element that failed: it is set up anew, and takes frames once it has answered."""
    _request(name, "restore", element=element)
    remark(f"{element} is mended")


def trace(
    protocol: Annotated[str, typer.Argument(metavar="PROTOCOL", help="udp, tcp, …", show_default=False)],
    source: Annotated[str, typer.Argument(metavar="FROM", help="ADDRESS:PORT, or an address.", show_default=False)],
    destination: Annotated[str, typer.Argument(metavar="TO", help="ADDRESS:PORT, or an address.", show_default=False)],
    *,
    name: Name = None,
    as_json: AsJson = False,
) -> None:
    """Print the back-end router of a flow, and the reason."""
    path = _request(name, "trace", protocol=protocol, source=source, destination=destination)
    if as_json:
        print_json(path)
        return
    data().print(f"{path['router'] or 'none'}: {'; '.join(path['because'])}", markup=False, highlight=False)


def audit(name: Name = None, *, as_json: AsJson = False) -> None:
    """Compare what all elements know: tables, addresses, routes, neighbours; leaves with 1 where something differs."""
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
        remark("all elements know the same")


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
    deadline = time.monotonic() + _GOES_DOWN_WITHIN_S
    while router in standing_routers():
        if time.monotonic() > deadline:
            raise EnvironmentProblem(f"{router} does not go down within {_GOES_DOWN_WITHIN_S:g} s")
        time.sleep(_LISTENS_EVERY_S)
    remark(f"{router} is down")


def _request(name: str | None, what: str, **arguments: Any) -> Any:
    from routecast.multistage._control import chosen_router, send_request

    return send_request(chosen_router(name), what, **arguments)
