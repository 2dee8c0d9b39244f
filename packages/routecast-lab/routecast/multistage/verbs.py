"""The commands of a router that is up: each sends requests to the process that holds it.

They start often and beside the traffic that they judge, so this module imports no package that is slow to import.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

from routecast.cli.console import print_json, print_plain_table, remark
from routecast.cli.thin import JSON, argument, option, thin
from routecast.errors import CriterionFailed, EnvironmentProblem, QuantityProblem
from routecast.multistage._client import chosen_router, event_line, send_request, standing_routers, with_rates
from routecast.multistage._detection import TAKEOVER_S, death_detection_s

__all__ = ["add", "audit", "down", "drain", "events", "fail", "remove", "restore", "status", "trace", "weight"]

_POLLS_EVERY_S = 0.1
_LOOKS_EVERY_S = 0.02
"""Interval of the statuses of ``--wait``, s."""
_DOWN_WITHIN_S = 30.0
_RATE_INTERVAL_S = 0.2
_AFTER_THE_DEADLINE_S = 5.0
"""Time after the deadline of a drain in which the router must be drained, s."""

_NAME = option("--name", "Name or file of the router; required if this machine has several.", metavar="NAME|FILE")
_WHICH = argument(
    "which", "FILE|NAME", "The router, by its file or its name; the only one if not given.", is_required=False
)
_ROUTER = argument("router", "ROUTER", "A back-end router.")
_ELEMENT = argument("element", "ELEMENT", "A back-end router or a load balancer.")
_WAIT = option("--wait", "Wait until it holds, and print how long it took; exit with 1 if it does not.", kind=bool)
_TIMEOUT = option("--timeout", "Longest time of --wait.", metavar="TIME", default="10 s")
_DONE = (_WAIT, _TIMEOUT, _NAME, JSON)

Holds = Callable[[Mapping[str, Any], Mapping[str, Any] | None], bool]
"""Whether a change holds, of the router's status and of the element in it, None without it."""


@thin(
    _WHICH,
    option("--once", "Print once and exit; the default if stdout is no terminal.", kind=bool),
    option("--interval", "Interval of the rates, s.", metavar="S", kind=float, default=1.0, minimum=0.05, maximum=60.0),
    _NAME,
    JSON,
)
def status(*, which: str | None, once: bool, interval: float, name: str | None, as_json: bool) -> None:
    """Show the states and rates of all elements, repeatedly until Ctrl-C."""
    router = _router(which, name)
    before = send_request(router, "status")
    while True:
        time.sleep(interval)
        after = send_request(router, "status")
        rates = with_rates(before, after)
        before = after
        if as_json:
            print_json(rates)
            return
        from routecast.multistage._tables import balancers_table, claims_lines, routers_table

        is_repeated = not once and sys.stdout.isatty()
        if is_repeated:
            sys.stdout.write("\x1b[2J\x1b[H")
        for table in (balancers_table(rates), routers_table(rates)):
            print_plain_table(table)
        for line in claims_lines(rates):
            print(line)
        sys.stdout.flush()
        if not is_repeated:
            return


@thin(
    _WHICH,
    option("--since", 'Print later events only: "12:03:04", a date with a time, or "10 s" ago.', metavar="TIME"),
    option("--follow", "Print events as they come, until Ctrl-C.", kind=bool),
    _NAME,
    JSON,
)
def events(*, which: str | None, since: str | None, follow: bool, name: str | None, as_json: bool) -> None:
    """Print the events that the router has kept, a line each; --follow --json prints a JSON document a line."""
    import json

    router = _router(which, name)
    since_s = -float("inf") if since is None else _instant_unix_s(since, time.time())
    after = 0
    while True:
        new = send_request(router, "events", after=after)
        after = max([after, *(event["number"] for event in new)])
        shown = [event for event in new if event["time_unix_s"] >= since_s]
        if as_json and not follow:
            print_json(shown)
        else:
            for event in shown:
                print(json.dumps(event, ensure_ascii=False) if as_json else event_line(event, time.time()))
        sys.stdout.flush()
        if not follow:
            return
        time.sleep(_POLLS_EVERY_S)


def _instant_unix_s(text: str, now_unix_s: float) -> float:
    """Return the instant of ``--since``: a clock time of today, a date with or without a time, or a time ago."""
    from datetime import datetime
    from datetime import time as clock_time

    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        pass
    try:
        today = datetime.fromtimestamp(now_unix_s).date()
        return datetime.combine(today, clock_time.fromisoformat(text)).timestamp()
    except ValueError:
        pass
    from routecast.quantity import parse_duration_s

    try:
        return now_unix_s - parse_duration_s(text)
    except QuantityProblem:
        raise QuantityProblem(
            text, f'--since {text!r} is no time: write "12:03:04", "2026-01-31 12:03:04", or a time ago such as "10 s"'
        ) from None


@thin(
    _ROUTER,
    option("--idle", "Time without a frame after which a flow has ended.", metavar="TIME", default="5 s"),
    option("--deadline", "Time after which other routers get the remaining flows.", metavar="TIME", default="60 s"),
    _WAIT,
    option("--timeout", "Longest time of --wait; 5 s after the deadline if not given.", metavar="TIME"),
    _NAME,
    JSON,
)
def drain(
    *, router: str, idle: str, deadline: str, wait: bool, timeout: str | None, name: str | None, as_json: bool
) -> None:
    """Give a back-end router no new flows; it keeps its present flows until they end."""
    from routecast.quantity import parse_duration_s

    change = _Change(name, router, "drain", idle_s=parse_duration_s(idle), deadline_s=parse_duration_s(deadline))
    change.send()
    if wait:
        timeout_s = change.arguments["deadline_s"] + _AFTER_THE_DEADLINE_S
        change.wait(
            "drained",
            lambda _, row: row is None or row["state"] == "drained",
            timeout_s if timeout is None else parse_duration_s(timeout),
        )
    change.report(f"{router} drains; `routecast multistage status` shows when it is drained", as_json=as_json)


@thin(
    _ROUTER,
    option("--weight", "Relative share of the flows; 1 if not given.", metavar="W", kind=float),
    option("--cap", "Highest forwarding rate of an emulated machine, such as 50 kpps.", metavar="RATE"),
    option("--forwarding", "Program that forwards the frames.", metavar="linux|nftables|xdp", default="linux"),
    option("--rules", "Number of nftables rules.", metavar="N", kind=int, minimum=0),
    *_DONE,
)
def add(
    *,
    router: str,
    weight: float | None,
    cap: str | None,
    forwarding: str,
    rules: int | None,
    wait: bool,
    timeout: str,
    name: str | None,
    as_json: bool,
) -> None:
    """Add a back-end router, or give a drained back-end router its flows again."""
    change = _Change(name, router, "add", weight=weight, cap=cap, forwarding=forwarding, rules=rules)
    change.send()
    if wait:
        change.wait("active", lambda _, row: row is not None and row["state"] == "active", _seconds(timeout))
    change.report(f"{router} takes flows", as_json=as_json)


@thin(_ROUTER, *_DONE)
def remove(*, router: str, wait: bool, timeout: str, name: str | None, as_json: bool) -> None:
    """Remove a back-end router: other routers get its flows, and frames in flight still arrive."""
    change = _Change(name, router, "remove")
    change.send()
    if wait:
        change.wait("removed", lambda _, row: row is None, _seconds(timeout))
    change.report(f"{router} is removed", as_json=as_json)


@thin(_ROUTER, argument("share", "W", "Relative share of the flows.", kind=float), *_DONE)
def weight(*, router: str, share: float, wait: bool, timeout: str, name: str | None, as_json: bool) -> None:
    """Set the weight of a back-end router, and thereby its share of the flows."""
    change = _Change(name, router, "set_weight", weight=share)
    change.send()
    if wait:
        change.wait(
            f"of weight {share:g} in the tables of all load balancers",
            lambda status, row: (
                row is not None
                and row["weight"] == share
                and all(balancer["epoch"] == status["epoch"] for balancer in status["balancers"])
            ),
            _seconds(timeout),
        )
    change.report(f"{router} has weight {share:g}", as_json=as_json)


@thin(
    _ELEMENT,
    option("--kind", "Its interfaces go down, or it silently drops all frames.", metavar="link|hang", default="link"),
    option("--direction", "Frames that the fault meets; both if not given.", metavar="in|out|both"),
    option("--loss", "Share of the frames that it drops, such as 20%; all if not given.", metavar="RATIO"),
    *_DONE,
)
def fail(
    *,
    element: str,
    kind: str,
    direction: str | None,
    loss: str | None,
    wait: bool,
    timeout: str,
    name: str | None,
    as_json: bool,
) -> None:
    """Inject a fault into an element, after a prediction of the loss."""
    arguments: dict[str, Any] = {"kind": kind}
    if direction is not None:
        if direction not in ("in", "out", "both"):
            raise QuantityProblem(direction, f"--direction {direction!r}: in, out or both")
        arguments["direction"] = direction
    if loss is not None:
        from routecast.quantity import parse_ratio

        try:
            arguments["loss_ratio"] = parse_ratio(loss)
        except QuantityProblem as problem:
            raise QuantityProblem(loss, f"--loss: {problem}") from None
    change = _Change(name, element, "fail", **arguments)
    prediction = predicted_loss(change.router, element, loss_ratio=arguments.get("loss_ratio", 1.0))
    if prediction and not as_json:
        remark(f"predicted: {prediction['text']}")
    change.send()
    if wait:
        change.wait("seen to fail", _is_seen_to_fail, _seconds(timeout))
    change.report(
        f"{element} has failed ({kind}); `routecast multistage restore {element}` restores it",
        as_json=as_json,
        prediction=prediction,
    )


def _is_seen_to_fail(status: Mapping[str, Any], row: Mapping[str, Any] | None) -> bool:
    if row is None:
        return False
    if row in status["balancers"]:
        return bool(row["fault"]) and row["state"] != "active"
    return row["state"] not in ("active", "draining", "drained")


@thin(_ELEMENT, *_DONE)
def restore(*, element: str, wait: bool, timeout: str, name: str | None, as_json: bool) -> None:
    """Remove the fault of an element: it is set up again, and gets frames after it has answered probe frames."""
    change = _Change(name, element, "restore")
    change.send()
    if wait:
        change.wait(
            "back",
            lambda _, row: (
                row is not None and not row["fault"] and row["state"] in ("active", "standby", "draining", "drained")
            ),
            _seconds(timeout),
        )
    change.report(f"{element} is restored", as_json=as_json)


@thin(
    argument("protocol", "PROTOCOL", "udp, tcp, …"),
    argument("source", "FROM", "ADDRESS:PORT, or an address."),
    argument("destination", "TO", "ADDRESS:PORT, or an address."),
    _NAME,
    JSON,
)
def trace(*, protocol: str, source: str, destination: str, name: str | None, as_json: bool) -> None:
    """Print the back-end router of a flow, and the reasons."""
    path = send_request(chosen_router(name), "trace", protocol=protocol, source=source, destination=destination)
    if as_json:
        print_json(path)
    else:
        print(f"{path['router'] or 'none'}: {'; '.join(path['because'])}")


@thin(
    _WHICH,
    option("--repair", "Make the tables, addresses, routes and neighbours equal again.", kind=bool),
    option("--wait", "Compare again until all elements are seen and agree.", kind=bool),
    _TIMEOUT,
    _NAME,
    JSON,
)
def audit(*, which: str | None, repair: bool, wait: bool, timeout: str, name: str | None, as_json: bool) -> None:
    """Compare the tables, addresses, routes and neighbours of all elements; exit with 1 if they differ."""
    from routecast.multistage._tables import audit_table

    router, deadline = _router(which, name), time.monotonic() + _seconds(timeout)
    result = send_request(router, "audit", **({"repair": True} if repair else {}))
    while wait and not result["is_equal"] and time.monotonic() < deadline:
        time.sleep(_POLLS_EVERY_S)
        result = send_request(router, "audit")
    if as_json:
        print_json(result)
    else:
        print_plain_table(audit_table(result))
    if not result["is_equal"]:
        raise CriterionFailed("; ".join(result["problems"]) or "the tables of the elements differ")
    if not as_json:
        remark("the tables of all elements agree")


@thin(_WHICH, _NAME)
def down(*, which: str | None, name: str | None) -> None:
    """Take a router down, whether a process holds it or not."""
    router = _router(which, name)
    try:
        send_request(router, "down")
    except EnvironmentProblem:
        from routecast.lab.testbed import state

        state.remove(router)
    deadline = time.monotonic() + _DOWN_WITHIN_S
    while router in standing_routers():
        if time.monotonic() > deadline:
            raise EnvironmentProblem(f"{router} does not go down within {_DOWN_WITHIN_S:g} s")
        time.sleep(_POLLS_EVERY_S)
    remark(f"{router} is down")


def _router(which: str | None, name: str | None) -> str:
    """Return the router of the argument, or of ``--name``."""
    router = chosen_router(which if which is not None else name)
    if which is not None and name is not None and chosen_router(name) != router:
        raise QuantityProblem(name, f"{which} is another router than --name {name}: give one of them")
    return router


def _seconds(text: str) -> float:
    from routecast.quantity import parse_duration_s

    return parse_duration_s(text)


class _Change:
    """A request that changes an element, and its result."""

    def __init__(self, name: str | None, element: str, request: str, **arguments: Any) -> None:
        self.router = chosen_router(name)
        self.element = element
        self.request = request
        self.arguments = arguments
        self.status: Mapping[str, Any] = {}
        self.waited: dict[str, Any] | None = None
        self._sent_s = 0.0

    def send(self) -> None:
        """Send the request."""
        self._sent_s = time.monotonic()
        send_request(self.router, self.request, element=self.element, **self.arguments)

    def wait(self, until: str, holds: Holds, timeout_s: float) -> None:
        """Wait until a condition holds or the timeout passes, counted from the request; ``until`` is it in words."""
        while True:
            self.status = send_request(self.router, "status")
            took_s = time.monotonic() - self._sent_s
            is_reached = holds(self.status, self._row())
            if is_reached or took_s > timeout_s:
                self.waited = {"until": until, "is_reached": is_reached, "took_s": took_s, "timeout_s": timeout_s}
                return
            time.sleep(_LOOKS_EVERY_S)

    def report(self, done: str, *, as_json: bool, prediction: Mapping[str, Any] | None = None) -> None:
        """Print what was done.

        Raises CriterionFailed: the condition of the wait did not hold in time.
        """
        self.status = self.status or send_request(self.router, "status")
        row = self._row()
        if as_json:
            document = {
                "router": self.router,
                "request": self.request,
                "element": self.element,
                "arguments": self.arguments,
                "epoch": self.status["epoch"],
                "state": row["state"] if row else None,
            }
            if self.request == "fail":
                document["prediction"] = prediction or None
            print_json(document | ({"wait": self.waited} if self.waited else {}))
        elif self.waited is None:
            remark(done)
        elif self.waited["is_reached"]:
            remark(f"{self.element} is {self.waited['until']} after {self.waited['took_s']:.3f} s")
        if self.waited and not self.waited["is_reached"]:
            raise CriterionFailed(
                f"{self.element} is not {self.waited['until']} within {self.waited['timeout_s']:g} s; "
                f"its state is {row['state'] if row else 'unknown: it is no element'}"
            )

    def _row(self) -> Mapping[str, Any] | None:
        rows = (*self.status["routers"], *self.status["balancers"])
        return next((row for row in rows if row["name"] == self.element), None)


def predicted_loss(router: str, element: str, *, loss_ratio: float) -> dict[str, Any]:
    """Return the predicted loss by the failure of an element at the current rates; empty without such an element.

    ``text`` has it in words. ``away_s`` and ``lost_frames`` are None where they are unknown or without an end.
    ``loss_ratio``: share of its frames that the element drops.
    """
    before = send_request(router, "status")
    time.sleep(_RATE_INTERVAL_S)
    status = with_rates(before, send_request(router, "status"))
    for row in (*status["routers"], *status["balancers"]):
        if row["name"] == element:
            is_router = row in status["routers"]
            return _router_loss(status, row, loss_ratio) if is_router else _balancer_loss(status, row, loss_ratio)
    return {}


def _router_loss(status: Mapping[str, Any], row: Mapping[str, Any], loss_ratio: float) -> dict[str, Any]:
    rate_pps = row["in_pps"]
    if rate_pps <= 0.0 or not any(other["out_pps"] > 0.0 for other in status["routers"] if other is not row):
        return _prediction("unknown: the router has no traffic, or no other router returns frames", rate_pps)
    if loss_ratio < 1.0:
        return _partial(rate_pps, loss_ratio)
    detector = status["detector"]
    away_s = death_detection_s(rate_pps, detector["silence_s"], detector["unanswered"])
    text = f"its flows are lost for {away_s * 1e3:.1f} ms: {away_s * rate_pps:.0f} frames"
    return _prediction(text, rate_pps, away_s, away_s * rate_pps)


def _balancer_loss(status: Mapping[str, Any], row: Mapping[str, Any], loss_ratio: float) -> dict[str, Any]:
    rate_pps = sum(port["in_pps"] for port in row["ports"].values())
    if row["state"] != "active":
        return _prediction("no frame is lost: the load balancer is a standby", rate_pps, 0.0, 0.0)
    if loss_ratio < 1.0:
        return _partial(rate_pps, loss_ratio)
    if not any(other["state"] != "active" and not other["fault"] for other in status["balancers"]):
        return _prediction("all frames are lost until the load balancer is restored: there is no standby", rate_pps)
    text = f"all frames are lost for about {TAKEOVER_S * 1e3:.0f} ms: {TAKEOVER_S * rate_pps:.0f} frames"
    return _prediction(text, rate_pps, TAKEOVER_S, TAKEOVER_S * rate_pps)


def _partial(rate_pps: float, loss_ratio: float) -> dict[str, Any]:
    text = f"{100.0 * loss_ratio:g} % of its frames, {loss_ratio * rate_pps:.0f} frames/s, until the fault is seen"
    return _prediction(f"it loses {text}", rate_pps)


def _prediction(
    text: str, rate_pps: float, away_s: float | None = None, lost_frames: float | None = None
) -> dict[str, Any]:
    return {"text": text, "rate_pps": rate_pps, "away_s": away_s, "lost_frames": lost_frames}
