"""Shows placements: text, tables, a drawing, a page, and a folder of files (Li 2012, sec. 3.4)."""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

from routecast.plan.placement._simulation import MAX_LOSS_RATIO, ElementPlacement, load_of
from routecast.plan.placement.answer import PlacedElement, PlacementAnswer, PredictedCandidate
from routecast.quantity import format_duration, format_pps, format_ratio
from routecast.quantity.whole_file import unfinished, write_whole
from routecast.show.figures import palette
from routecast.show.page import Block, Drawing, Listing, Notice, Page, Prose, Section, Tile, Tiles, render_page
from routecast.show.tables import Cell, Column, Table, percent
from routecast.virtual.machines import Cores

_PINNING_TEXT = {
    "free": "every thread may use every core",
    "machines": "each machine has its own cores, where the server has enough",
    "threads": "each thread has one core",
    "alone": "the heaviest machine has a core of its own",
}


def describe_value(answer: PlacementAnswer, value: float) -> str:
    """Return a value of the objective as text."""
    objective = answer.problem.goal.objective
    if objective == "throughput":
        return describe_rate(value)
    if objective == "servers":
        return f"{value:.0f} server{'s' if round(value) != 1 else ''}"
    return f"{value:.4g} W" if objective == "watts" else f"{value:,.10g}"


def describe_figure(answer: PlacementAnswer, predicted: PredictedCandidate) -> str:
    """Return the predicted value of a candidate as text; throughput without loss is that of the complete placement."""
    return describe_value(answer, _figure(answer, predicted))


def _figure(answer: PlacementAnswer, predicted: PredictedCandidate) -> float:
    return predicted.prediction.lossless_pps if is_lossless_goal(answer) else predicted.value


def is_lossless_goal(answer: PlacementAnswer) -> bool:
    """Return whether the objective is throughput without loss."""
    goal = answer.problem.goal
    return goal.objective == "throughput" and goal.throughput == "lossless"


def describe_placement(placement: ElementPlacement) -> str:
    """Return which elements are on which server."""
    return "; ".join(f"{server}: {', '.join(placement.on(server))}" for server in placement.used)


def describe_cores(threads: Mapping[str, Cores]) -> str:
    """Return the cores of threads as text.

    Examples
    --------
    >>> describe_cores({"vcpu 0": (0,), "backend 0": (1,)})
    'vcpu 0 on 0, backend 0 on 1'
    >>> describe_cores({"vcpu 0": ()})
    'any'
    """
    if not any(threads.values()):
        return "any"
    order = sorted(threads, key=lambda name: (not name.startswith("vcpu"), name))
    return ", ".join(f"{name} on {'+'.join(map(str, threads[name])) or 'any'}" for name in order)


def describe_rate(rate_pps: float) -> str:
    """Return a rate as text.

    Examples
    --------
    >>> describe_rate(2e6)
    '2 Mpps'
    >>> describe_rate(3e-291)
    'less than 0.001 pps'
    """
    return "less than 0.001 pps" if 0.0 < rate_pps < 1e-3 else format_pps(rate_pps)


def headline(answer: PlacementAnswer) -> tuple[str, ...]:
    """Return the answer in a few lines."""
    problem, best, goal = answer.problem, answer.best, answer.problem.goal
    prediction = best.prediction
    lossless, offered = describe_rate(prediction.lossless_pps), describe_rate(prediction.offered_pps)
    lines = [f"{describe_placement(best.placement)}."]
    if is_lossless_goal(answer):
        lines.append(
            f"By prediction the mapping carries {lossless} of {problem.frames.name} without overload; of {offered}"
            f" offered it forwards {describe_rate(prediction.forwarded_pps)}."
        )
    elif goal.objective == "throughput":
        lines.append(
            f"By prediction the mapping forwards {describe_rate(best.value)} of {offered} of {problem.frames.name}"
            f" offered; without overload it carries {lossless}."
        )
    else:
        lines.append(
            f"The mapping needs {describe_value(answer, best.value)} for {offered} of {problem.frames.name};"
            f" by prediction it carries {lossless} without overload."
        )
    known_pps = answer.known_lossless_pps
    known = "no load is known at which nothing is lost"
    if math.isfinite(known_pps):
        known = f"at most a frame in 1,000 is lost up to {describe_rate(known_pps)}; above, queues may overflow"
    lines.append(f"By closed form {known}.")
    lines += [*describe_decision(answer), *_describe_check(answer), *_describe_latency(answer), _describe_bound(answer)]
    lines.append(f"Bottleneck: {prediction.bottleneck} {prediction.reason}.")
    if answer.links:
        link = answer.links[0]
        lines.append(
            f"Fullest link: {link.name}, {format_ratio(link.used_ratio)} used; it is full at a load of"
            f" {describe_rate(link.capacity_pps)}."
        )
    else:
        lines.append("No frame crosses a link between servers.")
    lines += _describe_sharing(answer)
    servers_of: dict[str, list[str]] = {}
    for server, choice in best.placement.choices.items():
        servers_of.setdefault(choice, []).append(server)
    lines += [
        f"Threads on {', '.join(servers)}: {_PINNING_TEXT.get(choice, choice)}."
        for choice, servers in servers_of.items()
    ]
    if answer.runners_up:
        second = answer.runners_up[0]
        lines.append(
            f"Next best by prediction, {answer.runners_up_scope}: {describe_figure(answer, second)}"
            f"{_difference(answer, second)} with {describe_placement(second.placement)}."
        )
    return tuple(lines)


def describe_decision(answer: PlacementAnswer) -> list[str]:
    """Return why simulation prefers another candidate than the prediction, and whether the target is missed."""
    goal, best, first = answer.problem.goal, answer.best, answer.predicted_best
    lines = []
    if answer.is_by_simulation:
        predicted_first = f"{describe_placement(first.placement)} ({describe_pins(first)})"
        if first.placement.servers == best.placement.servers:
            predicted_first = f'the same mapping with threads pinned as "{describe_pins(first)}"'
        lines.append(
            f"Simulation selects another mapping than the closed form, which prefers {predicted_first}:"
            f" {describe_figure(answer, first)} against {describe_figure(answer, best)}. In simulation"
            f" {_describe_simulated(answer)}."
        )
    if answer.met is not False:
        return lines
    targets = []
    if goal.objective != "throughput":
        targets.append(describe_rate(answer.best.prediction.offered_pps))
    if goal.latency_s is not None:
        targets.append(f"a mean latency of {format_duration(goal.latency_s)}")
    least = ""
    if math.isfinite(answer.least_latency_s):
        least = f"; their least mean latency is {format_duration(answer.least_latency_s)}"
    finding = f"in simulation none of the {answer.simulated_mappings} best mappings by prediction meets it{least}"
    if not answer.simulated_mappings:
        finding = "by prediction"
    elif answer.simulated_mappings == 1:
        finding = f"in simulation the only mapping misses it{least}"
    lines.append(f"The target is NOT MET ({' and '.join(targets)}): {finding}.")
    return lines


def _describe_simulated(answer: PlacementAnswer) -> str:
    best, other = answer.best.check, answer.predicted_best.check
    goal = answer.problem.goal
    if best is None or other is None:
        return "this mapping is better"
    if goal.objective != "throughput" or goal.latency_s is not None:
        return (
            f"that mapping forwards {describe_rate(other.forwarded_pps)} of {describe_rate(best.offered_pps)} with a"
            f" mean latency of {_describe_duration(other.latency_s)}, this mapping {describe_rate(best.forwarded_pps)}"
            f" with {_describe_duration(best.latency_s)}"
        )
    verb = "carries" if best.rate == "lossless" else "forwards"
    without = " without loss" if best.rate == "lossless" else ""
    rates = f"{describe_rate(best.simulated_pps)} against {describe_rate(other.simulated_pps)}"
    return f"this mapping {verb} more{without}, {rates}"


def _describe_duration(duration_s: float) -> str:
    return format_duration(duration_s) if math.isfinite(duration_s) else "unknown time"


def describe_pins(predicted: PredictedCandidate) -> str:
    """Return the ways of pinning a candidate's threads as text."""
    return ", ".join(dict.fromkeys(predicted.placement.choices.values())) or "free"


def _describe_latency(answer: PlacementAnswer) -> list[str]:
    best, limit_s = answer.best, answer.problem.goal.latency_s
    values = []
    if math.isfinite(best.prediction.latency_s):
        values.append(f"predicted {format_duration(best.prediction.latency_s)}")
    if best.check is not None and math.isfinite(best.check.latency_s):
        values.append(f"simulated {format_duration(best.check.latency_s)}")
    limit = "" if limit_s is None else f"; limit: {format_duration(limit_s)}"
    if not values:
        return [] if limit_s is None else [f"Mean latency: unknown{limit}."]
    at = f"{describe_rate(best.prediction.offered_pps)} with {load_of(answer.problem).arrivals.text}"
    return [f"Mean latency at {at}: {', '.join(values)}{limit}."]


def _describe_bound(answer: PlacementAnswer) -> str:
    bound = describe_value(answer, answer.bound)
    is_only_predicted = answer.is_by_simulation or answer.met is False
    caveat = " This holds for the prediction only." if is_only_predicted else ""
    if not math.isfinite(answer.gap_ratio):
        return "The distance to the best by prediction is unknown: the search has no bound yet."
    first = describe_value(answer, answer.predicted_best.value)
    # The search predicts servers separately; the value of the complete placement includes effects between servers.
    scope = "server by server, " if is_lossless_goal(answer) else ""
    than = f" than {first}" if answer.is_by_simulation or scope else ""
    if answer.gap_ratio <= 1e-6:
        return f"By prediction, {scope}no mapping is better{than}: proven, {answer.bound_scope}.{caveat}"
    than = f" than {bound}; it is {first}" if scope else f" than {bound}"
    return (
        f"By prediction, {scope}no mapping is better{than} ({format_ratio(answer.gap_ratio, 2)} off),"
        f" {answer.bound_scope}.{caveat}"
    )


def _difference(answer: PlacementAnswer, other: PredictedCandidate) -> str:
    best, value = _figure(answer, answer.best), _figure(answer, other)
    if best <= 0.0 or abs(value / best - 1.0) < 5e-4:
        return " (as good)"
    return f" ({100.0 * (value / best - 1.0):+.1f} %)".replace("-", "−")


def _describe_sharing(answer: PlacementAnswer) -> list[str]:
    """Return sentences on the elements that share a server, with the cost; the least capacity first."""
    if not answer.sharing:
        return ["No two elements share a server."]
    lines = []
    for shared in answer.sharing[:3]:
        shared_resource = "cores" if shared.share_cores else "the server but no core"
        names = ", ".join(shared.elements[:6]) + (", …" if len(shared.elements) > 6 else "")
        cost = ""
        if math.isfinite(shared.apart_pps):
            cost = (
                f"; each alone on such a server: {describe_rate(shared.apart_pps)}"
                f" (sharing costs {format_ratio(max(shared.cost_ratio, 0.0))})"
            )
        lines.append(
            f"{names} share {shared_resource} of {shared.server}: full at a load of"
            f" {describe_rate(shared.carries_pps)}{cost}."
        )
    return lines


def _describe_check(answer: PlacementAnswer) -> list[str]:
    check = answer.best.check
    if check is None:
        return []
    if check.trouble:
        return [f"Not simulated: {check.trouble}."]
    predicted, simulated = describe_rate(check.predicted_pps), describe_rate(check.simulated_pps)
    if check.rate == "lossless":
        text = f"In simulation it carries {simulated} without loss (at most {format_ratio(MAX_LOSS_RATIO)} lost)"
    else:
        text = f"In simulation it forwards {simulated} of {describe_rate(check.offered_pps)}"
    text += f"; predicted {predicted}"
    if check.differs:
        apart = f"by {format_ratio(abs(check.difference_ratio))}"
        if check.difference_ratio > 1.0:
            apart = f"by a factor of {1.0 + check.difference_ratio:.3g}"
        return [f"{text}: they DIFFER {apart}; trust the simulation."]
    return [f"{text} (difference {format_ratio(abs(check.difference_ratio))})."]


def elements_table(answer: PlacementAnswer) -> Table:
    """Return all elements with server and cores, and the cost of sharing."""
    return Table.of(
        answer.elements,
        Column.text("Element", lambda element: element.element),
        Column.text("Server", lambda element: element.server),
        Column.text("Cores", lambda element: describe_cores(element.threads), wrap=True, wide=True),
        Column.text("Shares cores with", lambda element: ", ".join(element.shares_cores) or "–", wrap=True),
        Column("Here", "kpps", ".1f", lambda element: element.carries_pps / 1e3),
        Column("Alone", "kpps", ".1f", lambda element: element.alone_pps / 1e3),
        Column("Less", "%", percent, lambda element: element.cost_ratio),
        name="elements",
        title="Elements",
        caption="Here: rate of the element when its server is full. Alone: its rate if it were alone on the server. It "
        "is less where other elements use its cores or are full first.",
    )


def mappings_table(answer: PlacementAnswer) -> Table:
    """Return the table of the answer, the best by prediction if it differs, and the next best mappings."""
    goal = answer.problem.goal
    is_lossless = is_lossless_goal(answer)
    first = (answer.predicted_best,) if answer.is_by_simulation else ()
    rows: list[tuple[Cell, ...]] = []
    for predicted in (answer.best, *first, *answer.runners_up):
        check = predicted.check
        predicted_pps = predicted.prediction.lossless_pps if is_lossless else predicted.prediction.forwarded_pps
        rows.append(
            (
                describe_placement(predicted.placement),
                describe_pins(predicted),
                *(() if goal.objective == "throughput" else (describe_value(answer, predicted.value),)),
                predicted_pps / 1e3,
                check.simulated_pps / 1e3 if check else math.nan,
                check.latency_s * 1e6 if check else math.nan,
                check.simulated_pps / predicted_pps - 1.0 if check and predicted_pps > 0.0 else math.nan,
            )
        )
    rate = describe_rate(answer.best.prediction.offered_pps)
    rates = (
        f"Rates: the greatest load without loss (simulated: at most {format_ratio(MAX_LOSS_RATIO)} lost)"
        if is_lossless
        else f"Rates: forwarded of {rate}"
    )
    order = "The answer, the best by prediction, and the next best" if first else "The answer, and the next best"
    among = f", {answer.runners_up_scope}" if answer.runners_up else ""
    return Table(
        name="mappings",
        title="Mappings",
        caption=f"{order} by prediction{among}. {rates}. Latency: simulated mean at {rate} "
        f"with {load_of(answer.problem).arrivals.text}.",
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
        Column.text("Link", lambda link: link.name),
        Column("Used", "%", percent, lambda link: link.used_ratio),
        Column("Full at", "kpps", ".1f", lambda link: link.capacity_pps / 1e3),
        name="links",
        title="Links between servers",
        caption=f"At {describe_rate(answer.best.prediction.offered_pps)}; the narrowest link is the first.",
    )


_BOX_PX, _GAP_PX, _PAD_PX, _ROW_PX = 232, 24, 10, 17
_WIDTH_PX = 790
_LETTER_PX = 6.1


def placement_svg(answer: PlacementAnswer) -> str:
    """Return the drawing of a placement as an SVG document that follows the light or dark setting of the browser."""
    problem, placement = answer.problem, answer.best.placement
    hosts = {name: group for group in problem.servers for name in group.names}
    kinds = [group.name for group in problem.elements]
    colours = dict(zip(kinds, palette(len(kinds), ordered=False), strict=True))
    colour_of = {name: colours[group.name] for group in problem.elements for name in group.names}
    columns = max((_WIDTH_PX + _GAP_PX) // (_BOX_PX + _GAP_PX), 1)
    parts: list[str] = []
    left, top, tallest = 0, 28, 0
    for number, server in enumerate(placement.used):
        elements = [element for element in answer.elements if element.server == server]
        if number and number % columns == 0:
            left, top, tallest = 0, top + tallest + _GAP_PX, 0
        body, height = _server_svg(answer, server, hosts[server].cores, elements, colour_of, left, top)
        parts += body
        left, tallest = left + _BOX_PX + _GAP_PX, max(tallest, height)
    top += tallest + 26
    for link in answer.links[:12]:
        width = 180.0 * min(link.used_ratio, 1.0)
        colour = "#c8524a" if link.used_ratio > 0.999 else "#3f6fb5"
        text = f"{link.name}: {format_ratio(link.used_ratio)} used, full at {format_pps(link.capacity_pps)}"
        parts += [
            f'<rect x="0" y="{top - 10}" width="180" height="11" class="b"/>',
            f'<rect x="0" y="{top - 10}" width="{width:.1f}" height="11" fill="{colour}"/>',
            f'<text x="190" y="{top}">{escape(text)}</text>',
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


def _server_svg(
    answer: PlacementAnswer,
    server: str,
    cores: int,
    elements: list[PlacedElement],
    colour_of: dict[str, str],
    left: int,
    top: int,
) -> tuple[list[str], int]:
    by_core: dict[int | None, list[tuple[str, str]]] = {core: [] for core in range(cores)}
    anywhere: list[tuple[str, str]] = []
    for element in elements:
        for thread, pin in element.threads.items() or [("", ())]:
            row = anywhere if len(pin) != 1 else by_core[pin[0]]
            beside = f" ({'+'.join(map(str, pin))})" if len(pin) > 1 else ""
            row.append((colour_of[element.element], f"{element.element} {thread}{beside}".strip()))
    used = answer.best.prediction.used_ratio(server)
    capacity = answer.best.prediction.capacity_pps(server)
    full = f", full at {format_pps(capacity)}" if math.isfinite(capacity) else ""
    rows = [(f"core {core}", threads) for core, threads in by_core.items() if threads]
    idle = [str(core) for core, threads in by_core.items() if not threads]
    if anywhere:
        rows.append(("any core", anywhere))
    elif idle:
        rows.append((f"core {', '.join(idle)}: no thread", []))
    body, y_px = [], top + 44
    for label, threads in rows:
        height = 8 + _ROW_PX * max(len(threads) + 1, 1)
        body.append(
            f'<rect x="{left + _PAD_PX}" y="{y_px}" width="{_BOX_PX - 2 * _PAD_PX}" height="{height}"'
            ' rx="3" class="c"/>'
        )
        body.append(f'<text x="{left + 2 * _PAD_PX}" y="{y_px + 15}">{escape(label)}</text>')
        for number, (colour, text) in enumerate(threads):
            y = y_px + 15 + _ROW_PX * (number + 1)
            body.append(
                f'<rect x="{left + 2 * _PAD_PX}" y="{y - 9}" width="9" height="9" fill="{colour}"/>'
                f'<text x="{left + 2 * _PAD_PX + 14}" y="{y}">{escape(_shortened(text))}</text>'
            )
        y_px += height + 6
    height = y_px - top + 4
    head = [
        f'<rect x="{left}" y="{top}" width="{_BOX_PX}" height="{height}" rx="5" class="b"/>',
        f'<text x="{left + _PAD_PX}" y="{top + 17}" font-weight="600">{escape(server)}</text>',
        f'<text x="{left + _PAD_PX}" y="{top + 34}">{escape(f"{format_ratio(used)} busy{full}")}</text>',
    ]
    return [*head, *body], height


def _shortened(text: str) -> str:
    max_letters = int((_BOX_PX - 4 * _PAD_PX - 14) / _LETTER_PX)
    return text if len(text) <= max_letters else text[: max_letters - 1] + "…"


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
            f"{answer.problem.frames.name}: {describe_placement(answer.best.placement)}"
            f" ({describe_figure(answer, answer.best)})."
            for answer in answers
        ),
        sections=tuple(_section(number, answer) for number, answer in enumerate(answers)),
        provenance=(
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
                Tile(describe_figure(answer, answer.best), answer.problem.goal.objective),
                Tile(describe_value(answer, answer.bound), "bound on any mapping by prediction", answer.bound_scope),
                Tile(format_pps(answer.work_bound_pps), "bound from work alone", "without contention"),
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
    decided = describe_decision(answer)
    if decided and answer.met is False:
        blocks.insert(0, Notice(mood="bad", title="The answer misses the target", text=" ".join(decided)))
    elif decided:
        blocks.insert(0, Notice(mood="fair", title="Simulation selects another mapping", text=" ".join(decided)))
    if answer.links:
        blocks.append(links_table(answer))
    if answer.notes:
        blocks.append(Listing(title="Notes", entries=answer.notes))
    return Section(anchor=f"placement-{number}", title=answer.problem.frames.name, lead=lines[0], blocks=tuple(blocks))


def answers_json(answers: Sequence[PlacementAnswer]) -> dict[str, object]:
    """Return all answers as one document."""
    return {"name": answers[0].problem.name, "answers": [answer.to_json() for answer in answers]}


def write_placement(answers: Sequence[PlacementAnswer], out: Path) -> None:
    """Write ``placement.json``, ``elements.csv``, ``figures/*.svg`` and ``report.html`` to a folder."""
    (out / "figures").mkdir(parents=True, exist_ok=True)
    text = json.dumps(answers_json(answers), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    write_whole(out / "placement.json", text)
    for answer in answers:
        stem = re.sub(r"[^A-Za-z0-9]+", "-", answer.problem.frames.name).strip("-").lower()
        write_whole(out / "figures" / f"placement-{stem}.svg", placement_svg(answer))
    with unfinished(out / "elements.csv") as draft, draft.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["frames", "element", "server", "cores", "carries_pps", "alone_pps"])
        for answer in answers:
            for element in answer.elements:
                row = [answer.problem.frames.name, element.element, element.server, describe_cores(element.threads)]
                writer.writerow([*row, f"{element.carries_pps:.6g}", f"{element.alone_pps:.6g}"])
    write_whole(out / "report.html", render_page(placement_page(answers)))
