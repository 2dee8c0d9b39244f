"""Types of the functions that receive the progress of long work."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["BoundProgress", "Progress", "ShareProgress"]

BoundProgress = Callable[[float, float], None]
"""Receives the best value of a search so far and the bound on it."""

Progress = Callable[[int, int, str], None]
"""Receives the number of finished steps, the number of all steps and a description of the next one."""

ShareProgress = Callable[[float], object]
"""Receives the finished share of the work, 0..1. An exception in it ends the work."""
