"""The values of a step's parameters for a frame and tables, held to what the operation allows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from routecast.errors import ModelProblem, Problem
from routecast.function.model import Direction, Step, TableSize
from routecast.function.operations import OPERATIONS, Parameter
from routecast.quantity.did_you_mean import did_you_mean

__all__ = ["ETHERNET_BYTES", "step_problems", "step_values", "variables_of"]

ETHERNET_BYTES = 18
"""Ethernet header and FCS: what a frame is longer than its payload."""


def variables_of(tables: Iterable[TableSize], frame_bytes: float = 64.0) -> dict[str, float]:
    """Return what formulas of a function may name, with the values for a frame.

    Examples
    --------
    >>> variables_of([TableSize(name="mac", entries=1000, entry_bytes=12)], 64)
    {'frame': 64.0, 'payload': 46.0, 'mac_entries': 1000.0, 'mac_entry_bytes': 12.0}
    """
    values = {"frame": float(frame_bytes), "payload": float(frame_bytes) - ETHERNET_BYTES}
    for table in tables:
        values[f"{table.name}_entries"] = float(table.entries)
        values[f"{table.name}_entry_bytes"] = float(table.entry_bytes)
    return values


def step_problems(
    step: Step, direction: Direction, tables: Iterable[TableSize], frame_bytes: float, place: str
) -> list[Problem]:
    """Return what is wrong with a step for a frame of that size: nothing, or all of it."""
    return _evaluated(step, direction, tables, frame_bytes, place)[1]


def step_values(
    step: Step,
    direction: Direction,
    tables: Iterable[TableSize],
    frame_bytes: float,
    *,
    place: str,
    subject: str,
) -> dict[str, float]:
    """Return the values of a step's parameters, defaults filled in.

    Parameters
    ----------
    frame_bytes : float
        Size of the frame as it comes in.
    place, subject : str
        What messages call the step and the function.

    Raises
    ------
    routecast.errors.ModelProblem
        The operation is unknown, a parameter is missing, unknown or out of range; all of it at once.
    """
    values, problems = _evaluated(step, direction, tables, frame_bytes, place)
    if problems:
        raise ModelProblem(subject, problems)
    return values


def _evaluated(
    step: Step, direction: Direction, tables: Iterable[TableSize], frame_bytes: float, place: str
) -> tuple[dict[str, float], list[Problem]]:
    operation = OPERATIONS.get(step.operation)
    if operation is None:
        what = (
            f'got "{step.operation}": is no elementary operation; {did_you_mean(step.operation, OPERATIONS)}'
        )
        return {}, [Problem(f"{place}.operation", what)]
    problems = [
        Problem(f"{place}.with.{name}", f"is missing: {_meaning(operation.parameters[name])}")
        for name in operation.required
        if name not in step.parameters
    ]
    variables = variables_of(tables, frame_bytes)
    values = {name: one.default for name, one in operation.parameters.items() if one.default is not None}
    for name, formula in step.parameters.items():
        here = f"{place}.with.{name}"
        parameter = operation.parameters.get(name)
        if parameter is None:
            hint = did_you_mean(name, operation.parameters)
            problems.append(Problem(here, f"is no parameter of {operation.name}: {hint}"))
            continue
        unknown = sorted(formula.names - variables.keys())
        if unknown:
            hint = did_you_mean(unknown[0], variables)
            problems.append(Problem(here, f'formula "{formula.text}" names "{unknown[0]}": {hint}'))
            continue
        try:
            value = formula.evaluate(variables)
        except ModelProblem as problem:
            problems.append(Problem(here, str(problem)))
            continue
        problems += _out_of_range(parameter, value, here)
        values[name] = value
    problems += _header(values, direction, frame_bytes, step.operation, place)
    return {name: values[name] for name in operation.parameters if name in values}, problems


def _meaning(parameter: Parameter) -> str:
    return parameter.meaning + (f", in {parameter.unit}" if parameter.unit else "")


def _out_of_range(parameter: Parameter, value: float, place: str) -> list[Problem]:
    if parameter.least <= value <= parameter.most:
        return []
    unit = f" {parameter.unit}" if parameter.unit else ""
    limits = f"{parameter.least:g} to {parameter.most:g}{unit}"
    return [Problem(place, f"is {value:g}{unit}: {limits} is allowed ({parameter.meaning})")]


def _header(
    values: Mapping[str, float], direction: Direction, frame_bytes: float, operation: str, place: str
) -> list[Problem]:
    if operation not in ("io_mem", "mem_io") or "hdr" not in values:
        return []
    leaving = operation == "mem_io"
    size = frame_bytes + (direction.frame_growth_bytes if leaving else 0)
    if values["hdr"] <= size:
        return []
    frame = f"the frame has {size:g} B" + (" when it leaves" if leaving else "")
    return [
        Problem(
            f"{place}.with.hdr",
            f"is {values['hdr']:g} B, longer than the frame: {frame}; give the direction a larger smallest_frame",
        )
    ]
