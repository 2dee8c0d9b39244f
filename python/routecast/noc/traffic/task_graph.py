"""Task graphs from files: those that ship, and ``*.taskgraph.toml`` of people's own."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from pydantic import Field

from routecast.errors import FileProblem, ModelProblem, Problem, RoutecastError
from routecast.noc.traffic.graph import Flow, TaskGraph
from routecast.noc.traffic.placing import mapped
from routecast.quantity.bounded_file import read_text
from routecast.quantity.did_you_mean import did_you_mean
from routecast.quantity.fields import ByteRate, FileModel
from routecast.quantity.toml_file import parse_toml, validated

__all__ = ["TASK_GRAPHS", "TaskGraphFile", "mapped", "parse_task_graph", "read_task_graph", "task_graph"]

TASK_GRAPHS = ("mpeg4", "vopd")
"""Names of the graphs that ship."""

_SUFFIX = ".taskgraph.toml"


class _FlowTable(FileModel):
    source: str = Field(alias="from", description="the task that sends")
    target: str = Field(alias="to", description="the task that receives")
    rate: ByteRate = Field(description='how much it sends, such as "190 MB/s"')


class _BothWaysTable(FileModel):
    between: tuple[str, str] = Field(description="the two tasks")
    rate: ByteRate = Field(description='how much each sends to the other, such as "190 MB/s"')


class TaskGraphFile(FileModel):
    """A ``*.taskgraph.toml`` file."""

    name: str = Field(description="what the graph is called in tables and figures")
    source: list[str] = Field(default=[], description="where the figures are from")
    notes: list[str] = Field(default=[], description="what sources disagree on and what was chosen")
    tasks: list[str] = Field(min_length=2, description="the names of all tasks")
    flow: list[_FlowTable] = Field(default=[], description="who sends to whom")
    both_ways: list[_BothWaysTable] = Field(
        default=[], description="who exchanges with whom, the same rate both ways"
    )
    grid: list[list[str]] = Field(
        default=[], description='rows of task names as they stand on the routers, "" where none stands'
    )


def task_graph(name: str | Path) -> TaskGraph:
    """Return the task graph of a name that ships (``mpeg4``, ``vopd``) or of a file ``*.taskgraph.toml``.

    Raises
    ------
    RoutecastError
        Neither a known name nor a file, or a file that is wrong.

    Examples
    --------
    >>> graph = task_graph("vopd")
    >>> len(graph.tasks), len(graph.flows)
    (12, 15)
    """
    if str(name) in TASK_GRAPHS:
        file = f"{name}{_SUFFIX}"
        text = (files("routecast") / "data" / "noc" / file).read_text(encoding="utf-8")
        return parse_task_graph(text, file)
    path = Path(name)
    if path.suffix != ".toml" and not path.exists():
        msg = f'task graph "{name}" is not known: {did_you_mean(str(name), TASK_GRAPHS)}; or name a file *{_SUFFIX}'
        raise RoutecastError(msg)
    return read_task_graph(path)


def read_task_graph(path: Path) -> TaskGraph:
    """Return the task graph of a file.

    Raises
    ------
    routecast.errors.FileProblem
        With every fault of the file.
    """
    return parse_task_graph(read_text(path, kind="task graph"), str(path))


def parse_task_graph(text: str, subject: str) -> TaskGraph:
    """Return the task graph that a TOML text states; ``subject`` is what messages call it.

    Raises
    ------
    routecast.errors.FileProblem
        With every fault of the text.
    """
    document = validated(TaskGraphFile, parse_toml(text, subject), subject)
    _check_grid(document, subject)
    flows = [Flow(source=one.source, target=one.target, rate_bytes_per_s=one.rate) for one in document.flow]
    for pair in document.both_ways:
        first, second = pair.between
        flows += [
            Flow(source=first, target=second, rate_bytes_per_s=pair.rate),
            Flow(source=second, target=first, rate_bytes_per_s=pair.rate),
        ]
    try:
        return TaskGraph(
            name=document.name,
            tasks=tuple(document.tasks),
            flows=tuple(flows),
            source=tuple(document.source),
            notes=tuple(document.notes),
            grid=tuple(tuple(row) for row in document.grid),
        )
    except ModelProblem as problem:
        raise FileProblem(subject, problem.problems) from problem


def _check_grid(document: TaskGraphFile, subject: str) -> None:
    problems = []
    seen: dict[str, str] = {}
    width = len(document.grid[0]) if document.grid else 0
    for y, row in enumerate(document.grid):
        if len(row) != width or not row:
            problems.append(
                Problem(f"grid[{y}]", f"has {len(row)} tiles, the first row {width}: all rows are as long")
            )
        for x, task in enumerate(row):
            place = f"grid[{y}][{x}]"
            if task and task not in document.tasks:
                problems.append(
                    Problem(place, f'task "{task}" is not known: {did_you_mean(task, document.tasks)}')
                )
            elif task in seen:
                problems.append(Problem(place, f'task "{task}" stands at {seen[task]} already'))
            if task:
                seen.setdefault(task, place)
    if document.grid:
        problems += [
            Problem("grid", f'task "{task}" stands nowhere: put it on a tile')
            for task in document.tasks
            if task not in seen
        ]
    if problems:
        raise FileProblem(subject, problems)
