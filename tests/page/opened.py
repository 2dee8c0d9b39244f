"""A page that is open in a browser."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Page

__all__ = ["PATIENCE_MS", "Opened", "PageOf"]

PATIENCE_MS = 120_000
"""No test waits for a tenth of this."""


@dataclass(slots=True)
class Opened:
    """A page that is open, and what it did that a reader would not see."""

    page: Page
    console: list[str] = field(default_factory=list)
    """Messages on the console and errors that nothing caught, as "type: text"."""
    requests: list[str] = field(default_factory=list)
    """Addresses that were asked for, the page's own first; the text of data: and blob: addresses is left out."""


PageOf = Callable[[Path], Opened]
