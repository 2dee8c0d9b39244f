"""The report of a benchmark says what RFC 2544 and its updates say that a report must."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path
from typing import Any

import benchmark_results as results
import pytest

from routecast.lab.benchmark.page import benchmark_page, flattened, write_report
from routecast.lab.benchmark.procedures import PROCEDURES
from routecast.lab.benchmark.procedures.throughput import ThroughputResult
from routecast.lab.benchmark.schema import benchmark_schema
from routecast.lab.benchmark.tables import benchmark_tables
from routecast.lab.benchmark.values import BenchmarkResult, Compliance
from routecast.show.figures import Figure, Line
from routecast.show.page import Folded, Tiles, render_page
from routecast.show.tables import Table

SCHEMA = json.loads((files("routecast") / "data/schemas/benchmark.schema.json").read_text("utf-8"))


@pytest.fixture(scope="module")
def html() -> str:
    return render_page(benchmark_page(results.whole()))


def text_of(html: str) -> str:
    body = re.sub(r"<(script|style)[^>]*>.*?</\1>", " ", html, flags=re.DOTALL)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", body)).replace("&amp;", "&")


def of_one_size() -> BenchmarkResult:
    full = results.whole()
    row = results.throughput_row(results.STREAMS[0], 64)
    return replace(full, by_procedure={**full.by_procedure, "throughput": ThroughputResult(rows=(row,))})


def figure(result: BenchmarkResult, name: str) -> Figure:
    return next(figure for figure in benchmark_page(result).figures() if figure.name == name)


def test_the_answer_says_whether_it_complies_and_the_statement_has_every_deviation(html: str) -> None:
    text = text_of(html)
    assert text.index("Not compliant with RFC 2544.") < text.index("Throughput over frame size")
    assert text.index("NOT compliant with RFC 2544") > text.index("Throughput over frame size")
    for deviation in results.whole().compliance.deviations:
        assert deviation.wanted in text
        assert deviation.done in text
    assert re.search(r"<tr class='strong'><td[^>]*>RFC 2544</td><td[^>]*>26.2</td><td[^>]*>MUST", html)


def test_the_page_opens_with_one_sentence_and_folds_the_others(html: str) -> None:
    page = benchmark_page(results.whole())
    first, others = page.answer_parts
    assert first.startswith("Throughput: **")
    assert first.count("Throughput:") == 1
    assert f"{first} {others}" == page.answer
    header = html[: html.index("</header>")]
    assert header.count("<details") == 1
    assert header.index("frames/s of") < header.index("<details") < header.index("ompliant with RFC 2544")


def test_the_page_opens_with_the_answer_and_a_figure_and_deviations_come_before_tables() -> None:
    page = benchmark_page(results.whole())
    opening, *others = page.sections
    assert [type(block) for block in opening.blocks] == [Figure, Tiles]
    assert opening.blocks[0].name == "throughput"  # type: ignore[union-attr]  # a figure
    anchors = [section.anchor for section in others]
    assert anchors[:3] == ["compliance", "throughput", "latency"]
    assert anchors[-3:] == ["not-run", "setup", "trials"]
    names = [drawn.name for drawn in page.figures()]
    assert len(names) == len(set(names))


def test_the_answer_says_that_another_test_bed_worked_on_the_same_cores() -> None:
    full = results.whole()
    assert full.shared_cores == ""
    note = "test bed 'other' of process 12 works on the same cores (cores 0, 1 since 2026-11-27 06:12:04 UTC)"
    first, *others = full.trials
    disturbed = replace(full, trials=(replace(first, trial=replace(first.trial, notes=(note,))), *others))
    assert disturbed.shared_cores == f"1 of 6 trials are disturbed: {note}"
    answer = re.search(r'<p class="answer">(.*?)</p>', render_page(benchmark_page(disturbed)), re.DOTALL)
    assert answer
    assert "1 of 6 trials are disturbed" in answer[1]


def test_a_benchmark_of_one_size_opens_with_its_frame_loss() -> None:
    opening = benchmark_page(of_one_size()).sections[0]
    assert [type(block) for block in opening.blocks] == [Figure, Tiles]
    assert opening.blocks[0].name == "frame-loss"  # type: ignore[union-attr]  # a figure


def test_long_statements_are_folded_and_short_ones_stand() -> None:
    full = results.whole()
    html = render_page(benchmark_page(replace(full, search_statements=("A statement of many words. " * 20,) * 2)))
    assert re.search(r"<details[^>]*>\s*<summary>Method of the search \(RFC 9971\): 3 statements</summary>", html)
    assert "<h3>Conditions</h3>" in html


@pytest.mark.parametrize(
    ("level", "mood"), [("unconditional", "good"), ("conditional", "fair"), ("not compliant", "bad")]
)
def test_each_level_of_compliance_has_its_look(level: Any, mood: str) -> None:
    compliance = Compliance(level=level, statement="It is so.", deviations=())
    page = render_page(benchmark_page(replace(results.whole(), compliance=compliance)))
    assert f'<div class="notice {mood}"' in page


def test_the_headline_has_what_section_26_1_wants(html: str) -> None:
    # (a) maximum rate in frames/s, (b) size, (c) theoretical limit, (d) protocol
    answer = re.search(r'<p class="answer">(.*?)</p>', html, re.DOTALL)
    assert answer
    for must in ("2,422,481 frames/s", "64 bytes", "14,880,952 frames/s", "IPv4 (UDP)"):
        assert must in answer[1]


def test_throughput_is_drawn_over_frame_size_with_the_theoretical_rate() -> None:
    drawn = figure(results.whole(), "throughput")
    assert "frame size" in drawn.x.title
    assert drawn.y.title == "frames/s"
    lines = {mark.name: mark for mark in drawn.marks if isinstance(mark, Line)}
    theoretical = next(line for name, line in lines.items() if name.startswith("theoretical"))
    measured = lines["measured, IPv4, no loss"]
    assert theoretical.x == measured.x == tuple(map(float, results.SIZES))
    assert theoretical.y[0] == pytest.approx(14_880_952, abs=1)  # RFC 2544 sec. 20, 10 Gbit/s and 64 B
    assert all(a <= b for a, b in zip(measured.y, theoretical.y, strict=True))


def test_what_a_model_says_is_called_predicted() -> None:
    full = results.whole()
    drawn = figure(replace(full, setup=replace(full.setup, evaluator="simulate")), "throughput")
    names = {mark.name for mark in drawn.marks if isinstance(mark, Line)}
    assert "predicted, IPv4, no loss" in names
    assert not any("measured" in name for name in names)


def test_frame_loss_has_both_axes_from_0_to_100_percent() -> None:
    drawn = figure(results.whole(), "frame-loss")
    for axis in (drawn.x, drawn.y):
        assert (axis.low, axis.high) == (0.0, 100.0)
    assert "theoretical" in drawn.x.title
    assert {mark.name for mark in drawn.marks} == {f"{size} B" for size in results.SIZES}


def test_latency_names_its_definition_and_has_a_row_for_each_size(html: str) -> None:
    text = text_of(html)
    assert "RFC 1242 sec. 3.8, store and forward" in text
    section = html.partition('<section id="latency">')[2].partition("</section>")[0]
    for size in results.SIZES:
        assert re.search(rf"<td class='left'>IPv4</td><td class='right'>{size}</td>", section)
    assert "Ethernet, 10 Gbit/s (virtual)" in text


def test_latency_is_drawn_by_percentile_in_its_unit() -> None:
    drawn = figure(results.whole(), "latency")
    line = next(mark for mark in drawn.marks if isinstance(mark, Line) and mark.name == "64 B")
    assert min(line.y) == pytest.approx(0.432, rel=0.01)  # us: 632 ns is the median, 200 ns less the least
    assert max(line.y) == pytest.approx(2.04, rel=0.01)
    half = [mark for mark in drawn.marks if isinstance(mark, Line) and mark.dashed]
    assert {mark.name for mark in half} == {f"{size} B at 50 %" for size in results.SIZES}


def test_back_to_back_recovery_and_reset_say_what_their_sections_want(html: str) -> None:
    text = text_of(html)
    for must in (
        "TST009 binary search with loss verification",
        "Corrected",
        "302.0",
        "not tested",
        "throughput is the theoretical maximum (RFC 9004 sec. 5.2)",
        "−2 µs" if "−2 µs" in text else "59 µs",
        "Process reset: 21.500 ms",
        "4.2.2",
    ):
        assert must in text


def test_all_facts_and_how_to_do_it_again_are_there(html: str) -> None:
    text = text_of(html)
    for must in (
        "sysctl -w net.ipv4.ip_forward=1",
        "GRO on d0",
        "live frames",
        "cores · generator",
        "UDP echo requests in Ethernet II frames",
        "routecast benchmark rfc2544 --testbed namespaces",
        "kernel 6.18",
        "interruption of power",
        "MLRsearch (RFC 9971)",
        "Goal width is",
    ):
        assert must in text


def test_every_trial_is_listed_and_invalid_ones_stand_out(html: str) -> None:
    rows = re.findall(r"<tr class='strong'>.*?</tr>", html)
    assert sum("the link went down" in row for row in rows) == 1
    assert "6 trials, 1 of them invalid" in text_of(html)


def test_what_devices_say_of_themselves_cannot_break_the_page(html: str) -> None:
    assert "forwarding &lt;b&gt;&amp;" in html
    assert "<b>&" not in html


def test_the_page_needs_nothing_from_elsewhere_and_closes_what_it_opens(html: str) -> None:
    body = re.sub(r"<script>.*?</script>", "", html, flags=re.DOTALL)
    assert not re.search(r"""(?:src|href)=["']https?:""", body)
    open_tags: list[str] = []

    class Balance(HTMLParser):
        def handle_starttag(self, tag: str, attrs: Any) -> None:
            if tag not in {"meta", "link", "br", "path", "circle", "rect"}:
                open_tags.append(tag)

        def handle_endtag(self, tag: str) -> None:
            if tag not in {"path", "circle", "rect"}:
                assert open_tags.pop() == tag

    Balance().feed(body)
    assert open_tags == []


def test_a_benchmark_that_found_nothing_still_has_a_report(tmp_path: Path) -> None:
    page = write_report(results.found_nothing(), tmp_path).read_text(encoding="utf-8")
    assert "no trial was valid" in page
    assert "No throughput was found" in page
    assert "nan" not in text_of(page).lower().split()


def test_terminal_and_page_draw_the_same_tables() -> None:
    full = results.whole()
    sections = {section.anchor: section for section in benchmark_page(full).sections}
    for name, on_terminal in zip(full.procedures, benchmark_tables(full), strict=False):
        assert on_terminal.title.startswith(PROCEDURES[name].title)
        blocks = [block.table if isinstance(block, Folded) else block for block in sections[on_terminal.name].blocks]
        (on_page,) = (block for block in blocks if isinstance(block, Table))
        heads = [
            [(column.title, column.unit, column.wide) for column in item.columns] for item in (on_page, on_terminal)
        ]
        assert heads[0] == heads[1]
        assert repr(on_page.rows) == repr(on_terminal.rows)


def test_a_benchmark_of_one_size_has_its_table_and_no_figure_of_one_point() -> None:
    full = results.whole()
    page = benchmark_page(of_one_size())
    assert "throughput" not in {drawn.name for drawn in page.figures()}
    assert "throughput" in {drawn.name for drawn in benchmark_page(full).figures()}
    (table,) = (
        block
        for section in page.sections
        for block in section.blocks
        if isinstance(block, Table) and block.name == "throughput"
    )
    assert len(table.rows) == 1
    render_page(page)


def test_the_folder_has_page_figures_schema_and_data(tmp_path: Path) -> None:
    written = write_report(results.whole(), tmp_path)
    assert written == tmp_path / "report.html"
    names = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert names == {
        "report.html",
        "benchmark.json",
        "benchmark.schema.json",
        "figures/throughput.svg",
        "figures/latency.svg",
        "figures/frame-loss.svg",
    }


def test_data_of_the_run_is_never_overwritten(tmp_path: Path) -> None:
    (tmp_path / "benchmark.json").write_text("{}", encoding="utf-8")
    write_report(results.whole(), tmp_path)
    assert (tmp_path / "benchmark.json").read_text(encoding="utf-8") == "{}"


# the published schema


def test_the_published_schema_is_that_of_the_classes() -> None:
    # routecast schema benchmark > packages/routecast/routecast/data/schemas/benchmark.schema.json
    assert benchmark_schema() == SCHEMA


@pytest.mark.parametrize("make", [results.whole, results.found_nothing])
def test_the_schema_allows_what_is_written(make: Any) -> None:
    jsonschema = pytest.importorskip("jsonschema", reason="PyPI jsonschema is not installed")
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    jsonschema.validate(json.loads(json.dumps(make().to_json(), allow_nan=False)), SCHEMA)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("compliance", "level"), "perhaps"),
        (("throughput", "rows", 0, "throughput_pps"), "fast"),
        (("throughput", "rows", 0, "frame_bytes"), "IMIX"),
        (("trials",), -1),
        (("schema",), "routecast-benchmark/9"),
        (("latency", "rows", 0, "ipdv_s"), [1.0]),
        (("surprise",), 1),
    ],
)
def test_the_schema_refuses_what_is_not_written(path: tuple[Any, ...], value: object) -> None:
    jsonschema = pytest.importorskip("jsonschema", reason="PyPI jsonschema is not installed")
    document: Any = json.loads(json.dumps(results.whole().to_json()))
    node = document
    for key in path[:-1]:
        node = node[key]
    node[path[-1]] = value
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, SCHEMA)


def test_every_rate_and_time_of_the_schema_is_documented() -> None:
    row = SCHEMA["$defs"]["ThroughputRow"]["properties"]
    assert "lower bound of the search" in row["throughput_pps"]["description"]
    assert row["throughput_pps"]["type"] == ["number", "null"]


def test_long_lists_stand_in_lines() -> None:
    lines = ["ip address replace 198.18.1.1/24 dev d0", "ip address replace 198.19.1.1/24 dev d1"]
    assert dict(flattened({"configuration": lines})) == {"configuration": "\n".join(lines)}


def test_facts_are_flattened_however_they_are_nested() -> None:
    rows = dict(flattened({"a": {"b": {"c": None}}, "d": [{"x": 1}, {"x": 2}], "e": [], "f": {}, "g": [1, 2]}))
    assert rows == {"a · b · c": "–", "d": "x = 1; x = 2", "e": "none", "f": "none", "g": "1, 2"}
