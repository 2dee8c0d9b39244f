"""The simulator's model of a router of many machines, from the same file, and its failures as events of a trial.

The file does not give the time of a machine for a frame, so that a back-end router needs a ``cap``. Load balancers,
links and switches take no time in the model, unless the cost of a load balancer is given.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from routecast._core import flow_row, flow_table
from routecast.errors import ModelProblem, Problem
from routecast.multistage.prediction import PredictedDeath, predicted_death, predicted_takeover
from routecast.multistage.reading import MultistageFile
from routecast.quantity.schema import field, value
from routecast.router.events import Event, Outage, Reroute
from routecast.router.model import Policy, Route, RouterModel, ServiceCost, TaskUnit
from routecast.router.multistage import Interconnect, multistage_router
from routecast.router.virtual.machines import Machine, Server
from routecast.router.virtual.technology import Technology

_UDP = 17
_FIRST_PORT, _ECHO_PORT = 1024, 7
_LINK_BPS = 1e12
_QUEUE_FRAMES = 65_536
"""Of what is not limited by the file: load balancers and links."""


@value
class FlowChoices:
    """The back-end routers of the flows of a load: a pure function of the file, known before any frame is sent."""

    choices: tuple[tuple[str, ...], ...] = field("Back-end routers of each flow, in order of preference")

    @classmethod
    def of(cls, file: MultistageFile, flows: Iterable[Mapping[str, object]]) -> FlowChoices:
        """Return the choices of UDP flows.

        ``flows``: ``source_address``, ``destination_address``, ``source_port``, ``destination_port``, as the tester has
        them.
        """
        rows = [
            flow_row(
                str(flow["source_address"]),
                str(flow["destination_address"]),
                _UDP,
                (int(str(flow["source_port"])), int(str(flow["destination_port"]))),
                False,
            )
            for flow in flows
        ]
        weights = [(number, table.weight) for number, table in enumerate(file.router)]
        names = [table.name for table in file.router]
        return cls(
            choices=tuple(tuple(names[number] for number in order) for order in flow_table(weights, file.seed, rows))
        )

    def chosen(self, dead: Iterable[str] = ()) -> tuple[str, ...]:
        """Return the router of each flow while some are known to be dead; if all are, none is left out."""
        away = {*dead}
        return tuple(next((name for name in order if name not in away), order[0]) for order in self.choices)

    def share(self, name: str) -> float:
        """Return the share of the flows that goes to a back-end router."""
        return Counter(self.chosen())[name] / len(self.choices)


def model_of(file: MultistageFile, flows: FlowChoices, *, balancer_s: float = 0.0) -> RouterModel:
    """Return the model of a router of many machines for the flows of a load.

    It has the active load balancer; a standby does nothing.

    ``flows``: of the load's flows, by their numbers; ``balancer_s``: what a load balancer takes for a frame, each way,
    s. Raises ModelProblem: a back-end router has no ``cap``, or the scheme is not ``flow_hash``: what it forwards is
    not known.
    """
    problems = [
        Problem(f"router[{n}].cap", "is missing: what the machine forwards is not known; give its cap")
        for n, table in enumerate(file.router)
        if not table.cap
    ]
    if file.scheme != "flow_hash":
        problems.append(Problem("scheme", f'"{file.scheme}" has no model: flow_hash has'))
    if problems:
        raise ModelProblem(f"model of {file.name!r}", problems)
    balancer = file.balancer[0].name
    works = {"balance": ServiceCost(per_packet_s=balancer_s), "return": ServiceCost(per_packet_s=balancer_s)}
    servers = [Server(name=balancer, cores=1, technology=_technology(balancer, _QUEUE_FRAMES, works))]
    for table in file.router:
        forward = {"forward": ServiceCost(per_packet_s=1.0 / (table.cap or math.nan))}
        servers.append(Server(name=table.name, cores=1, technology=_technology(table.name, table.queue, forward)))
    model = multistage_router(
        servers,
        [Machine(name=balancer, server=balancer)],
        [Machine(name=table.name, server=table.name) for table in file.router],
        interconnect=Interconnect(link_bps=_LINK_BPS, link_queue_frames=_QUEUE_FRAMES),
        balancing="flow_hash",
        ports_per_balancer=len(file.segment),
        link_bps=_LINK_BPS,
        tx_ring_frames=_QUEUE_FRAMES,
        name=file.name,
    )
    return replace(model, tasks=tuple(_with_flow_routes(task, file, flows) for task in model.tasks))


@value
class PredictedFailures:
    """Elements that die at the same instant, and the predicted loss."""

    events: tuple[Event, ...] = field("Events for the simulator")
    predicted: Mapping[str, PredictedDeath] = field("Detection and loss, by element")

    @property
    def lost_frames(self) -> float:
        """Total frames lost."""
        return math.fsum(prediction.lost_frames for prediction in self.predicted.values())


def death_of(file: MultistageFile, flows: FlowChoices, name: str, *, rate_pps: float) -> PredictedDeath:
    """Predict the death of one back-end router at a load of the whole router, frames/s; see :func:`predicted_death`."""
    return predicted_death(
        rate_pps=flows.share(name) * rate_pps,
        silence_s=file.detector.silence,
        unanswered_frames=file.detector.unanswered,
    )


def deaths_of(
    model: RouterModel,
    file: MultistageFile,
    flows: FlowChoices,
    victims: Iterable[str],
    *,
    rate_pps: float,
    at_s: float,
    back_s: float = math.inf,
) -> PredictedFailures:
    """Predict the death of back-end routers at one instant, and perhaps their return.

    Each is detected by its own silence; from then on each of its flows goes to its next choice. It has its flows again
    at ``back_s``: how long own frames take to be answered is not in the model.

    ``model``: of :func:`model_of`; ``victims``: back-end routers; another one has flows too; ``rate_pps``: of the load,
    frames/s, in equal shares of all flows; ``at_s`` and ``back_s``: instants of the trial, s. Raises ModelProblem:
    there is no such back-end router, it has no flow, or no other has any: nothing can be predicted.
    """
    victims = list(dict.fromkeys(victims))
    names = [table.name for table in file.router]
    problems = [Problem(name, f"is no back-end router: there are {', '.join(names)}") for name in {*victims} - {*names}]
    if not problems and math.fsum(map(flows.share, victims)) > 1.0 - 1e-9:
        problems.append(
            Problem("victims", "have all flows: without another that returns frames the time is another one")
        )
    problems += [Problem(name, "has none of the flows") for name in victims if name in names and not flows.share(name)]
    if problems:
        raise ModelProblem(f"failure of {file.name!r}", problems)
    predicted = {name: death_of(file, flows, name, rate_pps=rate_pps) for name in victims}
    events: list[Event] = [Outage(task=f"{name} forward", from_s=at_s, until_s=back_s) for name in victims]
    balance = _balance(file)
    next_tasks = _next_tasks(model.task(balance), file)
    known: list[str] = []
    for name in sorted(victims, key=lambda victim: predicted[victim].detection_s):
        known.append(name)
        route = _route(next_tasks, flows.chosen(known))
        events.append(Reroute(task=balance, at_s=at_s + predicted[name].detection_s, route=route))
    if math.isfinite(back_s):
        events.append(Reroute(task=balance, at_s=back_s, route=_route(next_tasks, flows.chosen())))
    return PredictedFailures(events=tuple(events), predicted=predicted)


def takeover_of(file: MultistageFile, *, rate_pps: float, at_s: float) -> PredictedFailures:
    """Predict the death of the active load balancer and the takeover by the second one; see :func:`deaths_of`.

    Raises ModelProblem: there is no second one, so that all frames are lost until the first is back.
    """
    if len(file.balancer) < 2:
        raise ModelProblem(f"failure of {file.name!r}", [Problem("balancer", "is one: none can take over")])
    predicted = predicted_takeover(rate_pps=rate_pps)
    name = file.balancer[0].name
    until_s = at_s + predicted.detection_s
    # The second one has the same tables and does the same from then on, so in the model the first is back.
    tasks = (f"{name} balance", f"{name} return")
    outages = tuple(Outage(task=task, from_s=at_s, until_s=until_s) for task in tasks)
    return PredictedFailures(events=outages, predicted={name: predicted})


def udp_flows(file: MultistageFile, count: int) -> list[dict[str, object]]:
    """Return flows from the host of the first network to that of the second, with source ports from 1024 on."""
    near, far = file.segment[:2]
    return [
        {
            "source_address": near.host_ipv4,
            "destination_address": far.host_ipv4,
            "source_port": _FIRST_PORT + number,
            "destination_port": _ECHO_PORT,
        }
        for number in range(count)
    ]


def failures_of(file: MultistageFile, flows: FlowChoices, *, rate_pps: float) -> dict[str, Any]:
    """Return the predictions for a router at a load: its forwarded rate, and the loss by the failure of each element.

    ``forwarded_pps`` is None where a back-end router has no cap. Of a back-end router that has no flow, or all of them
    (its silence is told by what the others return), nothing is known: NaN.
    """
    rows = []
    for table in file.router:
        share = flows.share(table.name)
        is_known = 0.0 < share < 1.0
        dead = death_of(file, flows, table.name, rate_pps=rate_pps) if is_known else None
        rows.append(_failure(table.name, share, rate_pps, dead))
    first = file.balancer[0].name
    rows.append(
        _failure(first, 1.0, rate_pps, predicted_takeover(rate_pps=rate_pps) if len(file.balancer) > 1 else None)
    )
    forwarded_pps = None
    if all(table.cap for table in file.router) and file.scheme == "flow_hash":
        forwarded_pps = math.fsum(min(table.cap or 0.0, flows.share(table.name) * rate_pps) for table in file.router)
    return {"load_pps": rate_pps, "forwarded_pps": forwarded_pps, "failures": rows}


def _failure(element: str, share: float, rate_pps: float, dead: PredictedDeath | None) -> dict[str, object]:
    return {
        "element": element,
        "share": share,
        "rate_pps": share * rate_pps,
        "away_s": dead.detection_s if dead else math.nan,
        "lost_frames": dead.lost_frames if dead else math.nan,
    }


def _technology(name: str, queue_frames: int, functions: Mapping[str, ServiceCost]) -> Technology:
    return Technology(
        name=name,
        backend="none",
        guest="polling",
        guest_ring_frames=queue_frames,
        functions=functions,
        policy=Policy(kind="fifo"),
    )


def _balance(file: MultistageFile) -> str:
    return f"{file.balancer[0].name} balance"


def _next_tasks(task: TaskUnit, file: MultistageFile) -> Mapping[str, str]:
    """Return the task unit towards each back-end router, by its name, of a task that chooses among all."""
    to = dict.fromkeys(task.route.to)
    balancer = file.balancer[0].name
    return {
        table.name: next(failure for failure in to if failure.startswith(f"{balancer} to {table.name} ("))
        for table in file.router
    }


def _route(next_tasks: Mapping[str, str], chosen: Iterable[str]) -> Route:
    return Route(kind="per_flow", to=tuple(next_tasks[name] for name in chosen))


def _with_flow_routes(task: TaskUnit, file: MultistageFile, flows: FlowChoices) -> TaskUnit:
    """Return a task of the model; the balancing one gets the route of each flow."""
    if task.name != _balance(file) or len(file.router) == 1:
        return task
    next_tasks = _next_tasks(task, file)
    # All next_tasks stay known, also those that no flow takes at first.
    return replace(task, route=_route(next_tasks, flows.chosen()))
