"""The commands of ``routecast noc``, from file to output."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

import routecast
from routecast.cli.run import run

EXAMPLES = Path(routecast.__file__).parents[3] / "examples"
HOT_SPOT = str(EXAMPLES / "hotspot.noc.toml")
TOY = str(EXAMPLES / "toy.noc.toml")

Printed = pytest.CaptureFixture[str]

SHORT = """
[topology]
columns = 3
rows = 3
[traffic]
pattern = "hot_spot"
load = [0.2, 0.4]
[simulation]
routing = "xy"
virtual_channels = 2
ejection_channels = 4
packet_flits = 4
warmup_cycles = 500
measure_cycles = 2000
replications = 2
"""


@pytest.fixture
def short(tmp_path: Path) -> Path:
    """A small fabric with a simulation that takes no time."""
    path = tmp_path / "short.noc.toml"
    path.write_text(SHORT, encoding="utf-8")
    return path


def printed_json(capsys: Printed, *arguments: str) -> dict[str, object]:
    assert run(["noc", *arguments, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert isinstance(document, dict)
    return document


def test_power_prints_a_row_for_every_routing_beside_no_scaling(capsys: Printed) -> None:
    assert run(["noc", "power", HOT_SPOT, "--load", "1"]) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[0].startswith("Hot spot on 5 x 5: hot spot traffic on a mesh of 5 × 5")
    for words in ("NoDVFS", "XY", "2P-ES", "4P-ES", "adaptive", "39.79", "eq. 6.7"):
        assert words in out


def test_the_json_of_power_has_what_the_table_shows(capsys: Printed) -> None:
    document = printed_json(capsys, "power", TOY)
    rows = {row["name"]: row for row in document["rows"]}  # type: ignore[attr-defined]  # a list of objects
    assert rows["no_dvfs"]["power"] == pytest.approx(1 + 47 * 0.2)
    assert rows["mini"]["alphas"] == pytest.approx([1, 3])
    assert rows["mini"]["of_no_dvfs_ratio"] == pytest.approx(rows["mini"]["power"] / rows["no_dvfs"]["power"])
    assert document["widths"] == [1, 1]


def test_routings_and_seeds_of_the_command_line_replace_those_of_the_file(capsys: Printed) -> None:
    chosen = ["power", HOT_SPOT, "--load", "0.9", "--routing", "2p_rs,yx"]
    names = [row["name"] for row in printed_json(capsys, *chosen)["rows"]]  # type: ignore[attr-defined]
    assert names == ["no_dvfs", "2p_rs", "yx"]
    item, again, other = (printed_json(capsys, *chosen, "--seed", seed)["rows"] for seed in ("1", "1", "2"))
    assert item == again
    assert item != other


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["power", HOT_SPOT, "--routing", "xy,yx,xy"], '--routing: "xy" is listed twice'),
        (["power", HOT_SPOT, "--seed", "99999999999999999999"], "--seed: got 99999999999999999999"),
        (["power", HOT_SPOT, "--seed", str(2**63)], f"--seed: got {2**63}"),
    ],
)
def test_the_command_line_refuses_what_a_file_does(arguments: list[str], words: str, capsys: Printed) -> None:
    assert run(["noc", *arguments]) == 2
    assert words in " ".join(capsys.readouterr().err.split())


def test_the_optimum_prints_alpha_bound_bottlenecks_and_distances(capsys: Printed) -> None:
    assert run(["noc", "optimum", HOT_SPOT, "--load", "1"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "Programs" in out
    for link in ("(2, 1)->(2, 2)", "(1, 2)->(2, 2)", "(3, 2)->(2, 2)", "(2, 3)->(2, 2)"):
        assert link in out
    assert "Above bound" in out
    document = printed_json(capsys, "optimum", HOT_SPOT, "--load", "1")
    (best,) = document["optima"]  # type: ignore[misc]  # a list
    assert best["gap_ratio"] <= 1e-6
    assert best["power"] == pytest.approx(sum(best["planes"][0]["link_loads"]) / best["planes"][0]["alpha"] ** 2)
    assert all(row["above_bound_ratio"] >= -1e-6 for row in best["beside"])


def test_an_optimum_that_no_routing_can_carry_leaves_with_1_and_names_the_links(capsys: Printed) -> None:
    assert run(["noc", "optimum", HOT_SPOT, "--load", "3"]) == 1
    message = capsys.readouterr().err
    assert all(f"{place}->(2, 2)" in message for place in ("(2, 1)", "(1, 2)", "(3, 2)", "(2, 3)"))


def test_a_load_without_an_answer_is_noted_and_the_rest_is_compared(short: Path, capsys: Printed) -> None:
    assert run(["noc", "compare", str(short), "--load", "0.3, 4"]) == 0
    printed = capsys.readouterr()
    assert "no optimum at load 4" in printed.err
    assert "Distance to the optimum at load 0.3" in printed.out
    assert "unbounded (saturated)" in printed.out


def test_every_figure_under_the_headline_of_a_comparison_is_of_the_routing_that_it_recommends(
    short: Path, tmp_path: Path, capsys: Printed
) -> None:
    """The file simulates XY; routing that adapts to the hot spot needs less power (Li 2012, fig. 6.4)."""
    out = tmp_path / "out"
    assert run(["noc", "compare", str(short), "--routing", "xy, adaptive", "--out", str(out)]) == 0
    headline = capsys.readouterr().out.split("Power by routing")[0]
    assert "adaptive needs the least power" in headline
    rows = json.loads((out / "compare.json").read_text(encoding="utf-8"))["simulation"]
    assert {row["name"] for row in rows} == {"xy", "adaptive"}
    (last,) = (row for row in rows if row["name"] == "adaptive" and row["load"] == 0.4)
    latency_cycles = last["packet_latency_cycles"]["value"]
    assert f"adaptive carries load 0.4: {latency_cycles:.2f} ±" in headline
    # Simulated at full clock, which takes more than the scaled one that the headline recommends it for.
    assert f"alpha 1, with power {last['power']['value']:.4g}" in " ".join(headline.split())
    assert "XY" not in headline
    page = (out / "report.html").read_text(encoding="utf-8")
    answer = page[: page.index('id="power"')]
    assert f"{latency_cycles:.1f} ±" in answer
    assert "cycles of latency with adaptive" in answer
    assert "with XY" not in answer


def test_the_latency_of_a_routing_that_the_routers_cannot_run_is_unknown(
    short: Path, tmp_path: Path, capsys: Printed
) -> None:
    short.write_text(SHORT.replace("virtual_channels = 2", "virtual_channels = 1"), encoding="utf-8")
    out = tmp_path / "out"
    assert run(["noc", "compare", str(short), "--routing", "xy, adaptive", "--out", str(out)]) == 0
    printed = capsys.readouterr()
    headline = printed.out.split("Power by routing")[0]
    assert "The latency of adaptive is unknown" in headline
    assert "XY" not in headline
    assert "adaptive can deadlock" in printed.err
    assert "Flit by flit: XY" in printed.out
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "cycles of latency with XY" not in page


def test_simulate_prints_latency_with_intervals_and_follows_the_command_line(short: Path, capsys: Printed) -> None:
    assert run(["noc", "simulate", str(short)]) == 0
    out = capsys.readouterr().out
    assert "±" in out
    assert "XY carries load 0.4" in out
    document = printed_json(capsys, "simulate", str(short), "--load", "0.1", "--routing", "west_first, odd_even")
    assert [(row["name"], row["load"]) for row in document["rows"]] == [  # type: ignore[attr-defined]
        ("west_first", 0.1),
        ("odd_even", 0.1),
    ]


@pytest.mark.parametrize(
    ("injection", "words"),
    [
        ("", "Bernoulli arrivals"),
        ('injection = "on_off"\non_cycles = 20\noff_cycles = 60\n', "bursts of 20 cycles in the mean, 60 cycles apart"),
    ],
)
def test_simulated_latencies_name_the_arrivals_of_their_packets(
    short: Path, tmp_path: Path, capsys: Printed, injection: str, words: str
) -> None:
    short.write_text(SHORT + injection, encoding="utf-8")
    figure = tmp_path / "latency.svg"
    assert run(["noc", "simulate", str(short), "--load", "0.2", "--figure", str(figure)]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert f"cycles on average with {words}." in out
    assert f"Latency with {words}, in cycles of the nodes" in out
    assert printed_json(capsys, "simulate", str(short), "--load", "0.2")["arrivals"] == words


def test_the_caption_says_that_intervals_of_one_replication_come_from_batches(short: Path, capsys: Printed) -> None:
    short.write_text(SHORT.replace("replications = 2", "replications = 1"), encoding="utf-8")
    assert run(["noc", "simulate", str(short)]) == 0
    assert "of the batches of one replication." in " ".join(capsys.readouterr().out.split())


def test_a_load_over_saturation_is_unbounded_and_no_error(short: Path, capsys: Printed) -> None:
    assert run(["noc", "simulate", str(short), "--load", "0.2, 2"]) == 0
    printed = capsys.readouterr()
    assert "unbounded (saturated)" in printed.out
    assert "XY at load 2 is saturated" in printed.err
    assert run(["noc", "power", str(short), "--load", "2"]) == 0
    printed = capsys.readouterr()
    assert "no routing carries the traffic: latency is unbounded" in printed.out
    assert "times its capacity" in printed.err


def test_a_routing_that_can_deadlock_leaves_with_2_and_the_cycle(short: Path, capsys: Printed) -> None:
    text = short.read_text(encoding="utf-8").replace("virtual_channels = 2", "virtual_channels = 1")
    short.write_text(text, encoding="utf-8")
    assert run(["noc", "simulate", str(short), "--routing", "2p_es"]) == 2
    message = capsys.readouterr().err
    assert "can deadlock" in message
    assert message.count(")->(") >= 4


@pytest.mark.parametrize("command", ["power", "optimum", "simulate", "compare"])
def test_wrong_files_and_wrong_names_leave_with_2_and_every_fault(
    command: str, tmp_path: Path, capsys: Printed
) -> None:
    wrong = tmp_path / "wrong.noc.toml"
    wrong.write_text('[topology]\ncolumns = 0\nrows = 2\n[traffic]\npattern = "torndo"\nload = -1\n', encoding="utf-8")
    assert run(["noc", command, str(wrong)]) == 2
    message = capsys.readouterr().err
    for words in ("3 problems", "topology.columns", 'traffic.pattern: got "torndo": did you mean "tornado"?', "load"):
        assert words in message
    assert run(["noc", command, HOT_SPOT, "--load", "much"]) == 2
    assert "--load" in capsys.readouterr().err
    assert run(["noc", command, str(tmp_path / "none.noc.toml")]) == 2


def test_a_file_without_a_simulation_is_refused_with_the_keys_to_add(capsys: Printed) -> None:
    assert run(["noc", "simulate", TOY]) == 2
    assert "simulation: is missing" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "option"),
    [
        ("power", "--figure"),
        ("power", "--map"),
        ("optimum", "--figure"),
        ("simulate", "--figure"),
        ("simulate", "--map"),
        ("compare", "--figure"),
    ],
)
def test_figures_and_maps_are_svg_files(
    command: str, option: str, short: Path, tmp_path: Path, capsys: Printed
) -> None:
    drawn = tmp_path / "drawn.svg"
    assert run(["noc", command, str(short), option, str(drawn)]) == 0
    assert drawn.read_text(encoding="utf-8").startswith("<svg")
    assert f"wrote {drawn}" in capsys.readouterr().err.replace("\n", "")
    assert run(["noc", command, str(short), option, str(tmp_path / "drawn.png")]) == 2
    assert option in capsys.readouterr().err


def test_the_folder_of_a_comparison_holds_page_figures_and_data(short: Path, tmp_path: Path, capsys: Printed) -> None:
    out = tmp_path / "out"
    document = printed_json(capsys, "compare", str(short), "--out", str(out))
    assert json.loads((out / "compare.json").read_text(encoding="utf-8")).keys() == document.keys()
    assert {path.name for path in (out / "figures").iterdir()} == {
        "power.svg",
        "latency.svg",
        "links.svg",
        "optimum_map.svg",
        "simulation_map.svg",
    }
    page = (out / "report.html").read_text(encoding="utf-8")
    for words in ("Distance to the optimum", "Where the load is", "Flit by flit", "short"):
        assert words in page
    with (out / "links.csv").open(encoding="utf-8") as file:
        loads = [float(row["load"]) for row in csv.DictReader(file) if row["routing"] == "xy"]
    with (out / "power.csv").open(encoding="utf-8") as file:
        flows = [float(row["hop_flow"]) for row in csv.DictReader(file) if row["routing"] == "xy"]
    # The loads of the links sum to rate times hops, at the highest load.
    assert sum(loads) == pytest.approx(max(flows), rel=1e-4)


def test_a_folder_that_cannot_be_made_is_refused_before_anything_is_computed(short: Path, capsys: Printed) -> None:
    assert run(["noc", "compare", str(short), "--out", str(short / "out")]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "--out" in printed.err


def test_the_schema_of_files_is_printed(capsys: Printed) -> None:
    assert run(["schema", "noc"]) == 0
    assert {"topology", "traffic"} <= set(json.loads(capsys.readouterr().out)["required"])
