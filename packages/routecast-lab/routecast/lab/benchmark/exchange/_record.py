"""A trial that another tool ran, with its conditions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

from routecast.evaluate.plain import plain
from routecast.evaluate.trial import Bottleneck, Delay, Trial
from routecast.lab.benchmark.procedures import PROCEDURES
from routecast.load.frames import FrameMix
from routecast.quantity.schema import field, value

NAN = float("nan")

Bound = Literal["", "lower", "upper"]

LATENCY_FACTS = ("p95_s", "samples", "devices", "tester_s", "resolution_s")
"""Fields of a point's latency that a trial has no place for: facts of a record, with ``latency_`` before the name."""

NO_THROUGHPUT = frozenset({"reconf", *PROCEDURES}) - {"throughput"}
"""Goals of trials that measure no throughput, so that their forwarded rate is not the router's."""

LIMITS = {
    "medium": "this is the maximum rate of the medium: no rate failed",
    "tester": "this is the greatest rate that was offered, and it met the goal: the router may forward more",
    "knowledge": "above this rate the closed form did not know the loss: the router may forward more",
}
"""Meaning of the fact ``limit`` of a record: medium, tester or a closed form's knowledge limited its rate."""


@value
class Record:
    """A trial with its source, its test and its conditions."""

    source: str = field('Format of the file, with its version: ``"CSIT UTI 1.5.1"``.')
    trial: Trial
    title: str = field("Name of the test or of the service chain; empty where the file names none.", default="")
    goal: str = field(
        'Goal of the trial: ``"ndr"``, ``"pdr"``, ``"mrr"``, ``"soak"``, ``"latency"``, ``"reconf"``, '
        '``"search"`` (a step on the way) or ``"run"`` (a load that the user set); of routecast\'s own trials also the '
        'other procedures of RFC 2544, ``"back_to_back"`` and so on (:data:`NO_THROUGHPUT`).',
        default="run",
    )
    bound: Bound = field("End of a search's last interval at which the rate is; empty for other trials.", default="")
    goal_loss_ratio: float = field("Loss that the goal tolerates; NaN without one.", default=NAN)
    frame_bytes: float = field("Frame size with FCS (S1), the mean of a mix; NaN where unknown.", default=NAN)
    ports: int | None = field("Sending ports: 2 for a bidirectional test.", default=None)
    link_bps: float = field("Rate of one port; NaN where unknown.", default=NAN)
    cores: int | None = None
    flows: int | None = None
    device: str = field("Router, with its version where the file has it.", default="")
    tester: str = field("Tester, with its version where the file has it.", default="")
    facts: Mapping[str, object] = field(
        'Further values of the format, which its export needs again; plain data. ``"limit"`` names the limit of the '
        "rate where it is not the router's: a key of :data:`LIMITS`; ``mix`` is the mix whose mean is ``frame_bytes``; "
        "``series`` is the test without its cores and frame size.",
        default_factory=dict,
    )

    @property
    def series(self) -> str:
        """Name under which records of several cores and frame sizes belong together."""
        return str(self.facts.get("series") or self.title)

    @property
    def mix(self) -> FrameMix | None:
        """The mix of frame sizes; None for one size, or where it is not known."""
        text = self.facts.get("mix")
        return FrameMix.parse(str(text)) if text else None

    def with_frames(self, frames: FrameMix) -> Record:
        """Return the record with other frames, and the bit rates that follow from them (S2)."""
        facts = {name: fact for name, fact in self.facts.items() if name != "mix"}
        record = replace(self, facts=facts | ({} if frames.is_fixed else {"mix": frames.name}))
        return record.with_frame_bytes(frames.mean_bytes)

    def with_frame_bytes(self, frame_bytes: float) -> Record:
        """Return the record with another mean frame size, and the bit rates that follow from it (S2)."""
        rate_pps = self.trial.forwarded_pps
        trial = replace(self.trial, l1_bps=rate_pps * 8.0 * (frame_bytes + 20.0), l2_bps=rate_pps * 8.0 * frame_bytes)
        return replace(self, frame_bytes=frame_bytes, trial=trial)

    def to_json(self) -> dict[str, object]:
        """Return plain data; NaN becomes null."""
        document = plain(self)
        assert isinstance(document, dict)
        return document


def measured(
    *,
    intended_pps: float,
    offered_pps: float,
    forwarded_pps: float,
    loss_ratio: float = NAN,
    frame_bytes: float = NAN,
    duration_s: float = NAN,
    offered_frames: int | None = None,
    forwarded_frames: int | None = None,
    duplicated_frames: int | None = None,
    reordered_frames: int | None = None,
    latency: Delay | None = None,
    invalid: tuple[str, ...] = (),
    notes: tuple[str, ...] = (),
) -> Trial:
    """Return the trial that another tool measured; without ``loss_ratio`` the loss follows from the rates."""
    if math.isnan(loss_ratio):
        loss_ratio = 1.0 - forwarded_pps / offered_pps if offered_pps > 0.0 else NAN
    lost = None
    if offered_frames is not None and forwarded_frames is not None and forwarded_frames <= offered_frames:
        lost = offered_frames - forwarded_frames
    return Trial(
        evaluator="measure",
        duration_s=duration_s,
        measured_s=duration_s,
        intended_pps=intended_pps,
        offered_pps=offered_pps,
        forwarded_pps=forwarded_pps,
        loss_ratio=loss_ratio,
        l1_bps=forwarded_pps * 8.0 * (frame_bytes + 20.0),
        l2_bps=forwarded_pps * 8.0 * frame_bytes,
        bottleneck=Bottleneck(name="", kind="load", reason="is not known: another tool measured"),
        offered_frames=offered_frames,
        forwarded_frames=forwarded_frames,
        dropped_frames=lost,
        in_flight_frames=None if lost is None else 0,
        duplicated_frames=duplicated_frames,
        reordered_frames=reordered_frames,
        latency=latency,
        invalid=invalid,
        notes=notes,
    )


def unknown_loss(trial: Trial) -> Trial:
    """Return a trial whose loss is not known, although both of its rates are."""
    return replace(trial, loss_ratio=NAN, dropped_frames=None, in_flight_frames=None)
