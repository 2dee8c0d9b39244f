"""Chains of functions on one core: ``acl_firewall,nat44,ipv4_router``.

A chain takes a frame from the network card once and returns it once; the other operations of its functions follow each
other. A function sees the frames that the functions before it leave.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from routecast.errors import ModelProblem, Problem
from routecast.function.catalogue import check_function, function_names, read_function
from routecast.function.model import Direction, NetworkFunction, Step, TableSize
from routecast.hardware.formula import Formula
from routecast.quantity.did_you_mean import did_you_mean

__all__ = ["chain", "read_chain"]


def read_chain(names: str) -> NetworkFunction:
    """Read a function, or several in a row: names or files, with commas between.

    ``NAME/DIRECTION`` takes one direction of a function that has more.

    Raises RoutecastError: a function cannot be read, or they do not fit together.

    Examples
    --------
    >>> [step.operation for step in read_chain("l2_switch,rate_policer").directions[0].steps][:5]
    ['io_mem', 'parse', 'ht_lookup', 'deparse', 'parse']
    """
    parts = [part.strip() for part in names.split(",")]
    if not all(parts):
        what = f'got "{names}": write names or files with one comma between two, such as "acl_firewall,nat44"'
        raise ModelProblem("chain", [Problem("", what)])
    return chain([_read_part(part) for part in parts])


def chain(functions: Sequence[NetworkFunction]) -> NetworkFunction:
    """Return one function that does the work of several in turn.

    Each must have one direction, or the directions of the first. The chain takes the frame in as the function with
    the most header bytes does (``io_mem``) and hands it out as the last does (``mem_io``).

    Raises ModelProblem: there is no function, or their directions differ.

    Examples
    --------
    >>> both = chain([read_function("acl_firewall"), read_function("nat44")])
    >>> both.name, [table.name for table in both.tables]
    ('acl_firewall,nat44', ['rules', 'sessions', 'counters'])
    """
    if not functions:
        raise ModelProblem("chain", [Problem("", "has no functions: name at least one")])
    if len(functions) == 1:
        return functions[0]
    names = _directions(functions)
    tables: list[TableSize] = []
    renamed: list[dict[str, str]] = []
    for function in functions:
        new = {table.name: _free_name(table.name, function.name, tables) for table in function.tables}
        renamed.append(new)
        tables += [replace(table, name=new[table.name]) for table in function.tables]
    directions = []
    for name in names:
        parts = [_direction(function, name) for function in functions]
        directions.append(_joined(name, parts, renamed))
    chained = NetworkFunction(
        name=",".join(function.name for function in functions),
        title=", then ".join(function.title or function.name for function in functions),
        directions=tuple(directions),
        tables=tuple(tables),
        flows_of=next(
            (new[function.flows_of] for function, new in zip(functions, renamed, strict=True) if function.flows_of), ""
        ),
        chosen_in_sight="; ".join(function.chosen_in_sight for function in functions if function.chosen_in_sight),
        source="; ".join(dict.fromkeys(function.source for function in functions if function.source)),
    )
    check_function(chained)
    return chained


def _read_part(part: str) -> NetworkFunction:
    name, slash, direction = part.rpartition("/")
    # A path has slashes too.
    if not slash or part.endswith(".toml") or (name not in function_names() and not name.endswith(".toml")):
        return read_function(part)
    function = read_function(name)
    directions = {direction.name: direction for direction in function.directions}
    if direction not in directions:
        hint = did_you_mean(direction, directions)
        what = f'got "{direction}": is no direction of {function.name}; {hint}'
        raise ModelProblem("chain", [Problem(part, what)])
    stated = tuple(statement for statement in function.stated if statement.direction == direction)
    return replace(function, directions=(directions[direction],), stated=stated)


def _directions(functions: Sequence[NetworkFunction]) -> list[str]:
    several = [function for function in functions if len(function.directions) > 1]
    if not several:
        return [functions[0].directions[0].name]
    names = [direction.name for direction in several[0].directions]
    problems = [
        Problem(
            function.name,
            f"has the directions {', '.join(direction.name for direction in function.directions)}, "
            f"and {several[0].name} has "
            f'{", ".join(names)}: take one of each, such as "{function.name}/{function.directions[0].name}"',
        )
        for function in several[1:]
        if [direction.name for direction in function.directions] != names
    ]
    if problems:
        raise ModelProblem("chain", problems)
    return names


def _direction(function: NetworkFunction, name: str) -> Direction:
    if len(function.directions) == 1:
        return function.directions[0]
    return next(direction for direction in function.directions if direction.name == name)


def _free_name(name: str, function: str, taken: Sequence[TableSize]) -> str:
    names = {table.name for table in taken}
    stem = re.sub(r"\W", "_", f"{function}_{name}")
    wanted = [name, stem, *(f"{stem}_{number}" for number in range(2, len(taken) + 3))]
    return next(function for function in wanted if function not in names)


def _joined(name: str, parts: Sequence[Direction], renamed: Sequence[dict[str, str]]) -> Direction:
    steps: list[Step] = []
    takes: list[Step] = []
    gives: list[Step] = []
    growth = 0
    smallest = 0
    for part, new in zip(parts, renamed, strict=True):
        smallest = max(smallest, part.smallest_frame_bytes - growth)
        for step in part.steps:
            moved = _moved(step, new, growth)
            if step.operation == "io_mem":
                takes.append(moved)
            elif step.operation == "mem_io":
                gives.append(moved)
            else:
                steps.append(moved)
        growth += part.frame_growth_bytes
    smallest = max(smallest, 64)
    first = [_most_header(takes, smallest)] if takes else []
    return Direction(
        name=name,
        steps=(*first, *steps, *gives[-1:]),
        smallest_frame_bytes=smallest,
        frame_growth_bytes=growth,
        share=max(part.share for part in parts),
    )


def _most_header(takes: Sequence[Step], frame_bytes: int) -> Step:
    # A header that a function before has built is in the cache already and cannot be longer than what comes in.
    def header(step: Step) -> float:
        try:
            return step.parameters["hdr"].evaluate({"frame": frame_bytes, "payload": frame_bytes - 18.0})
        except (KeyError, ModelProblem):
            return 0.0

    fitting = [step for step in takes if header(step) <= frame_bytes]
    return max(fitting or takes[:1], key=header)


def _moved(step: Step, renamed: dict[str, str], growth: int) -> Step:
    """Return a step of a later function, in the names and for the frames of the chain."""
    values = {}
    for name, formula in step.parameters.items():
        text = formula.text
        for old, new in renamed.items():
            text = re.sub(rf"\b{old}_(entries|entry_bytes)\b", rf"{new}_\1", text)
        if growth:
            text = re.sub(r"\b(frame|payload)\b", rf"(\1 {'+' if growth > 0 else '-'} {abs(growth)})", text)
        values[name] = Formula(text)
    return replace(step, parameters=values, table=renamed.get(step.table, step.table))
