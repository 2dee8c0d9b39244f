"""Placements as tables, figures and pages, for the terminal and for files alike.

A placement's folder: the answers as JSON, the elements as CSV, the pictures, the page.

The tables of a placement: elements with what sharing costs, mappings predicted and simulated, links.

The words of a placement (Li 2012, sec. 3.4: which elements share a server or a core, and what that costs).
"""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

from routecast.plan.placement.answer import PlacementAnswer, Ranked, Seat
from routecast.plan.placement.whole import LOST, Placement
from routecast.quantity import format_duration, format_pps, format_ratio
from routecast.router.virtual.machines import Cores
from routecast.show.figures import palette
from routecast.show.page import Block, Drawing, Listing, Notice, Page, Prose, Section, Tile, Tiles, render_page
from routecast.show.tables import Cell, Column, Table, percent

__all__ = [
    "answers_json",
    "cores_said",
    "decision_said",
    "elements_table",
    "figure_said",
    "headline",
    "is_lossless_asked",
    "links_table",
    "mapping_said",
    "mappings_table",
    "pins_said",
    "rate_said",
    "value_said",
    "write_placement",
]

_PINNED = {
    "free": "every thread on every core",
    "machines": "machines on cores of their own, as far as there are enough",
    "threads": "each thread on one core",
    "alone": "the heaviest machine alone on a core",
}


def value_said(answer: PlacementAnswer, value: float) -> str:
    """Write a value of the objective."""
    objective = answer.problem.goal.objective
    if objective == "throughput":
        return rate_said(value)
    if objective == "servers":
        return f"{value:.0f} server{'s' if round(value) != 1 else ''}"
    return f"{value:.4g} W" if objective == "watts" else f"{value:,.10g}"


def figure_said(answer: PlacementAnswer, one: Ranked) -> str:
    """Write what is predicted for a mapping: of throughput without loss, for all servers at once."""
    return value_said(answer, _figure(answer, one))


def _figure(answer: PlacementAnswer, one: Ranked) -> float:
    return one.prediction.lossless_pps if is_lossless_asked(answer) else one.value


def is_lossless_asked(answer: PlacementAnswer) -> bool:
    """Return whether the most throughput without loss is asked for."""
    goal = answer.problem.goal
    return goal.objective == "throughput" and goal.throughput == "lossless"


def mapping_said(placement: Placement) -> str:
    """Write which elements are on which server."""
    return "; ".join(f"{server}: {', '.join(placement.on(server))}" for server in placement.used)


def cores_said(threads: Mapping[str, Cores]) -> str:
    """Write the cores of threads.

    Examples
    --------
    >>> cores_said({"vcpu 0": (0,), "backend 0": (1,)})
    'vcpu 0 on 0, backend 0 on 1'
    >>> cores_said({"vcpu 0": ()})
    'any'
    """
    if not any(threads.values()):
        return "any"
    order = sorted(threads, key=lambda name: (not name.startswith("vcpu"), name))
    return ", ".join(f"{name} on {'+'.join(map(str, threads[name])) or 'any'}" for name in order)


def rate_said(rate_pps: float) -> str:
    """Write a rate, however small: below a frame in 1000 s it is none.

    Examples
    --------
    >>> rate_said(2e6)
    '2 Mpps'
    >>> rate_said(3e-291)
    'less than 0.001 pps'
    """
    return "less than 0.001 pps" if 0.0 < rate_pps < 1e-3 else format_pps(rate_pps)


def headline(answer: PlacementAnswer) -> tuple[str, ...]:
    """Return the answer in a few lines."""
    problem, best, goal = answer.problem, answer.best, answer.problem.goal
    prediction = best.prediction
    lines = [f"{mapping_said(best.placement)}."]
    if goal.objective == "throughput" and goal.throughput == "lossless":
        lines.append(
            f"By prediction it carries {rate_said(prediction.lossless_pps)} of {problem.frames.name} without loss;"
            f" of {rate_said(prediction.offered_pps)} offered it forwards {rate_said(prediction.forwarded_pps)}."
        )
    elif goal.objective == "throughput":
        lines.append(
            f"By prediction it forwards {rate_said(best.value)} of {rate_said(prediction.offered_pps)} of"
            f" {problem.frames.name} offered; without loss it carries {rate_said(prediction.lossless_pps)}."
        )
    else:
        lines.append(
            f"It needs {value_said(answer, best.value)} for {rate_said(prediction.offered_pps)} of"
            f" {problem.frames.name}; by prediction it carries {rate_said(prediction.lossless_pps)} without loss."
        )
    lines += [*decision_said(answer), *_check_said(answer), *_latency_said(answer), _bound_said(answer)]
    lines.append(f"Bottleneck: {prediction.bottleneck} {prediction.reason}.")
    if answer.links:
        link = answer.links[0]
        lines.append(
            f"Fullest link: {link.name}, {format_ratio(link.used_ratio)} used; it would carry"
            f" {rate_said(link.capacity_pps)} of load."
        )
    else:
        lines.append("No frame crosses a link between servers.")
    lines += _sharing_said(answer)
    ways: dict[str, list[str]] = {}
    for server, choice in best.choice.items():
        ways.setdefault(choice, []).append(server)
    lines += [f"Threads on {', '.join(servers)}: {_PINNED.get(one, one)}." for one, servers in ways.items()]
    if answer.runners_up:
        second = answer.runners_up[0]
        lines.append(
            f"Next best by prediction, {answer.runners_say}: {figure_said(answer, second)}"
            f"{_less(answer, second)} with {mapping_said(second.placement)}."
        )
    return tuple(lines)


def decision_said(answer: PlacementAnswer) -> list[str]:
    """Say why another mapping than the first by prediction is the answer, and whether what is asked is held."""
    goal, best, first = answer.problem.goal, answer.best, answer.predicted_best
    lines = []
    if answer.is_by_simulation:
        what = f"{mapping_said(first.placement)} ({pins_said(first)})"
        if first.placement.servers == best.placement.servers:
            what = f'the same servers with threads as "{pins_said(first)}"'
        lines.append(
            f"Simulation decides: the closed form puts {what} first, {figure_said(answer, first)} against"
            f" {figure_said(answer, best)}; simulated, {_simulated_said(answer)}."
        )
    if answer.met is not False:
        return lines
    asked = []
    if goal.objective != "throughput":
        asked.append(rate_said(answer.best.prediction.offered_pps))
    if goal.latency_s is not None:
        asked.append(f"a mean latency of {format_duration(goal.latency_s)}")
    least = ""
    if math.isfinite(answer.least_latency_s):
        least = f"; the least mean latency of them is {format_duration(answer.least_latency_s)}"
    how = f"none of the {answer.tried} best mappings by prediction holds it in simulation{least}"
    if not answer.tried:
        how = "the closed form says so"
    elif answer.tried == 1:
        how = f"the only mapping does not hold it in simulation{least}"
    lines.append(f"The target is NOT MET ({' and '.join(asked)}): {how}.")
    return lines


def _simulated_said(answer: PlacementAnswer) -> str:
    one, other = answer.best.check, answer.predicted_best.check
    goal = answer.problem.goal
    if one is None or other is None:
        return "the other is better"
    if goal.objective != "throughput" or goal.latency_s is not None:
        return (
            f"of {rate_said(one.offered_pps)} it forwards {rate_said(other.forwarded_pps)} in"
            f" {_duration_said(other.latency_s)}, this one {rate_said(one.forwarded_pps)} in"
            f" {_duration_said(one.latency_s)}"
        )
    what = "carries" if one.rate == "lossless" else "forwards"
    without = " without loss" if one.rate == "lossless" else ""
    return f"this one {what} more{without}, {rate_said(one.simulated_pps)} against {rate_said(other.simulated_pps)}"


def _duration_said(duration_s: float) -> str:
    return format_duration(duration_s) if math.isfinite(duration_s) else "unknown time"


def pins_said(one: Ranked) -> str:
    """Write the ways in which a mapping's threads are pinned."""
    return ", ".join(dict.fromkeys(one.choice.values())) or "free"


def _latency_said(answer: PlacementAnswer) -> list[str]:
    best, limit_s = answer.best, answer.problem.goal.latency_s
    said = []
    if math.isfinite(best.prediction.latency_s):
        said.append(f"predicted {format_duration(best.prediction.latency_s)}")
    if best.check is not None and math.isfinite(best.check.latency_s):
        said.append(f"simulated {format_duration(best.check.latency_s)}")
    asked = "" if limit_s is None else f"; asked for: at most {format_duration(limit_s)}"
    if not said:
        return [] if limit_s is None else [f"Mean latency: not known{asked}."]
    return [f"Mean latency at {rate_said(best.prediction.offered_pps)}: {', '.join(said)}{asked}."]


def _bound_said(answer: PlacementAnswer) -> str:
    bound = value_said(answer, answer.bound)
    only = ""
    if answer.is_by_simulation or answer.met is False:
        only = " That holds for the prediction only."
    if not math.isfinite(answer.gap_ratio):
        return "How far it is from the best by prediction is not known: nothing is proven yet."
    first = value_said(answer, answer.predicted_best.value)
    # The search takes servers one by one; what one of them does to the frames of the next is in the figure of all.
    each = "server by server, " if is_lossless_asked(answer) else ""
    than = f" than {first}" if answer.is_by_simulation or each else ""
    if answer.gap_ratio <= 1e-6:
        return f"By prediction, {each}no mapping is better{than}: proven, {answer.bound_says}.{only}"
    than = f" than {bound}; it is {first}" if each else f" than {bound}"
    return (
        f"By prediction, {each}no mapping is better{than} ({100.0 * answer.gap_ratio:.2g} % off),"
        f" {answer.bound_says}.{only}"
    )


def _less(answer: PlacementAnswer, other: Ranked) -> str:
    best, value = _figure(answer, answer.best), _figure(answer, other)
    if best <= 0.0 or abs(value / best - 1.0) < 5e-4:
        return " (as good)"
    return f" ({100.0 * (value / best - 1.0):+.1f} %)".replace("-", "−")


def _sharing_said(answer: PlacementAnswer) -> list[str]:
    """Return which elements share a server and its cores, and what that costs: the servers that are full first."""
    if not answer.sharing:
        return ["No two elements share a server."]
    lines = []
    for one in answer.sharing[:3]:
        what = "cores" if one.share_cores else "the server, no core"
        names = ", ".join(one.elements[:6]) + (", …" if len(one.elements) > 6 else "")
        cost = ""
        if math.isfinite(one.apart_pps):
            cost = (
                f"; each alone on such a server, {rate_said(one.apart_pps)}"
                f" (sharing costs {format_ratio(max(one.cost_ratio, 0.0))})"
            )
        lines.append(f"{names} share {what} of {one.server}: full at {rate_said(one.carries_pps)} of load{cost}.")
    return lines


def _check_said(answer: PlacementAnswer) -> list[str]:
    check = answer.best.check
    if check is None:
        return []
    if check.trouble:
        return [f"Not simulated: {check.trouble}."]
    predicted, simulated = rate_said(check.predicted_pps), rate_said(check.simulated_pps)
    if check.rate == "lossless":
        said = f"Simulated, it carries {simulated} without loss (at most {format_ratio(LOST)} lost)"
    else:
        said = f"Simulated, it forwards {simulated} of {rate_said(check.offered_pps)}"
    said += f"; predicted {predicted}"
    if check.differs:
        apart = f"by {format_ratio(abs(check.difference_ratio))}"
        if check.difference_ratio > 1.0:
            apart = f"by a factor of {1.0 + check.difference_ratio:.3g}"
        return [f"{said}: they DIFFER {apart}; trust the simulation."]
    return [f"{said} (difference {format_ratio(abs(check.difference_ratio))})."]


def elements_table(answer: PlacementAnswer) -> Table:
    """Return all elements with server and cores, and what sharing costs them."""
    return Table.of(
        answer.seats,
        Column.text("Element", "element"),
        Column.text("Server", "server"),
        Column.text("Cores", lambda seat: cores_said(seat.threads), wrap=True, wide=True),
        Column.text("Shares cores with", lambda seat: ", ".join(seat.shares_cores) or "–", wrap=True),
        Column("Here", "kpps", ".1f", lambda seat: seat.carries_pps / 1e3),
        Column("Alone", "kpps", ".1f", lambda seat: seat.alone_pps / 1e3),
        Column("Less", "%", percent, "cost_ratio"),
        name="elements",
        title="Elements",
        caption="What an element takes when its server is full, beside what it would take alone there: less where "
        "others use its cores, or are full before it.",
    )


def mappings_table(answer: PlacementAnswer) -> Table:
    """Return the answer, the first by prediction if it is another, and the next ones; predicted and simulated."""
    goal = answer.problem.goal
    is_lossless = is_lossless_asked(answer)
    first = (answer.predicted_best,) if answer.is_by_simulation else ()
    rows: list[tuple[Cell, ...]] = []
    for one in (answer.best, *first, *answer.runners_up):
        check = one.check
        predicted_pps = one.prediction.lossless_pps if is_lossless else one.prediction.forwarded_pps
        rows.append(
            (
                mapping_said(one.placement),
                pins_said(one),
                *(() if goal.objective == "throughput" else (value_said(answer, one.value),)),
                predicted_pps / 1e3,
                check.simulated_pps / 1e3 if check else math.nan,
                check.latency_s * 1e6 if check else math.nan,
                check.simulated_pps / predicted_pps - 1.0 if check and predicted_pps > 0.0 else math.nan,
            )
        )
    rate = rate_said(answer.best.prediction.offered_pps)
    what = (
        f"Rates: the most that is carried without loss (simulated: at most {format_ratio(LOST)} lost)"
        if is_lossless
        else f"Rates: what is forwarded of {rate}"
    )
    order = "The answer, the first by prediction, and the next ones" if first else "The answer, and the next ones"
    among = f", {answer.runners_say}" if answer.runners_up else ""
    return Table(
        name="mappings",
        title="Mappings",
        caption=f"{order} by prediction{among}. {what}. Latency: simulated mean at {rate}.",
        columns=(
            Column.text("Mapping", wrap=True),
            Column.text("Threads", wrap=True),
            *(() if goal.objective == "throughput" else (Column("Value"),)),
            Column("Predicted", "kpps", ".1f"),
            Column("Simulated", "kpps", ".1f"),
            Column("Latency", "us", ".1f"),
            Column("Differs", "%", percent),
        ),
        rows=tuple(rows),
        strong=frozenset({0}),
    )


def links_table(answer: PlacementAnswer) -> Table:
    """Return the links between servers, the fullest first."""
    return Table.of(
        answer.links,
        Column.text("Link", "name"),
        Column("Used", "%", percent, "used_ratio"),
        Column("Full at", "kpps", ".1f", lambda link: link.capacity_pps / 1e3),
        name="links",
        title="Links between servers",
        caption=f"At {rate_said(answer.best.prediction.offered_pps)}; the first is the narrowest.",
    )


_BOX_PX, _GAP_PX, _PAD_PX, _ROW_PX = 232, 24, 10, 17
_WIDTH_PX = 790
_LETTER_PX = 6.1


def placement_svg(answer: PlacementAnswer) -> str:
    """Return the picture as an SVG document that follows the reader's light or dark setting."""
    problem, placement = answer.problem, answer.best.placement
    hosts = {name: group for group in problem.servers for name in group.names}
    kinds = [group.name for group in problem.elements]
    colours = dict(zip(kinds, palette(len(kinds), ordered=False), strict=True))
    colour_of = {name: colours[group.name] for group in problem.elements for name in group.names}
    seats = {server: [seat for seat in answer.seats if seat.server == server] for server in placement.used}
    columns = max((_WIDTH_PX + _GAP_PX) // (_BOX_PX + _GAP_PX), 1)
    parts: list[str] = []
    left, top, tallest = 0, 28, 0
    for number, (server, mine) in enumerate(seats.items()):
        if number and number % columns == 0:
            left, top, tallest = 0, top + tallest + _GAP_PX, 0
        body, height = _server(answer, server, hosts[server].cores, mine, colour_of, left, top)
        parts += body
        left, tallest = left + _BOX_PX + _GAP_PX, max(tallest, height)
    top += tallest + 26
    for link in answer.links[:12]:
        width = 180.0 * min(link.used_ratio, 1.0)
        hot = "#c8524a" if link.used_ratio > 0.999 else "#3f6fb5"
        said = f"{link.name}: {format_ratio(link.used_ratio)} used, full at {format_pps(link.capacity_pps)}"
        parts += [
            f'<rect x="0" y="{top - 10}" width="180" height="11" class="b"/>',
            f'<rect x="0" y="{top - 10}" width="{width:.1f}" height="11" fill="{hot}"/>',
            f'<text x="190" y="{top}">{escape(said)}</text>',
        ]
        top += 20
    title = f"{problem.name}, {problem.frames.name}"
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="-2 0 {_WIDTH_PX + 4} {top}" role="img"'
            f' aria-label="{escape(title)}" font-family="system-ui, sans-serif" font-size="11">',
            "<style>text{fill:#3a3f47}.b{fill:none;stroke:#8889}.c{fill:#8881;stroke:#8886}"
            "@media(prefers-color-scheme:dark){text{fill:#c3c8d0}}</style>",
            f'<text x="0" y="14" font-size="13" font-weight="600">{escape(title)}</text>',
            *parts,
            "</svg>",
            "",
        ]
    )


def _server(
    answer: PlacementAnswer, server: str, cores: int, seats: list[Seat], colour_of: dict[str, str], left: int, top: int
) -> tuple[list[str], int]:
    by_core: dict[int | None, list[tuple[str, str]]] = {core: [] for core in range(cores)}
    anywhere: list[tuple[str, str]] = []
    for seat in seats:
        for thread, pin in seat.threads.items() or [("", ())]:
            where = anywhere if len(pin) != 1 else by_core[pin[0]]
            beside = f" ({'+'.join(map(str, pin))})" if len(pin) > 1 else ""
            where.append((seat.element, f"{seat.element} {thread}{beside}".strip()))
    used = answer.best.prediction.used_ratio(server)
    capacity = answer.best.prediction.capacity_pps(server)
    full = f", full at {format_pps(capacity)}" if math.isfinite(capacity) else ""
    rows = [(f"core {core}", own) for core, own in by_core.items() if own]
    idle = [str(core) for core, own in by_core.items() if not own]
    if anywhere:
        rows.append(("any core", anywhere))
    elif idle:
        rows.append((f"core {', '.join(idle)}: no thread", []))
    body, at = [], top + 44
    for label, own in rows:
        height = 8 + _ROW_PX * max(len(own) + 1, 1)
        body.append(
            f'<rect x="{left + _PAD_PX}" y="{at}" width="{_BOX_PX - 2 * _PAD_PX}" height="{height}" rx="3" class="c"/>'
        )
        body.append(f'<text x="{left + 2 * _PAD_PX}" y="{at + 15}">{escape(label)}</text>')
        for number, (element, said) in enumerate(own):
            y = at + 15 + _ROW_PX * (number + 1)
            mark = colour_of[element]
            body.append(
                f'<rect x="{left + 2 * _PAD_PX}" y="{y - 9}" width="9" height="9" fill="{mark}"/>'
                f'<text x="{left + 2 * _PAD_PX + 14}" y="{y}">{escape(_short(said))}</text>'
            )
        at += height + 6
    height = at - top + 4
    head = [
        f'<rect x="{left}" y="{top}" width="{_BOX_PX}" height="{height}" rx="5" class="b"/>',
        f'<text x="{left + _PAD_PX}" y="{top + 17}" font-weight="600">{escape(server)}</text>',
        f'<text x="{left + _PAD_PX}" y="{top + 34}">{escape(f"{format_ratio(used)} busy{full}")}</text>',
    ]
    return [*head, *body], height


def _short(text: str) -> str:
    most = int((_BOX_PX - 4 * _PAD_PX - 14) / _LETTER_PX)
    return text if len(text) <= most else text[: most - 1] + "…"


# The page of a placement: the answer, the picture, the tables; a part for each frame size.


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
                Tile(figure_said(answer, answer.best), answer.problem.goal.objective),
                Tile(value_said(answer, answer.bound), "by prediction no mapping is better", answer.bound_says),
                Tile(format_pps(answer.by_work), "work alone allows", "no contention at all"),
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
    return Section(anchor=f"placement-{number}", title=answer.problem.frames.name, lead=lines[0], blocks=tuple(blocks))


def answers_json(answers: Sequence[PlacementAnswer]) -> dict[str, object]:
    """Return all answers as one document."""
    return {"name": answers[0].problem.name, "answers": [answer.to_json() for answer in answers]}


def write_placement(answers: Sequence[PlacementAnswer], out: Path) -> None:
    """Write ``placement.json``, ``elements.csv``, ``figures/*.svg``, ``report.html``; the folder is made if missing."""
    (out / "figures").mkdir(parents=True, exist_ok=True)
    text = json.dumps(answers_json(answers), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    (out / "placement.json").write_text(text, encoding="utf-8")
    for answer in answers:
        stem = re.sub(r"[^A-Za-z0-9]+", "-", answer.problem.frames.name).strip("-").lower()
        (out / "figures" / f"placement-{stem}.svg").write_text(placement_svg(answer), encoding="utf-8")
    with (out / "elements.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["frames", "element", "server", "cores", "carries_pps", "alone_pps"])
        for answer in answers:
            for seat in answer.seats:
                row = [answer.problem.frames.name, seat.element, seat.server, cores_said(seat.threads)]
                writer.writerow([*row, f"{seat.carries_pps:.6g}", f"{seat.alone_pps:.6g}"])
    (out / "report.html").write_text(render_page(placement_page(answers)), encoding="utf-8")
