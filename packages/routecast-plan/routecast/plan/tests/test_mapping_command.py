"""``routecast plan mapping`` as a user meets it."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

pytest.importorskip("routecast._core", reason="the extension is not built")

import routecast
from routecast.cli.run import run
from routecast.evaluate.simulate import Simulate
from routecast.plan.mapping.answer import answer
from routecast.plan.mapping.reading import read_mapping
from routecast.router.files import read_router, read_router_and_load

EXAMPLE = Path(routecast.__file__).parents[3] / "examples" / "ixp2850-mapping.router.toml"


@pytest.mark.slow
def test_the_folder_holds_a_router_that_forwards_what_was_predicted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, figure = tmp_path / "out", tmp_path / "engines.svg"
    assert run(["plan", "mapping", str(EXAMPLE), "--json", "--out", str(out), "--figure", str(figure)]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed == json.loads((out / "mapping.json").read_text(encoding="utf-8"))
    best, *others = printed["mappings"]
    assert [mapping["name"] for mapping in others] == ["as in the file", "round robin", "all in one"]
    model, load = read_router_and_load(out / "mapping.router.toml")
    assert load is not None
    offered = load.at(printed["offered_pps"])
    again = Simulate(model=model, seed=1).trial(offered, 100_000 / offered.rate_pps)
    assert again.forwarded_pps == pytest.approx(best["simulated_pps"], rel=0.01)
    assert best["simulated_pps"] == pytest.approx(best["predicted_pps"], rel=0.01)
    assert best["simulated_pps"] > 1.2 * max(other["simulated_pps"] or 0.0 for other in others)
    assert "2000" in others[2]["trouble"]
    with (out / "engines.csv").open(encoding="utf-8") as table:
        rows = list(csv.DictReader(table))
    busiest = max(float(row["busy_ratio"]) for row in rows if row["mapping"] == "as in the file")
    assert busiest == pytest.approx(1.0, rel=1e-4)
    assert "Load by engine" in figure.read_text(encoding="utf-8")
    assert "Load by engine" in (out / "report.html").read_text(encoding="utf-8")


@pytest.mark.slow
def test_a_mapping_that_is_mapped_again_is_not_bettered() -> None:
    case = read_mapping(EXAMPLE)
    first = answer(case, simulate=False)
    bound = first.optimum.bound_pps
    assert first.best.predicted_pps >= bound * (1.0 - 1e-5)
    assert all(other.predicted_pps <= bound * (1.0 + 1e-9) for other in first.others)


@pytest.mark.slow
def test_states_keep_their_memories_with_keep(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = EXAMPLE.read_text(encoding="utf-8") + '\n[[state]]\nname = "routes"\nmemory = "dram"\n'
    file = tmp_path / "x.router.toml"
    file.write_text(text, encoding="utf-8")
    for options, memories in ((["--keep", "routes"], {"dram"}), (["--keep-states"], {"dram"})):
        assert run(["plan", "mapping", str(file), "--no-simulate", "--json", *options]) == 0
        states = json.loads(capsys.readouterr().out)["mappings"][0]["states"]
        assert {states["routes"]} == memories


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        (("code_words = 2000", "code_words = 1000"), [], '"queue manager" has 1500 instructions'),
        (("count = 8", "count = 3"), [], "do not fit into 3 engines of 2000"),
        (("", ""), ["--ring", "scrtch"], '"scrtch" is no memory'),
        (("", ""), ["--keep", "route"], '"route" is no state'),
        (('builder = "network_processor"', 'builder = "multicore"'), [], "only blocks on a network processor"),
        (
            ('builder = "network_processor"', 'builder = "network_processor"\nline_card = {}'),
            [],
            "line cards cannot be mapped",
        ),
        (
            ('organisation = "pipelined"', 'organisation = "pipelined"\nring = { memory = "scrtch" }'),
            [],
            'ring.memory: "scrtch" is no memory',
        ),
        (
            ('organisation = "pipelined"', 'organisation = "pipelined"\nstate = [{ name = "routes", memory = "srm" }]'),
            [],
            'state[0].memory: "srm" is no memory',
        ),
        (("count = 8, ", "count = 8, threads = 0, "), [], "processor.engines.threads: got 0"),
        (('base = "ixp2850"', 'base = "ixp2850"\nmemory = [{ name = "dram", channels = 0 }]'), [], "channels: got 0"),
        (("code_words = 900", "cycles = -1"), [], "block[2].cycles: got -1"),
        (("code_words = 700", 'references = [{ state = "nix" }]'), [], 'references[0].state: "nix" is no state'),
        (("", ""), ["--figure", "x.pdf"], "a figure is an SVG file"),
    ],
)
def test_a_router_without_mapping_exits_with_2_and_the_reason(
    change: tuple[str, str], options: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "x.router.toml"
    file.write_text(EXAMPLE.read_text(encoding="utf-8").replace(*change, 1), encoding="utf-8")
    assert run(["plan", "mapping", str(file), "--no-simulate", *options]) == 2
    assert message in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("without", ["present = false", "stub = true"])
def test_a_router_of_no_blocks_leaves_nothing_to_map(
    without: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    blocks = read_mapping(EXAMPLE).problem.blocks
    tables = "".join(f'[[block]]\nname = "{block.name}"\n{without}\n' for block in blocks)
    file = tmp_path / "x.router.toml"
    file.write_text(f'builder = "network_processor"\nprocessor = "ixp2850"\n{tables}', encoding="utf-8")
    assert run(["plan", "mapping", str(file), "--no-simulate"]) == 2
    assert "block: there is nothing to map" in capsys.readouterr().err


@pytest.mark.slow
def test_the_router_of_a_mapping_is_the_one_that_was_compared(tmp_path: Path) -> None:
    from routecast.plan.mapping.reading import router_text

    case = read_mapping(EXAMPLE)
    for mapping in (case.file_mapping, answer(case, simulate=False).best.mapping):
        file = tmp_path / "again.router.toml"
        file.write_text(router_text(mapping, case.document), encoding="utf-8")
        model = read_router(file)
        assert (model.tasks, model.pools, model.ports) == (
            mapping.router().tasks,
            mapping.router().pools,
            mapping.router().ports,
        )


@pytest.mark.slow
def test_what_is_mapped_need_not_be_a_router_yet(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # Seven blocks with an engine each on three engines: only sharing makes it a router.
    text = EXAMPLE.read_text(encoding="utf-8").replace("count = 8, code_words = 2000", "count = 3, code_words = 4000")
    file = tmp_path / "x.router.toml"
    file.write_text(text, encoding="utf-8")
    assert run(["plan", "mapping", str(file), "--no-simulate", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert "as in the file" not in [mapping["name"] for mapping in printed["mappings"]]
    assert any("the stages need 7 engines" in note for note in printed["notes"])
    assert printed["mappings"][0]["engines"] == 3
