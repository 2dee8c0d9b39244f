"""The folder of a comparison: page, figures, everything as JSON, power and link loads as CSV."""

from __future__ import annotations

import csv
import json
from pathlib import Path

from routecast.noc._views.link_map import LinkMap, draw_link_map
from routecast.noc._views.pictures import latency_by_load, optimum_map, power_by_load, power_map, simulation_map
from routecast.noc._views.tables import (
    comparison_headline,
    distance_table,
    gap_percent,
    grid_name,
    load_meaning,
    optima_table,
    optimum_lines,
    power_table,
    simulation_headline,
    simulation_table,
    watts_table,
    with_interval,
)
from routecast.noc.answer.optimum import OptimumRow
from routecast.noc.answer.simulate import NocComparison, SimulationAnswer
from routecast.noc.file import NocCase
from routecast.quantity.whole_file import unfinished, write_whole
from routecast.show.drawing import draw
from routecast.show.page import Drawing, Listing, Page, Prose, Section, Tile, Tiles, render_page
from routecast.show.tables import percent


def comparison_page(answer: NocComparison) -> Page:
    """Return the page of a comparison."""
    case = answer.case
    sections = [_answer_section(answer), _power_section(answer)]
    if answer.highest is not None:
        sections.append(_optimum_section(answer, answer.highest))
    sections.append(_links_section(answer))
    if answer.simulation is not None:
        sections.append(_flits_section(answer.simulation))
    return Page(
        title=case.name,
        question=f"What does {grid_name(case)} burn, how far is that from the optimum, does latency hold?",
        answer=" ".join(comparison_headline(answer)[1:]),
        sections=tuple(sections),
        provenance=_case_facts(case),
        source="; ".join(case.sources),
    )


def comparison_tiles(answer: NocComparison) -> tuple[Tile, ...]:
    """Return the key numbers of the recommended routing or allocation."""
    tiles = []
    best, highest = answer.best, answer.highest
    if best is not None and best.of_no_dvfs_ratio:
        tiles.append(
            Tile(
                f"{1.0 / best.of_no_dvfs_ratio:.2f} ×",
                f"less power than NoDVFS with {best.name} at load {best.load:g}",
                f"{percent(best.of_no_dvfs_ratio)} % of it",
            )
        )
    if best is not None and highest is not None and highest.load == best.load:
        bound = highest.whole_flow_bound if best.is_allocation else highest.optimum.lower_bound
        if bound and best.power is not None:
            meaning = "for whole flows" if best.is_allocation else "for any routing"
            tiles.append(
                Tile(
                    f"{100.0 * max(best.power / bound - 1.0, 0.0):.1f} %",
                    f"{best.name} above the bound {meaning}",
                    _proven_gap(highest.optimum.gap),
                )
            )
    if best is not None and answer.simulation is not None and not answer.is_best_simulated:
        tiles.append(Tile("unknown", f"cycles of latency with {best.name}", "it could not be simulated"))
    elif best is not None and answer.simulation is not None:
        limit = answer.simulation.saturated_from(best.key)
        last = answer.simulation.carried(best.key)
        tiles.append(
            Tile(
                "unbounded" if last is None else with_interval(last.simulated.packet_latency_cycles, ".1f"),
                f"cycles of latency with {best.name}"
                + (f" at load {last.load:g}, {answer.simulation.arrivals}" if last else ""),
                f"saturated at load {limit:g}" if limit is not None else "no load saturates",
            )
        )
    return tuple(tiles)


def _proven_gap(gap: float) -> str:
    percent_text = gap_percent(gap)
    return "the optimum is proven" if percent_text == "0" else f"the optimum is proven within {percent_text} %"


def comparison_maps(answer: NocComparison) -> tuple[LinkMap, ...]:
    """Return the link maps of a comparison: of the routings, the optimum, and the flit-level simulation."""
    maps = [power_map(answer.power, answer.mapped_load)]
    if answer.highest is not None:
        maps.append(optimum_map(answer.optimum, answer.highest))
    if answer.simulation is not None:
        maps.append(simulation_map(answer.simulation))
    return tuple(maps)


def _answer_section(answer: NocComparison) -> Section:
    return Section.of(
        "answer",
        "The answer",
        "",
        Tiles(comparison_tiles(answer)),
        bool(answer.notes) and Listing(title="Notes", entries=answer.notes),
    )


def _power_section(answer: NocComparison) -> Section:
    watts = watts_table(answer.power)
    lead = "The most loaded link sets voltage and clock of its whole plane; power is hop flow over alpha squared."
    return Section.of(
        "power",
        "Power",
        lead,
        len(answer.case.loads) > 1 and power_by_load(answer.power, answer.optimum),
        power_table(answer.power),
        watts is not None and watts,
    )


def _optimum_section(answer: NocComparison, highest: OptimumRow) -> Section:
    return Section.of(
        "optimum",
        "Distance to the optimum",
        "Flows may be split over any paths and planes. No routing needs less power than the bound.",
        optima_table(answer.optimum),
        distance_table(answer.optimum, highest),
        Prose(optimum_lines(answer.optimum, highest)),
        _drawing(optimum_map(answer.optimum, highest)),
    )


def _links_section(answer: NocComparison) -> Section:
    return Section.of(
        "links",
        "Where the load is",
        f"Load of every link at load {answer.mapped_load:g}; a blue rim marks the most loaded links.",
        _drawing(power_map(answer.power, answer.mapped_load)),
    )


def _flits_section(answer: SimulationAnswer) -> Section:
    lead = " ".join(simulation_headline(answer)[1:])
    return Section.of(
        "flits",
        "Flit by flit",
        lead,
        latency_by_load(answer),
        simulation_table(answer),
        _drawing(simulation_map(answer)),
    )


def _drawing(link_map: LinkMap) -> Drawing:
    return Drawing(svg=draw_link_map(link_map), caption=f"{link_map.title}. {link_map.caption}")


def _case_facts(case: NocCase) -> tuple[tuple[str, str], ...]:
    grid = case.topology
    rows = [
        ("Topology", f"{grid.kind} of {grid.columns} × {grid.rows}, {grid.node_count} nodes"),
        ("Traffic", f"{case.traffic.name.replace('_', ' ')}. {load_meaning(case)}"),
        ("Loads", ", ".join(f"{load:g}" for load in case.loads)),
        ("Alpha", f"1 to {case.scaling.alpha_max:g}"),
        ("Planes", ", ".join(f"width {width:g}" for width in case.widths)),
        ("Seed", str(case.seed)),
    ]
    if case.simulation is not None:
        settings = ", ".join(f"{name} {value}" for name, value in case.simulation.model_dump().items() if value)
        rows.append(("Simulation", settings))
    return tuple(rows)


def write_comparison(answer: NocComparison, out: Path) -> Path:
    """Write ``report.html``, ``figures/*.svg``, ``compare.json``, ``power.csv`` and ``links.csv`` to a folder.

    Every file is complete or absent. Returns the page.
    """
    figures = out / "figures"
    figures.mkdir(parents=True, exist_ok=True)
    page = comparison_page(answer)
    for figure in page.figures():
        write_whole(figures / f"{figure.name}.svg", draw(figure))
    for link_map in comparison_maps(answer):
        write_whole(figures / f"{link_map.name}.svg", draw_link_map(link_map, has_heading=True))
    text = json.dumps(answer.to_json(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    write_whole(out / "compare.json", text)
    _write_rows(out / "power.csv", _power_rows(answer))
    _write_rows(out / "links.csv", _link_rows(answer))
    write_whole(out / "report.html", render_page(page))
    return out / "report.html"


def _power_rows(answer: NocComparison) -> list[list[str]]:
    rows = [["load", "routing", "bottlenecks", "alphas", "hop_flow", "power", "of_no_dvfs_ratio"]]
    for row in answer.power.rows:
        rows.append(
            [
                f"{row.load:g}",
                row.key,
                " ".join(f"{bottleneck:.6g}" for bottleneck in row.bottlenecks),
                " ".join(f"{alpha:.6g}" for alpha in row.alphas),
                f"{row.hop_flow:.6g}",
                "" if row.power is None else f"{row.power:.6g}",
                "" if row.of_no_dvfs_ratio is None else f"{row.of_no_dvfs_ratio:.6g}",
            ]
        )
    for optimum_row in answer.optimum.rows:
        flow = sum(float(plane.link_loads.sum()) for plane in optimum_row.optimum.planes)
        rows.append(
            [
                f"{optimum_row.load:g}",
                "optimum",
                " ".join(
                    f"{float(optimum_row.relative_loads(n).max(initial=0.0)):.6g}"
                    for n in range(len(answer.case.widths))
                ),
                " ".join(f"{plane.alpha:.6g}" for plane in optimum_row.optimum.planes),
                f"{flow:.6g}",
                f"{optimum_row.optimum.power:.6g}",
                "",
            ]
        )
    return rows


def _link_rows(answer: NocComparison) -> list[list[str]]:
    """Return the load of every link on every plane, at the highest load, by routing."""
    name = answer.case.topology.link_name
    rows = [["routing", "plane", "link", "load"]]
    for row in answer.power.at(answer.mapped_load):
        for plane, loads in enumerate(row.link_loads, start=1):
            rows += [[row.key, str(plane), name(link), f"{value:.6g}"] for link, value in enumerate(loads.tolist())]
    if answer.highest is not None:
        for plane in range(len(answer.case.widths)):
            loads = answer.highest.relative_loads(plane)
            rows += [
                ["optimum", str(plane + 1), name(link), f"{value:.6g}"] for link, value in enumerate(loads.tolist())
            ]
    return rows


def _write_rows(path: Path, rows: list[list[str]]) -> None:
    with unfinished(path) as draft, draft.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)
