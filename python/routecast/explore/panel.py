"""The data of a live panel: a scenario of the simulator, and the changes of each position of each control.

A page changes cores, frames, flows, clock, queue and link without knowing how a router becomes a scenario. Therefore
every position of every control is *lowered* here, and the panel keeps where the scenario differs and what stands there
then::

    scenario(settings) = base, with the values of each control's position at the control's paths

Controls change different places, and so combine. Where two change the same place (more cores, each with a clock), the
later is kept for each position of the earlier; where that does not do, the later is left out and named.
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
"""From the value of each control to the scenario and what the page has to know beside it."""

_CHECKED = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    """A control.

    ``values`` are in the notation of router files, ``texts`` in that of the page; ``at`` is the start. ``sets`` are
    places in the router file and what each position writes there; None writes nothing.
    """

    key: str
    label: str
    values: tuple[Plain, ...]
    texts: tuple[str, ...]
    at: int
    sets: tuple[tuple[Path, tuple[Any, ...]], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """The changes of a control: the paths, and for each of its positions the value at each path."""

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

    ``base``: the scenario where every control stands at its start, with what the page has to know beside it; ``under``:
    by control the one on whose position its changes depend; ``changes``: by control its changes: one, or one for each
    position of the control that it depends on; ``left_out``: controls that could not be offered, and why.
    """

    base: dict[str, Any]
    controls: tuple[Control, ...]
    under: Mapping[str, str]
    changes: Mapping[str, tuple[Changes, ...]]
    left_out: tuple[str, ...] = ()

    def scenario(self, positions: Mapping[str, int]) -> dict[str, Any]:
        """Return the scenario for positions of controls; those that are not named stand at their start."""
        at = {control.key: positions.get(control.key, control.at) for control in self.controls}
        tree: dict[str, Any] = self.base
        for control in self.controls:
            above = self.under.get(control.key)
            of_control = self.changes[control.key][at[above] if above else 0]
            tree = changed(tree, of_control.paths, of_control.values[at[control.key]])
        return tree

    def to_json(self) -> dict[str, object]:
        """Return plain data, as the page reads it."""
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
    """Lower every position of every control, and keep the changes of each.

    Positions that make no router are left out, and controls of which one position or none remains, or that change
    nothing.

    Raises RoutecastError: the controls at their start make no router.
    """
    start = {control.key: control.values[control.at] for control in controls}
    base = lower(start)
    kept: list[Control] = []
    changes: dict[str, tuple[Changes, ...]] = {}
    under: dict[str, str] = {}
    omitted = [*left_out]
    for wanted in controls:
        control, trees = _possible(wanted, [_lowered(lower, {**start, wanted.key: value}) for value in wanted.values])
        first = Changes.between(trees, base)
        if not first.paths:
            continue
        above = [other for other in kept if any(overlap(first.paths, each.paths) for each in changes[other.key])]
        if len(above) > 1 or (above and above[0].key in under):
            omitted.append(f"{control.label}: it changes what {' and '.join(each.label for each in above)} change")
            continue
        if above:
            each_of = [
                [_lowered(lower, {**start, above[0].key: outer, control.key: value}) for value in control.values]
                for outer in above[0].values
            ]
            if any(tree is None for trees in each_of for tree in trees):
                omitted.append(f"{control.label}: not every value goes with every {above[0].label}")
                continue
            under[control.key] = above[0].key
            changes[control.key] = tuple(Changes.between(trees, trees[control.at]) for trees in each_of)
        else:
            changes[control.key] = (first,)
        kept.append(control)
    panel = Panel(base=base, controls=tuple(kept), under=under, changes=changes, left_out=tuple(omitted))
    return _checked(panel, lower)


def _lowered(lower: Lower, settings: Mapping[str, Plain]) -> Any:
    try:
        return lower(settings)
    except EnvironmentProblem:
        raise
    except RoutecastError:
        return None


def _possible(control: Control, trees: Sequence[Any]) -> tuple[Control, list[Any]]:
    """Return a control without the positions that make no router, and the trees of the others."""
    places = [place for place, tree in enumerate(trees) if tree is not None]
    kept = replace(
        control,
        values=tuple(control.values[place] for place in places),
        texts=tuple(control.texts[place] for place in places),
        at=places.index(control.at),
        sets=tuple((path, tuple(values[place] for place in places)) for path, values in control.sets),
    )
    return kept, [trees[place] for place in places]


def _checked(panel: Panel, lower: Lower) -> Panel:
    """Compare some combinations with their own lowering; a difference is a defect."""
    random = Random(1)
    for _ in range(_CHECKED):
        positions = {control.key: random.randrange(len(control.values)) for control in panel.controls}
        settings = {control.key: control.values[positions[control.key]] for control in panel.controls}
        tree = _lowered(lower, settings)
        if tree is not None and tree != panel.scenario(positions):
            first = next(iter(differences(tree, panel.scenario(positions))))
            raise AssertionError(f"controls do not combine at {first}: {settings}")
    return panel
