"""The cost of a step of a function: its cycles, and its waits for lines in each level of the memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from routecast.function._work import LINE_BYTES, StepWork, Touch
from routecast.hardware.model import Hardware, LevelName
from routecast.hardware.residency import Stream, batch_waiting_cycles, residency
from routecast.load.popularity import Popularity
from routecast.quantity.schema import field, value

Shares = Mapping[str, Mapping[LevelName, float]]
"""Share of a stream's lines in each level, by stream."""

_NEAR: tuple[LevelName, ...] = ("L1", "L2")


def level_shares(
    works: Sequence[tuple[float, StepWork]], hardware: Hardware, popularity: Popularity, flows: int | None = None
) -> Shares:
    """Return the share of the lines of every stream in each level of the memory.

    On a host whose cores wait for every line (``stalls = "added"``) the shares follow from the sizes of the tables, the
    popularity of the flows and the frames in flight (:mod:`routecast.hardware.residency`). On a host described as in
    Baldi & Sapio 2018 (``stalls = "separate"``) a table that fits into L1 and L2 together (288 KB on their processor,
    sec. 2.2) needs no access to DRAM, and every access to a larger table goes to DRAM. If the traffic states the number
    of flows, the share that reaches DRAM is computed as on other hosts.

    ``works``: steps, each with the share of packets that need it; ``popularity``: distribution of packets over flows;
    ``flows``: number of flows if ``popularity`` has none.
    """
    flow_popularity = popularity if popularity.flows is not None else replace(popularity, flows=flows)
    streams = _streams(works, hardware, flow_popularity)
    if hardware.stalls == "separate" and popularity == Popularity():
        near_bytes = sum(level.size_bytes for level in hardware.levels if level.name in _NEAR)
        return {
            stream.name: {"L2" if stream.kind == "table" and stream.lines * LINE_BYTES <= near_bytes else "DRAM": 1.0}
            for stream in streams
        }
    shares = residency(hardware.levels, streams)
    if hardware.stalls == "separate":
        return {**shares, **{stream.name: {"DRAM": 1.0} for stream in streams if stream.kind == "frame"}}
    return shares


def _streams(works: Sequence[tuple[float, StepWork]], hardware: Hardware, popularity: Popularity) -> tuple[Stream, ...]:
    accesses: dict[str, float] = {}
    distinct: dict[str, Touch] = {}
    per_flow: dict[str, float] = {}
    frame_lines = 0.0
    for share, work in works:
        for touch in work.touches:
            if touch.kind == "frame":
                frame_lines += share * touch.lines
                continue
            accesses[touch.stream] = accesses.get(touch.stream, 0.0) + share * touch.lines
            distinct.setdefault(touch.stream, touch)
            # Stations are sources and destinations, so two lookups of a packet use keys of the same flows.
            per_flow[touch.stream] = max(per_flow.get(touch.stream, 1.0), touch.lines_per_execution)
    streams = []
    for name, touch in distinct.items():
        flows = popularity.flows
        used_flows = None if flows is None else max(1, round(flows * per_flow[name]))
        streams.append(
            Stream(
                name=name,
                kind="table",
                accesses=accesses[name],
                lines=touch.stream_lines,
                popularity=replace(popularity, flows=used_flows),
                keys=touch.keys,
            )
        )
    if frame_lines > 0.0:
        streams.append(
            Stream(
                name="frames",
                kind="frame",
                accesses=frame_lines,
                lines=hardware.frames_in_flight * frame_lines,
                popularity=Popularity(),
            )
        )
    return tuple(streams)


@value
class StepEstimate:
    """The cost of one step per packet of its direction."""

    direction: str
    operation: str
    table: str
    why: str
    share: float = field("Share of all packets that have this direction")
    times: float
    parameters: Mapping[str, float] = field("Averages over the frame sizes")
    cycles: float = field("Cycles of the operation with data in L1")
    lines_by_level: Mapping[LevelName, float] = field("Lines of memory in each level, of frames and tables")
    table_lines_by_level: Mapping[LevelName, float] = field("Lines of memory in each level, of tables alone")
    stall_cycles_by_level: Mapping[LevelName, float] = field(
        'Cycles that the core waits for these lines; 0 if the cycles include the waits (``stalls = "separate"``)'
    )
    table_stall_cycles: float = field("Cycles that the core waits for lines of tables")
    residual_ratio: float = field("Residual of the operation's fit on this host; NaN without a fit")

    @property
    def stall_cycles(self) -> float:
        """Cycles that the core waits for memory."""
        return sum(self.stall_cycles_by_level.values())

    @property
    def dram_accesses(self) -> float:
        """Lines fetched from DRAM."""
        return self.lines_by_level.get("DRAM", 0.0)

    def to_json(self) -> dict[str, object]:
        """Return plain data."""
        names = ("direction", "share", "operation", "table", "times", "parameters", "cycles", "stall_cycles")
        step: dict[str, object] = {name: getattr(self, name) for name in (*names, "lines_by_level", "why")}
        return step | {"parameters": dict(self.parameters), "lines_by_level": dict(self.lines_by_level)}


def step_estimate(
    share: float, work: StepWork, shares: Shares, hardware: Hardware, function: str, frequency_hz: float
) -> StepEstimate:
    """Return the cost of a step per packet of its direction, which has ``share`` of all packets."""
    lines: dict[LevelName, float] = {}
    table_lines: dict[LevelName, float] = {}
    stalls: dict[LevelName, float] = {}
    table_stalls = 0.0
    refinement = hardware.refinement
    cycles_factor, stalls_factor = refinement.functions.get(f"{function}/{work.direction.name}", (1.0, 1.0))
    for touch in work.touches:
        level_share: Mapping[LevelName, float] = {"DRAM": 1.0} if touch.remote else shares[touch.stream]
        waiting = _waiting(touch, level_share, hardware, frequency_hz)
        for level in hardware.levels:
            count = touch.lines * level_share.get(level.name, 0.0)
            if count == 0.0:
                continue
            lines[level.name] = lines.get(level.name, 0.0) + count
            if touch.kind == "table":
                table_lines[level.name] = table_lines.get(level.name, 0.0) + count
            if hardware.stalls == "separate":
                continue
            stall = waiting[level.name] * refinement.levels.get(level.name, 1.0) * stalls_factor
            stalls[level.name] = stalls.get(level.name, 0.0) + stall
            table_stalls += stall if touch.kind == "table" else 0.0
    return StepEstimate(
        direction=work.direction.name,
        operation=work.step.operation,
        table=work.step.table,
        why=work.step.why,
        share=share,
        times=work.step.times,
        parameters=work.parameters,
        cycles=work.cycles * cycles_factor,
        lines_by_level=lines,
        table_lines_by_level=table_lines,
        stall_cycles_by_level=stalls,
        table_stall_cycles=table_stalls,
        residual_ratio=work.cost.residual_ratio,
    )


def _waiting(
    touch: Touch, level_share: Mapping[LevelName, float], hardware: Hardware, frequency_hz: float
) -> Mapping[LevelName, float]:
    """Return the cycles that a packet waits for the lines of a touch, by level."""
    if touch.pattern == "batched":
        return batch_waiting_cycles(
            hardware.levels,
            level_share,
            lines=touch.lines,
            batch_frames=hardware.call.batch_frames,
            frequency_hz=frequency_hz,
        )
    return {
        level.name: touch.lines * level_share.get(level.name, 0.0) * level.line_cycles(touch.pattern, frequency_hz)
        for level in hardware.levels
    }
