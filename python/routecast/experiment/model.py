"""A designed experiment as data: factors, the design, its runs and what they answered.

The notation is Jain's (The Art of Computer Systems Performance Analysis, 1991, part IV): factors A, B, C, …, levels
coded -1 and +1, effects ``q_0, q_A, q_AB, …``, and ``SST``, the total variation that they share among them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from routecast.errors import RoutecastError

__all__ = [
    "Answer",
    "Design",
    "DesignKind",
    "EvaluatorKind",
    "Experiment",
    "Factor",
    "Level",
    "Plain",
    "Response",
    "Results",
    "Run",
]

DesignKind = Literal["full", "fractional", "multilevel", "central_composite", "latin_hypercube", "sobol", "listed"]
EvaluatorKind = Literal["solve", "simulate", "measure"]
Plain = str | int | float | bool | list[Any] | dict[str, Any]
"""A value as a file says it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """One setting of a factor.

    Parameters
    ----------
    coded : float
        Where it stands between the low level (-1) and the high one (+1). Levels of a quantity lie where their values
        do (or the logarithms of them); levels without an order are -1, …, +1 at equal steps.
    label : str
        What tables and figures call it: ``"78 B"``, ``"with queue manager"``.
    overrides : mapping of str to value
        New values by path (:func:`routecast.router.variants.vary`), as the file would say them.
    """

    coded: float
    label: str
    overrides: Mapping[str, Plain]


@dataclass(frozen=True, slots=True, kw_only=True)
class Factor:
    """Something in a router, load or testbed file that the experiment varies.

    Parameters
    ----------
    letter : str
        A, B, C, … in the order of the file (I is left out: it means the identity).
    name : str
        ``"packet size"``.
    levels : tuple of Level
        At least two, ascending in ``coded``; first and last have -1 and +1.
    is_quantity : bool
        Whether points between the levels make sense: needed for response surfaces and samples.
    is_log : bool
        Quantities only: whether coded values are logarithmic.
    is_whole : bool
        Quantities only: whether only whole numbers of the base unit make sense (cores, frames, bytes of a frame).
    """

    letter: str
    name: str
    levels: tuple[Level, ...]
    is_quantity: bool = False
    is_log: bool = False
    is_whole: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """What is read from each trial.

    Parameters
    ----------
    name : str
        ``"throughput"``.
    of : str
        Path in the :class:`~routecast.evaluate.Trial`: ``"l2_bps"``, ``"latency.p99_s"``, ``"power.mean_w"``,
        ``"resource[cpu].utilisation_ratio"``.
    transform : {"none", "log", "reciprocal"}
        What is analysed instead of the value itself (Jain, sec. 17.6).
    read_at_s : float or None
        Rates of simulations and on the wire only: what one look at this instant would have said, the mean since the
        start of the trial, instead of the mean after the transient.
    """

    name: str
    of: str
    transform: Literal["none", "log", "reciprocal"] = "none"
    read_at_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """Which combinations of levels are tried.

    Parameters
    ----------
    kind : DesignKind
    coded : tuple of tuple of float
        One row per combination, one column per factor: coded levels, in standard (Yates) order where there is one.
    replications : int
        How often each combination is run, with seeds of its own: the r of 2^k r.
    generators : tuple of str
        Fractions only: ``("D=AB", "E=AC")``.
    """

    kind: DesignKind
    coded: tuple[tuple[float, ...], ...]
    replications: int = 1
    generators: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """A whole experiment, ready to run.

    Parameters
    ----------
    name, title, question : str
    document : mapping
        What the router file (or testbed file) says.
    evaluator : EvaluatorKind
    duration_s : float
        Of each trial.
    seed : int
        Of the experiment; each run's own is spawned from it (``numpy.random.SeedSequence.spawn``).
    is_steadied : bool
        Whether the transient is cut off by MSER-5 and each run is tested for drift (simulation and wire only).
    has_common_seeds : bool
        Whether all rows of a replication have the same seed (common random numbers).
    factors, design, responses
    folder : str
        Where files that the document names are looked for.
    """

    name: str
    title: str = ""
    question: str = ""
    document: Mapping[str, Any]
    evaluator: EvaluatorKind
    duration_s: float
    seed: int = 1
    is_steadied: bool = False
    has_common_seeds: bool = False
    factors: tuple[Factor, ...]
    design: Design
    responses: tuple[Response, ...]
    folder: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One trial of an experiment; it can be pickled, and whoever runs it needs nothing but it.

    Parameters
    ----------
    key : str
        Hash of everything that decides the answer: the same key, the same answer.
    row : int
        Row of :attr:`Design.coded`.
    replication : int
        0, 1, …
    document : mapping
        The router (or testbed) file with the levels of this run.
    evaluator : EvaluatorKind
    duration_s : float
    seed : int
    is_steadied : bool
    responses : tuple of Response
    folder : str
        Where files that the document names are looked for.
    """

    key: str
    row: int
    replication: int
    document: Mapping[str, Any]
    evaluator: EvaluatorKind
    duration_s: float
    seed: int
    is_steadied: bool
    responses: tuple[Response, ...]
    folder: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a run answered.

    Parameters
    ----------
    key : str
        The run's.
    values : mapping of str to float
        By name of the response, before any transform; empty where the run failed.
    problem : str
        Why the run has no answer (the level makes the router invalid), or none for some of the responses (its router
        has no such entry); empty where it has all.
    unsteady : str
        Why the run is called not steady; empty where it is steady or nobody looked.
    bottleneck : str
        What limited it, in the evaluator's words.
    """

    key: str
    values: Mapping[str, float]
    problem: str = ""
    unsteady: str = ""
    bottleneck: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """Every run of an experiment beside its answer, in the order of the design.

    Parameters
    ----------
    experiment : Experiment
    runs : tuple of Run
    answers : tuple of Answer
        One for each run.
    resumed : int
        How many were there already.
    elapsed_s : float
    """

    experiment: Experiment
    runs: tuple[Run, ...]
    answers: tuple[Answer, ...]
    resumed: int = 0
    elapsed_s: float = field(default=0.0, compare=False)

    def values(self, response: str) -> tuple[float, ...]:
        """Return the values of a response in the order of the runs; NaN where a run failed.

        Raises
        ------
        RoutecastError
            There is no such response.
        """
        names = [one.name for one in self.experiment.responses]
        if response not in names:
            raise RoutecastError(f'no response "{response}": there are {", ".join(names)}')
        return tuple(answer.values.get(response, float("nan")) for answer in self.answers)
