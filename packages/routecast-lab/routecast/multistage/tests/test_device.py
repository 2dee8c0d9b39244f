"""A router of many machines as a device under test of an ordinary test bed."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import routecast
from routecast.errors import FileProblem
from routecast.evaluate.protocol import Evaluator
from routecast.evaluate.trial import Trial
from routecast.lab.testbed import netns, open_testbed, state
from routecast.lab.testbed.devices import make_device
from routecast.load.flows import Flow, FlowSet
from routecast.load.frames import FrameMix
from routecast.load.offered import OfferedLoad

EXAMPLE = Path(routecast.__file__).parents[3] / "examples" / "demo.multistage.toml"


Undisturbed = Callable[..., Any]


def nothing_is_lost(trial: Trial) -> None:
    assert trial.forwarded_frames == trial.offered_frames, trial.notes


def load(rate_pps: float) -> OfferedLoad:
    flows = tuple(Flow(rss_hash=n, ingress=0, egress=1) for n in range(64))
    return OfferedLoad(rate_pps=rate_pps, frames=FrameMix.fixed(64), flows=FlowSet(name="64 flows", flows=flows))


@pytest.fixture
def bed(tmp_path: Path) -> Path:
    """A test bed with a name that no other test has."""
    path = tmp_path / "bed.testbed.toml"
    path.write_text(f'name = "m{os.getpid()}"\nkind = "namespaces"\nnetworks = 3\nipv6 = true\n', encoding="utf-8")
    return path


@pytest.mark.wire
@pytest.mark.parametrize("options", [{}, {"balancers": 2}, {"file": str(EXAMPLE)}])
def test_it_forwards_between_the_ports_of_a_test_bed(
    bed: Path, options: dict[str, object], undisturbed: Undisturbed
) -> None:
    offered = OfferedLoad(rate_pps=5e3, frames=FrameMix.fixed(128), flows=load(1.0).flows)
    with open_testbed(bed, device="multistage", options=options) as evaluator:

        def run(view: Evaluator) -> tuple[Trial, int]:
            """Return a trial and what the routers dropped while it ran."""
            before = evaluator.bed.device.counters()["drop"]
            trial = view.trial(offered, 0.3)
            return trial, evaluator.bed.device.counters()["drop"] - before

        def nothing_is_dropped(seen: tuple[Trial, int]) -> None:
            trial, dropped = seen
            nothing_is_lost(trial)
            assert dropped == 0

        for view in (evaluator, evaluator.with_ip(6), evaluator.over_networks(3)):
            undisturbed(partial(run, view), nothing_is_dropped, trials=lambda seen: seen[:1])
    assert not [name for name in (*netns.names(), *state.beds()) if f"m{os.getpid()}" in name]


@pytest.mark.wire
def test_a_cap_is_what_it_forwards(bed: Path, undisturbed: Undisturbed) -> None:
    with open_testbed(bed, device="multistage", options={"routers": 2, "cap_pps": 4000}) as evaluator:
        before = 0

        def run() -> Trial:
            nonlocal before
            before = evaluator.bed.device.counters()["over_the_cap"]
            result: Trial = evaluator.trial(load(24e3), 0.5)
            assert result.forwarded_frames is not None
            # An empty queue takes its length once more than the cap.
            assert result.forwarded_frames <= 2 * (result.duration_s * 4000 + 256) * 1.01, result.notes
            return result

        def all_that_is_lost_is_over_the_cap(trial_result: Trial) -> None:
            over = evaluator.bed.device.counters()["over_the_cap"] - before
            # Own frames are over the cap too: ten a second and member, and two on each path.
            assert over == pytest.approx(trial_result.dropped_frames, abs=40)

        undisturbed(run, all_that_is_lost_is_over_the_cap)


def something_is_lost(trial: Trial) -> None:
    assert trial.dropped_frames is not None
    assert trial.dropped_frames > 0, trial.notes


@pytest.mark.wire
def test_its_resets_are_failures_of_its_elements(bed: Path, undisturbed: Undisturbed) -> None:
    with open_testbed(bed, device="multistage", options={"balancers": 2, "away_ms": 200}) as evaluator:
        for kind in evaluator.reset_kinds:
            reset = partial(evaluator.reset_trial, load(5e3), 1.5, kind=kind, at_s=0.2)
            undisturbed(reset, something_is_lost)
            undisturbed(partial(evaluator.trial, load(5e3), 0.2), nothing_is_lost)
    assert kind == "balancer-hang"


def test_its_resets_are_those_of_what_it_has() -> None:
    assert make_device("multistage", {"routers": "2"}).reset_kinds == ("system", "router-link", "router-hang")
    assert "routers-hang" in make_device("multistage", {"routers": "3"}).reset_kinds
    assert "balancer-link" in make_device("multistage", {"file": str(EXAMPLE)}).reset_kinds


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"routers": "65"}, "65 is above 64"),
        ({"balancers": "3"}, "3 is above 2"),
        ({"file": "nowhere.multistage.toml"}, "file: nowhere.multistage.toml: cannot be read"),
        ({"file": str(EXAMPLE), "routers": "2"}, "leave routers, balancers and cap_pps out"),
        ({"cap_pps": "many"}, "cap_pps"),
    ],
)
def test_a_wrong_option_is_refused(options: dict[str, str], message: str) -> None:
    with pytest.raises(FileProblem, match=message):
        make_device("multistage", options)
