"""The kinds of studies: for each its file on disk, how it is run, and what a terminal shows of its result.

A kind has a package of its own beside this file (that of measured tables is the room itself); what a kind needs is
imported when it is used.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from routecast.study.cluster.document import ClusterStudy
from routecast.study.curves.document import CurveStudy
from routecast.study.document import Study
from routecast.study.experiments.document import ExperimentsStudy
from routecast.study.functions.document import FunctionStudy
from routecast.study.napi.document import NapiStudy
from routecast.study.noc.document import NocStudy
from routecast.study.wire.document import WireStudy

if TYPE_CHECKING:
    from routecast.study.cluster.result import ClusterResult
    from routecast.study.curves.result import CurveResult
    from routecast.study.experiments.result import ExperimentsResult
    from routecast.study.functions.result import FunctionResult
    from routecast.study.napi.result import NapiResult
    from routecast.study.noc.result import NocResult
    from routecast.study.result import StudyResult
    from routecast.study.shown import Shown
    from routecast.study.wire.result import WireResult

    AnyResult = (
        StudyResult
        | WireResult
        | FunctionResult
        | NapiResult
        | ClusterResult
        | NocResult
        | CurveResult
        | ExperimentsResult
    )

__all__ = [
    "AnyStudyFile",
    "ClusterStudyFile",
    "CurveStudyFile",
    "ExperimentsStudyFile",
    "FunctionStudyFile",
    "NapiStudyFile",
    "NocStudyFile",
    "StudyFile",
    "WireStudyFile",
    "run_file",
]

Progress = Callable[[int, int, str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class _FileOnDisk:
    """A study's file and its folder, in which the files that it names are looked up."""

    path: Path

    @property
    def folder(self) -> Path:
        """Folder of the file."""
        return self.path.parent


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyFile(_FileOnDisk):
    """A study that calibrates a router from tables."""

    study: Study

    def run(self, out: Path, progress: Progress | None, command: str) -> tuple[StudyResult, Shown]:
        """Run it; return its result and what to show of it."""
        from routecast.study.run import run_study
        from routecast.study.tabulate import shown

        result = run_study(self, out, progress=progress, command=command)
        return result, shown(result)


@dataclass(frozen=True, slots=True, kw_only=True)
class WireStudyFile(_FileOnDisk):
    """A study of ``kind = "wire"``."""

    study: WireStudy

    def run(self, out: Path, progress: Progress | None, command: str) -> tuple[WireResult, Shown]:
        """Run it; return its result and what to show of it."""
        from routecast.study.wire.bench import TestbedBench
        from routecast.study.wire.run import run_wire_study
        from routecast.study.wire.tabulate import shown

        bench = TestbedBench(self.study.testbed.file, self.folder)
        result = run_wire_study(self.study, out, bench, progress=progress, command=command)
        return result, shown(result)


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionStudyFile(_FileOnDisk):
    """A study of ``kind = "functions"``."""

    study: FunctionStudy

    def run(self, out: Path, progress: Progress | None, command: str) -> tuple[FunctionResult, Shown]:
        """Run it; return its result and what to show of it."""
        from routecast.study.functions.bench import LocalBench
        from routecast.study.functions.run import run_function_study
        from routecast.study.functions.tabulate import shown

        result = run_function_study(self.study, out, LocalBench(self.study), progress=progress, command=command)
        return result, shown(result)


@dataclass(frozen=True, slots=True, kw_only=True)
class NapiStudyFile(_FileOnDisk):
    """A study of ``kind = "napi"``."""

    study: NapiStudy

    def run(self, out: Path, progress: Progress | None, command: str) -> tuple[NapiResult, Shown]:
        """Run it; return its result and what to show of it."""
        from routecast.study.napi.run import run_napi_study
        from routecast.study.napi.tabulate import shown

        result = run_napi_study(self.study, out, self.folder, progress=progress, command=command)
        return result, shown(result)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterStudyFile(_FileOnDisk):
    """A study of ``kind = "cluster"``."""

    study: ClusterStudy

    def run(self, out: Path, progress: Progress | None, command: str) -> tuple[ClusterResult, Shown]:
        """Run it; return its result and what to show of it."""
        from routecast.study.cluster.run import run_cluster_study
        from routecast.study.cluster.tabulate import shown

        result = run_cluster_study(self.study, out, folder=self.folder, progress=progress, command=command)
        return result, shown(result)


@dataclass(frozen=True, slots=True, kw_only=True)
class NocStudyFile(_FileOnDisk):
    """A study of ``kind = "noc"``."""

    study: NocStudy

    def run(self, out: Path, progress: Progress | None, command: str) -> tuple[NocResult, Shown]:
        """Run it; return its result and what to show of it."""
        from routecast.study.noc.run import run_noc_study
        from routecast.study.noc.tabulate import shown

        result = run_noc_study(self.study, out, folder=self.folder, progress=progress, command=command)
        return result, shown(result)


@dataclass(frozen=True, slots=True, kw_only=True)
class CurveStudyFile(_FileOnDisk):
    """A study of ``kind = "curves"``."""

    study: CurveStudy

    def run(self, out: Path, progress: Progress | None, command: str) -> tuple[CurveResult, Shown]:
        """Run it; return its result and what to show of it."""
        from routecast.study.curves.run import run_curve_study
        from routecast.study.curves.tabulate import shown

        result = run_curve_study(self.study, out, folder=self.folder, progress=progress, command=command)
        return result, shown(result)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperimentsStudyFile(_FileOnDisk):
    """A study of ``kind = "experiments"``."""

    study: ExperimentsStudy

    def run(self, out: Path, progress: Progress | None, command: str) -> tuple[ExperimentsResult, Shown]:
        """Run it; return its result and what to show of it."""
        from routecast.study.experiments.run import run_experiments_study
        from routecast.study.experiments.tabulate import shown

        result = run_experiments_study(self.study, out, folder=self.folder, progress=progress, command=command)
        return result, shown(result)


AnyStudyFile = (
    StudyFile
    | WireStudyFile
    | FunctionStudyFile
    | NapiStudyFile
    | ClusterStudyFile
    | NocStudyFile
    | CurveStudyFile
    | ExperimentsStudyFile
)


def run_file(
    file: AnyStudyFile, out: Path, *, progress: Progress | None = None, command: str = ""
) -> tuple[AnyResult, Shown]:
    """Run a study of any kind into a folder; return its result and what a terminal shows of it."""
    return file.run(out, progress, command)
