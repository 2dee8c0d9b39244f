"""The simulator's model of a router of many machines, from its file, and its failures as events of a trial.

The file gives no service time of a machine, so that every back-end router of the simulated model needs a ``cap``; the
predicted rate can take it from a router file, too (:class:`BackEndModel`). Load balancers, links and
switches take no time in the model.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from routecast.errors import ModelProblem, Problem, QuantityProblem
from routecast.evaluate.solve import Solve, lossless_pps
from routecast.lab._lab import flow_row, flow_table
from routecast.load.flows import FlowSet
from routecast.load.frames import FrameMix
from routecast.load.offered import OfferedLoad
from routecast.multistage.prediction import PredictedDeath, predicted_death, predicted_takeover
from routecast.multistage.reading import MultistageFile
from routecast.quantity.schema import field, value
from routecast.router.events import Event, Outage, Reroute
from routecast.router.files import read_router_and_load
from routecast.router.model import Policy, Route, RouterModel, ServiceCost, TaskUnit
from routecast.virtual.machines import Machine, Server
from routecast.virtual.multistage import Interconnect, multistage_router
from routecast.virtual.technology import Technology

_UDP = 17
_TABLE_ROWS = 65_536
_FIRST_PORT, _ECHO_PORT = 1024, 7
_LINK_BPS = 1e12
_QUEUE_FRAMES = 65_536
"""Queue of load balancers and links, which the file does not limit."""


@value
class FlowChoices:
    """The back-end routers of a load from the first network, which follow from the file alone."""

    choices: tuple[tuple[str, ...], ...] = field(
        "Back-end routers in order of preference: of each flow, or with the scheme round_robin of each row of the table"
    )

    @classmethod
    def of(cls, file: MultistageFile, flows: Iterable[Mapping[str, object]]) -> FlowChoices:
        """Return the choices for UDP flows.

        With ``round_robin`` frames take the rows of the table in turn, whatever their flow; with ``local_only`` the
        router of the first network comes before the others.

        ``flows``: ``source_address``, ``destination_address``, ``source_port`` and ``destination_port`` of each, with
        the keys of the tester.
        """
        weights = [(number, router.weight) for number, router in enumerate(file.router)]
        names = [router.name for router in file.router]
        if file.scheme == "round_robin":
            orders = flow_table(weights, file.seed, list(range(_TABLE_ROWS)))
            return cls(choices=tuple(tuple(names[number] for number in order) for order in orders))
        rows = []
        for flow in flows:
            ports = int(str(flow["source_port"])), int(str(flow["destination_port"]))
            rows.append(flow_row(str(flow["source_address"]), str(flow["destination_address"]), _UDP, ports, False))
        local = [names.index(file.segment[0].local)] if file.segment[0].local else []
        orders = flow_table(weights, file.seed, rows)
        return cls(
            choices=tuple(tuple(names[number] for number in dict.fromkeys([*local, *order])) for order in orders)
        )

    def chosen(self, dead: Iterable[str] = ()) -> tuple[str, ...]:
        """Return the router of each flow after verdicts on ``dead`` routers; the first choice if all are dead."""
        dead = {*dead}
        return tuple(next((name for name in order if name not in dead), order[0]) for order in self.choices)

    def share(self, name: str) -> float:
        """Return the share of the load that goes to a back-end router."""
        return Counter(self.chosen())[name] / len(self.choices)


def model_of(file: MultistageFile, flows: FlowChoices) -> RouterModel:
    """Return the model of a router of many machines with its active load balancer, for the flows of a load.

    ``flows``: by the numbers of the load's flows. Raises ModelProblem: a back-end router has no ``cap``, or the scheme
    is not ``flow_hash``.
    """
    problems = [
        Problem(f"router[{n}].cap", "is missing: the model needs the forwarding rate of the machine")
        for n, router in enumerate(file.router)
        if not router.cap
    ]
    if file.scheme != "flow_hash":
        problems.append(Problem("scheme", f'"{file.scheme}" has no model: only flow_hash has one'))
    if problems:
        raise ModelProblem(f"model of {file.name!r}", problems)
    balancer = file.balancer[0].name
    no_time = {"balance": ServiceCost(), "return": ServiceCost()}
    servers = [Server(name=balancer, cores=1, technology=_technology(balancer, _QUEUE_FRAMES, no_time))]
    for router in file.router:
        forward = {"forward": ServiceCost(per_packet_s=1.0 / (router.cap or math.nan))}
        servers.append(Server(name=router.name, cores=1, technology=_technology(router.name, router.queue, forward)))
    model = multistage_router(
        servers,
        [Machine(name=balancer, server=balancer)],
        [Machine(name=router.name, server=router.name) for router in file.router],
        interconnect=Interconnect(link_bps=_LINK_BPS, link_queue_frames=_QUEUE_FRAMES),
        balancing="flow_hash",
        ports_per_balancer=len(file.segment),
        link_bps=_LINK_BPS,
        tx_ring_frames=_QUEUE_FRAMES,
        name=file.name,
    )
    if len(file.router) == 1:
        return model
    balance = model.task(_balance_task(file))
    with_route = replace(balance, route=_flow_route(balance, file, flows.chosen()))
    return replace(model, tasks=tuple(with_route if task is balance else task for task in model.tasks))


@value
class PredictedFailures:
    """Elements that fail at the same instant, and the predicted loss."""

    events: tuple[Event, ...] = field("Events for the simulator")
    predicted: Mapping[str, PredictedDeath] = field("Detection and loss, by element")

    @property
    def lost_frames(self) -> float:
        """Total frames lost."""
        return math.fsum(prediction.lost_frames for prediction in self.predicted.values())


def death_of(file: MultistageFile, flows: FlowChoices, name: str, *, rate_pps: float) -> PredictedDeath:
    """Predict the death of a back-end router at a load of the whole router, frames/s; see :func:`predicted_death`."""
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
    """Predict the death of back-end routers at one instant, and their return if ``back_s`` is finite.

    The detector finds each dead router by its silence, and then moves each of its flows to its next choice. At
    ``back_s`` the router has its flows again: the model leaves out the time in which it answers probe frames.

    ``model``: of :func:`model_of`; ``victims``: back-end routers, but not all that have flows; ``rate_pps``: of the
    load, frames/s, in equal shares of all flows; ``at_s`` and ``back_s``: instants of the trial, s. Raises
    ModelProblem: a victim is no back-end router or has no flow, or the victims have all flows.
    """
    victims = list(dict.fromkeys(victims))
    names = [router.name for router in file.router]
    problems = [Problem(name, f"is no back-end router: there are {', '.join(names)}") for name in {*victims} - {*names}]
    if not problems and math.fsum(map(flows.share, victims)) > 1.0 - 1e-9:
        problems.append(Problem("victims", "have all flows: silence shows only while another router returns frames"))
    problems += [Problem(name, "has none of the flows") for name in victims if name in names and not flows.share(name)]
    if problems:
        raise ModelProblem(f"failure of {file.name!r}", problems)
    predicted = {name: death_of(file, flows, name, rate_pps=rate_pps) for name in victims}
    events: list[Event] = [Outage(task=f"{name} forward", from_s=at_s, until_s=back_s) for name in victims]
    balance = model.task(_balance_task(file))
    detected: list[str] = []
    for name in sorted(victims, key=lambda victim: predicted[victim].detection_s):
        detected.append(name)
        route = _flow_route(balance, file, flows.chosen(detected))
        events.append(Reroute(task=balance.name, at_s=at_s + predicted[name].detection_s, route=route))
    if math.isfinite(back_s):
        events.append(Reroute(task=balance.name, at_s=back_s, route=_flow_route(balance, file, flows.chosen())))
    return PredictedFailures(events=tuple(events), predicted=predicted)


def takeover_of(file: MultistageFile, *, rate_pps: float, at_s: float) -> PredictedFailures:
    """Predict the death of the active load balancer and the takeover by the standby; see :func:`deaths_of`.

    Raises ModelProblem: there is no standby, so that all frames are lost until the load balancer is back.
    """
    if len(file.balancer) < 2:
        raise ModelProblem(f"failure of {file.name!r}", [Problem("balancer", "is one: none can take over")])
    predicted = predicted_takeover(rate_pps=rate_pps)
    name = file.balancer[0].name
    until_s = at_s + predicted.detection_s
    # The standby has the same tables and does the same work, so that in the model the first load balancer returns.
    outages = tuple(Outage(task=f"{name} {work}", from_s=at_s, until_s=until_s) for work in ("balance", "return"))
    return PredictedFailures(events=outages, predicted={name: predicted})


def udp_flows(file: MultistageFile, count: int) -> list[dict[str, object]]:
    """Return flows from the host of the first network to the host of the second, with source ports from 1024."""
    left, right = file.segment[:2]
    return [
        {
            "source_address": left.host_ipv4,
            "destination_address": right.host_ipv4,
            "source_port": _FIRST_PORT + number,
            "destination_port": _ECHO_PORT,
        }
        for number in range(count)
    ]


@value
class BackEndModel:
    """The model of a back-end router from its own file, and the frames of the load."""

    source: str = field("File of the model")
    router: RouterModel = field("The model")
    load: OfferedLoad = field("Frames, flows and arrivals; the rate is not used")

    @classmethod
    def read(cls, path: Path, frames: FrameMix) -> BackEndModel:
        """Return the model in a ``*.router.toml``, with the flows of its load, or else one flow of each port.

        Raises FileProblem: the file cannot be read, or is not valid.
        """
        router, load = read_router_and_load(path, frames=frames)
        ports = len(router.ports)
        flows = load.flows if load else FlowSet.crafted(ports, ports=ports)
        return cls(source=str(path), router=router, load=OfferedLoad(rate_pps=1.0, frames=frames, flows=flows))

    @property
    def capacity_pps(self) -> float:
        """Greatest rate that overloads nothing in the machine, by closed form."""
        return lossless_pps(self.router, self.load)

    def forwarded_pps(self, rate_pps: float) -> float:
        """Return the forwarded rate at an offered one, by closed form."""
        if rate_pps <= 0.0:
            return 0.0
        return Solve(model=self.router).trial(self.load.at(rate_pps), 1.0).forwarded_pps


def models_of(
    file: MultistageFile, options: Sequence[str], *, folder: Path, frames: FrameMix
) -> dict[str, BackEndModel]:
    """Return the models of back-end routers that have one, by name.

    ``options``: ``NAME=FILE`` for a back-end router, or ``FILE`` for all others, before the keys ``model`` of the file,
    which lies in ``folder``. Raises QuantityProblem: there is no such router, or one has two files; FileProblem: a file
    cannot be read, or is not valid.
    """
    names = [router.name for router in file.router]
    given: dict[str, Path] = {}
    for option in options:
        name, equals, of_name = option.partition("=")
        if not equals or "/" in name or "." in name:
            name, of_name = "", option
        elif name not in names:
            raise QuantityProblem(option, f"--router {option}: there is no {name!r}; there are: {', '.join(names)}")
        if name in given:
            raise QuantityProblem(option, f"--router {option}: {name or 'all others'} have {given[name]} already")
        given[name] = Path(of_name)
    read: dict[Path, BackEndModel] = {}
    models = {}
    for router in file.router:
        path_in_file = folder / router.model if router.model else None
        if path := given.get(router.name) or given.get("") or path_in_file:
            models[router.name] = read[path] = read.get(path) or BackEndModel.read(path, frames)
    return models


def failures_of(
    file: MultistageFile, flows: FlowChoices, *, rate_pps: float, models: Mapping[str, BackEndModel] | None = None
) -> dict[str, Any]:
    """Predict the forwarded rate of a router at a load, frames/s, and the loss by the failure of each element.

    ``models``: of back-end routers that have one, by name, instead of their cap; see :func:`models_of`. ``routers`` of
    the result says what each back-end router can carry and forwards, and from what this is known. ``forwarded_pps`` is
    None if a back-end router with flows has neither a cap nor a model. ``away_s`` and ``lost_frames`` are NaN for a
    load balancer without a standby, and for a back-end router that has no flow or all flows, because silence shows only
    while another router returns frames.
    """
    shares = {router.name: flows.share(router.name) for router in file.router}
    deaths = {
        name: death_of(file, flows, name, rate_pps=rate_pps) if 0.0 < share < 1.0 else None
        for name, share in shares.items()
    }
    balancer = file.balancer[0].name
    deaths[balancer] = predicted_takeover(rate_pps=rate_pps) if len(file.balancer) > 1 else None
    routers = []
    for router in file.router:
        offered_pps = shares[router.name] * rate_pps
        row: dict[str, Any] = {"element": router.name, "rate_pps": offered_pps, "source": None}
        if model := (models or {}).get(router.name):
            row |= {"source": model.source, "capacity_pps": model.capacity_pps}
            row["forwarded_pps"] = model.forwarded_pps(offered_pps)
        elif router.cap:
            row |= {"source": "cap", "capacity_pps": router.cap, "forwarded_pps": min(router.cap, offered_pps)}
        else:
            row |= {"capacity_pps": None, "forwarded_pps": None if offered_pps else 0.0}
        routers.append(row)
    known = [row["forwarded_pps"] for row in routers]
    forwarded_pps = None if None in known else math.fsum(known)
    failures = [
        {
            "element": name,
            "share": share,
            "rate_pps": share * rate_pps,
            "away_s": death.detection_s if (death := deaths[name]) else math.nan,
            "lost_frames": death.lost_frames if death else math.nan,
        }
        for name, share in {**shares, balancer: 1.0}.items()
    ]
    return {"load_pps": rate_pps, "forwarded_pps": forwarded_pps, "routers": routers, "failures": failures}


def _technology(name: str, queue_frames: int, functions: Mapping[str, ServiceCost]) -> Technology:
    return Technology(
        name=name,
        backend="none",
        guest="polling",
        guest_ring_frames=queue_frames,
        functions=functions,
        policy=Policy(kind="fifo"),
    )


def _balance_task(file: MultistageFile) -> str:
    return f"{file.balancer[0].name} balance"


def _flow_route(balance: TaskUnit, file: MultistageFile, routers: Iterable[str]) -> Route:
    """Return the route of the balancing task that sends each flow to its back-end router."""
    balancer = file.balancer[0].name
    targets = {
        router.name: next(task for task in balance.route.to if task.startswith(f"{balancer} to {router.name} ("))
        for router in file.router
    }
    # All targets follow after those of the flows, so that a back-end router without flows stays part of the model.
    return Route(kind="per_flow", to=(*map(targets.__getitem__, routers), *targets.values()))
