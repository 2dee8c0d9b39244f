"""Several cores that poll an interface: the fullest decides, and what is not known of one is taken from the others."""

from __future__ import annotations

import json
import math
import tomllib
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from routecast.cli.run import run
from routecast.errors import QuantityProblem
from routecast.evaluate.point_table import parse_points
from routecast.evaluate.solve import Solve
from routecast.lab.watch import (
    FullPolls,
    Look,
    LookRecord,
    NapiInstance,
    Watched,
    answered,
    points_table,
    read_recording,
    router_text,
    write_recording,
)
from routecast.lab.watch._cores import of_interface
from routecast.lab.watch._looking import Part, Thread
from routecast.lab.watch._saturation import RECORD
from routecast.quantity import parse_duration_s
from routecast.router.files import build_router

CYCLE_NS = 100_000
DURATION_S = 2.0


def poll_rows(pid: int, count: int, cycle_ns: int = CYCLE_NS, seed: int = 1) -> list[tuple[int, ...]]:
    """Return records of third full polls of a thread."""
    times = cycle_ns * np.exp(0.02 * np.random.default_rng(seed + pid).standard_normal(count))
    return [(number, pid, int(lasts), 0, 5, 64, 64, 0) for number, lasts in enumerate(times)]


def polled(packets: int, *, polls: int, per_batch_ns: int, per_packet_ns: int, waking_ns: int) -> dict[str, Any]:
    """Return counts of polls of ten packets, every second one the first after waking."""
    histograms = {name: [0] * 65 for name in ("first_polls", "first_ns", "later_polls", "later_ns")}
    for kind, more_ns in (("first", waking_ns), ("later", 0)):
        histograms[f"{kind}_polls"][10] = polls
        histograms[f"{kind}_ns"][10] = polls * (per_batch_ns + 10 * per_packet_ns + more_ns)
    return counts(packets) | histograms


def counts(packets: int) -> dict[str, Any]:
    names = ("episodes", "episode_packets", "episode_packets_squared", "longest_run", "polls", "packets")
    more = ("full_polls", "empty_polls", "other_polls", "other_packets", "busy_ns", "paused_ns")
    histograms = {name: [0] * 65 for name in ("first_polls", "first_ns", "later_polls", "later_ns")}
    return dict.fromkeys((*names, *more), 0) | {"packets": packets, "polls": packets} | histograms


def recorded(
    packets: dict[int, int],
    rows: list[tuple[int, ...]],
    *,
    chunks: tuple[dict[tuple[bool, int], int], ...] = (),
    processors: dict[int, int] | None = None,
) -> LookRecord:
    """Return a look at threads by number that polled so many packets, each of an instance of its own."""
    look = Look(
        duration_s=DURATION_S,
        parts=tuple(
            Part(poller=pid, is_thread=True, napi_id=100 + pid, counts=counts(count)) for pid, count in packets.items()
        ),
        records=np.array(rows, dtype=RECORD),
        threads={pid: Thread(run_s=0.5, waited_s=0.0, processor=(processors or {}).get(pid)) for pid in packets},
        chunks=chunks,
    )
    return LookRecord(
        interface="in",
        netns=None,
        instances=tuple(NapiInstance(id=100 + pid, thread_pid=pid, settings=(0, 0)) for pid in packets),
        look=look,
        probe=(),
        lost={},
        frame_bytes=64.0,
        ring_frames=256,
        is_restored=True,
        notes=(),
    )


def seen(packets: dict[int, int], rows: list[tuple[int, ...]], **given: Any) -> Watched:
    return answered(recorded(packets, rows, **given))


def test_the_fullest_core_is_where_the_interface_saturates() -> None:
    # Three quarters of the packets on one of two equal cores: a third more than one core in all.
    watched = seen({1: 3000, 2: 1000}, poll_rows(1, 200) + poll_rows(2, 200))
    assert watched.limits == "the thread of queue 0"
    assert watched.saturation.pps == pytest.approx(64 / (CYCLE_NS * 1e-9) / 0.75, rel=0.02)
    assert [core.saturation.pps for core in watched.cores] == pytest.approx([64 / (CYCLE_NS * 1e-9)] * 2, rel=0.01)
    assert watched.rate_pps == pytest.approx(4000 / DURATION_S)


def test_a_slow_core_with_fewer_packets_may_be_full_first() -> None:
    watched = seen({1: 3000, 2: 2000}, poll_rows(1, 200) + poll_rows(2, 200, cycle_ns=3 * CYCLE_NS))
    assert watched.limits == "the thread of queue 1"
    assert watched.saturation.pps == pytest.approx(64 / (3 * CYCLE_NS * 1e-9) / 0.4, rel=0.03)


def test_of_cores_that_are_equally_full_the_first_to_saturate_is_earlier_than_each() -> None:
    of_two = seen({1: 1000, 2: 1000}, poll_rows(1, 200) + poll_rows(2, 200)).saturation
    assert of_two.pps < 2 * 64 / (CYCLE_NS * 1e-9)
    assert of_two.low_pps < 2 * 64 / (CYCLE_NS * 1e-9) < of_two.high_pps


def test_a_core_without_full_polls_is_taken_to_cost_what_the_others_do_and_less_certainly() -> None:
    own = seen({1: 3000, 2: 1000}, poll_rows(1, 200) + poll_rows(2, 200)).saturation
    watched = seen({1: 3000, 2: 1000}, poll_rows(2, 200))
    assert watched.saturation.pps == pytest.approx(own.pps, rel=0.03)
    width, own_width = (math.log(each.high_pps / each.low_pps) for each in (watched.saturation, own))
    assert width > 1.03 * own_width
    assert "taken to cost what those of the others do" in watched.notes[0]
    unknown = seen({1: 3000, 2: 1000}, []).saturation
    assert math.isnan(unknown.pps)
    assert "10 are needed" in unknown.reason


def test_shares_that_move_widen_the_interval() -> None:
    rows = poll_rows(1, 200) + poll_rows(2, 200)
    steady, moving = (
        seen(
            {1: 3000, 2: 1000}, rows, chunks=tuple({(True, 1): 500 + shift, (True, 2): 500 - shift} for shift in shifts)
        ).saturation
        for shifts in ([250] * 8, [250, 50, 350, 150, 250, 50, 350, 150])
    )
    assert moving.reason or moving.high_pps / moving.low_pps > 1.1 * steady.high_pps / steady.low_pps


def test_threads_that_share_a_processor_are_a_core() -> None:
    watched = seen({1: 1000, 2: 1000}, poll_rows(1, 200) + poll_rows(2, 200), processors={1: 3, 2: 3})
    (core,) = watched.cores
    assert core.name == "processor 3"
    assert core.rate_pps == pytest.approx(2000 / DURATION_S)
    assert watched.saturation.pps == pytest.approx(64 / (CYCLE_NS * 1e-9), rel=0.02)


def test_an_interface_without_packets_has_no_answer() -> None:
    saturation, limits, _ = of_interface(seen({1: 0}, []).cores)
    assert "no packet came in" in saturation.reason
    assert limits == ""
    assert len(FullPolls(second_s=(), later_s=())) == 0


def test_a_file_that_is_no_recording_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "look.json"
    write_recording(recorded({1: 3000}, poll_rows(1, 200)), path)
    assert run(["watch", "--replay", str(path), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["saturation"]["pps"] == pytest.approx(64 / (CYCLE_NS * 1e-9), rel=0.02)
    assert run(["watch", "in", "--replay", str(path)]) == 2
    assert run(["watch", "--replay", str(tmp_path / "none.json")]) == 2
    whole = json.loads(path.read_text())
    damaged = whole | {"look": whole["look"] | {"records": "AAAA"}}
    for document, why in (
        ({"kind": "other"}, "no recording"),
        (whole | {"version": 9}, "version 9"),
        (damaged, "damaged"),
        (whole | {"look": whole["look"] | {"duration_s": 0.0}}, "damaged"),
        ({name: entry for name, entry in whole.items() if name != "probe"}, "damaged"),
    ):
        path.write_text(json.dumps(document))
        with pytest.raises(QuantityProblem, match=why):
            read_recording(path)
    path.write_text("{")
    with pytest.raises(QuantityProblem, match="no recording of a watch"):
        read_recording(path)


def test_a_saved_router_carries_what_the_look_says_and_costs_what_polls_cost(tmp_path: Path) -> None:
    whole = recorded({1: 4000}, poll_rows(1, 400))
    (part,) = whole.look.parts
    spent = polled(4000, polls=200, per_batch_ns=20_000, per_packet_ns=1250, waking_ns=8000)
    watched = answered(replace(whole, look=replace(whole.look, parts=(replace(part, counts=spent),))))
    document = tomllib.loads(router_text(watched, today=date(2026, 1, 1)))
    assert parse_duration_s(document["service"]["per_batch"]) == pytest.approx(20e-6, rel=0.05)
    assert parse_duration_s(document["service"]["per_packet"]) == pytest.approx(1.25e-6, rel=0.02)
    assert parse_duration_s(document["activation"]["interrupt_cost"]) == pytest.approx(8e-6, rel=0.1)
    router, load = build_router(document)
    assert load is not None
    assert load.rate_pps == pytest.approx(watched.rate_pps)
    overload = Solve(model=router).trial(replace(load, rate_pps=5e6), 1.0)
    assert overload.forwarded_pps == pytest.approx(watched.saturation.pps, rel=0.01)
    (point,) = parse_points(points_table(watched))
    assert point.throughput_pps == pytest.approx(watched.saturation.pps, rel=1e-3)
    assert point.standard_error_ratio == pytest.approx(0.15, rel=0.1)
    path = tmp_path / "look.json"
    write_recording(replace(whole, look=replace(whole.look, parts=(replace(part, counts=spent),))), path)
    files = [tmp_path / "r.router.toml", tmp_path / "p.csv"]
    words = ["watch", "--replay", str(path), "--save-router", str(files[0]), "--save-points", str(files[1])]
    assert run(words) == 0
    assert run(["solve", str(files[0])]) == 0
    assert parse_points(files[1].read_text()) == (point,)
    nowhere = str(tmp_path / "none" / "r.toml")
    for option in ("--save-router", "--save-points"):
        assert run(["watch", "--replay", str(path), option, nowhere]) == 2
    # What is not known is not saved.
    unknown = answered(recorded({1: 4000}, []))
    with pytest.raises(QuantityProblem, match="is not saved"):
        router_text(unknown, today=date(2026, 1, 1))
    with pytest.raises(QuantityProblem, match="too few polls"):
        router_text(answered(recorded({1: 4000}, poll_rows(1, 400))), today=date(2026, 1, 1))
