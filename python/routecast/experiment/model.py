"""A designed experiment as data: factors, the design, its runs and what they answered.

The notation is Jain's (The Art of Computer Systems Performance Analysis, 1991, part IV): factors A, B, C, …, levels
coded -1 and +1, effects ``q_0, q_A, q_AB, …``, and ``SST``, the total variation that they share among them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Literal

from routecast.errors import RoutecastError
from routecast.evaluate.protocol import EvaluatorKind
from routecast.quantity.schema import field, value

__all__ = ["Answer", "Design", "DesignKind", "Experiment", "Factor", "Level", "Plain", "Response", "Results", "Run"]

DesignKind = Literal["full", "fractional", "multilevel", "central_composite", "latin_hypercube", "sobol", "listed"]
Plain = str | int | float | bool | list[Any] | dict[str, Any]
"""A value as a file says it."""


@value
class Level:
    """One setting of a factor."""

    # Levels of a quantity lie where their values do (or the logarithms of them); levels without an order are -1, …, +1
    # at equal steps.
    coded: float = field("Where it stands between the low level (-1) and the high one (+1)")
    label: str = field('What tables and figures call it: ``"78 B"``, ``"with queue manager"``')
    # New values by path (:func:`routecast.router.variants.vary`), as the file would say them.
    overrides: Mapping[str, Plain]


@value
class Factor:
    """Something in a router, load or testbed file that the experiment varies."""

    letter: str = field("A, B, C, … in the order of the file (I is left out: it means the identity)")
    name: str = field('``"packet size"``')
    levels: tuple[Level, ...] = field("At least two, ascending in ``coded``; first and last have -1 and +1")
    is_quantity: bool = field(
        "Whether points between the levels make sense: needed for response surfaces and samples", default=False
    )
    is_log: bool = field("Quantities only: whether coded values are logarithmic", default=False)
    # Quantities only: whether only whole numbers of the base unit make sense (cores, frames, bytes of a frame).
    is_whole: bool = False


@value
class Response:
    """What is read from each trial."""

    name: str = field('``"throughput"``')
    # Path in the :class:`~routecast.evaluate.Trial`: ``"l2_bps"``, ``"latency.p99_s"``, ``"power.mean_w"``,
    # ``"resource[cpu].utilisation_ratio"``.
    of: str
    transform: Literal["none", "log", "reciprocal"] = field(
        "What is analysed instead of the value itself (Jain, sec. 17.6).", default="none"
    )
    # Rates of simulations and on the wire only: what one look at this instant would have said, the mean since the start
    # of the trial, instead of the mean after the transient.
    read_at_s: float | None = None


@value
class Design:
    """Which combinations of levels are tried."""

    kind: DesignKind
    # One row per combination, one column per factor: coded levels, in standard (Yates) order where there is one.
    coded: tuple[tuple[float, ...], ...]
    replications: int = field("How often each combination is run, with seeds of its own: the r of 2^k r", default=1)
    generators: tuple[str, ...] = field('Fractions only: ``("D=AB", "E=AC")``', default=())


@value
class Experiment:
    """A whole experiment, ready to run."""

    name: str
    title: str = ""
    question: str = ""
    document: Mapping[str, Any] = field("What the router file (or testbed file) says")
    evaluator: EvaluatorKind
    duration_s: float = field("Of each trial")
    seed: int = field(
        "Of the experiment; each run's own is spawned from it (``numpy.random.SeedSequence.spawn``)", default=1
    )
    # Whether the transient is cut off by MSER-5 and each run is tested for drift (simulation and wire only).
    is_steadied: bool = False
    has_common_seeds: bool = field(
        "Whether all rows of a replication have the same seed (common random numbers)", default=False
    )
    factors: tuple[Factor, ...]
    design: Design
    responses: tuple[Response, ...]
    folder: str = field("Where files that the document names are looked for", default="")


@value
class Run:
    """One trial of an experiment; it can be pickled, and whoever runs it needs nothing but it."""

    key: str = field("Hash of everything that decides the answer: the same key, the same answer")
    row: int = field("Row of :attr:`Design.coded`")
    replication: int = field("0, 1, …")
    document: Mapping[str, Any] = field("The router (or testbed) file with the levels of this run")
    evaluator: EvaluatorKind
    duration_s: float
    seed: int
    is_steadied: bool
    responses: tuple[Response, ...]
    folder: str = field("Where files that the document names are looked for", default="")


@value
class Answer:
    """What a run answered."""

    key: str = field("The run's")
    values: Mapping[str, float] = field("By name of the response, before any transform; empty where the run failed")
    # Why the run has no answer (the level makes the router invalid), or none for some of the responses (its router has
    # no such entry); empty where it has all.
    problem: str = ""
    unsteady: str = field("Why the run is called not steady; empty where it is steady or nobody looked", default="")
    bottleneck: str = field("What limited it, in the evaluator's words", default="")


@value
class Results:
    """Every run of an experiment beside its answer, in the order of the design."""

    experiment: Experiment
    runs: tuple[Run, ...]
    answers: tuple[Answer, ...] = field("One for each run")
    resumed: int = field("How many were there already", default=0)
    elapsed_s: float = dataclasses.field(default=0.0, compare=False)

    def values(self, response: str) -> tuple[float, ...]:
        """Return the values of a response in the order of the runs; NaN where a run failed.

        Raises
        ------
        RoutecastError
            There is no such response.
        """
        names = [response.name for response in self.experiment.responses]
        if response not in names:
            raise RoutecastError(f'no response "{response}": there are {", ".join(names)}')
        return tuple(answer.values.get(response, float("nan")) for answer in self.answers)
