"""The data of a live panel: a scenario of the simulator, and the changes by each position of each control.

A page changes cores, frames, flows, clock, queue and link, but cannot convert a router into a scenario. Therefore every
position of every control is *lowered* to a scenario here, and the panel stores the paths at which the scenario differs
from the base, with the values there::

    scenario(settings) = base, with the values of each control's position at the control's paths

Controls that change different places combine. If two controls change the same place (more cores, each with a clock),
the panel stores the changes of the later control for each position of the earlier. If this is not possible either, the
later control is omitted and named.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from routecast.errors import EnvironmentProblem, RoutecastError
from routecast.explore.changes import Path, at_path, changed, differences, outermost, overlap
from routecast.quantity.value_list import Plain

__all__ = ["Changes", "Control", "Lower", "Panel", "make_panel"]

Lower = Callable[[Mapping[str, Plain]], dict[str, Any]]
"""Converts the values of the controls into a scenario, with further data for the page."""

_CHECKED_COMBINATIONS = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    """A control of a live panel.

    ``values`` are in the notation of router files, ``texts`` in that of the page; ``at`` is the start position.
    ``sets`` has paths in the router file with the value that each position writes there; None writes nothing.
    """

    key: str
    label: str
    values: tuple[Plain, ...]
    texts: tuple[str, ...]
    at: int
    sets: tuple[tuple[Path, tuple[Any, ...]], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """The changes by a control: the paths, and for each position of the control the value at each path."""

    paths: tuple[Path, ...]
    values: tuple[tuple[Any, ...], ...]

    @classmethod
    def between(cls, trees: Sequence[Any], base: Any) -> Changes:
        """Return the paths at which any tree differs from the base, and the values of each tree there."""
        paths = outermost(path for tree in trees for path in differences(base, tree))
        return cls(paths=tuple(paths), values=tuple(tuple(at_path(tree, path) for path in paths) for tree in trees))

    def to_json(self) -> dict[str, object]:
        """Return plain data."""
        return {"paths": [list(path) for path in self.paths], "values": [list(values) for values in self.values]}


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """The data of a live panel.

    ``base`` is the scenario with every control at its start, with further data for the page. ``under`` has, for
    controls whose changes depend on another control, that control. ``changes`` has the changes by each control, with an
    entry for each position of the control that it depends on. ``left_out`` names omitted controls, with the reasons.
    """

    base: dict[str, Any]
    controls: tuple[Control, ...]
    under: Mapping[str, str]
    changes: Mapping[str, tuple[Changes, ...]]
    left_out: tuple[str, ...] = ()

    def scenario(self, positions: Mapping[str, int]) -> dict[str, Any]:
        """Return the scenario for positions of controls; other controls have their start positions."""
        at = {control.key: positions.get(control.key, control.at) for control in self.controls}
        tree: dict[str, Any] = self.base
        for control in self.controls:
            outer = self.under.get(control.key)
            changes = self.changes[control.key][at[outer] if outer else 0]
            tree = changed(tree, changes.paths, changes.values[at[control.key]])
        return tree

    def to_json(self) -> dict[str, object]:
        """Return plain data for the page."""
        return {
            "base": self.base,
            "controls": [
                {
                    "key": control.key,
                    "label": control.label,
                    "values": list(control.values),
                    "texts": list(control.texts),
                    "at": control.at,
                    "under": self.under.get(control.key),
                    "sets": [{"path": list(path), "values": list(values)} for path, values in control.sets],
                    "changes": [changes.to_json() for changes in self.changes[control.key]],
                }
                for control in self.controls
            ],
        }


def make_panel(lower: Lower, controls: Sequence[Control], *, left_out: Sequence[str] = ()) -> Panel:
    """Lower every position of every control to a scenario, and return the panel with the changes.

    The panel omits positions that make no valid router, and controls that change nothing.

    Raises RoutecastError: the start positions make no valid router.
    """
    start = {control.key: control.values[control.at] for control in controls}
    base = lower(start)
    panel_controls: list[Control] = []
    changes: dict[str, tuple[Changes, ...]] = {}
    under: dict[str, str] = {}
    omitted = [*left_out]
    for requested in controls:
        control, trees = _with_valid_positions(
            requested, [_lowered_or_none(lower, {**start, requested.key: value}) for value in requested.values]
        )
        first = Changes.between(trees, base)
        if not first.paths:
            continue
        outer_controls = [
            outer for outer in panel_controls if any(overlap(first.paths, part.paths) for part in changes[outer.key])
        ]
        if len(outer_controls) > 1 or (outer_controls and outer_controls[0].key in under):
            labels = " and ".join(outer.label for outer in outer_controls)
            omitted.append(f"{control.label}: it changes the same values as {labels}")
            continue
        if outer_controls:
            outer = outer_controls[0]
            trees_by_position = [
                [
                    _lowered_or_none(lower, {**start, outer.key: position, control.key: value})
                    for value in control.values
                ]
                for position in outer.values
            ]
            if any(tree is None for trees in trees_by_position for tree in trees):
                omitted.append(f"{control.label}: not every value goes with every {outer.label}")
                continue
            under[control.key] = outer.key
            changes[control.key] = tuple(Changes.between(trees, trees[control.at]) for trees in trees_by_position)
        else:
            changes[control.key] = (first,)
        panel_controls.append(control)
    panel = Panel(base=base, controls=tuple(panel_controls), under=under, changes=changes, left_out=tuple(omitted))
    return _checked(panel, lower)


def _lowered_or_none(lower: Lower, settings: Mapping[str, Plain]) -> Any:
    try:
        return lower(settings)
    except EnvironmentProblem:
        raise
    except RoutecastError:
        return None


def _with_valid_positions(control: Control, trees: Sequence[Any]) -> tuple[Control, list[Any]]:
    """Return a control without the positions that make no valid router, and the scenarios of the others."""
    positions = [position for position, tree in enumerate(trees) if tree is not None]
    valid_control = replace(
        control,
        values=tuple(control.values[position] for position in positions),
        texts=tuple(control.texts[position] for position in positions),
        at=positions.index(control.at),
        sets=tuple((path, tuple(values[position] for position in positions)) for path, values in control.sets),
    )
    return valid_control, [trees[position] for position in positions]


def _checked(panel: Panel, lower: Lower) -> Panel:
    """Compare random combinations of positions with their lowered scenarios; a difference is a defect."""
    random = Random(1)
    for _ in range(_CHECKED_COMBINATIONS):
        positions = {control.key: random.randrange(len(control.values)) for control in panel.controls}
        settings = {control.key: control.values[positions[control.key]] for control in panel.controls}
        tree = _lowered_or_none(lower, settings)
        if tree is not None and tree != panel.scenario(positions):
            first = next(iter(differences(tree, panel.scenario(positions))))
            raise AssertionError(f"controls do not combine at {first}: {settings}")
    return panel
