"""The points of a study of functions: each is estimated, run, and run again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from routecast.study.functions.document import FunctionStudy

__all__ = ["Point", "points"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One function, one size of its tables, one frame size, one traffic."""

    function: str
    direction: str
    size: str
    tables: tuple[tuple[str, int], ...]
    frame_bytes: int
    traffic: str
    refines: bool

    @property
    def entries(self) -> Mapping[str, int]:
        """Entries of each table."""
        return dict(self.tables)

    @property
    def title(self) -> str:
        """Function and direction as people say it."""
        return f"{self.function} {self.direction}".strip()

    def key(self, study: FunctionStudy, repeat: int) -> str:
        """Return what one run of the point is known by on disk: a hash of all that decides its result."""
        what = [
            self.function,
            self.direction,
            self.tables,
            self.frame_bytes,
            self.traffic,
            repeat,
            study.run.duration,
            study.run.core,
            study.run.seed,
        ]
        return hashlib.sha256(json.dumps(what).encode()).hexdigest()[:16]


def points(study: FunctionStudy) -> Iterator[Point]:
    """Yield every point of the study once, in the order of the file."""
    for series in study.series:
        refining = {(one.size, one.traffic) for one in series.refine}
        for size, tables in series.tables.items():
            for traffic in series.traffic:
                for frame_bytes in series.frames:
                    yield Point(
                        function=series.function,
                        direction=series.direction,
                        size=size,
                        tables=tuple(sorted(tables.items())),
                        frame_bytes=frame_bytes,
                        traffic=traffic,
                        refines=frame_bytes == series.frames[0] and (size, traffic) in refining,
                    )
