"""What a study of virtual routers says against itself: names that there are not, routers that cannot be built."""

from __future__ import annotations

from pathlib import Path

from routecast.errors import Problem, RoutecastError
from routecast.load.offered import OfferedLoad
from routecast.quantity.did_you_mean import did_you_mean
from routecast.router.check_load import check_load
from routecast.study.virtual.document import Figure, VirtualStudy
from routecast.study.virtual.routers import document_of, load_of, model_of

__all__ = ["contradictions"]


def contradictions(study: VirtualStudy, folder: Path) -> list[Problem]:
    """Return every contradiction of a study, with its place."""
    problems = []
    names = [figure.name for figure in study.figure]
    for number, figure in enumerate(study.figure):
        place = f"figure[{number}]"
        if figure.name in names[:number]:
            problems.append(Problem(f"{place}.name", f"{figure.name!r} is taken: names its file"))
        if list(figure.offered) != sorted(set(figure.offered)):
            problems.append(Problem(f"{place}.offered", "are not ascending: write the loads in order"))
        problems += _curves(study, figure, place, folder)
        problems += _named(figure, place)
    return problems


def _curves(study: VirtualStudy, figure: Figure, place: str, folder: Path) -> list[Problem]:
    problems = []
    names = [curve.name for curve in figure.curve]
    for number, curve in enumerate(figure.curve):
        at = f"{place}.curve[{number}]"
        if curve.name in names[:number]:
            problems.append(Problem(f"{at}.name", f"{curve.name!r} is taken"))
        if curve.router not in study.router:
            what = f"{curve.router!r} is no [router.…]; {did_you_mean(curve.router, study.router)}"
            problems.append(Problem(f"{at}.router", what))
            continue
        traffic = curve.traffic or figure.traffic
        if len(traffic.ingress) != len(traffic.egress):
            what = f"has {len(traffic.egress)} ports for {len(traffic.ingress)} of ingress: one for each"
            problems.append(Problem(f"{at}.traffic.egress", what))
        try:
            model = model_of(document_of(study, curve, {}), f'curve "{curve.name}"', folder)
            load: OfferedLoad = load_of(figure, curve, figure.offered[0])
            check_load(model, load)
        except RoutecastError as problem:
            problems.append(Problem(at, str(problem)))
    return problems


def _named(figure: Figure, place: str) -> list[Problem]:
    names = [curve.name for curve in figure.curve]
    flows = {curve.name: len((curve.traffic or figure.traffic).shares) for curve in figure.curve}
    problems = []

    def known(at: str, name: str) -> None:
        if name not in names:
            problems.append(Problem(at, f"{name!r} is no curve of this figure; {did_you_mean(name, names)}"))

    for number, stated in enumerate(figure.stated):
        known(f"{place}.stated[{number}].curve", stated.curve)
        if stated.calibrates and stated.calibrates.between[0] >= stated.calibrates.between[1]:
            what = "is no range: the least value comes first"
            problems.append(Problem(f"{place}.stated[{number}].calibrates.between", what))
    for number, passing in enumerate(figure.passing):
        known(f"{place}.passing[{number}].curve", passing.curve)
        if len(passing.ratios) != flows.get(passing.curve, len(passing.ratios)):
            what = f"has {len(passing.ratios)} entries for {flows[passing.curve]} flows with shares"
            problems.append(Problem(f"{place}.passing[{number}].ratios", what))
    for number, ordered in enumerate(figure.ordered):
        for index, name in enumerate(ordered.curves):
            known(f"{place}.ordered[{number}].curves[{index}]", name)
    for number, shape in enumerate(figure.shape):
        known(f"{place}.shape[{number}].curve", shape.curve)
    for number, limited in enumerate(figure.limited):
        known(f"{place}.limited[{number}].curve", limited.curve)
    return problems
