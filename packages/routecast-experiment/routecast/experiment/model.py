"""A designed experiment as data: its factors, its design, its runs and their answers.

The notation is Jain's (The Art of Computer Systems Performance Analysis, 1991, part IV): factors A, B, C, …, levels
coded -1 and +1, effects ``q_0, q_A, q_AB, …``, and the total variation ``SST``, of which each effect explains a share.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Literal

from routecast.errors import RoutecastError
from routecast.evaluate.protocol import EvaluatorKind
from routecast.quantity.schema import field, value

__all__ = ["Answer", "Design", "DesignKind", "Experiment", "Factor", "FileValue", "Level", "Response", "Results", "Run"]

DesignKind = Literal["full", "fractional", "multilevel", "central_composite", "latin_hypercube", "sobol", "listed"]
FileValue = str | int | float | bool | list[Any] | dict[str, Any]
"""A value as a file has it."""


@value
class Level:
    """One setting of a factor."""

    coded: float = field(
        "Position between the low level (-1) and the high level (+1): in proportion to the value of a quantity (or to "
        "its logarithm); levels that are not quantities have equal steps"
    )
    label: str = field('Name in tables and figures: ``"78 B"``, ``"with queue manager"``')
    overrides: Mapping[str, FileValue] = field(
        "New values by path (:func:`routecast.router.variants.vary`), as in the file"
    )


@value
class Factor:
    """A part of a router, load or testbed file that the experiment varies."""

    letter: str = field("A, B, C, … in the order of the file, without I, which means the identity")
    name: str = field('``"packet size"``')
    levels: tuple[Level, ...] = field("Two or more levels, ascending in ``coded`` from -1 to +1")
    is_quantity: bool = field(
        "Whether the factor may have values between its levels, as response surfaces and samples need", default=False
    )
    is_log: bool = field("Quantities only: whether coded values are logarithmic", default=False)
    is_whole: bool = field(
        "Quantities only: whether values are whole numbers of the base unit (cores, frames, bytes of a frame)",
        default=False,
    )


@value
class Response:
    """A number that is read from each trial."""

    name: str = field('``"throughput"``')
    of: str = field(
        'Path in the :class:`~routecast.evaluate.Trial`: ``"l2_bps"``, ``"latency.p99_s"``, ``"power.mean_w"``, '
        '``"resource[cpu].utilisation_ratio"``'
    )
    transform: Literal["none", "log", "reciprocal"] = field(
        "Transform of the value before the analysis (Jain, sec. 17.6)", default="none"
    )
    read_at_s: float | None = field(
        "Rates of simulations and on the wire only: end of the mean since the start of the trial; None: the mean after "
        "the transient",
        default=None,
    )


@value
class Design:
    """The combinations of levels that an experiment tries."""

    kind: DesignKind
    coded: tuple[tuple[float, ...], ...] = field(
        "Coded levels: a row for each combination, a column for each factor; in standard (Yates) order if there is one"
    )
    replications: int = field("Runs of each combination, each with its own seed: the r of 2^k r", default=1)
    generators: tuple[str, ...] = field('Fractions only: generators, ``("D=AB", "E=AC")``', default=())


@value
class Experiment:
    """An experiment, ready to run."""

    name: str
    title: str = ""
    question: str = ""
    document: Mapping[str, Any] = field("Content of the router file or test bed file")
    evaluator: EvaluatorKind
    duration_s: float = field("Duration of each trial")
    seed: int = field(
        "Seed from which the seeds of the runs are spawned (``numpy.random.SeedSequence.spawn``)", default=1
    )
    is_steadied: bool = field(
        "Whether MSER-5 cuts off the transient and each run is tested for drift (simulation and wire only)",
        default=False,
    )
    has_common_seeds: bool = field(
        "Whether all rows of a replication have the same seed (common random numbers)", default=False
    )
    factors: tuple[Factor, ...]
    design: Design
    responses: tuple[Response, ...]
    folder: str = field("Folder of the files that the document names", default="")


@value
class Run:
    """One trial of an experiment, with everything that a worker needs; it can be pickled."""

    key: str = field("Hash of everything that decides the answer: runs with the same key have the same answer")
    row: int = field("Row of :attr:`Design.coded`")
    replication: int = field("Number of the replication, from 0")
    document: Mapping[str, Any] = field("Content of the router or test bed file with the levels of this run")
    evaluator: EvaluatorKind
    duration_s: float
    seed: int
    is_steadied: bool
    responses: tuple[Response, ...]
    folder: str = field("Folder of the files that the document names", default="")


@value
class Answer:
    """The answer of a run."""

    key: str = field("Key of the run")
    values: Mapping[str, float] = field("Values by name of the response, before any transform; empty if the run failed")
    problem: str = field(
        "Reason why responses have no values, such as levels that make the router invalid; empty if all have values",
        default="",
    )
    unsteady: str = field("Reason why the run is not steady; empty if it is steady or was not tested", default="")
    bottleneck: str = field("Bottleneck in the evaluator's words", default="")


@value
class Results:
    """All runs of an experiment with their answers, in the order of the design."""

    experiment: Experiment
    runs: tuple[Run, ...]
    answers: tuple[Answer, ...] = field("Answers of the runs, in their order")
    resumed: int = field("Number of answers that were in the folder before", default=0)
    elapsed_s: float = dataclasses.field(default=0.0, compare=False)

    def values(self, response: str) -> tuple[float, ...]:
        """Return the values of a response in the order of the runs; NaN for a failed run.

        Raises
        ------
        RoutecastError
            There is no such response.
        """
        names = [response.name for response in self.experiment.responses]
        if response not in names:
            raise RoutecastError(f'there is no response "{response}": there are {", ".join(names)}')
        return tuple(answer.values.get(response, float("nan")) for answer in self.answers)
