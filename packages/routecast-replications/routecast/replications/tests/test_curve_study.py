"""Studies of curves on a router whose rates are known by hand: cores that each take a microsecond a frame."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from routecast.errors import FileProblem, FitProblem
from routecast.replications.curves.document import CurveStudy
from routecast.replications.curves.run import CurveResult
from routecast.study.engine import run_study, terminal_summary
from routecast.study.reading import read_study

STUDY = """
kind = "curves"
name = "by_hand"
title = "Cores that take a microsecond a frame"
source = "by hand"

[run]
duration = "20 ms"

[router.cores]
builder = "multicore"
cores = 2
service = { per_packet = "1 us" }

[[figure]]
name = "rates"
title = "Forwarded against offered"
offered = ["500 kpps", "1500 kpps", "3000 kpps"]
traffic = { frame = "64 B", flows = 2 }

[[figure.curve]]
name = "two"
router = "cores"

[[figure.curve]]
name = "one"
router = "cores"
set = { cores = 1 }
"""


def run(tmp_path: Path, more: str = "", *, out: str = "out") -> CurveResult:
    path = tmp_path / "by_hand.study.toml"
    path.write_text(STUDY + more)
    file = read_study(path)
    assert isinstance(file.study, CurveStudy)
    return run_study(file, tmp_path / out, workers=1)


@pytest.mark.slow
def test_curves_rise_to_what_the_cores_can_do(tmp_path: Path) -> None:
    result = run(tmp_path)
    curves = result.figures[0].curves
    assert [point.forwarded_pps for point in curves["two"]] == pytest.approx([0.5e6, 1.5e6, 2e6], rel=1e-3)
    assert [point.forwarded_pps for point in curves["one"]] == pytest.approx([0.5e6, 1e6, 1e6], rel=1e-3)
    assert curves["one"][-1].solved_pps == pytest.approx(1e6)
    assert curves["one"][-1].busiest == ("core 0", pytest.approx(1.0, abs=1e-3))


@pytest.mark.slow
def test_a_cost_is_set_so_that_a_stated_rate_is_met_and_tells_the_other_curve(tmp_path: Path) -> None:
    stated = """
[[figure.stated]]
curve = "one"
value = "800 kpps"
within = 0.01
calibrates = { set = ["service.per_packet"], between = ["0.2 us", "5 us"] }

[[figure.stated]]
curve = "two"
value = "1600 kpps"
at = "highest"
within = 0.01
"""
    result = run(tmp_path, stated)
    assert result.calibrated[0].value_s == pytest.approx(1.25e-6, rel=5e-3)  # 1 / 800 kpps
    assert all(criterion.is_met for criterion in result.criteria)
    assert result.compared[1].predicted == pytest.approx(1.6e6, rel=5e-3)


@pytest.mark.slow
def test_a_rate_that_no_cost_of_the_range_meets_is_refused_with_what_the_range_gives(tmp_path: Path) -> None:
    stated = """
[[figure.stated]]
curve = "one"
value = "800 kpps"
calibrates = { set = ["service.per_packet"], between = ["2 us", "5 us"] }
"""
    with pytest.raises(FitProblem, match=r"200 kpps to 500 kpps.*800 kpps: widen"):
        run(tmp_path, stated)


@pytest.mark.slow
def test_orders_shapes_and_bottlenecks_are_distinguished(tmp_path: Path) -> None:
    statements = """
[[figure.ordered]]
says = "two cores beat one"
curves = ["two", "one"]
least = "1 Mpps"

[[figure.ordered]]
says = "one core beats two"
curves = ["one", "two"]
least = "1 Mpps"

[[figure.shape]]
curve = "one"
kind = "flat"
says = "stays at its peak"

[[figure.shape]]
curve = "one"
kind = "falls"
says = "falls"

[[figure.limited]]
curve = "one"
thread = "core 0"
says = "the core limits"
"""
    result = run(tmp_path, statements)
    met = {criterion.name: criterion.is_met for criterion in result.criteria}
    assert met == {
        "two cores beat one": True,
        "one core beats two": False,
        "stays at its peak": True,
        "falls": False,
        "the core limits": True,
    }
    wrong = next(statement for statement in result.statements if statement.says == "one core beats two")
    assert wrong.here.startswith("not at 1.5 Mpps, 3 Mpps of 2 loads")


@pytest.mark.slow
def test_what_each_flow_passes_stands_beside_what_is_stated(tmp_path: Path) -> None:
    # Two flows of 1 and 3 parts to a core each at 3 Mpps: 0.75 Mpps pass whole, 2.25 Mpps pass 1 of 2.25.
    passing = """
[[figure.curve]]
name = "unequal"
router = "cores"
set = { distribution = "per_flow" }
traffic = { frame = "64 B", flows = 2, shares = [1, 3] }

[[figure.passing]]
curve = "unequal"
at = "3 Mpps"
ratios = [1.0, 0.444]

[criteria]
passing_error = 0.02
"""
    result = run(tmp_path, passing)
    assert result.passed[0].ratios == pytest.approx((1.0, 1 / 2.25), abs=0.02)
    assert all(criterion.is_met for criterion in result.criteria)


@pytest.mark.slow
def test_a_study_goes_on_where_it_stopped_and_says_the_same(tmp_path: Path) -> None:
    first = run(tmp_path)
    (tmp_path / "out" / "summary.json").unlink()
    again = run(tmp_path)
    assert again.provenance.resumed_trials == again.provenance.trials == first.provenance.trials
    assert again.figures == first.figures


@pytest.mark.slow
def test_the_report_and_the_summary_hold_every_curve(tmp_path: Path) -> None:
    run(tmp_path)
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert [curve["name"] for curve in summary["figures"][0]["curves"]] == ["two", "one"]
    assert "Busiest threads at the highest load" in (tmp_path / "out" / "report.html").read_text()
    assert (tmp_path / "out" / "figures" / "rates.svg").stat().st_size > 1000


WRONG = [
    ('[[figure.stated]]\ncurve = "too"\nvalue = "1 Mpps"', r"figure\[0\].stated\[0\].curve: 'too'.*two"),
    (
        '[[figure.curve]]\nname = "x"\nrouter = "cores"\nset = { "service.per_paket" = "1 us" }',
        r"per_paket.*per_packet",
    ),
    ('[[figure.curve]]\nname = "x"\nrouter = "core"', r"'core' is no \[router.…\].*cores"),
    ('[[figure.curve]]\nname = "one"\nrouter = "cores"', r"figure\[0\].curve\[2\].name: 'one' is taken"),
    ('[[figure.passing]]\ncurve = "one"\nat = "1 Mpps"\nratios = [1.0]', r"has 1 entries for 0 flows with shares"),
]


@pytest.mark.parametrize(("more", "message"), WRONG)
def test_a_study_that_contradicts_itself_is_refused_with_the_place(tmp_path: Path, more: str, message: str) -> None:
    path = tmp_path / "wrong.study.toml"
    path.write_text(STUDY + "\n" + more + "\n")
    with pytest.raises(FileProblem, match=message):
        read_study(path)


def problems_of(tmp_path: Path, text: str) -> list[str]:
    path = tmp_path / "wrong.study.toml"
    path.write_text(text)
    with pytest.raises(FileProblem) as caught:
        read_study(path)
    return [problem.place for problem in caught.value.problems]


def test_a_routers_own_faults_are_reported_once_and_with_their_full_places(tmp_path: Path) -> None:
    wrong = STUDY.replace("cores = 2\nservice", 'cors = 2\nqueue = "-1 frames"\nservice')
    wrong = wrong.replace("set = { cores = 1 }", 'set = { queue = "-1 frames" }')
    assert problems_of(tmp_path, wrong) == ["router.cores.cores", "router.cores.queue", "router.cores.cors"]


def test_what_a_curve_sets_wrong_is_reported_the_curve(tmp_path: Path) -> None:
    zero = STUDY.replace("set = { cores = 1 }", "set = { cores = 0 }")
    assert problems_of(tmp_path, zero) == ["figure[0].curve[1]: router.cores.cores"]
    unknown = STUDY.replace("set = { cores = 1 }", "set = { cors = 1 }")
    assert problems_of(tmp_path, unknown) == ["figure[0].curve[1].set.cors"]


def test_traffic_by_ports_that_are_not_there_is_reported_the_figure(tmp_path: Path) -> None:
    wrong = STUDY.replace("flows = 2 }", "flows = 2, ingress = [7] }")
    assert set(problems_of(tmp_path, wrong)) == {
        "figure[0].traffic.flows[0].ingress",
        "figure[0].traffic.flows[1].ingress",
    }


def test_loads_in_bit_s_are_of_the_frames_of_the_figure(tmp_path: Path) -> None:
    path = tmp_path / "by_hand.study.toml"
    path.write_text(STUDY.replace('["500 kpps", "1500 kpps", "3000 kpps"]', '["500 kpps", "1 Gbit/s", "2 Gbit/s"]'))
    study = read_study(path).study
    assert isinstance(study, CurveStudy)
    # 64 + 20 B of gap and preamble (S1).
    assert study.figure[0].offered_pps == pytest.approx((0.5e6, 1e9 / 672, 2e9 / 672))
    path.write_text(STUDY.replace('"1500 kpps", "3000 kpps"', '"1 Gbit/s", "600 kpps"'))
    with pytest.raises(FileProblem, match="not ascending"):
        read_study(path)


LEFT_OUT = """
[left_out]
values = 5

[[figure.stated]]
curve = "two"
value = "2 Mpps"
calibrates = { set = ["service.per_packet"], between = ["0.5 us", "2 us"] }

[[figure.stated]]
curve = "one"
value = "0.8 Mpps"
"""


@pytest.mark.slow
def test_a_rate_that_is_left_out_is_predicted_by_what_the_others_alone_set(tmp_path: Path) -> None:
    """One core of 0.8 Mpps takes 1.25 us a frame, so that two forward 1.6 Mpps; two of 2 Mpps take 1 us: 1 Mpps."""
    result = run(tmp_path, LEFT_OUT)
    two, item = result.left_out
    assert (two.conditions.curve, item.conditions.curve) == ("two", "one")
    assert two.predicted == pytest.approx(1.6e6, rel=0.03)  # between the values that are tried lines are straight
    assert two.value_s == pytest.approx(1.25e-6, rel=0.03)
    assert item.predicted == pytest.approx(1e6, rel=0.03)
    assert item.error_ratio == pytest.approx(0.25, abs=0.04)
    assert [row["error_ratio"] for row in result.to_json()["left_out"]] == [two.error_ratio, item.error_ratio]
    shown = {table.name: table for table in terminal_summary(result).tables}
    assert [row[1] for row in shown["left_out"].rows] == ["two", "one"]
    assert "Each stated rate left out in turn" in (tmp_path / "out" / "report.html").read_text()


def test_rates_are_left_out_only_where_one_calibrates(tmp_path: Path) -> None:
    with pytest.raises(FileProblem, match="left_out: needs a stated rate with `calibrates`"):
        run(tmp_path, "\n[left_out]\nvalues = 5\n")


@pytest.mark.slow
def test_other_patterns_of_flows_stand_beside_the_figure(tmp_path: Path) -> None:
    """Flows stay on their core: one flow has one core, of 90 to 10 at 3 Mpps the light one is below a core's 1 Mpps."""
    more = """
[[figure.patterns]]
curve = "two"
at = "3000 kpps"
says = "A flow stays on its core."
pattern = [{ name = "one", flows = 1 }, { name = "two" , flows = 2 }, { name = "90 to 10", shares = [0.9, 0.1] }]
"""
    result = run(tmp_path, more)
    assert result.patterns[0].forwarded_pps == pytest.approx((1e6, 2e6, 1.3e6), rel=1e-2)
    assert [item["flows"] for item in result.to_json()["patterns"][0]["forwarded"]] == ["one", "two", "90 to 10"]
    table = next(table for table in terminal_summary(result).tables if table.name.startswith("patterns_"))
    assert table.caption == "A flow stays on its core."
    assert "A flow stays on its core." in (tmp_path / "out" / "report.html").read_text()


def test_patterns_of_a_curve_that_does_not_exist_are_refused(tmp_path: Path) -> None:
    more = '\n[[figure.patterns]]\ncurve = "tow"\nat = "1 Mpps"\nsays = "x"\npattern = [{ name = "one" }]\n'
    with pytest.raises(FileProblem, match=r"figure\[0\].patterns\[0\].curve.*tow"):
        run(tmp_path, more)


@pytest.mark.slow
def test_progress_counts_every_step_and_never_passes_its_total(tmp_path: Path) -> None:
    path = tmp_path / "by_hand.study.toml"
    more = """
[[figure.patterns]]
curve = "two"
at = "3000 kpps"
says = "A flow stays on its core."
pattern = [{ name = "one", flows = 1 }, { name = "two" , flows = 2 }]
"""
    path.write_text(STUDY + more + LEFT_OUT)
    seen: list[tuple[int, int]] = []
    run_study(
        read_study(path), tmp_path / "out", workers=1, on_progress=lambda done, total, step: seen.append((done, total))
    )
    # The calibrated rate, six points, two patterns, five costs that are tried for what is left out, and the report.
    assert {total for _, total in seen} == {1 + 6 + 2 + 5 + 1}
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert seen[-1] == (14, 15)
