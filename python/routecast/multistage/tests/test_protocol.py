"""The protocol's machine in simulated worlds under faults, and that the worlds find planted defects."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from routecast.multistage._membership import Member, Membership
from routecast.multistage.protocol import actions
from routecast.multistage.protocol.machine import PROBE_EVERY_S, Machine, MachineSettings
from routecast.multistage.protocol.neighbours import Networks
from routecast.multistage.protocol.watch import SILENT_ROUNDS, BalancerView, MemberView
from routecast.multistage.tests.protocol_defects import DEFECTS, PACKAGE, plant, search
from routecast.multistage.tests.protocol_world import World

HOUR_S = 3600.0

FOUND = {
    1: "a member that drains keeps rows",
    2: "neighbours are taken from members when the process starts again",
    4: "no idle time after a takeover",
    24: "a stale count of a balancer that is back is a sign of a member",
    32: "members are called dead where nobody could hear them",
    38: "a stale answer is a sign of a balancer that hangs",
    76: "a verdict is lost on a balancer that was away between two audits",
    87: "a verdict stays on a balancer that was away at its end",
    160: "the last member that takes flows gets none, for it lacks an address",
    187: "a claim wins whose MAC address came into use on another network",
    267: "a flood of look-ups hides a move",
    319: "a count that begins anew at 0 is a sign",
    481: "nobody announces a balancer that is back while it is the active one",
}
"""Seeds whose worlds had a violation, and what was wrong."""


@pytest.mark.parametrize("seed", FOUND)
def test_what_a_world_once_found_does_not_come_back(seed: int) -> None:
    assert World(seed).run(HOUR_S) == []


@pytest.mark.slow
def test_a_hundred_hours_of_faults_violate_nothing() -> None:
    for seed in range(10_000, 10_100):
        world = World(seed)
        assert world.run(HOUR_S) == []
        assert world.now_s >= HOUR_S


def test_one_seed_has_one_history() -> None:
    def lines(seed: int) -> list[str]:
        result: list[str] = []
        World(seed, on_event=lambda now_s, text: result.append(f"{now_s:.3f} {text}")).run(900.0)
        return result

    assert lines(5) == lines(5)
    assert lines(5) != lines(6)


def test_faults_come_at_least_once_a_minute_and_all_kinds_come() -> None:
    worlds = [World(seed) for seed in range(20_000, 20_006)]
    for world in worlds:
        world.run(HOUR_S)
    total = sum((world.faults for world in worlds), start=type(worlds[0].faults)())
    assert total.total() >= 0.9 * 60 * len(worlds)  # 1.0 in the mean; six hours have a tenth of scatter
    assert len(total) == 31


def _state_of(value: Any, *, skip: frozenset[str]) -> Any:
    """Return an object's state as plain values, times rounded to 1 ns."""
    if isinstance(value, float):
        return round(value, 9)
    if isinstance(value, dict):
        return {key: _state_of(item, skip=skip) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_state_of(item, skip=skip) for item in value]
    names = getattr(type(value), "__slots__", None) or getattr(value, "__dict__", None)
    if names and not isinstance(value, str | int):
        return {name: _state_of(getattr(value, name), skip=skip) for name in names if name not in skip}
    return value


class _Well:
    """A router in which everybody answers at once, ticked when something is due."""

    def __init__(self) -> None:
        networks = Networks(["left", "right"], [["198.18.1.1/24"], ["198.18.2.1/24"]])
        settings = MachineSettings(balancers=("lb0", "lb1"), networks=networks, wanted=("198.18.1.2", "198.18.2.2"))
        members = {f"br{n}": Member(name=f"br{n}", number=n, weight=1.0) for n in range(3)}
        self.machine = Machine(settings, Membership(seed=1, active="lb0", members=members))
        self.views = {
            name: BalancerView({n: MemberView(0) for n in range(3)}, (0, 0, 0)) for name in settings.balancers
        }
        self.now_s = 0.0
        self.do(self.machine.start(0.0))

    def do(self, wanted: list[actions.Action]) -> None:
        for action in wanted:
            if isinstance(action, actions.Solicit):
                mac = f"02:00:00:00:00:0{action.segment}"
                self.do(self.machine.neighbours.hear(action.segment, action.address, mac, self.now_s, is_for_us=True))
            elif isinstance(action, actions.Probe):
                self._count(action.balancer)
            elif isinstance(action, actions.ProbePaths):
                self._count(action.balancer)
                for view in self.views[action.balancer].members.values():
                    before = view.paths or (0,) * len(action.paths)
                    view.paths = tuple(count + bool(path) for count, path in zip(before, action.paths, strict=True))
            elif isinstance(action, actions.Call):
                view = self.views[action.balancer]
                view.answers = tuple(count + 1 for count in view.answers)

    def _count(self, balancer: str) -> None:
        for view in self.views[balancer].members.values():
            view.returned += 1

    def tick_until(self, until_s: float) -> None:
        while self.machine.next_s < until_s:
            self.now_s = self.machine.next_s
            self.do(self.machine.observe(self.views, self.now_s))
            self.do(self.machine.tick(self.now_s))
        self.now_s = until_s


def test_jumping_over_idle_time_leaves_what_ticks_leave() -> None:
    """Save what the elements counted meanwhile, and when exactly somebody was seen within the last interval."""
    ticked, jumped = _Well(), _Well()
    for router in (ticked, jumped):
        router.tick_until(5.3)
        assert router.machine.is_idle
    ticked.tick_until(305.3)
    jumped.machine.pass_idle(305.3)
    # Counts of the elements go on in a router that is ticked; times of signs differ by up to an interval; a token
    # bucket is filled up when it is asked.
    counts = {"returned", "path_counts", "heard", "heard_answers", "answers", "in_a_row"}
    skip = frozenset(counts | {"seen_s", "sign_s", "heard_s"})
    states = []
    for router in (ticked, jumped):
        machine = router.machine
        state = {
            "due": _state_of(machine._due, skip=skip),
            "members": _state_of(machine.members, skip=skip),
            "balancers": _state_of(machine.balancers, skip=skip),
            "entries": _state_of(machine.neighbours.entries, skip=skip),
            "silent": _state_of(machine._silent, skip=skip),
            "paths": machine._paths,
            "idle": machine.is_idle,
            "next_s": round(machine.next_s, 6),
        }
        states.append(state)
    for key, value in states[0].items():
        assert states[1][key] == (pytest.approx(value) if key == "due" else value), key
    seen_s = [watch.seen_s for router in (ticked, jumped) for watch in router.machine.members.values()]
    assert max(seen_s) - min(seen_s) <= PROBE_EVERY_S + 1e-6
    for router in (ticked, jumped):
        in_a_row = [watch.in_a_row for watch in router.machine.members.values()]
        assert in_a_row[0] == pytest.approx(305.3 / PROBE_EVERY_S, abs=3)
        router.tick_until(310.0)
        assert router.machine.is_idle


def test_a_router_with_a_dead_member_is_not_idle() -> None:
    router = _Well()
    router.tick_until(5.0)
    assert router.machine.is_idle
    del router.views["lb0"].members[0], router.views["lb1"].members[0]
    router.tick_until(5.0 + (SILENT_ROUNDS + 2) * PROBE_EVERY_S)
    assert not router.machine.is_idle
    assert router.machine.state_of("br0", router.now_s) == "dead"


def test_the_first_table_of_a_drain_is_put_in_force_with_the_member() -> None:
    """Rows that the member had are those of the table before; without it the drain would move them at once."""
    machine = _Well().machine
    tables = []
    for action in machine.drain("br0", idle_s=1.0, deadline_s=10.0, now_s=5.0):
        if isinstance(action, actions.Publish):
            tables.append((machine.membership.epoch, [number for number, _ in machine.membership.weights()]))
    assert tables == [(1, [0, 1, 2]), (2, [1, 2])]


def test_the_protocol_reads_no_clock() -> None:
    """So that steps of the wall clock cannot matter."""
    for file in PACKAGE.glob("*.py"):
        assert not re.search(r"\b(import|from) (time|datetime|random|socket|threading|os)\b", file.read_text())


def test_all_planted_defects_apply_to_the_source(tmp_path: Path) -> None:
    assert len(DEFECTS) == 20
    assert len({defect.file for defect in DEFECTS}) == 3
    for number, defect in enumerate(DEFECTS):
        folder = tmp_path / str(number)
        folder.mkdir()
        copy = plant(defect, folder)
        compile((copy / defect.file).read_text(), defect.file, "exec")


@pytest.mark.slow
@pytest.mark.parametrize("number", [0, 1, 11, 12])
def test_worlds_find_planted_defects(number: int) -> None:
    assert search(DEFECTS[number])
