"""The page of an experiment: what was asked, what was found, whether to trust it, told without a textbook."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from html.parser import HTMLParser
from itertools import product
from pathlib import Path
from xml.etree import ElementTree

import pytest

from routecast.experiment.model import Response, Results
from routecast.experiment.tests import experiment_results as examples
from routecast.experiment.views import experiment_page, experiment_sections, write_experiment
from routecast.experiment.views._pictures import interaction_panels, main_effect_panels
from routecast.experiment.views._words import (
    describe_answer,
    describe_design,
    describe_surface,
    headline,
    scale_of,
    unit_of,
)
from routecast.show.figures import Line
from routecast.show.page import Page, render_page

EVERY = (
    "paper", "replicated", "broken", "fraction", "surface", "sample", "constant", "without_answers", "multilevel",
)  # fmt: skip
VOID = {"meta", "link", "br", "hr", "img", "path", "circle", "rect"}


def results_named(name: str) -> Results:
    results = getattr(examples, name)()
    assert isinstance(results, Results)
    return results


def page_of(results: Results) -> Page:
    return experiment_page(results, examples.analyses_of(results), command="routecast experiment f.experiment.toml")


def text_of(results: Results) -> str:
    html = render_page(page_of(results))
    body = re.sub(r"<(script|style|svg)[^>]*>.*?</\1>", " ", html, flags=re.DOTALL)
    text = re.sub(r"<[^>]+>", " ", body)
    for name, sign in (("&amp;", "&"), ("&lt;", "<"), ("&gt;", ">"), ("&#39;", "'")):
        text = text.replace(name, sign)
    return re.sub(r"\s+", " ", text)


def answer_of(results: Results, response: str = "throughput") -> str:
    return describe_answer(results, examples.analyses_of(results)[response], scale_of(results, response))


class Balance(HTMLParser):
    """Fails where an element is not closed, or closed twice."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: object) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.slow
def test_every_page_is_well_formed_needs_no_network_and_no_script(name: str) -> None:
    html = render_page(page_of(results_named(name)))
    balance = Balance()
    balance.feed(html)
    assert balance.open == []
    assert not re.search(r"(src|href)=[\"']?(https?:)?//", html)
    assert "<script" not in html
    for picture in re.findall(r'<figure class="chart">.*?</figure>', html, flags=re.DOTALL):
        ElementTree.fromstring(picture[picture.index("<svg") : picture.rindex("</svg>") + 6])
    assert "nan" not in re.sub(r"<[^>]+>", " ", html).lower().split()


def test_the_paper_s_findings_are_reported_in_its_own_numbers() -> None:
    # Sec. 5.3: +464, +148 and -215 Mbit/s; 75.7, 7.7 and 16.3 % of the variation, here with next to no rest.
    answer = answer_of(examples.paper())
    first, second, third, last = re.split(r"(?<=\.) (?=\*\*|O)", answer)
    assert first == (
        "**Packet size** explains **75.9 %** of the variation of throughput: with 1500 B it is 464 Mbit/s above the"
        " mean of 1.5 Gbit/s, with 78 B as much below."
    )
    # With the queue manager 2 (464 + 215), without it 2 (464 - 215).
    assert second.startswith("**Packet size x queue manager** explains **16.3 %**")
    assert "+1.36 Gbit/s (queue manager full), but +498 Mbit/s (queue manager stub)" in second
    assert (
        third
        == "**Queue manager** explains **7.7 %**: with stub it is 148 Mbit/s above the mean, with full as much below."
    )
    assert last == "Of little consequence: parse threads (less than 0.1 %)."


def test_the_page_states_question_factors_and_provenance() -> None:
    text = text_of(examples.replicated())
    assert "Which of packet size, queue manager and parse threads limits throughput?" in text
    assert "2 x 2 x 2 = 8. Each was run 3 times, with a seed each" in text
    assert "A packet size 78 B, 1500 B" in text
    for foot in ("routecast experiment f.experiment.toml", "Seed 7", "routecast 0.", "full, 8 combinations"):
        assert foot in text
    assert "95 % interval" in text
    assert "estimated from repeated runs (16 degrees of freedom)" in text


def test_missing_and_unsteady_runs_are_named_with_their_reason_and_what_to_do() -> None:
    text = text_of(examples.broken())
    assert "2 of 24 runs are missing" in text
    assert re.search(r"5 1500 B full 4 row 1: queue: got 0, must be at least 1", text)
    assert "finished runs are kept" in text
    assert "1 of 24 runs is not steady" in text
    assert "10 1500 B stub 4 still rising by 3.2 % over the last 60 ms" in text
    assert "Give the runs more time" in text
    assert re.search(r"of them steady 21 ", text)


def test_a_missing_run_makes_no_factor_look_better_than_it_is() -> None:
    # Two of three runs of one combination are missing, the lowest of its level: a plain mean of the rest would rise.
    results = results_named("broken")
    analysis = examples.analyses_of(results)["throughput"]
    panels = main_effect_panels(results.experiment, analysis, scale_of(results, "throughput"))
    threads = next(panel for panel in panels if panel.name == "main-C")
    low, high = threads.marks[1].y
    assert high - low == pytest.approx(2.0 * 0.011, abs=0.03)  # twice q_C in Gbit/s, and the noise of 30 Mbit/s


def test_a_surface_that_dips_below_zero_where_no_answer_is_says_so() -> None:
    results = examples.surface()
    steep = examples.results_of(results.experiment, lambda coded, _: math.exp(-4.0 * coded[0] + 3.0 * coded[1] ** 2))
    analysis = examples.analyses_of(steep)["throughput"]
    assert analysis.surface is not None
    flat = analysis.surface.stationary
    assert flat is not None
    assert flat.is_inside
    assert flat.response < 0.0
    text = describe_surface(steep.experiment, analysis, scale_of(steep, "throughput"))
    assert "No run answers below zero" in text
    assert "The middle was run" in describe_design(results.experiment)


def test_a_surface_that_tops_every_run_says_that_no_run_goes_so_far() -> None:
    # A parabola through what saturates: 1 at the corners and 0 in the middle of one axis is topped between the runs.
    results = examples.surface()
    saturates = examples.results_of(
        results.experiment, lambda coded, _: min(1.0, 1.2 + coded[0]) - 0.05 * coded[0] - 0.1 * coded[1] ** 2
    )
    analysis = examples.analyses_of(saturates)["throughput"]
    assert analysis.surface is not None
    flat = analysis.surface.stationary
    assert flat is not None
    answered = [value for cell in analysis.cells for value in cell.values]
    assert flat.kind == "maximum"
    assert flat.response > max(answered) + 0.05 * (max(answered) - min(answered))
    text = describe_surface(saturates.experiment, analysis, scale_of(saturates, "throughput"))
    assert "No run is that high (the highest has" in text


def test_where_runs_are_missing_a_pair_that_is_not_in_the_model_is_drawn_as_it_was_seen() -> None:
    # Unrepeated runs of three levels: the interaction stands for the noise, and predictions would all run parallel.
    factors = (examples.factor("A", "engines", "1", "2", "4"), examples.factor("B", "queue manager", "full", "stub"))
    coded = [(a.coded, b.coded) for a in factors[0].levels for b in factors[1].levels]
    results = examples.results_of(
        examples.experiment(coded, factors=factors, kind="multilevel"),
        lambda coded, _: 1e9 * (3.0 + coded[0] + coded[1] * (1.0 + coded[0])),
        problems={2: "no such engine"},
    )
    analysis = examples.analyses_of(results)["throughput"]
    assert "AB" not in {effect.name for effect in analysis.effects}
    (panel,) = interaction_panels(results.experiment, analysis, scale_of(results, "throughput"))
    full, stub = (mark for mark in panel.marks if isinstance(mark, Line))
    assert full.y == pytest.approx((2.0, 2.0))  # its middle level has no answer
    assert stub.y == pytest.approx((2.0, 4.0, 6.0))


def test_a_pair_that_may_be_another_pair_is_not_reported_as_known() -> None:
    # 2^(4-1), I = ABCD: AB and CD are one column, and only C x D is there.
    factors = tuple(examples.factor(letter, f"factor {letter}", "low", "high") for letter in "ABCD")
    coded = [(a, b, c, a * b * c) for c, b, a in product((-1.0, 1.0), repeat=3)]
    results = examples.results_of(
        examples.experiment(coded, factors=factors, kind="fractional", generators=("D=ABC",), evaluator="solve"),
        lambda coded, _: 1e9 * (10.0 + coded[0] + 3.0 * coded[2] * coded[3]),
    )
    answer = answer_of(results)
    assert "it, or factor C x factor D; these runs cannot tell which" in answer
    assert "going from" not in answer


def test_a_factor_that_may_be_another_factor_is_not_reported_as_known() -> None:
    # Every run with both factors at unlike levels failed: what is left moves them together.
    factors = examples.FACTORS[:2]
    results = examples.results_of(
        examples.experiment(factors=factors, evaluator="solve"),
        lambda coded, _: 1e9 * (5.0 + coded[1]),
        problems={1: "too small", 2: "too small"},
    )
    assert "it, or queue manager; these runs cannot tell which" in answer_of(results)


def test_without_repeated_runs_and_anything_that_stands_out_no_noise_is_spoken_of() -> None:
    results = examples.results_of(
        examples.experiment(factors=examples.FACTORS[:2]), lambda coded, _: 1e9 + 3e6 * coded[0] + 2e6 * coded[1]
        + 1e6 * coded[0] * coded[1],
    )  # fmt: skip
    assert "stands out from the others" in answer_of(results)
    assert "significant" not in answer_of(results)


def test_where_nothing_varies_or_nothing_answered_the_page_says_so() -> None:
    assert answer_of(examples.constant()) == "**Throughput** does not vary: every run answered 1 Gbit/s."
    assert "The response does not vary" in text_of(examples.constant())
    assert answer_of(examples.without_answers()) == "No run has an answer, so nothing is known of throughput."
    text = text_of(examples.without_answers())
    assert "8 of 8 runs are missing" in text
    assert "router: no load" in text


def test_noise_alone_is_called_noise() -> None:
    results = examples.results_of(examples.experiment(replications=4), examples.noisy(lambda *_: 1e9, 5e7, seed=11))
    answer = answer_of(results)
    assert "No factor has a significant effect on **throughput**" in answer


def test_effects_that_share_a_number_are_reported_with_what_they_may_be_instead() -> None:
    # D = AB: what looks like lookup threads is the interaction that the data was made with.
    text = text_of(examples.fraction())
    assert "Of the 32 combinations 8 were tried, chosen by D=AB, E=AC" in text
    assert "Some effects share one estimate" in text
    assert "the effect of lookup threads may be that of packet size x queue manager" in text


def test_a_surface_is_reported_with_its_highest_point_in_the_units_of_the_file() -> None:
    # Made with its maximum at (0.4, -0.3): 800 + 0.4 x 600 = 1040 B, 6 - 0.3 x 4 = 4.8 cores, 5 Gbit/s.
    result = re.search(
        r"The fitted surface is highest, ([\d.]+) Gbit/s, at frame size (\d+) B, cores ([\d.]+)\.",
        text_of(examples.surface()),
    )
    assert result
    assert float(result[1]) == pytest.approx(5.0, rel=0.01)
    assert float(result[2]) == pytest.approx(1040.0, abs=25.0)
    assert float(result[3]) == pytest.approx(4.8, abs=0.2)


def test_a_sample_is_reported_by_shares_of_variance_and_the_idle_factor_is_named() -> None:
    # Uniform in -1..1: variances 9/3, 2.25/3, 0.49/9 and 0.64 x 4/45; the first factor alone has 77.7 % of their sum.
    answer = answer_of(examples.sample())
    share = re.search(
        r"\*\*Frame size\*\* matters most for throughput: with interactions it explains \*\*([\d.]+) %\*\* of the "
        r"variance, alone ([\d.]+) %",
        answer,
    )
    assert share
    assert float(share[2]) == pytest.approx(77.7, abs=2.0)
    assert float(share[1]) > float(share[2])
    assert "raising it raises the response" in answer
    assert "Of little consequence: ring length" in answer


def test_a_sample_that_varies_by_rounding_alone_and_a_surface_flat_far_away_have_a_page() -> None:
    sampled = examples.sample(40)
    rounded = replace(
        sampled,
        answers=tuple(
            replace(item, values={"throughput": 1e9 + 1e-6 * (number % 2)})
            for number, item in enumerate(sampled.answers)
        ),
    )
    assert "All 40 runs with their answers" in text_of(rounded)
    curved = examples.surface()
    straight = examples.results_of(
        replace(curved.experiment, responses=(Response(name="latency", of="latency.p99_s", transform="log"),)),
        lambda at, number: math.exp(40.0 * at[0] + 1e-9 * math.sin(number)),
    )
    assert "lies outside" in text_of(straight)


def test_logarithms_are_reported_as_factors_and_means_as_geometric() -> None:
    results = examples.results_of(
        examples.experiment(responses=(Response(name="latency", of="latency.p99_s", transform="log"),)),
        lambda coded, _: 1e-4 * 3.0 ** coded[0] * 1.5 ** coded[1],
    )
    answer = answer_of(results, "latency")
    assert "with 1500 B it is 3 times, with 78 B 0.333 times the typical 100 us" in answer
    assert "Means are geometric" in text_of(results)


def test_a_reciprocal_is_reported_in_the_response_s_own_unit() -> None:
    results = examples.results_of(
        examples.experiment(responses=(Response(name="rate", of="forwarded_pps", transform="reciprocal"),)),
        lambda coded, _: 1e6 / (2.0 - coded[0]),
    )
    # One over it is 3 us at 78 B and 1 us at 1500 B.
    answer = answer_of(results, "rate")
    assert "with 1500 B it is typically 1 Mpps, with 78 B 333.3 kpps" in answer.replace("0.3333 Mpps", "333.3 kpps")


def test_levels_without_an_order_are_reported_by_the_highest_and_the_lowest() -> None:
    answer = answer_of(examples.multilevel(), "rate")
    assert "**Cipher** explains" in answer
    assert "it is highest with none, lowest with CAST" in answer


def test_a_difference_of_shares_is_in_percentage_points() -> None:
    results = examples.paper()
    shares = Response(name="busy", of="resource[cpu].utilisation_ratio")
    answers = tuple(replace(answer, values={"busy": answer.values["throughput"] / 5e9}) for answer in results.answers)
    results = replace(results, experiment=replace(results.experiment, responses=(shares,)), answers=answers)
    # 464 of 5000 Mbit/s.
    assert re.search(r"9\.2\d percentage points above the mean of [\d.]+ %", answer_of(results, "busy"))


def test_the_headline_is_one_sentence_for_each_response() -> None:
    results = examples.results_of(
        examples.experiment(
            responses=(Response(name="throughput", of="l2_bps"), Response(name="rate", of="forwarded_pps"))
        ),
        examples.paper_value,
    )
    page = page_of(results)
    assert page.answer.count("explains") == 2
    assert "of the variation of throughput" in page.answer
    assert "of the variation of rate" in page.answer
    analysis = examples.analyses_of(results)["rate"]
    assert headline(results, analysis, scale_of(results, "rate")).count("explains") == 1


def test_sections_of_two_experiments_on_one_page_have_anchors_of_their_own() -> None:
    results = examples.paper()
    analyses = examples.analyses_of(results)
    first = experiment_sections(results, analyses, prefix="With queue manager")
    second = experiment_sections(results, analyses)
    anchors = [entry.anchor for entry in (*first, *second)]
    assert len(set(anchors)) == len(anchors)
    assert all(item.title.startswith("With queue manager: ") for item in first)


@pytest.mark.parametrize(
    "kind", ["full", "fractional", "multilevel", "central_composite", "latin_hypercube", "sobol", "listed"]
)
def test_every_design_is_described_with_its_number_of_combinations(kind: str) -> None:
    experiment = examples.experiment(kind=kind, generators=("C=AB",) if kind == "fractional" else ())
    assert "8" in describe_design(experiment)
    assert "with a seed each" in describe_design(replace(experiment, design=replace(experiment.design, replications=3)))


@pytest.mark.parametrize(
    ("path", "unit"),
    [
        ("l2_bps", "bit/s"),
        ("forwarded_pps", "pps"),
        ("drops_pps[core 0]", "pps"),
        ("latency.p99_s", "s"),
        ("power.mean_w", "W"),
        ("resource[cpu].utilisation_ratio", "%"),
        ("queue_frames[core 0]", ""),
    ],
)
def test_a_response_is_written_in_the_unit_that_its_path_ends_with(path: str, unit: str) -> None:
    assert unit_of(path) == unit


def test_the_files_are_the_page_and_a_picture_of_each_kind(tmp_path: Path) -> None:
    results = examples.paper()
    write_experiment(results, examples.analyses_of(results), tmp_path / "deep" / "out")
    out = tmp_path / "deep" / "out"
    assert (out / "report.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    names = {path.stem for path in (out / "figures").glob("*.svg")}
    assert names == {f"throughput-{item}" for item in ("shares", "main-effects", "interactions", "half-normal")}
    for path in (out / "figures").glob("*.svg"):
        texts = "".join(ElementTree.parse(path).getroot().itertext())
        assert "packet size" in texts
