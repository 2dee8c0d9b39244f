"""What the sum of RAPL's counters covers, whichever way they are read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from routecast.errors import FileProblem, Problem

__all__ = ["RAPL_SCOPES", "RaplCover"]

RAPL_SCOPES: Final = ("package", "psys", "dram", "package+dram")
"""What the sum may cover; ``package`` if not told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RaplCover:
    """A meter of RAPL's counters and what it adds up.

    Parameters
    ----------
    meter : str
        ``"rapl"`` or ``"perf"``.
    covers : str
        One of :data:`RAPL_SCOPES`.

    Raises
    ------
    routecast.errors.FileProblem
        There is no such scope.
    """

    meter: str
    covers: str

    def __post_init__(self) -> None:
        if self.covers not in RAPL_SCOPES:
            allowed = ", ".join(f"{self.meter}:{one}" for one in RAPL_SCOPES)
            what = f"got {self.meter}:{self.covers}: allowed are {allowed}"
            raise FileProblem("power meter", [Problem("", what)])

    @property
    def name(self) -> str:
        """The meter as it is named: ``rapl``, ``perf:psys``."""
        return self.meter if self.covers == "package" else f"{self.meter}:{self.covers}"

    @property
    def scope(self) -> str:
        """What the sum covers: ``rapl:package+dram``."""
        return f"rapl:{self.covers}"

    @property
    def zone_scopes(self) -> frozenset[str]:
        """Scopes of the zones that are added up."""
        return frozenset(f"rapl:{part}" for part in self.covers.split("+"))
