"""``size`` finds the least cores for a target, says how sure that is, and asks for what would tell more."""

from __future__ import annotations

import html
import json
import math
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from routecast.calibration.counts import evaluated_counts
from routecast.cli.run import run
from routecast.errors import RoutecastError
from routecast.evaluate.point_table import parse_points
from routecast.evaluate.points import Point
from routecast.evaluate.targets import Target as Bound
from routecast.evaluate.targets import parse_targets
from routecast.show.page import render_page
from routecast.size import Count, Target, modelled, size
from routecast.size.views import size_page

THREE = "cores,frame_bytes,throughput_pps,link_bps\n1,64,1.7e6,1e11\n2,64,3.35e6,1e11\n4,64,6.6e6,1e11\n"


def linear(counts: tuple[int, ...] = (1, 2, 4, 8), rate_pps: float = 1e6, *, frame_bytes: float = 64.0) -> list[Point]:
    return [Point(cores=k, frame_bytes=frame_bytes, throughput_pps=k * rate_pps, link_bps=1e11) for k in counts]


def test_a_router_that_scales_needs_about_its_target_over_the_rate_of_a_core() -> None:
    result = size(linear(), Target.parse("6 Mpps", "64 B"))
    assert result.least is not None
    assert result.least.cores in {6, 7, 8}
    assert result.least.probability >= 0.95
    assert result.headroom_ratio is not None
    assert result.headroom_ratio == pytest.approx(result.least.rate_pps / 6e6 - 1.0)
    assert result.least.outside == ()


def test_more_confidence_and_less_loss_never_ask_for_fewer_cores() -> None:
    counts = []
    for confidence, loss in ((0.5, 0.1), (0.5, 0.0), (0.9, 0.0), (0.99, 0.0)):
        result = size(linear(), Target.parse("5 Mpps", confidence_ratio=confidence, loss_ratio=loss))
        assert result.least is not None
        counts.append(result.least.cores)
    assert counts == sorted(counts)


def test_a_bit_rate_is_that_of_the_wire() -> None:
    # RFC 2544: 14.88 million frames of 64 B fill 10 Gbit/s; half that with frames of 148 B, as gap and preamble count.
    assert Target.parse("10 Gbit/s", "64 B").rate_pps == pytest.approx(14_880_952, rel=1e-6)
    assert Target.parse("10 Gbit/s", "148 B").rate_pps == pytest.approx(7_440_476, rel=1e-6)
    assert Target.parse("40 Gbit/s", "IMIX").rate_bps == pytest.approx(40e9)


def test_beyond_the_link_no_count_is_certain_and_the_links_limit() -> None:
    rows = [Point(cores=k, frame_bytes=1518.0, throughput_pps=k * 4e5, link_bps=1e10) for k in (1, 2)]
    result = size(rows, Target.parse("30 Gbit/s", "1518 B"))
    assert result.least is None
    assert result.counts[-1].limit == "link"
    assert result.counts[-1].probability < 0.05
    assert "No number of cores" in result.answer
    assert "the links, 2 x 10 Gbit/s, carry at most 1.625 Mpps" in result.answer


def test_what_lies_outside_the_measurements_is_marked_count_by_count() -> None:
    rows = [Point(cores=k, frame_bytes=64.0, throughput_pps=k * 1e6) for k in (1, 2, 4)]
    result = size(rows, Target.parse("3 Mpps", "IMIX"))
    assert {count.cores: count.outside for count in result.counts}[8] == ("frames", "link")
    assert {count.cores: count.outside for count in result.counts}[9] == ("cores", "frames", "link")


def test_an_unstated_fact_is_requested_by_its_name_with_both_answers() -> None:
    result = size(linear((1, 2, 4)), Target.parse("7 Mpps"), counts=range(1, 17))
    (fact,) = result.facts
    assert fact.fact.name == "shared_queue"
    widths = {answer: math.log(high / low) for answer, (low, high) in fact.fact.intervals_pps.items()}
    # Queues of their own leave no collapse: less is possible, so the interval is narrower.
    assert widths["no"] < widths["yes"]
    assert "shared_queue = no" in fact.text
    points = [replace(point, layout=replace(point.layout, shared_queue=False)) for point in linear((1, 2, 4))]
    assert size(points, Target.parse("7 Mpps"), counts=range(1, 17)).facts == ()


def test_the_command_answers_in_one_call(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table, page, figure = tmp_path / "three.csv", tmp_path / "size.html", tmp_path / "size.svg"
    table.write_text(THREE)
    command = ["size", str(table), "--target", "40 Gbit/s", "--frames", "IMIX"]
    # Nobody said whether the cores share a queue: the best count is named, and is not sure enough.
    assert run([*command, "--figure", str(figure), "--out", str(page)]) == 1
    output = " ".join(capsys.readouterr().out.split())
    assert "40 Gbit/s of IMIX" in output
    assert "0.95 needs a measurement at" in output
    assert "shared_queue" in output
    assert "<svg" in figure.read_text()
    assert "How many cores?" in page.read_text()
    assert run([*command, "--json", "--cores", "1..12"]) == 1
    (answer,) = json.loads(capsys.readouterr().out)["series"]
    assert [count["cores"] for count in answer["counts"]] == list(range(1, 13))
    assert all(0.0 <= count["probability"] <= 1.0 for count in answer["counts"])


def test_a_page_has_each_figure_once_and_no_series_twice(tmp_path: Path) -> None:
    sizings = tuple(size(linear((1, 2, 4), rate), Target.parse("3 Mpps")) for rate in (1e6, 2e6))
    text = render_page(size_page(sizings, source="table.csv"))
    for name in ("probability-0", "probability-1", "rate-0", "rate-1"):
        assert text.count(f'id="{name}"') <= 1
        assert name in text


@pytest.mark.parametrize(
    "wrong",
    [
        ["--target", "5 apples"],
        ["--target", "5"],
        ["--target", "-1 Mpps"],
        ["--target", "1 Mpps", "--frames", "3 B"],
        ["--target", "1 Mpps", "--frames", "IMXI"],
        ["--target", "1 Mpps", "--cores", "8..1"],
        ["--target", "1 Mpps", "--cores", "0..4"],
        ["--target", "1 Mpps", "--cores", "1..99999999999"],
        ["--target", "1 Mpps", "--confidence", "100%"],
        ["--target", "1 Mpps", "--loss", "1.5"],
        ["--target", "1 Mpps", "--series", "nobody"],
        ["--target", "1 Mpps", "--noise", "7"],
    ],
    ids=" ".join,
)
def test_what_is_no_question_is_refused_in_words(
    wrong: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "three.csv"
    table.write_text(THREE)
    assert run(["size", str(table), *wrong]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "Traceback" not in captured.err


def test_points_of_two_series_and_no_points_are_refused() -> None:
    for points in ([], [*linear(), Point(cores=1, frame_bytes=64.0, throughput_pps=1e6, series="b")]):
        with pytest.raises(RoutecastError):
            size(points, Target.parse("1 Mpps"))


ROUTER = 'builder = "multicore"\ncores = 4\nlink = "100 Gbit/s"\nservice = { per_packet = "1 us" }\n'


def test_a_router_file_needs_its_target_over_the_rate_of_a_core_and_the_simulator_confirms_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "x.router.toml"
    path.write_text(ROUTER)
    # A frame keeps a core busy for 1 us: 5.5 Mpps take 6 cores.
    assert run(["size", str(path), "--target", "5.5 Mpps", "--json"]) == 0
    (answer,) = json.loads(capsys.readouterr().out)["series"]
    assert answer["least"]["cores"] == 6
    assert answer["least"]["rate_pps"] == pytest.approx(6e6)
    assert answer["least"]["probability"] is None
    assert any("the simulator confirms 6 cores" in text for text in answer["remarks"])
    assert run(["size", str(path), "--target", "5.5 Mpps", "--loss", "0.2", "--json"]) == 0
    (lossy,) = json.loads(capsys.readouterr().out)["series"]
    assert lossy["least"]["cores"] == 5  # 4.4 Mpps have to be forwarded


LATENCIES = """cores,frame_bytes,throughput_mpps,rate_kind,latency_load_ratio,latency_p50_us,latency_p99_us
1,64,5.1,overload,0.1,12,18
2,64,10.0,overload,,,
4,64,19.4,overload,0.9,31,80
"""


def answered_table(text: str, target: str, bound: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    path = tmp_path / "rows.csv"
    path.write_text(text)
    options = ["--latency", bound] if bound else []
    run(["size", str(path), "--target", target, *options, "--cores", "1..8", "--json"])
    (answer,) = json.loads(capsys.readouterr().out)["series"]
    return answer


def test_rows_of_latency_answer_a_bound_together_with_the_rate(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rate = answered_table(LATENCIES, "15 Mpps", "", tmp_path, capsys)
    loose = answered_table(LATENCIES, "15 Mpps", "p99 < 5 ms", tmp_path, capsys)
    tight = answered_table(LATENCIES, "15 Mpps", "p99 < 120 us", tmp_path, capsys)
    assert rate["least"]["cores"] == loose["least"]["cores"] == 4
    # More cores carry the same rate at a smaller share of their capacity.
    assert tight["least"]["cores"] > 4
    for count in tight["counts"]:
        assert count["probability"] <= count["rate_probability"] + 1e-9
    assert tight["latency_low_s"] < tight["latency_s"] < tight["latency_high_s"]
    # Measured at 90 % of the capacity of four cores: 80 us; less at the load of the answer.
    assert 18e-6 < tight["latency_s"] < 80e-6
    assert "p99 there" in tight["answer"]
    impossible = answered_table(LATENCIES, "15 Mpps", "p99 < 5 us", tmp_path, capsys)
    assert impossible["least"] is None


def test_a_page_names_the_bound_that_its_probabilities_keep() -> None:
    points = parse_points(LATENCIES)
    bounds = parse_targets(["p99 < 100 us"])
    wanted = Target.parse("15 Mpps", "64 B")

    def page_of(some_bounds: Sequence[Bound]) -> str:
        sizing = size(points, wanted, counts=range(1, 9), bounds=some_bounds)
        return render_page(size_page((sizing,), source="rows.csv"))

    kept = "Of each number of cores: that it reaches the rate and keeps p99 &lt; 100 us"
    assert kept in page_of(bounds)
    rate_alone = page_of(())
    assert "p99" not in rate_alone
    assert "Of each number of cores, beside the probability" in rate_alone


def test_nothing_is_stated_of_a_latency_beyond_the_rows_and_the_knee(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    low = "\n".join(LATENCIES.splitlines()[:3]) + "\n4,64,19.4,overload,,,\n"
    full = answered_table(low, "19.3 Mpps", "p99 < 1 ms", tmp_path, capsys)
    four = next(count for count in full["counts"] if count["cores"] == 4)
    assert four["latency_s"] is None
    other = answered_table(LATENCIES, "15 Mpps", "p90 < 100 us", tmp_path, capsys)
    assert "not measured" in other["latency_reason"]


def test_latencies_of_one_load_that_contradict_each_other_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    twice = LATENCIES + "1,64,5.1,overload,0.1,12,180\n"
    answer = answered_table(twice, "15 Mpps", "p99 < 1 ms", tmp_path, capsys)
    assert any("p99 of 18 us and of 180 us, both at 10% of the capacity" in text for text in answer["remarks"])


def test_a_table_whose_latency_rows_were_all_disturbed_calibrates_no_latency_and_names_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    marked = (
        "cores,frame_bytes,throughput_mpps,rate_kind,latency_load_ratio,latency_p50_us,latency_p99_us,disturbed\n"
        "1,64,5.1,overload,0.1,12,18,yes\n2,64,10.0,overload,,,,\n4,64,19.4,overload,0.9,31,80,yes\n"
    )
    path = tmp_path / "disturbed.csv"
    path.write_text(marked)
    options = ["size", str(path), "--target", "15 Mpps", "--latency", "p99 < 100 us", "--cores", "1..8", "--json"]
    assert run(options) == 1
    (answer,) = json.loads(capsys.readouterr().out)["series"]
    assert answer["latency_s"] is None
    assert "disturbed: not calibrated" in answer["answer"]
    assert "1 core, 64 B at 10%; 4 cores, 64 B at 90%" in answer["latency_reason"]
    # One calm row is enough, and the disturbed one then has no effect.
    calm = marked.replace("0.9,31,80,yes", "0.9,31,80,")
    far_off = calm.replace("0.1,12,18,yes", "0.1,1200,1800,yes")
    answers = [answered_table(text, "15 Mpps", "p99 < 1 ms", tmp_path, capsys) for text in (calm, far_off)]
    assert answers[0]["latency_s"] == answers[1]["latency_s"] > 0.0


def test_a_loss_that_is_rarer_than_simulated_frames_tell_is_not_confirmed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    short = ROUTER + 'queue = "32 frames"\n[load]\nrate = "1 Mpps"\n'
    drawn, even = tmp_path / "drawn.router.toml", tmp_path / "even.router.toml"
    drawn.write_text(short + 'arrivals = { kind = "poisson" }\n')
    even.write_text(short)

    def answered(path: Path, loss: str) -> tuple[dict[str, object], str, str]:
        assert run(["size", str(path), "--target", "3.15 Mpps", "--loss", loss, "--cores", "5..6", "--json"]) == 0
        (series,) = json.loads(capsys.readouterr().out)["series"]
        return series["least"], series["answer"], " ".join(series["remarks"])

    # Five queues of 32 frames at 63 % load: a loss of about 1e-12 (M/D/1/33), which the frames of seconds do not tell.
    least, answer, remarks = answered(drawn, "1e-9")
    assert least["cores"] == 5
    assert int(str(least["frames_simulated"])) > 1_000_000
    assert "none is lost, and how rare losses are is not known" in answer
    assert "does not refute 5 cores" in remarks
    # Nothing is drawn: what a trial shows holds for ever.
    least, answer, remarks = answered(even, "1e-9")
    assert (least["cores"], least["frames_simulated"]) == (5, 0)
    assert "not known" not in answer
    assert "confirms 5 cores" in remarks
    # A frame in a thousand is more than what the closed form leaves open.
    least, answer, remarks = answered(drawn, "1e-3")
    assert (least["cores"], least["frames_simulated"]) == (5, 0)
    assert "confirms 5 cores" in remarks


@pytest.mark.parametrize(("arrivals", "least"), [("cbr", 6), ("on_off", None)])
def test_what_cannot_be_simulated_is_an_answer_only_if_the_closed_form_knows_its_loss(
    arrivals: str,
    least: int | None,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_arguments: object) -> None:
        raise RoutecastError("no steady state within the time")

    monkeypatch.setattr(modelled, "trial_past_transient", refuse)
    path = tmp_path / "x.router.toml"
    bursts = ', burst = "4096 frames", peak = 8' if arrivals == "on_off" else ""
    path.write_text(ROUTER + f'[load]\nrate = "1 Mpps"\narrivals = {{ kind = "{arrivals}"{bursts} }}\n')
    assert run(["size", str(path), "--target", "5.5 Mpps", "--cores", "5..9", "--json"]) == (0 if least else 1)
    (answer,) = json.loads(capsys.readouterr().out)["series"]
    assert (answer["least"] and answer["least"]["cores"]) == least
    if least is None:
        assert "that the target is met is not confirmed" in answer["answer"]
        assert all(count["known_loss_ratio"] != 0.0 for count in answer["counts"])


def test_a_bound_on_the_latency_asks_for_more_cores(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.router.toml"
    path.write_text(ROUTER + '[load]\nrate = "1 Mpps"\narrivals = { kind = "poisson" }\n')
    counts = []
    for bound in ("p99 < 1 s", "p99 < 10 us", "p99 < 4 us"):
        assert run(["size", str(path), "--target", "3.8 Mpps", "--latency", bound, "--json"]) == 0
        (answer,) = json.loads(capsys.readouterr().out)["series"]
        assert answer["least"]["latency_s"] > 1e-6
        counts.append(answer["least"]["cores"])
    assert counts == sorted(counts)
    assert counts[0] == 4
    assert counts[-1] > 4


SIX = (
    "cores,frame_bytes,throughput_pps,shared_queue,link_bps\n1,64,1.52e6,no,100e9\n2,64,2.97e6,no,100e9\n"
    "4,64,5.61e6,no,100e9\n8,64,10.2e6,no,100e9\n1,1518,1.41e6,no,100e9\n4,1518,5.02e6,no,100e9\n"
)


@pytest.mark.parametrize("bound", ["p99 < 1 us", "p99 < 2 us", "mean < 1 s", "max < 20 us"])
def test_a_table_of_throughputs_decides_no_bound_on_the_latency(
    bound: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # A latency depends on arrivals and flows, which no throughput tells: 13.2 us with Poisson arrivals in this router,
    # 381 us when 8 flows fall on 7 cores.
    path = tmp_path / "six.csv"
    path.write_text(SIX)
    ask = ["size", str(path), "--target", "8 Mpps", "--cores", "6..9"]
    assert run([*ask, "--json"]) == 0
    (rate,) = json.loads(capsys.readouterr().out)["series"]
    assert run([*ask, "--latency", bound, "--json"]) == 1
    (answer,) = json.loads(capsys.readouterr().out)["series"]
    assert answer["least"] == rate["least"]  # the count of the throughput
    assert answer["least"]["cores"] == 7
    assert answer["latency_s"] is None
    assert "not measured" in answer["latency_reason"]
    assert all(count["latency_s"] is None for count in answer["counts"])
    # Seven cores that are always busy forward one frame each in this time.
    assert answer["service_s"] == pytest.approx(7 / answer["least"]["rate_pps"], rel=0.01)
    assert run([*ask, "--latency", bound]) == 1
    text, remarks = capsys.readouterr()
    assert "the latency is not measured: exit code 1" in remarks
    assert "certain enough" not in remarks
    assert "latency: not measured" in text
    assert "not the latency" in text
    _, _, table = text.partition("\n\n")
    assert bound.split(maxsplit=1)[0] not in table.partition("Next:")[0]  # no column of a latency


@pytest.mark.parametrize("bound", ["p99 < 100 ns", "mean < 500 ns"])
def test_a_bound_below_the_service_time_is_refuted(
    bound: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # A core that is always busy serves a frame at a time, so a frame is in it for 7 cores / 8 Mpps = 0.875 us (Little).
    path = tmp_path / "six.csv"
    path.write_text(SIX)
    assert run(["size", str(path), "--target", "8 Mpps", "--cores", "6..9", "--latency", bound]) == 1
    text, remarks = capsys.readouterr()
    assert f"{bound} cannot be met" in text
    assert "neither confirmed nor refuted" not in text
    assert "the bound on the latency cannot be met: exit code 1" in remarks


def test_a_bound_that_no_number_of_cores_meets_in_rate_is_open_as_well(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "six.csv"
    path.write_text(SIX)
    assert run(["size", str(path), "--target", "8 Mpps", "--cores", "1..2", "--latency", "p99 < 2 us"]) == 1
    assert "latency: not measured" in capsys.readouterr().out


def test_the_latency_of_a_router_file_names_its_arrivals(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.router.toml"
    for arrivals, words in (("cbr", "evenly spaced arrivals"), ("poisson", "Poisson arrivals")):
        path.write_text(ROUTER + f'[load]\nrate = "1 Mpps"\narrivals = {{ kind = "{arrivals}" }}\n')
        assert run(["size", str(path), "--target", "3.8 Mpps", "--latency", "p99 < 1 s", "--json"]) == 0
        (answer,) = json.loads(capsys.readouterr().out)["series"]
        assert answer["latency_arrivals"] == words
        assert answer["latency_s"] == answer["least"]["latency_s"]
        assert answer["latency_s"] == pytest.approx(1e-6, rel=0.01) or arrivals == "poisson"  # 1 us, and no waiting
        assert f"p99 < 1 s with {words}" in answer["answer"]


def test_a_function_is_sized_for_each_host(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    # Baldi & Sapio (2018): the Ethernet switch takes 211 cycles of 3.6 GHz, 17.06 Mpps a core.
    page = tmp_path / "function.html"
    on = ["--on", "xeon-e5-2690v2"]
    assert run(["size", "--function", "l2_switch", *on, "--target", "20 Mpps", "--out", str(page), "--json"]) == 0
    (answer,) = json.loads(capsys.readouterr().out)["series"]
    assert answer["least"]["cores"] == 2
    assert "l2_switch" in page.read_text()


@pytest.mark.parametrize(
    "wrong",
    [
        [],
        ["x.router.toml", "--function", "l2_switch"],
        ["x.router.toml", "--on", "xeon-e5-2690v2"],
        ["x.router.toml", "--noise", "0.1"],
        ["x.router.toml", "--series", "a"],
        ["x.router.toml", "--latency", "q99 < 1 us"],
        ["x.router.toml", "--latency", "loss < 1 %"],
        ["nowhere.router.toml"],
        ["../x.csv"],
        ["--function", "no_such", "--on", "xeon-e5-2690v2"],
        ["--function", "l2_switch", "--on", "no-such-host"],
        ["--function", "l2_switch", "--on", "xeon-e5-2690v2", "--cores", "64"],
        ["virtual.router.toml"],
    ],
    ids=" ".join,
)
def test_what_is_no_router_to_size_is_refused_in_words(
    wrong: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("x.router.toml").write_text(ROUTER)
    virtual = (Path(__file__).parents[2] / "examples" / "virtual.router.toml").read_text()
    Path("virtual.router.toml").write_text(virtual)
    assert run(["size", *wrong, "--target", "1 Mpps"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "Traceback" not in captured.err


@pytest.mark.parametrize("enough", [1, 25, 137, 999, 4096])
def test_of_thousands_of_counts_some_are_looked_at_and_the_least_is_that_of_all(enough: int) -> None:
    def evaluate(part: Sequence[int]) -> list[Count]:
        seen.extend(part)
        return [
            Count(
                cores=k,
                probability=float(k >= enough),
                rate_pps=k * 1e6,
                low_pps=0.0,
                high_pps=0.0,
                limit="cpu",
                outside=(),
            )
            for k in part
        ]

    seen: list[int] = []
    result = evaluated_counts(range(1, 4097), evaluate, lambda count: count.probability == 1.0)
    assert next(count.cores for count in result if count.probability == 1.0) == enough
    assert len(seen) < 300
    assert [count.cores for count in result] == sorted(set(seen))


def test_over_clocks_a_slower_one_needs_as_many_more_cores(capsys: pytest.CaptureFixture[str]) -> None:
    example = Path(__file__).parents[2] / "examples" / "green.router.toml"  # 1, 2 and 3 GHz
    ask = ["size", str(example), "--target", "2.5 Mpps", "--over", "cores,clock", "--cores", "1..12"]
    assert run([*ask, "--json"]) == 0
    answers = json.loads(capsys.readouterr().out)["series"]
    assert [each["series"].rpartition(" at ")[2] for each in answers] == ["1 GHz", "2 GHz", "3 GHz"]
    cores = [each["least"]["cores"] for each in answers]
    assert cores[0] > cores[1] >= cores[2]
    rates = [next(c["rate_pps"] for c in each["counts"] if c["cores"] == 1) for each in answers]
    # 1500 cycles and two accesses of 80 ns: a third of the clock leaves more than a third of the rate.
    assert rates[2] / 3 < rates[0] < rates[1] < rates[2]
    assert all(each["least"]["power_w"] > 0 for each in answers)
    assert run(ask) == 0
    assert "Least cores for" in capsys.readouterr().out


def test_over_hosts_are_those_of_the_catalogue(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["size", "--function", "l2_switch", "--target", "20 Mpps", "--over", "cores,host", "--json"]) == 0
    printed = capsys.readouterr()
    names = [each["series"] for each in json.loads(printed.out)["series"]]
    assert "l2_switch on xeon-e5-2690v2" in names
    assert "l2_switch on xeon-platinum-8180" not in names
    assert "xeon-platinum-8180 is left out: it gives no cost of ht_lookup" in printed.err
    assert run(["size", "--function", "ipv4_router", "--target", "20 Mpps", "--over", "cores,host", "--json"]) == 0
    names = [each["series"] for each in json.loads(capsys.readouterr().out)["series"]]
    assert "ipv4_router on xeon-platinum-8180" in names


@pytest.mark.parametrize("over", ["colour", "", "host", "cores,,clock"])
def test_what_cannot_be_chosen_is_refused(over: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.router.toml"
    path.write_text(ROUTER)
    assert run(["size", str(path), "--target", "1 Mpps", "--over", over]) == 2
    assert run(["size", str(path), "--target", "1 Mpps", "--over", "clock"]) == 2  # states no P-states
    assert "Traceback" not in capsys.readouterr().err


def test_no_sentence_of_a_page_stands_on_it_twice() -> None:
    target = Target.parse("6 Mpps")
    for sizing in (size(linear(), target), size(linear(), Target.parse("600 Mpps"))):
        text = re.sub(r"<(script|style|svg).*?</\1>", " ", render_page(size_page((sizing,), source="x")), flags=re.S)
        texts = [html.unescape(part).strip() for part in re.split(r"<[^>]+>", text)]
        sentences = [s for part in texts for s in re.split(r"(?<=[.!?])\s", part) if len(s.split()) >= 5]
        assert len(sentences) > 3
        assert sorted(set(sentences)) == sorted(sentences)


def test_the_figure_that_answers_stands_before_all_else() -> None:
    page = size_page((size(linear(), Target.parse("6 Mpps")),), source="x")
    assert page.sections[0].blocks[0] == next(iter(page.figures()))
    assert page.figures()[0].name.startswith("probability")
