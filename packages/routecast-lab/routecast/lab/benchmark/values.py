"""The values of a benchmark: profile and plan before a run, deviations and the result after it.

They know the names of the procedures and not the procedures, which know them.

Rates are frames per second over all ports together (RFC 2285), as everywhere in routecast. ``per_port_pps`` is the rate
of one port, the unit of MLRsearch and of RFC 2544 sec. 20; :class:`Setup` states the factor between them (RFC 9971).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from routecast.evaluate.plain import plain
from routecast.lab.benchmark.journal import FLOOR, TrialRecord
from routecast.lab.benchmark.settings import Repeats, Text
from routecast.lab.benchmark.streams import Stream, StreamProfile
from routecast.load.frames import FrameMix
from routecast.quantity.fields import Parsed, Span
from routecast.quantity.schema import field, value
from routecast.quantity.whole_file import write_whole

if TYPE_CHECKING:
    from routecast.lab.benchmark.procedures.back_to_back import BackToBackProfile, BackToBackResult
    from routecast.lab.benchmark.procedures.frame_loss import FrameLossProfile, FrameLossResult
    from routecast.lab.benchmark.procedures.latency import LatencyProfile, LatencyResult
    from routecast.lab.benchmark.procedures.recovery import RecoveryProfile, RecoveryResult
    from routecast.lab.benchmark.procedures.reset import ResetProfile, ResetResult
    from routecast.lab.benchmark.procedures.throughput import ThroughputProfile, ThroughputResult

__all__ = [
    "PROCEDURE_NAMES",
    "BenchmarkResult",
    "Compliance",
    "Deviation",
    "Limit",
    "MixFacts",
    "NotRun",
    "Profile",
    "Setup",
    "TrialProfile",
    "parse_frames",
]

PROCEDURE_NAMES = ("throughput", "latency", "frame_loss", "back_to_back", "recovery", "reset")
"""Names of all procedures in the RFC's order, which is the order of a run."""


def parse_frames(text: str) -> int | str:
    """Read a frame size in bytes, or the name of a mix of sizes.

    Raises QuantityProblem: the text is neither.

    Examples
    --------
    >>> parse_frames("64 B"), parse_frames("IMIX"), parse_frames("7x64, 4x594, 1x1518")
    (64, 'IMIX', '7x64+4x594+1x1518')
    """
    frames = FrameMix.parse(text)
    return frames.sequence_bytes[0] if frames.is_fixed else frames.name


FrameSize = Annotated[int | str, Parsed(parse_frames)]


@value
class TrialProfile:
    """``[trial]``: the phases of RFC 2544 sec. 23, repetitions of invalid trials, and the floor."""

    before: Span = field("Wait after the learning frames (sec. 23 b).", default=2.0)
    residual: Span = field("Wait for residual frames after the trial (sec. 23 d).", default=2.0)
    settle: Span = field("Wait until the device has restabilised (sec. 23 e).", default=5.0)
    attempts: Repeats = field("Attempts at a trial that is invalid.", default=3)
    floor: bool = field(
        "Whether a trial over a wire without a device follows each throughput at the same rate, to measure the loss "
        "of the machine. For test beds of network namespaces only.",
        default=True,
    )


@value
class Profile:
    """A profile; the profile of a file has a table for each procedure as well, by the procedure's name."""

    name: Annotated[Text, Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,31}$")]
    title: Text = field("Purpose of the profile, in one line.")
    frames: Annotated[tuple[FrameSize, ...], Field(min_length=1)] = field(
        'Fixed sizes and mixes of sizes: ``"64 B"``, ``"IMIX"``, ``"genome aaafg"``, ``"7x64, 4x594, 1x1518"``.'
    )
    procedures: tuple[str, ...] = field("Chosen procedures; empty: all.", default=())
    trial: TrialProfile = TrialProfile()
    stream: Annotated[tuple[StreamProfile, ...], Field(min_length=1)] = (StreamProfile(),)

    def changed(self, table: str, **values: Any) -> Profile:
        """Return the profile with other values in a table."""
        return replace(self, **{table: replace(getattr(self, table), **values)})

    if TYPE_CHECKING:  # the profile of a file has these tables as fields

        @property
        def throughput(self) -> ThroughputProfile:
            """Return the table of this procedure."""

        @property
        def latency(self) -> LatencyProfile:
            """Return the table of this procedure."""

        @property
        def frame_loss(self) -> FrameLossProfile:
            """Return the table of this procedure."""

        @property
        def back_to_back(self) -> BackToBackProfile:
            """Return the table of this procedure."""

        @property
        def recovery(self) -> RecoveryProfile:
            """Return the table of this procedure."""

        @property
        def reset(self) -> ResetProfile:
            """Return the table of this procedure."""


@value
class Deviation:
    """One difference of a run from the standard."""

    document: str = field('``"RFC 2544"``, ``"RFC 9004"``, ``"RFC 6201"``.')
    section: str = field('``"24"``.')
    requirement: Literal["MUST", "SHOULD"]
    wanted: str = field("Requirement of the document, as a phrase.")
    done: str = field("Procedure that was used instead.")


@value
class NotRun:
    """A part of the standard that this run left out, with the reason."""

    section: str
    what: str
    reason: str


_SAME_CORES = "on the same cores ("
"""Part of a trial's note on another test bed that disturbs this one."""


@value
class MixFacts:
    """Facts of a mix of frame sizes, which a report must state (RFC 6985 sec. 4)."""

    name: str
    mean_bytes: float
    order: Literal["sequence", "random"] = field("``random``: each frame is drawn from the genome with equal chances.")
    genome: str = field(
        "Letters of the sizes; a number after a letter repeats it; small letters are those of RFC 6985."
    )
    custom_bytes: Mapping[str, int] = field("Sizes of the capital letters of the genome.", default_factory=dict)
    share_by_bytes: Mapping[str, float] = field("Share of the frames by their size.", default_factory=dict)

    @classmethod
    def of(cls, frames: FrameMix) -> MixFacts:
        """Return the facts of a mix."""
        genome, custom_bytes = frames.genome_letters()
        return cls(
            name=frames.name,
            mean_bytes=frames.mean_bytes,
            order=frames.order,
            genome=genome,
            custom_bytes=custom_bytes,
            share_by_bytes={str(size): share for size, share in frames.share_by_bytes.items()},
        )


@value
class Setup:
    """Device under test, tester, media and streams (RFC 2544 sec. 7 and 8), and the units (RFC 9971)."""

    evaluator: str
    device: Mapping[str, object] = field(
        "Facts of the device under test: versions, exact configuration, disabled functions; plain data."
    )
    tester: Mapping[str, object] = field("Facts of the tester, plain data.")
    device_title: str = field("Title of the device in headings.")
    link_bps: tuple[float, ...] = field("Rate of each port's link.")
    medium: str = field('``"Ethernet, 10 Gbit/s"``, with ``"virtual"`` where there is no cable.')
    frame_bytes: tuple[int, ...] = field("Fixed sizes.")
    streams: tuple[Stream, ...]
    frame_format: str = field("Description of the frames (sec. 8).")
    load_unit: str = field("Unit of loads and rates, and the factor between one port and all of them.")
    mixes: tuple[MixFacts, ...] = field("Mixes of frame sizes, beyond RFC 2544.", default=())


@value
class Compliance:
    """RFC 2544 sec. 5: a run that meets all MUSTs is conditionally compliant, and with all SHOULDs unconditionally."""

    level: Literal["unconditional", "conditional", "not compliant"]
    statement: str
    deviations: tuple[Deviation, ...]


@value
class Limit:
    """The bottleneck of one stream at one frame size."""

    stream: str
    frame_bytes: float = field("Frame size, the mean for a mix.")
    name: str = field('Core, link, receive ring or pool; "device under test" where it is unknown.')
    reason: str = field("Counters and busy times that show the bottleneck, in words.")
    trials: int = field("Valid trials with loss that have this bottleneck.")
    of_trials: int = field("Valid trials with loss.")


@value
class BenchmarkResult:
    """The result of one run."""

    profile_name: str
    profile: Mapping[str, object] = field("The profile's values as plain data, ``profile_name`` its name.")
    setup: Setup
    compliance: Compliance
    by_procedure: Mapping[str, Any] = field(
        "Result of each procedure that was run, by its name; ``not_run`` has the others. "
        ' ``result.throughput`` is ``result.by_procedure.get("throughput")``, and so on.',
        default_factory=dict,
    )
    not_run: tuple[NotRun, ...] = ()
    search_statements: tuple[str, ...] = field(
        "Statements on the searches that RFC 9971 sec. 4.10 asks for: units, goal width, goals.", default=()
    )
    trials: tuple[TrialRecord, ...] = ()
    resumed_trials: int = field("Trials that come from an interrupted run.", default=0)
    limits: tuple[Limit, ...] = field(
        "Bottleneck of each stream at each frame size where trials lost frames.", default=()
    )
    invalid_trials: int = 0
    invalid_reasons: tuple[str, ...] = field("Reasons of invalid trials by kind, the most frequent first.", default=())
    disturbed: tuple[str, ...] = field(
        "Number of trials that other work on the machine disturbed, then each kind of disturbance.", default=()
    )
    started_utc: str = field("ISO 8601.", default="")
    elapsed_s: float = field("Duration of this run.", default=float("nan"))
    command: str = field("Command that started the run.", default="")
    versions: Mapping[str, str] = field("Versions of routecast, Python, kernel and libraries.", default_factory=dict)
    notes: tuple[str, ...] = ()
    contradictions: tuple[str, ...] = field(
        "Contradictions between figures of the result, each as a sentence with numbers.", default=()
    )

    @property
    def procedures(self) -> tuple[str, ...]:
        """Names of the procedures that have a result, in the RFC's order."""
        return tuple(name for name in PROCEDURE_NAMES if name in self.by_procedure)

    @property
    def shared_cores(self) -> str:
        """Other test beds on the same cores, with the number of disturbed trials; empty without any."""
        trials = [trial.trial for trial in self.trials if trial.procedure != FLOOR]
        others = [note for trial in trials for note in trial.notes if _SAME_CORES in note]
        if not others:
            return ""
        disturbed = sum(any(_SAME_CORES in note for note in trial.notes) for trial in trials)
        return f"{disturbed} of {len(trials)} trials are disturbed: {'; '.join(dict.fromkeys(others))}"

    @property
    def throughput(self) -> ThroughputResult | None:
        """Result of the procedure ``throughput``; None if it was not run."""
        return self.by_procedure.get("throughput")

    @property
    def latency(self) -> LatencyResult | None:
        """Result of the procedure ``latency``; None if it was not run."""
        return self.by_procedure.get("latency")

    @property
    def frame_loss(self) -> FrameLossResult | None:
        """Result of the procedure ``frame_loss``; None if it was not run."""
        return self.by_procedure.get("frame_loss")

    @property
    def back_to_back(self) -> BackToBackResult | None:
        """Result of the procedure ``back_to_back``; None if it was not run."""
        return self.by_procedure.get("back_to_back")

    @property
    def recovery(self) -> RecoveryResult | None:
        """Result of the procedure ``recovery``; None if it was not run."""
        return self.by_procedure.get("recovery")

    @property
    def reset(self) -> ResetResult | None:
        """Result of the procedure ``reset``; None if it was not run."""
        return self.by_procedure.get("reset")

    def write(self, path: Path) -> None:
        """Write ``benchmark.json``, whole or not at all."""
        text = json.dumps(self.to_json(), indent=2, ensure_ascii=False, allow_nan=False)
        write_whole(path, text + "\n")

    def to_json(self) -> dict[str, object]:
        """Return plain data with the number of trials; ``trials.parquet`` has the trials themselves."""
        document: dict[str, object] = {"schema": "routecast-benchmark/1"}
        for name in self.__dataclass_fields__:
            if name == "by_procedure":
                document |= {procedure: plain(self.by_procedure.get(procedure)) for procedure in PROCEDURE_NAMES}
            else:
                document[name] = len(self.trials) if name == "trials" else plain(getattr(self, name))
        return document
