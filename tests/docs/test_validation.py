"""Tables of the documentation that a study prints: each cell is what the study finds.

A table of ``docs/validation.md`` is of a study here, or of something else that is named. The corpus holds what studies
print, so the quick test reads it there; the thorough one runs the studies.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import takewhile
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from kept_text import read_kept

ROOT = Path(__file__).parents[2]
CORPUS = ROOT / "tests" / "corpus" / "study"
VALIDATION = "docs/validation.md"
NOC = "packages/routecast-noc/routecast/noc/docs/index.md"

Summary = Mapping[str, Any]
"""What ``routecast study NAME --json`` prints."""

Cells = Sequence[str | None]
"""The cells of a row behind its first, as the study has them; None for what the source states and for words."""


@dataclass(frozen=True, slots=True)
class PrintedTable:
    """A table of a page that a study prints: its page, its first line, its study, and its rows by their first cells."""

    page: str
    header: str
    study: str
    rows: Callable[[Summary], Mapping[str, Cells]]


def kpps(summary: Summary, figure: str, curve: str, at: float | str = "highest") -> float:
    """Return what a curve forwards, in kpps: at its peak, at the highest load, or at a load in kpps."""
    figures = {each["name"]: each["curves"] for each in summary["figures"]}
    (points,) = (each["points"] for each in figures[figure] if each["name"] == curve)
    if at == "peak":
        return max(float(point["forwarded_pps"]) for point in points) / 1e3
    if at == "highest":
        return float(points[-1]["forwarded_pps"]) / 1e3
    (point,) = (point for point in points if round(point["offered_pps"] / 1e3) == at)
    return float(point["forwarded_pps"]) / 1e3


def whole(value: float) -> str:
    """Return a number without decimals; halves are rounded up."""
    return f"{int(value + 0.5)}"


def busy_percent(summary: Summary, figure: str, curve: str, thread: str) -> str:
    figures = {each["name"]: each["curves"] for each in summary["figures"]}
    (points,) = (each["points"] for each in figures[figure] if each["name"] == curve)
    return whole(100.0 * points[-1]["busy_cores"][thread])


def offered_kpps(summary: Summary, figure: str, curve: str) -> list[int]:
    figures = {each["name"]: each["curves"] for each in summary["figures"]}
    (points,) = (each["points"] for each in figures[figure] if each["name"] == curve)
    return [round(point["offered_pps"] / 1e3) for point in points]


def kvm_rows(summary: Summary) -> Mapping[str, Cells]:
    def at(figure: str, curve: str, at: float | str) -> str:
        return whole(kpps(summary, figure, curve, at))

    def priorities(technology: str) -> str:
        orders = ("equal", "vhost above", "vcpu above")
        return ", ".join(at("priorities", f"{order}, {technology}", 600) for order in orders)

    bound = [kpps(summary, "single", "4 cores, bind", load) for load in (1000, 1100, 1200, 1300, 1400)]
    largest = max(abs(rate / kpps(summary, "single", "4 cores, bind", 1200) - 1.0) for rate in bound)
    loads = offered_kpps(summary, "single", "4 cores, no bind")
    above = [
        load
        for load in loads
        if kpps(summary, "single", "4 cores, no bind", load) > kpps(summary, "single", "2 cores, no bind", load)
    ]
    loads_a = offered_kpps(summary, "multistage", "2 cores, bind A")
    free, bind_a = (
        {load: kpps(summary, "multistage", curve, load) for load in loads_a}
        for curve in ("2 cores, no bind", "2 cores, bind A")
    )
    below = [load for load in loads_a if bind_a[load] < free[load]]
    bind_b = [kpps(summary, "multistage", "2 cores, bind B", load) for load in loads_a if load > 200]
    thread = busy_percent(summary, "single", "4 cores, bind", "vm backend 0")
    balancer = busy_percent(summary, "multistage", "4 cores, bind", "lb vcpu 0")
    return {
        "one router, 4 cores bound": [
            None,
            f"{at('single', '4 cores, bind', 1200)}, within {math.ceil(100.0 * largest)} % from there on, "
            f"the vhost thread at {thread} %",
        ],
        "2 cores free at 1200": [
            None,
            f"{at('single', '2 cores, no bind', 1200)} below {at('single', '1 core', 1200)}",
        ],
        "2 cores bound": [
            None,
            f"{at('single', '2 cores, bind', 'peak')} falling to {at('single', '2 cores, bind', 1400)} at 1400",
        ],
        "4 cores free": [
            None,
            f"{at('single', '4 cores, no bind', 'peak')} at most, against {at('single', '2 cores, no bind', 'peak')}; "
            f"above 2 free from {above[0]} on",
        ],
        "priorities, 1 core at 600: equal, vhost above, vcpu above": [None, priorities("macvtap")],
        "the same with a bridge": [None, priorities("bridge")],
        "2 parallel routers, free or bound": [
            None,
            f"free {at('parallel', '2 routers', 'peak')}, falling beyond; "
            f"bound {at('parallel', '2 routers, bind', 'peak')}: missed",
        ],
        "3 free; 3 bound; 4": [
            None,
            "; ".join(at("parallel", curve, "peak") for curve in ("3 routers", "3 routers, bind", "4 routers")),
        ],
        "1 LB + 1 BR, 2 cores free": [None, at("multistage", "2 cores, no bind", "peak")],
        "bind A": [
            None,
            f"{at('multistage', '2 cores, bind A', 'peak')}, below free from {below[0]} to {below[-1]}, "
            f"above it at {next(load for load in loads_a if load > below[-1])}: missed",
        ],
        "bind B": [
            None,
            f"{at('multistage', '2 cores, bind B', 'peak')}, then {whole(min(bind_b))} to {whole(max(bind_b))}",
        ],
        "4 cores": [
            None,
            f"{at('multistage', '4 cores, bind', 'peak')} bound, "
            f"{at('multistage', '4 cores, no bind', 'peak')} free; {balancer} %",
        ],
    }


def vmware_rows(summary: Summary) -> Mapping[str, Cells]:
    def at(figure: str, curve: str, at: float | str = "highest") -> str:
        return whole(kpps(summary, figure, curve, at))

    two_servers = "1 LB, 1 BR on each of two servers"
    shared, own = "2S-2L2R-1v2p", "2S-2L2R-1v1p"
    errors = [
        abs(found - stated)
        for row in summary["passing"]
        for stated, found in zip(row["stated"], row["found"], strict=True)
    ]
    uneven = [row["found"] for row in summary["passing"] if "0.5" not in row["curve"]]
    assert all(light > heavy for light, heavy in uneven)
    ranked = sorted(("B.1", "B.2", "D.1"), key=lambda case: -kpps(summary, "fig_3_11_64", case))
    best = [f"{case} {at('fig_3_11_64', case)}" for case in ranked]
    return {
        "one router, 64 B; three idle ones beside it": [
            None,
            f"{at('fig_3_5', '1 router')}; {at('fig_3_5', '1 router, 3 idle')}",
        ],
        "four routers": [None, at("fig_3_5", "4 routers")],
        "two Click balancers": [None, f"{at('fig_3_4', '2 balancers')}, and one alone {at('fig_3_4', '1 balancer')}"],
        "1 LB + 1 BR, 1500 B": [None, f"{at('fig_3_7_1500', '1 LB, 1 BR')}, wire speed"],
        "2 LB + 2 BR on one server, 1500 B": [None, at("fig_3_7_1500", "2 LBs, 2 BRs on one server")],
        "two servers, 1500 B": [None, f"{at('fig_3_7_1500', two_servers)}, wire speed"],
        "two servers, 512 B, cores shared": [None, at("fig_3_14_512", shared)],
        "two servers, 512 B, a core each": [None, at("fig_3_14_512", own)],
        "two servers, 64 B: cores shared; a core each": [
            None,
            f"{at('fig_3_14_64', shared)}; {at('fig_3_14_64', own)}",
        ],
        "Xen: most; at 1.2 Mpps offered": [
            None,
            f"{at('xen', 'domU', 'peak')}; {kpps(summary, 'xen', 'domU', 1200):.1f}",
        ],
        "fairness, Table 3.1": [None, f"mean error {whole(100.0 * fmean(errors))} points: light flows lose less"],
        "Table 3.2 at 64 B": [None, f"{', '.join(best)} (D.2 {at('fig_3_11_64', 'D.2')})"],
    }


def affinity_rows(summary: Summary) -> Mapping[str, Cells]:
    def cell(figure: str, curve: str) -> str:
        return f"{whole(kpps(summary, figure, curve, 'peak'))}; {whole(kpps(summary, figure, curve))}"

    (curves,) = (each["curves"] for each in summary["figures"] if each["name"] == "fig_3_13_lb")
    names = [each["name"] for each in curves]
    return {name: [None, cell("fig_3_13_lb", name), cell("fig_3_13_br", name)] for name in names}


def idle_rows(summary: Summary) -> Mapping[str, Cells]:
    curves = summary["idle"]

    def row(write: Callable[[Mapping[str, Any]], str]) -> Cells:
        return [write(curve) for curve in curves]

    def percent(key: str) -> Cells:
        return row(lambda curve: f"{100.0 * curve[key]:.2f}")

    def judging(curve: Mapping[str, Any]) -> str:
        # Points after the first without idle time do not count.
        busy = [point["measured"] > 0.0 for point in sorted(curve["points"], key=lambda each: each["offered_pps"])]
        return f"{min(len(busy), sum(takewhile(bool, busy)) + 1)}"

    def digits(rate_pps: float) -> str:
        return f"{rate_pps / 1e6:.3g}"

    return {
        "points, up to the first without idle time": row(judging),
        "simulated": percent("rmse"),
        "points left out one by one": percent("left_out_rmse"),
        "half of the points from the other half": percent("from_half_rmse"),
        "maximum that the costs imply, Mpps": row(lambda curve: digits(curve["maximum_pps"])),
        "maximum as measured apart, Mpps": row(
            lambda curve: digits(curve["maximum_pps"] / (1.0 + curve["maximum_error_ratio"]))
        ),
    }


def power(summary: Summary, case: str, curve: str) -> float:
    (curves,) = (each["curves"] for each in summary["cases"] if each["name"] == case)
    (powers,) = (each["relative_power"] for each in curves if each["curve"] == curve)
    return float(powers[-1])


def routing_rows(summary: Summary) -> Mapping[str, Cells]:
    def less(case: str, curve: str, than: str) -> str:
        """By how many percent of the power of the second the first needs less."""
        return f"{100.0 * (1.0 - power(summary, case, curve) / power(summary, case, than)):.1f} %"

    def points(case: str, curve: str) -> str:
        difference = 100.0 * (power(summary, case, "2p_es") - power(summary, case, curve))
        return f"{difference:.1f} points of NoDVFS ({less(case, curve, '2p_es')} of 2P-ES)"

    def saved(case: str, curve: str) -> str:
        return less(case, curve, "no_dvfs")

    random = [100.0 * (power(summary, case, "2p_rs") / power(summary, case, "2p_es") - 1.0) for case in CASES]
    assert random[-1] == pytest.approx(0.0, abs=0.05)
    assert less("uniform", "xy", "optimum") == "0.0 %"
    assert max(power(summary, "tornado", curve) for curve in ROUTINGS) == pytest.approx(1.0, abs=5e-4)
    return {
        "normal (mean of 40)": [
            "the least power saves",
            None,
            f"{saved('normal', 'optimum')} of NoDVFS, {less('normal', 'optimum', 'xy')} of XY with DVFS",
        ],
        "normal (mean of 40), 2": [
            "2P-ES saves, against XY with DVFS",
            None,
            f"{less('normal', '2p_es', 'xy')} ({saved('normal', '2p_es')} of NoDVFS)",
        ],
        "transpose": ["2P-ES saves", None, f"{less('transpose', '2p_es', 'xy')}; 4P-ES {saved('transpose', '4p_es')}"],
        "transpose, 2": ["4P-ES is better than 2P-ES by", None, points("transpose", "4p_es")],
        "transpose, 3": ["Adaptive is better than 2P-ES by", None, less("transpose", "adaptive", "2p_es")],
        "hot spot": ["2P-ES saves", None, less("hot_spot", "2p_es", "xy")],
        "hot spot, 2": ["Adaptive is better than 2P-ES by", None, points("hot_spot", "adaptive")],
        "all": [
            "2P-RS is near 2P-ES",
            None,
            f"{whole(min(random[:-1]))} to {whole(max(random))} % more power, on tornado the same",
        ],
        "uniform": ["XY needs the least power", None, "yes"],
        "tornado": ["all need what NoDVFS needs", None, "yes"],
    }


CASES = ("normal", "transpose", "hot_spot", "uniform", "tornado")
ROUTINGS = ("xy", "2p_es", "2p_rs", "4p_es", "adaptive", "optimum")


def flit_rows(summary: Summary) -> Mapping[str, Cells]:
    return {
        f"{row['load']:.1f}": [
            f"{row['printed']['ratio']:.2f}",
            f"{row['ratio']['value']:.3f} ± {row['ratio']['half_width']:.3f}",
            f"{row['theory']:.2f}",
        ]
        for row in summary["flit_level"]
    }


def plane_rows(summary: Summary) -> Mapping[str, Cells]:
    cases = {
        "normal, mean of 10": "normal",
        "hot spot": "hot_spot",
        "MPEG-4, row by row": "mpeg4",
        "MPEG-4, fewest hops": "mpeg4_near",
        "uniform": "uniform",
        "tornado": "tornado",
    }
    curves = ("balance", "mini", "four_phase", "search", "whole_flows", "optimum")
    return {
        name: [*(f"{power(summary, case, 'no_dvfs') / power(summary, case, curve):.2f}" for curve in curves), None]
        for name, case in cases.items()
    }


PRINTED = (
    PrintedTable(VALIDATION, "| | XDP | Linux |", "napi_power", idle_rows),
    PrintedTable(VALIDATION, "| what | Li (2012) | here |", "kvm_tuning", kvm_rows),
    PrintedTable(
        VALIDATION, "| what, at line rate of every outer port | Li (2012) | here |", "vmware_msr", vmware_rows
    ),
    PrintedTable(
        VALIDATION, "| affinity | Li (2012) | a balancer, here | a router, here |", "vmware_msr", affinity_rows
    ),
    PrintedTable(NOC, "| traffic | what | stated | found |", "noc_single_plane", routing_rows),
    PrintedTable(NOC, "| load | stated | found | alpha² |", "noc_single_plane", flit_rows),
    PrintedTable(
        NOC, "| traffic | BALANCE | MINI | 4PHASE | search | whole | split | stated |", "noc_two_planes", plane_rows
    ),
)

NOT_OF_A_STUDY = {
    # The board: tests/calibration/test_board.py, and `routecast board`.
    "| pack | calibrated from | held out | mean |": "board",
    "| source | held out | mean |": "board",
    "| source | starts | next |": "board --replay",
    "| | |": "board --size",
    "| withheld | inside | beyond |": "board --without, of an earlier version",
    # Measured on a host, or compared with another program.
    "| run | measurements | inside |": "measure",
    "| of 2,000 routers | at first | now |": "make fuzz-models",
    "| `simulate`, % | 0.3 |": "benches/queues_by_load.py",
    "| rows given, loads predicted |": "benches/latency.py",
    "| carried | known besides |": "benches/latency.py --carried",
    "| function | points | median, % |": "study host_functions, measured on a host",
    "| law | median | 90th percentile | largest |": "power fit, tables that do not ship",
    "| packets | virtual channels | load | BookSim 2 |": "BookSim 2",
    "| family | half | 0.9 |": "drawn routers",
}
"""First lines of the other tables of docs/validation.md, and where these come from."""


def tables(page: str) -> Iterator[tuple[str, list[list[str]]]]:
    """Yield the tables of a page: their first lines, and their rows without emphasis."""
    for block in re.findall(r"(?:^\|.*\n)+", page, flags=re.MULTILINE):
        first, _, *rows = block.splitlines()
        yield first, [[cell.strip().replace("*", "") for cell in row.strip("|").split("|")] for row in rows]


def shown_rows(page: str, header: str) -> dict[str, list[str]]:
    """Return the rows of a page's table by their first cells; a row without one goes on with that of the row above."""
    (rows,) = (rows for first, rows in tables(page) if first == header)
    shown: dict[str, list[str]] = {}
    name, count = "", 1
    for first, *cells in rows:
        name, count = (first, 1) if first else (name, count + 1)
        shown[name if count == 1 else f"{name}, {count}"] = cells
    return shown


def differences(shown: Mapping[str, Sequence[str]], printed: Mapping[str, Cells]) -> list[str]:
    """Return the rows that only a page or only a study has, and the cells that differ; a remark may follow a value."""
    problems = [f"{name}: only on the page" for name in shown if name not in printed]
    problems += [f"{name}: not on the page" for name in printed if name not in shown]
    for name in (name for name in printed if name in shown):
        for column, (cell, other) in enumerate(zip(printed[name], shown[name], strict=True), start=2):
            if cell is not None and cell != other.partition(", and nothing above ")[0]:
                problems.append(f"{name}, column {column}: shown {other!r}, printed {cell!r}")
    return problems


@cache
def recorded(study: str) -> Summary:
    """Return what the corpus holds of a study."""
    text = read_kept(CORPUS / f"{study}.txt")
    summary: Summary = json.loads(text[text.index("{") : text.rindex("}") + 1])
    return summary


def of_page(table: PrintedTable) -> str:
    return (ROOT / table.page).read_text(encoding="utf-8")


@pytest.mark.parametrize("table", PRINTED, ids=lambda table: table.rows.__name__)
def test_a_table_shows_what_the_corpus_holds_of_its_study(table: PrintedTable) -> None:
    assert differences(shown_rows(of_page(table), table.header), table.rows(recorded(table.study))) == []


@pytest.mark.thorough
@pytest.mark.parametrize("table", PRINTED, ids=lambda table: table.rows.__name__)
def test_a_table_shows_what_its_study_prints(table: PrintedTable, study: Callable[[str], Path]) -> None:
    summary = json.loads((study(table.study) / "stdout.txt").read_text())
    assert differences(shown_rows(of_page(table), table.header), table.rows(summary)) == []


def sentences(summary: Summary) -> list[str]:
    """Return what the page says in words of a study of virtual routers: rates left out in turn, and criteria."""
    left_out = {(row["figure"], row["curve"], row["at"]): whole(row["found_pps"] / 1e3) for row in summary["left_out"]}
    met = sum(criterion["met"] for criterion in summary["criteria"])
    if summary["study"] == "kvm_tuning":
        bound, *others = (
            left_out["single", "4 cores, bind", 1.2e6],
            *(left_out["multistage", f"2 cores, {curve}", "peak"] for curve in ("no bind", "bind A", "bind B")),
        )
        return [
            f"On KVM that gives {bound} of 900 kpps, {others[0]} of 140, {others[1]} of 240 and {others[2]} of 180."
        ]
    alone, four = (left_out["fig_3_5", curve, "highest"] for curve in ("1 router", "4 routers"))
    server = left_out["fig_3_7_1500", "2 LBs, 2 BRs on one server", "highest"]
    shared, own = (left_out["fig_3_14_512", f"2S-2L2R-{curve}", "highest"] for curve in ("1v2p", "1v1p"))
    return [
        f"one router's 600 come out as {alone}, four routers' 250 as {four}, 70 at 1500 B as {server}, "
        f"and 470 at 512 B as {shared} with shared cores, as {own} with a core each",
        f"On Xen it gives {left_out['xen', 'domU', 'peak']} of 150",
        f"{met} of the study's {len(summary['criteria'])} criteria are met.",
    ]


@pytest.mark.parametrize("study", ["kvm_tuning", "vmware_msr"])
def test_sentences_about_virtual_routers_say_what_the_corpus_holds_of_the_study(study: str) -> None:
    page = " ".join((ROOT / VALIDATION).read_text(encoding="utf-8").split())
    for sentence in sentences(recorded(study)):
        assert sentence in page
        # The positive control: no other number passes.
        assert re.sub(r"\d(?=\D*$)", lambda digit: str(9 - int(digit[0])), sentence) not in page


def test_every_table_of_the_validation_page_is_of_a_study_or_has_another_origin() -> None:
    held = {table.header for table in PRINTED}
    firsts = [first for first, _ in tables((ROOT / VALIDATION).read_text(encoding="utf-8"))]
    others = [first for first in firsts if first not in held]
    assert [first for first in others if not any(first.startswith(known) for known in NOT_OF_A_STUDY)] == []
    assert [known for known in NOT_OF_A_STUDY if not any(first.startswith(known) for first in others)] == []


@pytest.mark.parametrize("table", PRINTED, ids=lambda table: table.rows.__name__)
def test_every_cell_of_a_table_that_drifts_is_seen(table: PrintedTable) -> None:
    """The positive control: whichever cell is another than what the study prints, it is named, and no other is."""
    shown, printed = shown_rows(of_page(table), table.header), table.rows(recorded(table.study))
    assert sum(cell is not None for cells in printed.values() for cell in cells) >= len(printed)
    for name, cells in printed.items():
        for number, cell in enumerate(cells):
            if cell is not None:
                drifted = re.sub(r"\d", lambda digit: str(9 - int(digit[0])), shown[name][number], count=1)
                drifted = drifted if drifted != shown[name][number] else f"not {drifted}"
                changed = shown | {name: [*shown[name][:number], drifted, *shown[name][number + 1 :]]}
                (problem,) = differences(changed, printed)
                assert problem.startswith(f"{name}, column {number + 2}: ")
    first = next(iter(printed))
    assert differences({name: shown[name] for name in shown if name != first}, printed) == [f"{first}: not on the page"]
