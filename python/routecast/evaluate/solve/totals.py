"""Delays of stations put together to the latency of a frame: means add up, percentiles where theory has them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping

from routecast.evaluate.queueing.markov import MMc, Queue, Tandem, quantile_s
from routecast.evaluate.solve.flow import FlowGraph, Vector
from routecast.evaluate.trial import Delay

__all__ = ["gathered", "link_matters", "total_delay"]

_NOTE = re.compile(r'("[^"]*")(.*)', re.DOTALL)
_NOTABLE = 0.01
_LINK = "M/G/1 at the outgoing link (approximation)"


def total_delay(
    graph: FlowGraph,
    rates: Vector,
    admitted: Vector,
    queues: Mapping[int, Queue],
    port_wait_s: Mapping[int, float],
) -> tuple[Delay, Delay]:
    """Return latency and waiting time of the frames that are forwarded.

    Parameters
    ----------
    rates : array
        Arriving rate by node and stream.
    admitted : array
        By node: share of the arriving frames that is served.
    queues, port_wait_s : mapping
        By node: the station's queue; the wait for the outgoing link.
    """
    through, forwarded, port_s = _through(graph, rates, admitted, queues, port_wait_s)
    sojourn_s = sum(through[i] / forwarded * queue.sojourn_mean_s for i, queue in queues.items()) + port_s
    waiting_s = sum(through[i] / forwarded * queue.waiting_mean_s for i, queue in queues.items()) + port_s
    chain = _chain(rates, queues, forwarded, port_s)
    if chain is not None:
        return chain.sojourn(), chain.waiting()
    method = ", ".join(dict.fromkeys(queue.method for queue in queues.values()))
    one_each = math.isclose(sum(through.values()), forwarded, rel_tol=1e-6) and _parallel_only(graph, queues)
    series = len(queues) > 1 and not one_each

    def delay(mean_s: float, tails: list[tuple[float, Callable[[float], float]]]) -> Delay:
        behind = port_s > _NOTABLE * mean_s
        named = ", ".join(filter(None, [method, _LINK if behind else ""])) or "no station takes time"
        if behind or not one_each:
            return Delay(
                mean_s=mean_s, method=named + ("; means add up, percentiles do not" if series else "")
            )
        return _mixture(mean_s, named, tails)

    shares = {i: through[i] / forwarded for i in queues}
    return (
        delay(sojourn_s, [(shares[i], queue.sojourn_tail) for i, queue in queues.items()]),
        delay(waiting_s, [(shares[i], queue.waiting_tail) for i, queue in queues.items()]),
    )


def link_matters(
    graph: FlowGraph,
    rates: Vector,
    admitted: Vector,
    queues: Mapping[int, Queue],
    port_wait_s: Mapping[int, float],
) -> bool:
    """Whether the wait for outgoing links is more than one per cent of the latency."""
    through, forwarded, port_s = _through(graph, rates, admitted, queues, port_wait_s)
    inside_s = sum(through[i] / forwarded * queue.sojourn_mean_s for i, queue in queues.items())
    return port_s > _NOTABLE * (inside_s + port_s)


def _through(
    graph: FlowGraph,
    rates: Vector,
    admitted: Vector,
    queues: Mapping[int, Queue],
    port_wait_s: Mapping[int, float],
) -> tuple[dict[int, float], float, float]:
    """Return the rate of later forwarded frames by station, of all of them, and their mean wait for a link."""
    survive = graph.surviving(admitted, rates)
    through = {i: float(rates[i].sum()) * float(admitted[i]) * float(survive[i]) for i in queues}
    out = {
        node: float(rates[node].sum()) * float(admitted[node])
        for node in range(len(graph.tasks), graph.exit + 1)
    }
    forwarded = sum(out.values())
    return through, forwarded, sum(wait * out[node] / forwarded for node, wait in port_wait_s.items())


def _parallel_only(graph: FlowGraph, queues: Mapping[int, Queue]) -> bool:
    """Whether no station lies behind another one."""
    behind: set[int] = set()
    for index in range(len(graph.tasks)):
        if index in behind and index in queues:
            return False
        if index in behind or index in queues:
            behind.update(node for node, _ in graph.edges[index])
    return True


def _chain(rates: Vector, queues: Mapping[int, Queue], forwarded: float, port_s: float) -> Tandem | None:
    """Return the Jackson tandem that the stations are, if they are one that every frame goes through."""
    stations = [queue for queue in queues.values() if isinstance(queue, MMc)]
    if len(stations) < 2 or len(stations) != len(queues) or port_s > 0.0:
        return None
    whole = all(math.isclose(float(rates[i].sum()), forwarded, rel_tol=1e-9) for i in queues)
    return Tandem(stations=tuple(stations)) if whole else None


def gathered(notes: list[str]) -> tuple[str, ...]:
    """Say once what holds for several places: ``"core 0" and 3 more: …``."""
    places: dict[str, list[str]] = {}
    for note in dict.fromkeys(notes):
        match = _NOTE.fullmatch(note)
        name, rest = (match[1], match[2]) if match else ("", note)
        places.setdefault(rest, []).append(name)
    return tuple(
        f"{names[0]}{f' and {len(names) - 1} more' if len(names) > 1 else ''}{rest}"
        for rest, names in places.items()
    )


def _mixture(mean_s: float, method: str, parts: list[tuple[float, Callable[[float], float]]]) -> Delay:
    def tail(time_s: float) -> float:
        return math.fsum(share * one(time_s) for share, one in parts)

    return Delay(
        mean_s=mean_s,
        p50_s=quantile_s(tail, mean_s, 0.5),
        p90_s=quantile_s(tail, mean_s, 0.9),
        p99_s=quantile_s(tail, mean_s, 0.99),
        p999_s=quantile_s(tail, mean_s, 0.999),
        method=method,
    )
