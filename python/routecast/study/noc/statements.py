"""What the thesis says in words of its curves (Li 2012, sec. 6.5 and 7.4), beside what is found."""

from __future__ import annotations

from collections.abc import Iterator

from routecast.study.noc.document import Case
from routecast.study.noc.point import BOUND, NO_DVFS
from routecast.study.noc.result import CaseResult, NocResult
from routecast.study.stated import Statement

__all__ = ["statements"]

Row = tuple[str, str, str, str]
ALPHA_MAX = 3.0
"""Of the thesis' figures."""


def statements(result: NocResult) -> tuple[Statement, ...]:
    """Return what the thesis states of the traffics that the study has, beside what is found at the highest load."""
    rows: list[Row] = []
    for one in result.cases:
        traffic = _traffic(one.case)
        if traffic is None:
            continue
        load = max(one.loads)
        rows += _one_plane(one, traffic, load) if one.case.planes is None else _two_planes(one, traffic, load)
    return tuple(Statement(says=says, where=where, thesis=thesis, here=here) for says, where, thesis, here in rows)


def _traffic(case: Case) -> str | None:
    """Return which of the thesis' traffics a case has; None if it is none, or on another grid or voltage range."""
    grid = case.topology
    if grid.kind != "mesh" or case.power.alpha_max != ALPHA_MAX:
        return None
    if case.planes is not None and case.planes.widths not in (None, (1.0, 1.0)):
        return None
    if case.planes is not None and case.planes.count not in (None, 2):
        return None
    if case.traffic.task_graph is not None:
        return "mpeg4" if (case.traffic.task_graph, grid.columns, grid.rows) == ("mpeg4", 4, 4) else None
    return case.traffic.pattern if (grid.columns, grid.rows) == (5, 5) else None


def _one_plane(one: CaseResult, traffic: str, load: float) -> Iterator[Row]:
    name, curves = one.case.name, set(one.curves)
    power = {curve: one.mean(curve, load) for curve in one.curves}
    if {"xy", BOUND} <= curves and traffic == "normal":
        yield (
            f"{name}: the least power is below XY's by",
            "sec. 6.5",
            "almost 40 %",
            _less(power[BOUND], power["xy"]),
        )
    if {"xy", "2p_es"} <= curves and traffic in _SAVINGS:
        yield (
            f"{name}: 2P-ES saves, against XY",
            "sec. 6.5",
            _SAVINGS[traffic],
            _less(power["2p_es"], power["xy"]),
        )
    if {"2p_es", "2p_rs"} <= curves:
        yield (
            f"{name}: 2P-RS is close to 2P-ES",
            "sec. 6.5",
            "variation < 10 %",
            f"{100 * (power['2p_rs'] / power['2p_es'] - 1):+.1f} %".replace("-", "−"),
        )
    if {"2p_es", "4p_es"} <= curves and traffic == "transpose":
        yield (
            f"{name}: 4P-ES outperforms 2P-ES by at most",
            "sec. 6.5",
            "5 %",
            _less(power["4p_es"], power["2p_es"]),
        )
    if {"2p_es", "adaptive"} <= curves and traffic in _ADAPTIVE:
        yield (
            f"{name}: Adaptive improves on 2P-ES by",
            "sec. 6.5",
            _ADAPTIVE[traffic],
            _less(power["adaptive"], power["2p_es"]),
        )
    if traffic == "uniform" and {"xy", BOUND} <= curves:
        yield (
            f"{name}: XY needs the least power",
            "sec. 6.5",
            "yes",
            f"{power['xy'] / power[BOUND]:.3f} times the bound",
        )
    if traffic == "tornado":
        least = min(power[curve] for curve in curves - {NO_DVFS})
        yield (
            f"{name}: all, the optimum too, behave as without scaling",
            "sec. 6.5",
            "yes",
            f"least power {least:.3f} of it",
        )


def _two_planes(one: CaseResult, traffic: str, load: float) -> Iterator[Row]:
    name, curves = one.case.name, set(one.curves)
    if BOUND in curves:
        thesis = "at most 4" if traffic in ("uniform", "tornado") else "6 to 9"
        yield (
            f"{name}: the least power is below no scaling by a factor",
            "sec. 7.4",
            thesis,
            f"at most {_times(one, BOUND, load)}",
        )
    if {"balance", "mini"} <= curves:
        yield (
            f"{name}: concentration (2P-MINI) against balance (2P-BALANCE)",
            "sec. 7.4",
            "better" if traffic not in ("uniform", "tornado") else "–",
            f"{_times(one, 'mini', load)} against {_times(one, 'balance', load)}",
        )


_SAVINGS = {"normal": "more than 20 %", "transpose": "up to 78 %", "hot_spot": "60 %"}
_ADAPTIVE = {"hot_spot": "6 %", "transpose": "none"}


def _less(power: float, other: float) -> str:
    return f"{100 * (1 - power / other):.1f} %".replace("-", "−")


def _times(one: CaseResult, curve: str, load: float) -> str:
    return f"{one.factor(curve, load):.2f}"
