"""Chains of functions on one core: ``acl_firewall,nat44,ipv4_router``.

A chain takes a frame from the network card once and returns it once; it executes the other operations of its functions
in sequence. A function processes the frames that the previous functions produce.
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
    """Read a function or a chain of functions: names or files, separated by commas.

    ``NAME/DIRECTION`` selects one direction of a function.

    Raises RoutecastError: a function cannot be read, or the functions cannot be combined.

    Examples
    --------
    >>> [step.operation for step in read_chain("l2_switch,rate_policer").directions[0].steps][:5]
    ['io_mem', 'parse', 'ht_lookup', 'deparse', 'parse']
    """
    parts = [part.strip() for part in names.split(",")]
    if not all(parts):
        message = f'got "{names}": write names or files separated by single commas, such as "acl_firewall,nat44"'
        raise ModelProblem("chain", [Problem("", message)])
    return chain([_read_part(part) for part in parts])


def chain(functions: Sequence[NetworkFunction]) -> NetworkFunction:
    """Return one function that does the work of several functions in sequence.

    Each function must have a single direction, or the same directions as the others. The chain has the ``io_mem`` of
    the function with the most header bytes, and the ``mem_io`` of the last function.

    Raises ModelProblem: there is no function, or the directions differ.

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
    new_names: list[dict[str, str]] = []
    for function in functions:
        names_in_chain = {table.name: _free_name(table.name, function.name, tables) for table in function.tables}
        new_names.append(names_in_chain)
        tables += [replace(table, name=names_in_chain[table.name]) for table in function.tables]
    directions = []
    for name in names:
        parts = [_direction(function, name) for function in functions]
        directions.append(_joined_direction(name, parts, new_names))
    chained = NetworkFunction(
        name=",".join(function.name for function in functions),
        title=", then ".join(function.title or function.name for function in functions),
        directions=tuple(directions),
        tables=tuple(tables),
        flows_of=next(
            (
                names_in_chain[function.flows_of]
                for function, names_in_chain in zip(functions, new_names, strict=True)
                if function.flows_of
            ),
            "",
        ),
        chosen_in_sight="; ".join(function.chosen_in_sight for function in functions if function.chosen_in_sight),
        source="; ".join(dict.fromkeys(function.source for function in functions if function.source)),
    )
    check_function(chained)
    return chained


def _read_part(part: str) -> NetworkFunction:
    name, slash, direction = part.rpartition("/")
    # A path may also contain slashes.
    if not slash or part.endswith(".toml") or (name not in function_names() and not name.endswith(".toml")):
        return read_function(part)
    function = read_function(name)
    directions = {direction.name: direction for direction in function.directions}
    if direction not in directions:
        hint = did_you_mean(direction, directions)
        message = f'got "{direction}": is no direction of {function.name}; {hint}'
        raise ModelProblem("chain", [Problem(part, message)])
    stated = tuple(statement for statement in function.stated if statement.direction == direction)
    return replace(function, directions=(directions[direction],), stated=stated)


def _directions(functions: Sequence[NetworkFunction]) -> list[str]:
    multidirectional = [function for function in functions if len(function.directions) > 1]
    if not multidirectional:
        return [functions[0].directions[0].name]
    names = [direction.name for direction in multidirectional[0].directions]
    problems = [
        Problem(
            function.name,
            f"has the directions {', '.join(direction.name for direction in function.directions)}, "
            f"and {multidirectional[0].name} has "
            f'{", ".join(names)}: take one of each, such as "{function.name}/{function.directions[0].name}"',
        )
        for function in multidirectional[1:]
        if [direction.name for direction in function.directions] != names
    ]
    if problems:
        raise ModelProblem("chain", problems)
    return names


def _direction(function: NetworkFunction, name: str) -> Direction:
    if len(function.directions) == 1:
        return function.directions[0]
    return next(direction for direction in function.directions if direction.name == name)


def _free_name(name: str, function: str, tables: Sequence[TableSize]) -> str:
    names = {table.name for table in tables}
    stem = re.sub(r"\W", "_", f"{function}_{name}")
    candidates = [name, stem, *(f"{stem}_{number}" for number in range(2, len(tables) + 3))]
    return next(function for function in candidates if function not in names)


def _joined_direction(name: str, parts: Sequence[Direction], new_names: Sequence[dict[str, str]]) -> Direction:
    steps: list[Step] = []
    input_steps: list[Step] = []
    output_steps: list[Step] = []
    growth_bytes = 0
    smallest_bytes = 0
    for part, names_in_chain in zip(parts, new_names, strict=True):
        smallest_bytes = max(smallest_bytes, part.smallest_frame_bytes - growth_bytes)
        for step in part.steps:
            adapted = _adapted(step, names_in_chain, growth_bytes)
            if step.operation == "io_mem":
                input_steps.append(adapted)
            elif step.operation == "mem_io":
                output_steps.append(adapted)
            else:
                steps.append(adapted)
        growth_bytes += part.frame_growth_bytes
    smallest_bytes = max(smallest_bytes, 64)
    first = [_largest_header(input_steps, smallest_bytes)] if input_steps else []
    return Direction(
        name=name,
        steps=(*first, *steps, *output_steps[-1:]),
        smallest_frame_bytes=smallest_bytes,
        frame_growth_bytes=growth_bytes,
        share=max(part.share for part in parts),
    )


def _largest_header(input_steps: Sequence[Step], frame_bytes: int) -> Step:
    # A header that a previous function has built is already in the cache; the arriving frame limits the header read.
    def header(step: Step) -> float:
        try:
            return step.parameters["hdr"].evaluate({"frame": frame_bytes, "payload": frame_bytes - 18.0})
        except (KeyError, ModelProblem):
            return 0.0

    fitting = [step for step in input_steps if header(step) <= frame_bytes]
    return max(fitting or input_steps[:1], key=header)


def _adapted(step: Step, new_names: dict[str, str], growth_bytes: int) -> Step:
    """Return a step of a function with the table names and frame sizes of the chain."""
    values = {}
    for name, formula in step.parameters.items():
        text = formula.text
        for old, names_in_chain in new_names.items():
            text = re.sub(rf"\b{old}_(entries|entry_bytes)\b", rf"{names_in_chain}_\1", text)
        if growth_bytes:
            text = re.sub(r"\b(frame|payload)\b", rf"(\1 {'+' if growth_bytes > 0 else '-'} {abs(growth_bytes)})", text)
        values[name] = Formula(text)
    return replace(step, parameters=values, table=new_names.get(step.table, step.table))
