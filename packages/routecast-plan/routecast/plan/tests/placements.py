"""Small placement problems, and every placement of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product

from routecast.load.frames import FrameMix
from routecast.plan.placement._candidates import candidate_of_servers, classes_of, is_allowed, members_of
from routecast.plan.placement._simulation import ElementPlacement, load_of, router_of
from routecast.plan.placement.model import Chain, ElementGroup, Goal, PlacementProblem, Rules, ServerGroup, ServerLinks
from routecast.plan.placement.prediction import predict_lossless_pps
from routecast.router.model import Contention, Policy, ServiceCost
from routecast.virtual.technology import Technology

FREE = Rules(pins=("free",))


def cost(microseconds: float) -> ServiceCost:
    return ServiceCost(per_packet_s=microseconds * 1e-6)


def technology(
    *, sigma: float = 0.0, balance: float = 1.0, forward: float = 0.8, switch_cost: float = 0.0, **more: object
) -> Technology:
    """A technique with a thread for each machine's backend, and cores that slow each other by ``sigma``."""
    fields = {
        "nic_receive": cost(0.2),
        "receive": cost(0.3),
        "send": cost(0.3),
        "switch": cost(0.1),
        "functions": {"balance": cost(balance), "return": cost(0.5), "forward": cost(forward), "dpi": cost(2.0)},
        **more,
    }
    return Technology(
        name="test",
        backend_threads="machine",
        policy=Policy(kind="linux", quantum_s=3e-3),
        switch_cost_s=switch_cost * 1e-6,
        contention=Contention(sigma=sigma),
        **fields,  # type: ignore[arg-type]  # a test's own fields
    )


def multistage(
    balancers: int,
    routers: int,
    servers: tuple[ServerGroup, ...],
    *,
    rules: Rules = FREE,
    goal: Goal | None = None,
    interconnect: ServerLinks | None = None,
    balancing: str = "round_robin",
    offered_pps: float = 1e6,
    frame_bytes: int = 64,
    outer_bps: float = 1e10,
) -> PlacementProblem:
    """Balancers and routers on servers."""
    return PlacementProblem(
        name="test",
        servers=servers,
        elements=(
            ElementGroup(name="lb", kind="balancer", count=balancers),
            ElementGroup(name="br", kind="router", count=routers),
        ),
        chains=(Chain(name="multistage", stages=("lb", "br", "lb")),),
        frames=FrameMix.fixed(frame_bytes),
        offered_pps=offered_pps,
        outer_bps=outer_bps,
        balancing=balancing,  # type: ignore[arg-type]  # one of its names
        interconnect=interconnect or ServerLinks(link_bps=1e10),
        rules=rules,
        goal=goal or Goal(seconds=20.0, gap_ratio=0.0),
    )


def every_placement(problem: PlacementProblem) -> Iterator[ElementPlacement]:
    """Yield every placement that the rules allow, also those that differ only in names."""
    classes = classes_of(problem)
    names = [name for group in problem.elements for name in group.names]
    hosts = [name for group in problem.servers for name in group.names]
    for where in product(hosts, repeat=len(names)):
        servers = dict(zip(names, where, strict=True))
        candidate = candidate_of_servers(classes, servers)
        limit = problem.rules.most_servers
        if limit is not None and len(set(where)) > limit:
            continue
        if _holds(problem, servers) and all(is_allowed(classes, pattern) for pattern, _ in candidate):
            yield ElementPlacement(servers=servers)


def lossless_pps(problem: PlacementProblem, placement: ElementPlacement) -> float:
    """Predict what a whole placement carries without loss."""
    return predict_lossless_pps(router_of(problem, placement), load_of(problem))


def _holds(problem: PlacementProblem, servers: Mapping[str, str]) -> bool:
    """Return whether a placement meets each rule on named elements."""
    for rule in problem.rules.apart:
        members = [member for name in rule for member in members_of(name, problem.elements)]
        if len({servers[member] for member in members}) < len(members):
            return False
    for rule in problem.rules.together:
        members = [member for name in rule for member in members_of(name, problem.elements)]
        if len({servers[member] for member in members}) > 1:
            return False
    for name, where in problem.rules.on.items():
        allowed = {server for host in where for server in members_of(host, problem.servers)}
        if any(servers[member] not in allowed for member in members_of(name, problem.elements)):
            return False
    return True
