"""From measured cycles of an operation to the coefficients of its formula.

``data/hardware/shapes.toml`` says which terms the cycles of each operation are made of, and which lines of memory it
touches (the tables of ``crates/probe``). The probe brings samples; the coefficients are least squares of the *relative*
errors, none negative (Lawson & Hanson's NNLS)::

    cycles(N, HE, …) = c0 + c1·N + c2·ceil(HE/8),      min Σ w ((fit − measured) / max(measured, 1))²,  c ≥ 0

Now and then a sample is far off for a reason that is its own, such as arrays that happen to lie a multiple of 4 KiB
apart: errors e beyond 10 % get the weight w = 10 % / |e| (Huber 1964), so that they do not bend the formula; the
residual that is told has them in full.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

from routecast.errors import FitProblem
from routecast.hardware.formula import Formula
from routecast.hardware.model import Access, OperationCost
from routecast.hardware.probe_repeats import typical

__all__ = ["BADLY_RATIO", "Sample", "Shape", "fit_operation", "fit_operations", "shapes"]

BADLY_RATIO = 0.10
"""A formula that misses its samples by more (root mean square) is told as a doubt."""

_SIGNIFICANT = 4
_OUTLIER_RATIO = 0.10
_REWEIGHTINGS = 12
_LEAST_CYCLES = 1.0
"""Errors of operations that cost less are relative to this: a part of a cycle more or less is no misfit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """How the cost of an operation is made up: terms of its cycles, and the lines that it touches.

    Of samples that differ only in the parameter ``at_greatest``, the one with its greatest value counts; "": all count.
    ``in_use`` holds texts that stand for parameters in the formula that comes of the fit.
    """

    operation: str
    terms: tuple[Formula, ...]
    accesses: tuple[Access, ...] = ()
    at_greatest: str = ""
    in_use: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """Cycles of one execution, by parameters."""

    parameters: Mapping[str, float]
    cycles: float


@cache
def shapes() -> Mapping[str, Shape]:
    """Return the shapes that routecast knows, by operation."""
    path = files("routecast") / "data" / "hardware" / "shapes.toml"
    document = tomllib.loads(path.read_text(encoding="utf-8"))
    return {name: _shape(name, entry) for name, entry in document["operation"].items()}


def _shape(name: str, entry: Mapping[str, Any]) -> Shape:
    return Shape(
        operation=name,
        terms=tuple(Formula(text) for text in entry["terms"]),
        accesses=tuple(
            Access(
                of=access["of"],
                lines=Formula(access["lines"]),
                table_lines=Formula(access["table_lines"]) if "table_lines" in access else None,
                pattern=access.get("pattern", "batched"),
            )
            for access in entry.get("access", ())
        ),
        at_greatest=entry.get("at_greatest", ""),
        in_use=entry.get("in_use", {}),
    )


def fit_operations(points: Sequence[Mapping[str, Any]]) -> tuple[dict[str, OperationCost], tuple[str, ...]]:
    """Fit every operation that was measured; the second value says what to doubt.

    Parameters
    ----------
    points : sequence of mapping
        ``operations`` of the probe's outcome: operation, parameters, cycles (repeats), level.
    """
    by_operation: dict[str, list[Sample]] = {}
    for point in points:
        if point.get("level", "L1") == "L1":
            sample = Sample(parameters=dict(point["parameters"]), cycles=typical(point["cycles"]))
            by_operation.setdefault(str(point["operation"]), []).append(sample)
    known = shapes()
    costs: dict[str, OperationCost] = {}
    notes = []
    for name, samples in by_operation.items():
        shape = known.get(name)
        if shape is None:
            notes.append(f"operation {name} was measured but has no shape: its cycles are taken for constant")
            shape = Shape(operation=name, terms=(Formula("1"),))
        cost = fit_operation(shape, samples)
        costs[name] = cost
        if cost.residual_ratio > BADLY_RATIO:
            notes.append(f"operation {name}: its formula misses the samples by {cost.residual_ratio:.0%}")
    notes.extend(f"operation {name} was not measured" for name in known if name not in costs)
    return costs, tuple(notes)


def fit_operation(shape: Shape, samples: Sequence[Sample]) -> OperationCost:
    """Fit one operation.

    Raises
    ------
    routecast.errors.FitProblem
        There is no sample, or one is not a number of at least 0.
    """
    import numpy as np
    from scipy.optimize import nnls

    if not samples or not all(math.isfinite(sample.cycles) and sample.cycles >= 0.0 for sample in samples):
        raise FitProblem(
            shape.operation, "every sample of its cycles must be a number >= 0, and there must be one"
        )
    samples = _counting(samples, shape.at_greatest)
    columns = np.array([[term.evaluate(sample.parameters) for term in shape.terms] for sample in samples])
    measured = np.array([sample.cycles for sample in samples])
    scale = np.maximum(measured, _LEAST_CYCLES)
    weights = np.ones_like(measured)
    for _ in range(_REWEIGHTINGS):
        rows = weights / scale
        exact, _ = nnls(columns * rows[:, None], measured * rows)
        errors = np.abs(columns @ exact - measured) / scale
        weights = np.sqrt(np.minimum(1.0, _OUTLIER_RATIO / np.maximum(errors, _OUTLIER_RATIO)))
    coefficients = [_rounded(float(value)) for value in exact]
    relative = (columns @ np.array(coefficients) - measured) / scale
    return OperationCost(
        operation=shape.operation,
        cycles=Formula(_text(coefficients, [_used(term, shape.in_use) for term in shape.terms])),
        accesses=shape.accesses,
        residual_ratio=float(np.sqrt(np.mean(relative**2))),
        samples=len(samples),
        source="probe",
    )


def _counting(samples: Sequence[Sample], name: str) -> Sequence[Sample]:
    """Return the samples with the greatest value of a parameter among those that have all others in common."""
    if not name:
        return samples
    greatest: dict[frozenset[tuple[str, float]], Sample] = {}
    for sample in samples:
        others = frozenset(item for item in sample.parameters.items() if item[0] != name)
        held = greatest.get(others)
        if held is None or sample.parameters[name] > held.parameters[name]:
            greatest[others] = sample
    return list(greatest.values())


def _rounded(value: float) -> float:
    """Return a coefficient as it will be written, so that the residual is that of the written formula."""
    return float(f"{value:.{_SIGNIFICANT}g}")


def _text(coefficients: Sequence[float], terms: Sequence[Formula]) -> str:
    """Write the formula: terms without a part in it are left out."""
    parts = [
        f"{coefficient:.{_SIGNIFICANT}g}"
        if term.text == "1"
        else f"{coefficient:.{_SIGNIFICANT}g} * {_factor(term)}"
        for coefficient, term in zip(coefficients, terms, strict=True)
        if coefficient > 0.0
    ]
    return " + ".join(parts) or "0"


def _used(term: Formula, in_use: Mapping[str, str]) -> Formula:
    """Return a term with the texts that stand for parameters in their places."""
    text = term.text
    for name, what in in_use.items():
        text = what.join(re.split(rf"\b{re.escape(name)}\b", text))
    return Formula(text)


def _factor(term: Formula) -> str:
    is_whole = term.text.isidentifier() or _is_one_call(term.text)
    return term.text if is_whole else f"({term.text})"


def _is_one_call(text: str) -> bool:
    """Whether the text is one function call, such as ``ceil(HE/8)``."""
    name, opened, inside = text.partition("(")
    if not opened or not name.isidentifier() or not inside.endswith(")"):
        return False
    depth = 1
    for place, letter in enumerate(inside, 1):
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if depth == 0:
            return place == len(inside)
    return False
