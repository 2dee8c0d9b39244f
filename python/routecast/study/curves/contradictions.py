"""What a study of curves says against itself: names that there are not, routers that cannot be built."""

from __future__ import annotations

from pathlib import Path

from routecast.errors import FileProblem, ModelProblem, Problem, RoutecastError
from routecast.load.offered import OfferedLoad
from routecast.quantity.did_you_mean import did_you_mean
from routecast.router.check_load import check_load
from routecast.study.curves.document import Curve, CurveStudy, Figure
from routecast.study.curves.routers import document_of, load_of, model_of

__all__ = ["contradictions"]


def contradictions(study: CurveStudy, folder: Path) -> list[Problem]:
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
    return list(dict.fromkeys(problems))  # a router's own faults are told once, not by each of its curves


def _curves(study: CurveStudy, figure: Figure, place: str, folder: Path) -> list[Problem]:
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
        problems += _built(study, figure, curve, at, folder)
    return problems


def _built(study: CurveStudy, figure: Figure, curve: Curve, at: str, folder: Path) -> list[Problem]:
    """Return why a curve's router cannot be built, or not carry the curve's load: each fault where it is written."""
    try:
        document = document_of(study, curve, {})
    except RoutecastError as problem:
        return _placed(f"{at}.set", problem)
    try:
        model = model_of(document, f'curve "{curve.name}"', folder)
    except RoutecastError as problem:
        router = f"router.{curve.router}"
        before = {str(one) for one in _alone(study, curve, folder)}
        return [
            one if str(one) in before else Problem(f"{at}: {one.place}", one.message)
            for one in _placed(router, problem)
        ]
    try:
        load: OfferedLoad = load_of(figure, curve, figure.offered[0])
        check_load(model, load)
    except RoutecastError as problem:
        return _placed(f"{at}.traffic" if curve.traffic else f"{at.partition('.')[0]}.traffic", problem)
    return []


def _alone(study: CurveStudy, curve: Curve, folder: Path) -> list[Problem]:
    """Return what is wrong with the router of a curve without what the curve sets."""
    try:
        model_of(study.router[curve.router], curve.router, folder)
    except RoutecastError as problem:
        return _placed(f"router.{curve.router}", problem)
    return []


def _placed(place: str, error: RoutecastError) -> list[Problem]:
    """Return the problems of an error, each with its full place."""
    if not isinstance(error, FileProblem | ModelProblem):
        return [Problem(place, str(error))]
    return [Problem(f"{place}.{one.place}" if one.place else place, one.message) for one in error.problems]


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
