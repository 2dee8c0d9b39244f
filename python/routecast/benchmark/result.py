"""What a benchmark finds: one value per procedure, rows per stream and frame size, and all that a report must state.

Rates are frames per second over all ports together (RFC 2285), as everywhere in routecast; ``per_port_pps`` is the
rate of one port, which MLRsearch and the theoretical maximum of RFC 2544 sec. 20 speak of, and :class:`Setup` states
the factor between them (RFC 9971 asks for it).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from routecast.benchmark.rows import (
    BackToBackRow,
    FrameLossRow,
    LatencyRow,
    RecoveryRow,
    ResetRow,
    Spread,
    ThroughputRow,
)
from routecast.evaluate.plain import plain
from routecast.evaluate.trial import Trial

__all__ = [
    "BackToBackResult",
    "BackToBackRow",
    "BenchmarkResult",
    "Compliance",
    "Deviation",
    "FrameLossResult",
    "FrameLossRow",
    "LatencyResult",
    "LatencyRow",
    "NotRun",
    "ProcedureName",
    "RecoveryResult",
    "RecoveryRow",
    "ResetResult",
    "ResetRow",
    "Setup",
    "Spread",
    "Stream",
    "ThroughputResult",
    "ThroughputRow",
    "TrialRecord",
]

ProcedureName = Literal["throughput", "latency", "frame_loss", "back_to_back", "recovery", "reset"]
"""The six procedures of RFC 2544 sec. 26, in its order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """One kind of test stream; rows name it by ``name``.

    Parameters
    ----------
    name : str
        ``"IPv4"``, ``"IPv6 bidirectional"``, ``"IPv4, 256 networks"``, ``"IPv4, 25 filters"``.
    protocol : {"IPv4", "IPv6"}
        UDP over it (RFC 2544 appendix C.2.6.4: UDP echo requests; RFC 4814 ports where there are several flows).
    bidirectional : bool
        RFC 2544 sec. 14: both ways at the same rate.
    networks : int
        Destination networks (sec. 12): 1, or 256.
    modifier : str
        Sec. 11: ``""`` for none, ``"1 filter"``, ``"25 filters"``.
    burst_frames : int
        Sec. 21: frames of a repeated burst at the least gap; 1 is a steady load.
    """

    name: str
    protocol: Literal["IPv4", "IPv6"] = "IPv4"
    bidirectional: bool = False
    networks: int = 1
    modifier: str = ""
    burst_frames: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """What was tested, with what, over which media (RFC 2544 sec. 7 and 8; RFC 9971's statement of units).

    Parameters
    ----------
    evaluator : {"measure", "simulate", "solve"}
    device, tester : mapping of str to object
        Facts of the device under test (versions, exact configuration, what is disabled) and of the tester, plain data.
    device_title : str
        How the device is called in headings.
    link_bps : tuple of float
        Rate of each port's link.
    medium : str
        ``"Ethernet, 10 Gbit/s"``, with ``"virtual"`` where no cable is.
    frame_bytes : tuple of int
    streams : tuple of Stream
    frame_format : str
        In words (sec. 8 asks for it).
    load_unit : str
        Unit of loads and rates, and the factor between one port and all of them.
    """

    evaluator: str
    device: Mapping[str, object]
    tester: Mapping[str, object]
    device_title: str
    link_bps: tuple[float, ...]
    medium: str
    frame_bytes: tuple[int, ...]
    streams: tuple[Stream, ...]
    frame_format: str
    load_unit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Deviation:
    """One way in which a run differs from the standard.

    Parameters
    ----------
    document : str
        ``"RFC 2544"``, ``"RFC 9004"``, ``"RFC 6201"``.
    section : str
        ``"24"``.
    requirement : {"MUST", "SHOULD"}
    wanted, done : str
        What the standard asks for, and what was done instead, each as a phrase.
    """

    document: str
    section: str
    requirement: Literal["MUST", "SHOULD"]
    wanted: str
    done: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Compliance:
    """RFC 2544 sec. 5: all MUSTs make a run conditionally compliant, all SHOULDs as well unconditionally."""

    level: Literal["unconditional", "conditional", "not compliant"]
    statement: str
    deviations: tuple[Deviation, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NotRun:
    """Something that the standard knows and that this run left out, with the reason."""

    section: str
    what: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ThroughputResult:
    """Sec. 26.1. ``advertised`` is the single statement that the section allows to publish, per stream type."""

    rows: tuple[ThroughputRow, ...]
    advertised: tuple[str, ...] = ()
    search: str = ""
    section: str = "RFC 2544 sec. 26.1"

    @property
    def watts(self) -> str:
        """What the rows' watts cover and where they come from, in words; empty where there are none."""
        seen = dict.fromkeys((row.power.scope, row.power.source) for row in self.rows if row.power)
        covered = " and ".join(f"the {scope} ({source})" for scope, source in seen)
        return f"Power: of {covered}, in a trial at the throughput." if covered else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyResult:
    """Sec. 26.2 and RFC 8219 sec. 7; ``definition`` is the RFC 1242 definition that sec. 26.2 wants stated."""

    rows: tuple[LatencyRow, ...]
    definition: str
    medium: str
    section: str = "RFC 2544 sec. 26.2"


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameLossResult:
    """Sec. 26.3: from the maximum rate down in steps until two successive trials without loss."""

    rows: tuple[FrameLossRow, ...]
    step_ratio: float
    section: str = "RFC 2544 sec. 26.3"


@dataclass(frozen=True, slots=True, kw_only=True)
class BackToBackResult:
    """Sec. 26.4 (RFC 9004); ``algorithm`` states the search and its inputs, which sec. 6 of RFC 9004 wants reported."""

    rows: tuple[BackToBackRow, ...]
    algorithm: str
    section: str = "RFC 9004, RFC 2544 sec. 26.4"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryResult:
    """Sec. 26.5."""

    rows: tuple[RecoveryRow, ...]
    section: str = "RFC 2544 sec. 26.5"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResetResult:
    """RFC 6201; kinds that were left out are in :attr:`BenchmarkResult.not_run`."""

    rows: tuple[ResetRow, ...]
    method: str = "frame loss: lost frames over the offered rate (RFC 6201 sec. 1.3)"
    section: str = "RFC 6201, RFC 2544 sec. 26.6"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialRecord:
    """One trial as it was run, in the order of the run; ``trials.parquet`` has a line for each.

    Parameters
    ----------
    number : int
        From 1.
    purpose : str
        What it was for: ``"search 1"``, ``"verify"``, ``"repeat 3"``.
    attempt : int
        1 for the first; an invalid trial is run again.
    """

    number: int
    procedure: str
    stream: str
    frame_bytes: int
    purpose: str
    attempt: int
    rate_pps: float
    trial: Trial


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkResult:
    """Everything that one run found.

    Parameters
    ----------
    profile : mapping of str to object
        The profile's values as plain data, ``profile_name`` its name.
    throughput … reset : result or None
        None where the procedure was not asked for, or could not run: ``not_run`` says which.
    search_statements : tuple of str
        What RFC 9971 sec. 4.10 and its report duties want said of the searches: units, goal width, goals.
    trials : tuple of TrialRecord
    started_utc, elapsed_s : str, float
        ISO 8601; ``resumed_trials`` of the trials come from a run before that was interrupted.
    command : str
        How the run was started.
    versions : mapping of str to str
    """

    profile_name: str
    profile: Mapping[str, object]
    setup: Setup
    compliance: Compliance
    throughput: ThroughputResult | None = None
    latency: LatencyResult | None = None
    frame_loss: FrameLossResult | None = None
    back_to_back: BackToBackResult | None = None
    recovery: RecoveryResult | None = None
    reset: ResetResult | None = None
    not_run: tuple[NotRun, ...] = ()
    search_statements: tuple[str, ...] = ()
    trials: tuple[TrialRecord, ...] = ()
    resumed_trials: int = 0
    invalid_trials: int = 0
    started_utc: str = ""
    elapsed_s: float = float("nan")
    command: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def procedures(self) -> tuple[str, ...]:
        """Names of the procedures that have a result, in the RFC's order."""
        names = ("throughput", "latency", "frame_loss", "back_to_back", "recovery", "reset")
        return tuple(name for name in names if getattr(self, name) is not None)

    def to_json(self) -> dict[str, object]:
        """Return plain data, the raw trials apart, which are in ``trials.parquet``: only their number is given."""
        document: dict[str, object] = {"schema": "routecast-benchmark/1"}
        for name in self.__dataclass_fields__:
            value = getattr(self, name)
            document[name] = len(self.trials) if name == "trials" else plain(value)
        return document
