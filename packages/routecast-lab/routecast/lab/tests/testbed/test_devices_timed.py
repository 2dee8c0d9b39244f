"""A device that makes its frames itself answers for a load by its time per frame."""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import Any

import pytest

from routecast.errors import ModelProblem
from routecast.evaluate.trial import Trial
from routecast.lab.testbed._encapsulation import Encapsulation
from routecast.lab.testbed.devices import make_device
from routecast.lab.testbed.dut_host import SelfTimedCounts
from routecast.lab.testbed.measure import Measure
from routecast.lab.testbed.opening import open_testbed
from routecast.lab.testbed.timed import TimedMeasure, measure_of
from routecast.load.frames import FrameMix
from routecast.load.offered import OfferedLoad, RateStep


class OneNanosecondPerByte:
    """A device whose cost is known: 1 ns for each byte of a frame."""

    name = "fake"
    times_itself = True

    def self_timed(self, frame_bytes: int, duration_s: float) -> SelfTimedCounts:
        frames = round(duration_s / (frame_bytes * 1e-9))
        return SelfTimedCounts(
            frame_bytes=frame_bytes,
            duration_s=2.0 * duration_s,
            busy_s=duration_s,  # half the time, others had the core
            received_frames=frames,
            forwarded_frames=frames,
        )


def timed(device: Any) -> TimedMeasure:
    bed: Any = SimpleNamespace(
        device=device, layer=2, encapsulation=Encapsulation(), placement=SimpleNamespace(tester=0, dut=1)
    )
    assert measure_of(bed) is TimedMeasure
    return TimedMeasure(bed)


def test_below_its_capacity_it_forwards_everything() -> None:
    trial = timed(OneNanosecondPerByte()).trial(OfferedLoad(rate_pps=1e6, frames=FrameMix.fixed(100)), 2.0)
    assert (trial.offered_frames, trial.forwarded_frames, trial.dropped_frames) == (2_000_000, 2_000_000, 0)
    assert trial.resources[0].utilisation_ratio == pytest.approx(0.1)  # 1 Mpps of 100 ns each
    assert trial.is_valid


def test_above_its_capacity_it_forwards_that() -> None:
    trial = timed(OneNanosecondPerByte()).trial(OfferedLoad(rate_pps=40e6, frames=FrameMix.fixed(100)), 1.0)
    assert trial.forwarded_pps == pytest.approx(10e6)  # 1 / 100 ns
    assert trial.loss_ratio == pytest.approx(0.75)
    assert trial.bottleneck.name == "core 1"
    assert trial.offered_frames == trial.forwarded_frames + trial.dropped_frames  # type: ignore[operator]  # S12


def test_a_mix_costs_the_mean_of_its_frames() -> None:
    mix = FrameMix.table([(7, 64), (4, 594), (1, 1518)])
    trial = timed(OneNanosecondPerByte()).trial(OfferedLoad(rate_pps=1e9, frames=mix), 1.0)
    assert trial.forwarded_pps == pytest.approx(1e9 / mix.mean_bytes, rel=1e-5)


def test_it_has_no_course_of_time() -> None:
    evaluator = timed(OneNanosecondPerByte())
    load = OfferedLoad(rate_pps=1e6, steps=(RateStep(at_s=0.5, rate_pps=5e5),))
    with pytest.raises(ModelProblem, match="steps"):
        evaluator.trial(load, 1.0)
    assert evaluator.reset_kinds == ()


def test_a_device_on_a_wire_is_measured_by_frames() -> None:
    bed: Any = SimpleNamespace(device=make_device("testpmd", {}))
    assert measure_of(bed) is Measure


def judge(trials: list[Trial]) -> None:
    little, much = trials
    assert little.loss_ratio == 0.0
    assert much.loss_ratio > 0.9
    assert much.forwarded_pps > 1e5


@pytest.mark.wire
def test_testpmd_without_a_wire_answers_through_a_test_bed(tmp_path: Any, undisturbed: Any) -> None:
    lacking = make_device("testpmd", {}).missing()
    if lacking:
        pytest.skip(f"needs {lacking[0].program}: apt install {lacking[0].package}")
    file = tmp_path / "own.testbed.toml"
    name = f"timed{os.getpid() % 100_000}"
    file.write_text(f'kind = "namespaces"\nname = "{name}"\npriority = 0\n', encoding="utf-8")
    with open_testbed(file, device="testpmd", options={"driver": "null", "forward": "macswap"}) as evaluator:
        undisturbed(
            lambda: [evaluator.trial(OfferedLoad(rate_pps=rate), 0.1) for rate in (1e5, 1e12)], judge, trials=list
        )
        facts = evaluator.facts()
    assert facts["device"]["options"]["driver"] == "null"  # type: ignore[index]  # plain data
