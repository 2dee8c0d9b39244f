"""Lanes on a graphics processor: what it counts, and what happens where there is none or it is lost."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from in_process import completed

from routecast.errors import ModelProblem
from routecast.evaluate.simulate import Simulate
from routecast.evaluate.simulate.graphics import Graphics, GraphicsProblem, adapters, open_graphics
from routecast.evaluate.simulate.precision import simulate_precisely
from routecast.evaluate.trial import Trial
from routecast.load import Arrivals, OfferedLoad
from routecast.router import RouterModel, ServiceCost, station
from routecast.router.files import read_router_and_load

sys.path.insert(0, str(Path(__file__).parents[1] / "page"))
random_router = importlib.import_module("scenarios").random_router

EXAMPLES = Path(__file__).parents[2] / "examples"
RUN = ("softirq", "green", "powersave", "multicore", "bus", "dpdk-run-to-completion")


@pytest.fixture(scope="module")
def graphics() -> Graphics:
    try:
        return open_graphics()
    except GraphicsProblem as problem:
        pytest.skip(f"NO GRAPHICS PROCESSOR, NOT EVEN A PROGRAM THAT STANDS FOR ONE: {problem}")


def queue() -> tuple[RouterModel, OfferedLoad]:
    """M/M/1/8 at load 1.1."""
    model = station(ServiceCost(per_packet_s=1e-6, variation="exponential"), queue_frames=7)
    return model, OfferedLoad(rate_pps=1.1e6, arrivals=Arrivals.poisson())


def example(name: str) -> tuple[RouterModel, OfferedLoad]:
    model, load = read_router_and_load(EXAMPLES / f"{name}.router.toml")
    assert load is not None
    return model, load


def assert_same(
    model: RouterModel, load: OfferedLoad, graphics: Any, frames: float, seed: int = 5, *, is_lost: bool = False
) -> Trial:
    """Compare all figures of a trial in lanes on both; return that of the device."""
    simulate = Simulate(model, seed=seed, path="lanes", steady_state=False)
    plain = simulate.trial(load, frames / load.rate_pps)
    trial = replace(simulate, device=graphics).trial(load, frames / load.rate_pps)
    if not is_lost:
        assert any(note.startswith("in lanes on a graphics processor: ") for note in trial.notes), trial.notes
    figures = [{name: value for name, value in asdict(of).items() if name != "notes"} for of in (plain, trial)]
    # NaN stands for what there is none of, and is not equal to itself.
    assert {name: repr(value) for name, value in figures[0].items()} == {
        name: repr(value) for name, value in figures[1].items()
    }
    return trial


@pytest.mark.parametrize(("name", "frames"), [("multicore", 4e5), ("softirq", 4e4)])
def test_a_device_counts_what_a_processor_counts(name: str, frames: float, graphics: Graphics) -> None:
    assert_same(*example(name), graphics, frames)


def test_products_of_words_are_those_of_long_words(graphics: Graphics) -> None:
    # WGSL has no upper half of a product; where the device has 64 bits it is taken from them.
    assert_same(*queue(), graphics, 2e4)
    assert_same(*queue(), open_graphics(portable=True), 2e4)


@pytest.mark.slow
@pytest.mark.parametrize("name", RUN)
def test_examples_are_counted_alike(name: str, graphics: Graphics) -> None:
    assert_same(*example(name), graphics, 1e6, seed=3)


@pytest.mark.slow
def test_forty_random_routers_are_counted_alike(graphics: Graphics) -> None:
    alike, given_up, seed = 0, 0, 0
    while alike < 40:
        seed += 1
        _, model, load = random_router(seed)
        simulate = Simulate(model, path="lanes", steady_state=False)
        try:
            plain = simulate.trial(load, 2e5 / load.rate_pps)
        except ModelProblem:
            continue
        has_segments = any(note.startswith("in lanes: ") and " seams proved" in note for note in plain.notes)
        if has_segments and load.arrivals.trace is None:
            trial = assert_same(model, load, graphics, 2e5, seed=seed, is_lost=True)
            note = next(note for note in trial.notes if note.startswith("in lanes "))
            # A service that is interrupted more than eight times is the processor's.
            given_up += "since a draw took more rounds than a shader goes" in note
            alike += note.startswith("in lanes on a graphics processor: ")
    assert given_up <= 4
    assert seed < 1000


def test_a_trial_of_one_stretch_stays_on_the_processor(graphics: Graphics) -> None:
    trial = assert_same(*example("napi"), graphics, 2e4, is_lost=True)
    assert any(note.startswith("in lanes on the processor, since the trial has too few ") for note in trial.notes)


class Reading:
    """A device that keeps the texts of its kernels."""

    def __init__(self, graphics: Graphics) -> None:
        self._graphics = graphics
        self.texts: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._graphics, name)

    def open(self, text: str, tables: bytes, constants: bytes, sizes: Sequence[int]) -> None:
        self.texts.append(text)
        self._graphics.open(text, tables, constants, sizes)


def test_one_kernel_runs_all_seeds_and_rates(graphics: Graphics) -> None:
    model, load = queue()
    device = Reading(graphics)
    trials = [
        Simulate(model, seed=seed, path="lanes", device=device).trial(replace(load, rate_pps=rate_pps), 1e-2)  # type: ignore[arg-type]
        for seed, rate_pps in ((1, 1.1e6), (2, 1.1e6), (1, 1.05e6))
    ]
    assert len(device.texts) == 3
    assert len(set(device.texts)) == 1
    assert len({trial.forwarded_pps for trial in trials}) == 3


def test_a_sweep_opens_one_device_and_counts_what_the_processor_counts(graphics: Graphics) -> None:
    command = ("sweep", str(EXAMPLES / "softirq.router.toml"), "--vary", "load=200 kpps,300 kpps", "--only", "simulate")
    texts = [completed(*command, "--csv", "--duration", "20ms", "--device", device) for device in ("cpu", "gpu")]
    assert texts[0].stdout == texts[1].stdout
    assert [text.stderr.count("lanes run on") for text in texts] == [0, 1]
    assert texts[0].returncode == 0


class Lost:
    """A device that is lost at its second dispatch, or at once. A stand-in: no driver here can be made to fail."""

    has_u64 = False

    def __init__(self, *, at_once: bool) -> None:
        self.at_once = at_once

    def most_lanes(self, words: int, memory: int) -> int:
        return 7 if words and memory >= 0 else 0

    def open(self, text: str, tables: bytes, constants: bytes, sizes: Sequence[int]) -> None:
        assert len(constants) % 16 == 0
        assert "f32" not in text
        assert "u64" not in text
        if self.at_once:
            raise RuntimeError("the device is lost")

    def write(self, words: bytes, memory: bytes | None, stops: bytes) -> None:
        self.words = words

    def step(self) -> tuple[int, int]:
        raise RuntimeError("the device is lost")


@pytest.mark.parametrize("at_once", [True, False])
def test_what_a_lost_device_had_to_do_is_done_by_the_processor(at_once: bool) -> None:
    trial = assert_same(*queue(), Lost(at_once=at_once), 2e4, is_lost=True)
    assert any("(in part or whole by the processor, since the device is lost)" in note for note in trial.notes)


def test_a_precision_says_where_a_device_was_given_up() -> None:
    model, load = queue()
    simulate = Simulate(model, path="lanes", device=Lost(at_once=True))  # type: ignore[arg-type]
    result = simulate_precisely(simulate, load, (), at_most_s=1.0)
    assert any(
        "parts of the trajectory were run by the processor, in part or whole, since the device is lost" in note
        for note in result.notes
    )


def test_a_device_runs_no_other_path() -> None:
    model, load = queue()
    with pytest.raises(ModelProblem, match="runs lanes, not the path 'events'"):
        Simulate(model, path="events", device=Lost(at_once=True)).trial(load, 1e-3)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--adapter", "x"), "--adapter needs --device gpu or --device auto"),
        (("--device", "cpu", "--adapter", "x"), "--adapter needs --device gpu or --device auto"),
        (("--device", "gpu", "--path", "events"), "--device runs lanes; leave out --path events"),
        (("--device", "gpu", "--trace-messages"), "leave out --trace-messages"),
    ],
)
def test_options_that_do_not_go_together_are_refused(options: Sequence[str], message: str) -> None:
    answer = completed("simulate", str(EXAMPLES / "green.router.toml"), *options)
    assert answer.returncode != 0
    assert message in answer.stderr


def test_the_command_runs_on_the_device(graphics: Graphics) -> None:
    texts = [
        completed("simulate", str(EXAMPLES / "green.router.toml"), "--duration", "40ms", "--csv", "--device", device)
        for device in ("cpu", "gpu")
    ]
    assert texts[0].stdout == texts[1].stdout.replace("in lanes on a graphics processor", "in lanes")
    assert texts[1].stderr.startswith("lanes run on ")


def test_a_model_outside_the_class_is_refused_by_its_reason() -> None:
    model, load = example("virtual")
    with pytest.raises(ModelProblem, match="shares a unit with another task unit"):
        Simulate(model, device=Lost(at_once=True)).trial(load, 1e-3)  # type: ignore[arg-type]


def test_an_adapter_that_is_not_there_is_named(graphics: Graphics) -> None:
    assert graphics.adapter in adapters()
    with pytest.raises(GraphicsProblem, match="no graphics processor is called 'nobody'; there are: "):
        open_graphics("nobody")


def test_a_program_on_the_processor_is_never_taken_by_itself(graphics: Graphics) -> None:
    if all(adapter.is_software for adapter in adapters()):
        with pytest.raises(GraphicsProblem, match="there is none but "):
            open_graphics(software=False)
