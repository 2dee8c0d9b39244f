"""Which directions of a function are computed, and what frames reach them."""

from __future__ import annotations

from routecast.errors import ModelProblem, Problem
from routecast.function.model import Direction, NetworkFunction
from routecast.load.frames import FrameMix
from routecast.quantity.did_you_mean import did_you_mean

__all__ = ["arriving_frames", "chosen_directions"]


def chosen_directions(function: NetworkFunction, direction: str | None) -> dict[int, float]:
    """Return the numbers of the directions with their shares of the packets, which sum up to 1.

    Raises
    ------
    routecast.errors.ModelProblem
        The function has no such direction.
    """
    names = [one.name for one in function.directions]
    if direction is not None:
        if direction not in names:
            what = f'got "{direction}": is no direction; {did_you_mean(direction, names)}'
            raise ModelProblem(f"function {function.name!r}", [Problem("direction", what)])
        return {names.index(direction): 1.0}
    total = sum(one.share for one in function.directions)
    return {number: one.share / total for number, one in enumerate(function.directions)}


def arriving_frames(direction: Direction, mix: FrameMix, notes: list[str]) -> dict[int, float]:
    """Return the share of each frame size; those too short for the headers are computed longer, with a note."""
    frames: dict[int, float] = {}
    least = direction.smallest_frame_bytes
    for size, share in mix.share_by_bytes.items():
        if size < least:
            notes.append(
                f"direction {direction.name}: the headers do not fit into frames of {size} B; {least} B are computed"
            )
        frames[max(size, least)] = frames.get(max(size, least), 0.0) + share
    return frames
