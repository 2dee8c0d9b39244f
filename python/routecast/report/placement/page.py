"""The page of a placement: the answer, the picture, the tables; a part for each frame size."""

from __future__ import annotations

from collections.abc import Sequence

from routecast.plan.placement.answer import PlacementAnswer
from routecast.quantity import format_pps
from routecast.report.page import Block, Drawing, Listing, Notice, Page, Prose, Section, Tile, Tiles
from routecast.report.placement.figures import placement_svg
from routecast.report.placement.tables import elements_table, links_table, mappings_table
from routecast.report.placement.words import decision_said, figure_said, headline, mapping_said, value_said

__all__ = ["placement_page"]


def placement_page(answers: Sequence[PlacementAnswer]) -> Page:
    """Return the page of a file's placements."""
    first = answers[0]
    problem = first.problem
    elements = ", ".join(f"{group.count} {group.name}" for group in problem.elements)
    servers = ", ".join(f"{group.number} {group.name}" for group in problem.servers)
    return Page(
        title=f"Placement: {problem.name}",
        question=f"Where to put {elements} on {servers}, and on which cores?",
        answer=" ".join(
            f"{one.problem.frames.name}: {mapping_said(one.best.placement)} ({figure_said(one, one.best)})."
            for one in answers
        ),
        sections=tuple(_section(number, one) for number, one in enumerate(answers)),
        made=(
            ("objective", problem.goal.objective),
            ("throughput", problem.goal.throughput),
            ("offered load", format_pps(problem.offered_pps)),
            ("balancing", problem.balancing),
            ("technologies", ", ".join(dict.fromkeys(group.technology.name for group in problem.servers))),
        ),
    )


def _section(number: int, answer: PlacementAnswer) -> Section:
    lines = headline(answer)
    check = answer.best.check
    blocks: list[Block] = [
        Tiles(
            (
                Tile(value=figure_said(answer, answer.best), meaning=answer.problem.goal.objective),
                Tile(
                    value=value_said(answer, answer.bound),
                    meaning="by prediction no mapping is better",
                    beside=answer.bound_says,
                ),
                Tile(
                    value=format_pps(answer.by_work),
                    meaning="work alone allows",
                    beside="no contention at all",
                ),
            )
        ),
        Prose(lines[1:]),
        Drawing(
            svg=placement_svg(answer),
            caption="Servers with their cores and the threads on them; links between servers with their load.",
        ),
        mappings_table(answer),
        elements_table(answer),
    ]
    if check is not None and check.differs:
        text = "The closed form and the simulation of the best mapping differ by more than 5 %; trust the simulation."
        blocks.insert(0, Notice(mood="fair", title="Prediction and simulation differ", text=text))
    decided = decision_said(answer)
    if decided:
        title, text = "Simulation puts another mapping first", " ".join(decided)
        if answer.met is False:
            blocks.insert(0, Notice(mood="bad", title="The target is not met", text=text))
        else:
            blocks.insert(0, Notice(mood="fair", title=title, text=text))
    if answer.links:
        blocks.append(links_table(answer))
    if answer.notes:
        blocks.append(Listing(title="Notes", entries=answer.notes))
    return Section(
        anchor=f"placement-{number}",
        title=answer.problem.frames.name,
        lead=lines[0],
        blocks=tuple(blocks),
    )
