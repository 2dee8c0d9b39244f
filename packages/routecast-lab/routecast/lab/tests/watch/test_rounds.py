"""Looks that go on: what a failed one, Ctrl-C and an alarm do to the others."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from routecast.cli.run import run
from routecast.errors import EnvironmentProblem
from routecast.lab import watch as room
from routecast.lab.tests.watch.fake_looks import MONDAY, look, saturation_at
from routecast.lab.watch import Alarm, DayMemory, LookRound, Rounds, Watched, repeated

GONE = EnvironmentProblem("there is no interface eth0")


class SetClock:
    """A clock that only pauses and looks move on."""

    def __init__(self) -> None:
        self.now_s = 100.0
        self.pauses_s: list[float] = []

    def sleep(self, pause_s: float) -> None:
        self.pauses_s.append(pause_s)
        self.now_s += pause_s


def player(looks: Iterable[Watched | BaseException], clock: SetClock, lasts_s: float = 3.0) -> Callable[..., Watched]:
    waiting = iter(looks)

    def next_look(*_: object, **__: object) -> Watched:
        clock.now_s += lasts_s
        item = next(waiting)
        if isinstance(item, BaseException):
            raise item
        return item

    return next_look


def played(
    looks: Iterable[Watched | BaseException],
    rounds: Rounds,
    *,
    clock: SetClock | None = None,
    lasts_s: float = 3.0,
    count: int | None = None,
) -> Iterator[LookRound]:
    at = clock or SetClock()
    return repeated(
        player(looks, at, lasts_s),
        rounds,
        every_s=60.0,
        count=count,
        now=lambda: MONDAY + timedelta(seconds=at.now_s),
        clock_s=lambda: at.now_s,
        sleep=at.sleep,
    )


def test_looks_begin_at_multiples_of_the_time() -> None:
    clock = SetClock()
    list(played([look()] * 3, Rounds(DayMemory("eth0")), clock=clock, count=3))
    assert clock.pauses_s == [57.0, 57.0]


def test_a_look_that_lasts_too_long_leaves_some_out() -> None:
    clock = SetClock()
    list(played([look()] * 2, Rounds(DayMemory("eth0")), clock=clock, lasts_s=130.0, count=2))
    assert clock.pauses_s == [50.0]


def test_a_look_that_fails_ends_only_itself() -> None:
    rounds = Rounds(DayMemory("eth0"))
    seen = list(played([look(), GONE, FileNotFoundError(2, "gone"), look()], rounds, count=4))
    assert [item.problem != "" for item in seen] == [False, True, True, False]
    assert seen[1].describe().endswith("no look: there is no interface eth0")
    assert (rounds.looks, rounds.failed_looks) == (2, 2)
    assert rounds.summary() == "2 looks, 2 failed, lost during them: nothing"


def test_a_first_look_that_fails_ends_all() -> None:
    with pytest.raises(EnvironmentProblem, match="no interface"):
        list(played([GONE, look()], Rounds(DayMemory("eth0"))))


def test_an_alarm_starts_once_and_ends_where_all_is_known_to_be_fine() -> None:
    low, high = look(saturation=saturation_at(0.8e6)), look(saturation=saturation_at(9e6))
    between = look(saturation=saturation_at(1.2e6))
    rounds = Rounds(DayMemory("eth0"), alarms=[Alarm.parse("headroom < 20 %")])
    seen = list(played([between, low, low, between, GONE, high, between], rounds, count=7))
    states = [[(now.is_firing, now.has_changed) for now in item.alarms] for item in seen]
    assert states == [
        [(False, False)],
        [(True, True)],
        [(True, False)],
        [(True, False)],
        [],
        [(False, True)],
        [(False, False)],
    ]
    assert str(seen[1].alarms[0]).startswith("alarm starts: headroom < 20 %: headroom is -")
    assert str(seen[5].alarms[0]).startswith("alarm ends: headroom < 20 %: headroom is ")


def test_a_look_without_saturation_has_that_of_earlier_ones() -> None:
    seen = list(played([look(saturation=saturation_at(2e6)), look()], Rounds(DayMemory("eth0")), count=2))
    assert "saturates at 2 Mpps (1.491 Mpps to 2.684 Mpps), headroom 100 %" in seen[0].describe()
    assert "(1.491 Mpps to 2.684 Mpps) as looks before saw it, headroom 100 %" in seen[1].describe()


def test_losses_are_added_by_place() -> None:
    rounds = Rounds(DayMemory("eth0"))
    list(played([look(lost={"interface": 2}), look(lost={"interface": 1, "backlog": 5})], rounds, count=2))
    assert rounds.lost == {"interface": 3, "backlog": 5}
    assert rounds.summary() == "2 looks, lost during them: 3 at the interface, 5 at the backlog"


def test_plain_data_of_a_round_is_json_without_numbers_that_are_none() -> None:
    rounds = Rounds(DayMemory("eth0"), alarms=[Alarm.parse("headroom < 20 %")])
    seen, failed = played([look(rate_pps=0.0), GONE], rounds, count=2)
    document = json.loads(json.dumps(seen.to_json(), allow_nan=False))
    assert document["loss_at_peak"]["ratio"] is None
    assert document["loss_at_peak"]["reason"]
    assert document["alarms"][0]["state"] == "not known"
    assert failed.to_json()["problem"] == "there is no interface eth0"


def test_the_state_goes_on_where_it_was(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    list(played([look(saturation=saturation_at(2e6))], Rounds(DayMemory("eth0"), state=path), count=1))
    again = Rounds(room.read_memory(path, "eth0"), state=path)
    (seen,) = played([look()], again, count=1)
    assert seen.saturation.pps == pytest.approx(2e6)


def test_a_state_that_cannot_be_kept_is_a_warning(tmp_path: Path) -> None:
    rounds = Rounds(DayMemory("eth0"), state=tmp_path / "none" / "state.json")
    (seen,) = played([look()], rounds, count=1)
    assert len(seen.warnings) == 1
    assert "cannot be written" in seen.warnings[0]


@pytest.fixture
def commanded(monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """Runs the command with looks that are given."""

    def command(looks: Iterable[Watched | BaseException], *arguments: str) -> int:
        clock = SetClock()
        monkeypatch.setattr(room, "watch", player(looks, clock))
        return run(["watch", "eth0", "--for", "1 ms", *arguments])

    return command


Command = Callable[..., int]
Captured = pytest.CaptureFixture[str]


def test_ctrl_c_ends_with_a_summary_and_no_failure(commanded: Command, capsys: Captured) -> None:
    assert commanded([look(), look(), KeyboardInterrupt()], "--every", "1 ms") == 0
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == 3
    assert printed[-1] == "2 looks, lost during them: nothing"


def test_an_alarm_that_fires_at_the_end_leaves_with_one(commanded: Command, capsys: Captured) -> None:
    arguments = ("--every", "1 ms", "--count", "2", "--alarm", "loss > 0")
    assert commanded([look(), look(lost={"fifo": 1})], *arguments) == 1
    out, err = capsys.readouterr()
    assert "alarm starts: loss > 0: 1 frame lost" in out
    assert "alarm: loss > 0" in err
    assert commanded([look(lost={"fifo": 1}), look()], *arguments) == 0
    assert "alarm ends: loss > 0" in capsys.readouterr().out


def test_a_single_look_says_what_it_knows_of_alarms(commanded: Command, capsys: Captured) -> None:
    arguments = ("--alarm", "loss > 0", "--alarm", "headroom < 20 %", "--growth", "30 %/year")
    assert commanded([look(lost={"fifo": 1})], *arguments) == 1
    printed = capsys.readouterr().out
    assert "alarm        loss > 0 fires: 1 frame lost during the look" in printed
    assert "alarm        headroom < 20 % is not known: 3 full polls" in printed
    assert "full on      not known: 0 of the 96 quarter hours" in printed
    assert commanded([look()], "--alarm", "loss > 0") == 0


def test_json_is_one_line_a_look(commanded: Command, capsys: Captured) -> None:
    assert commanded([look(), GONE, look()], "--every", "1 ms", "--count", "3", "--json") == 0
    documents: list[dict[str, Any]] = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert ["problem" in document for document in documents] == [False, True, False]


def test_a_single_look_without_further_options_is_as_it_was(commanded: Command, capsys: Captured) -> None:
    assert commanded([look()], "--json") == 0
    assert json.loads(capsys.readouterr().out) == json.loads(json.dumps(look().to_json()))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--count", "2"), "--count is for looks that go on"),
        (("--prometheus", "9464"), "--prometheus is for looks that go on"),
        (("--every", "1 us"), "is shorter than a look"),
        (("--every", "1 s", "--prometheus", "x"), "is no port"),
        (("--growth", "x"), "is no growth"),
        (("--alarm", "x"), "is no condition"),
        (("--state", "here.txt"), 'ends in ".txt": what is kept is a JSON file, such as here.json'),
        (("--state", "none/here.json"), "there is no folder none"),
        (("--profile", "nowhere"), "those are abilene, geant"),
    ],
)
def test_what_cannot_be_is_refused_before_the_first_look(
    commanded: Command, capsys: Captured, arguments: tuple[str, ...], message: str
) -> None:
    assert commanded([AssertionError("looked")], *arguments) == 2
    assert message in capsys.readouterr().err
