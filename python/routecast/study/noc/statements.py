"""What the thesis says in words of its curves (Li 2012, sec. 6.5 and 7.4), beside what is found."""

from __future__ import annotations

from collections.abc import Iterator

from routecast.study.noc.judged import BEFORE, OURS, closed_ratio
from routecast.study.noc.point import BOUND, NO_DVFS
from routecast.study.noc.result import CaseResult, NocResult, Statement

__all__ = ["statements"]

Row = tuple[str, str, str, str]


def statements(result: NocResult) -> tuple[Statement, ...]:
    """Return what the thesis states of the traffics that the study has, beside what is found at the highest load."""
    rows: list[Row] = []
    for one in result.cases:
        load = max(one.loads)
        rows += _one_plane(one, load) if one.case.planes is None else _two_planes(one, load)
    return tuple(
        Statement(says=says, where=where, thesis=thesis, here=here) for says, where, thesis, here in rows
    )


def _one_plane(one: CaseResult, load: float) -> Iterator[Row]:
    name, curves = one.case.name, set(one.curves)
    power = {curve: one.mean(curve, load) for curve in one.curves}
    if {"xy", BOUND} <= curves and name == "normal":
        yield (
            f"{name}: the least power is below XY's by",
            "6.5",
            "almost 40 %",
            _less(power[BOUND], power["xy"]),
        )
    if {"xy", "2p_es"} <= curves and name in _SAVINGS:
        yield f"{name}: 2P-ES saves, against XY", "6.5", _SAVINGS[name], _less(power["2p_es"], power["xy"])
    if {"2p_es", "2p_rs"} <= curves:
        yield (
            f"{name}: 2P-RS is close to 2P-ES",
            "6.5",
            "variation < 10 %",
            f"{100 * (power['2p_rs'] / power['2p_es'] - 1):+.1f} %".replace("-", "−"),
        )
    if {"2p_es", "4p_es"} <= curves and name == "transpose":
        yield (
            f"{name}: 4P-ES outperforms 2P-ES by at most",
            "6.5",
            "5 %",
            _less(power["4p_es"], power["2p_es"]),
        )
    if {"2p_es", "adaptive"} <= curves and name in _ADAPTIVE:
        yield (
            f"{name}: Adaptive improves on 2P-ES by",
            "6.5",
            _ADAPTIVE[name],
            _less(power["adaptive"], power["2p_es"]),
        )
    if name == "uniform" and {"xy", BOUND} <= curves:
        yield (
            f"{name}: XY needs the least power",
            "6.5",
            "yes",
            f"{power['xy'] / power[BOUND]:.3f} times the bound",
        )
    if name == "tornado":
        least = min(power[curve] for curve in curves - {NO_DVFS})
        yield (
            f"{name}: all, the optimum too, behave as without scaling",
            "6.5",
            "yes",
            f"least power {least:.3f} of it",
        )


def _two_planes(one: CaseResult, load: float) -> Iterator[Row]:
    name, curves = one.case.name, set(one.curves)
    if BOUND in curves:
        thesis = "at most 4" if name in ("uniform", "tornado") else "6 to 9"
        yield (
            f"{name}: the least power is below no scaling by a factor",
            "7.4",
            thesis,
            _times(one, BOUND, load),
        )
    if {"balance", "mini"} <= curves:
        yield (
            f"{name}: concentration (2P-MINI) against balance (2P-BALANCE)",
            "7.4",
            "better" if name not in ("uniform", "tornado") else "–",
            f"{_times(one, 'mini', load)} against {_times(one, 'balance', load)}",
        )
    if {OURS, BEFORE, BOUND} <= curves:
        yield (
            f"{name}: our allocation closes, of 2P-4PHASE's distance to the bounds",
            "–",
            "–",
            f"{100 * closed_ratio(one, load):.0f} % ({_times(one, BEFORE, load)} to {_times(one, OURS, load)})",
        )


_SAVINGS = {"normal": "more than 20 %", "transpose": "up to 78 %", "hot_spot": "60 %"}
_ADAPTIVE = {"hot_spot": "6 %", "transpose": "none"}


def _less(power: float, other: float) -> str:
    return f"{100 * (1 - power / other):.1f} %".replace("-", "−")


def _times(one: CaseResult, curve: str, load: float) -> str:
    return f"{one.factor(curve, load):.2f}"
