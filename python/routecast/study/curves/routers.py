"""From a curve of the study to a router and the loads that are offered to it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from routecast.load.arrivals import Arrivals
from routecast.load.flows import Flow, FlowSet
from routecast.load.frames import FrameMix
from routecast.load.offered import OfferedLoad
from routecast.router.files import build_router
from routecast.router.model import RouterModel
from routecast.router.variants import vary
from routecast.study.curves.document import Curve, CurveStudy, Figure, Traffic

__all__ = ["Setting", "document_of", "load_of", "model_of"]

Setting = Mapping[str, Mapping[str, object]]
"""Calibrated values by path, for each router document."""

HASHES = 128
"""Entries of an indirection table: flows with hashes 0 to 127 are spread evenly."""


def document_of(study: CurveStudy, curve: Curve, setting: Setting) -> dict[str, Any]:
    """Return the router document of a curve, with the calibrated values in it.

    Raises
    ------
    routecast.errors.RoutecastError
        A path leads nowhere.
    """
    overrides = {**setting.get(curve.router, {}), **curve.set}
    return vary(study.router[curve.router], overrides, subject=f'router "{curve.router}", curve "{curve.name}"')


def model_of(document: Mapping[str, Any], subject: str, folder: Path) -> RouterModel:
    """Build the router of a document.

    Raises
    ------
    routecast.errors.RoutecastError
        The document says something wrong; all faults at once.
    """
    return build_router(document, subject=subject, folder=folder)[0]


def load_of(figure: Figure, curve: Curve, offered_pps: float) -> OfferedLoad:
    """Return the load of a point."""
    traffic = curve.traffic or figure.traffic
    return OfferedLoad(
        rate_pps=offered_pps,
        frames=FrameMix.fixed(traffic.frame),
        flows=_flows(traffic),
        arrivals=Arrivals.poisson() if traffic.arrivals == "poisson" else Arrivals.cbr(),
    )


def _flows(traffic: Traffic) -> FlowSet:
    shares = traffic.shares or (1.0,) * traffic.flows
    ways = len(traffic.ingress)
    flows = tuple(
        Flow(
            rss_hash=number // ways % HASHES,
            ingress=traffic.ingress[number % ways],
            egress=traffic.egress[number % len(traffic.egress)],
            weight=share,
        )
        for number, share in enumerate(shares)
    )
    return FlowSet(name=f"{len(flows)} flow{'s' if len(flows) != 1 else ''}", flows=flows)
