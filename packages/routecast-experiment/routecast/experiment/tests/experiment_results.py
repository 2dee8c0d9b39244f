"""Experiments made by hand: the paper's, one with replications, a fraction, a surface, a sample, and broken ones."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from itertools import product

from routecast.experiment.analysis import Analysis, analyse
from routecast.experiment.model import Answer, Design, Experiment, Factor, Level, Response, Results, Run

Coded = tuple[float, ...]


def factor(letter: str, name: str, *labels: str, is_quantity: bool = False) -> Factor:
    step = 2.0 / (len(labels) - 1)
    levels = tuple(
        Level(coded=-1.0 + step * number, label=label, overrides={f"set.{letter}": label})
        for number, label in enumerate(labels)
    )
    return Factor(letter=letter, name=name, levels=levels, is_quantity=is_quantity)


def results_of(
    experiment: Experiment,
    value: Callable[[Coded, int], float],
    *,
    problems: Mapping[int, str] | None = None,
    unsteady: Mapping[int, str] | None = None,
) -> Results:
    """Return results whose responses all answer ``value`` of the coded levels and the number of the run."""
    runs, answers = [], []
    for row, coded in enumerate(experiment.design.coded):
        for replication in range(experiment.design.replications):
            number = len(runs)
            key = f"{number:032x}"
            runs.append(
                Run(
                    key=key,
                    row=row,
                    replication=replication,
                    document={},
                    evaluator=experiment.evaluator,
                    duration_s=experiment.duration_s,
                    seed=number,
                    is_steadied=experiment.is_steadied,
                    responses=experiment.responses,
                )
            )
            problem = (problems or {}).get(number, "")
            values = {} if problem else {response.name: value(coded, number) for response in experiment.responses}
            answers.append(
                Answer(
                    key=key,
                    values=values,
                    problem=problem,
                    unsteady=(unsteady or {}).get(number, ""),
                    bottleneck="queue manager is busy 100 % of the time",
                )
            )
    return Results(experiment=experiment, runs=tuple(runs), answers=tuple(answers), elapsed_s=1.25)


def analyses_of(results: Results) -> dict[str, Analysis]:
    return {response.name: analyse(results, response.name) for response in results.experiment.responses}


FACTORS = (
    factor("A", "packet size", "78 B", "1500 B"),
    factor("B", "queue manager", "full", "stub"),
    factor("C", "parse threads", "4", "8"),
)


def paper_value(coded: Coded, _: int = 0) -> float:
    """The effects of Heller 2006, sec. 5.3; its mean is not given, 1500 Mbit/s is assumed."""
    a, b, c = coded[:3]
    return 1e6 * (1500.0 + 464.0 * a + 148.0 * b - 215.0 * a * b + 11.0 * c + 9.0 * a * c)


def experiment(
    coded: Sequence[Coded] | None = None,
    *,
    factors: tuple[Factor, ...] = FACTORS,
    replications: int = 1,
    kind: str = "full",
    generators: tuple[str, ...] = (),
    evaluator: str = "simulate",
    responses: tuple[Response, ...] = (Response(name="throughput", of="l2_bps"),),
    is_steadied: bool = False,
) -> Experiment:
    if coded is None:
        coded = [row[::-1] for row in product((-1.0, 1.0), repeat=len(factors))]
    return Experiment(
        name="diversified",
        title="What limits the diversified router",
        question="Which of packet size, queue manager and parse threads limits throughput?",
        document={},
        evaluator=evaluator,  # type: ignore[arg-type] # a literal in the callers
        duration_s=0.1,
        seed=7,
        is_steadied=is_steadied,
        factors=factors,
        design=Design(
            kind=kind,  # type: ignore[arg-type] # a literal in the callers
            coded=tuple(coded),
            replications=replications,
            generators=generators,
        ),
        responses=responses,
    )


def noisy(value: Callable[[Coded, int], float], sigma: float, seed: int = 1) -> Callable[[Coded, int], float]:
    random_ = random.Random(seed)
    return lambda coded, number: value(coded, number) + random_.gauss(0.0, sigma)


def paper() -> Results:
    return results_of(experiment(), paper_value)


def replicated() -> Results:
    return results_of(experiment(replications=3), noisy(paper_value, 30e6))


def broken() -> Results:
    """Two of 24 runs without an answer, one that is not steady."""
    return results_of(
        experiment(replications=3, is_steadied=True),
        noisy(paper_value, 30e6),
        problems={4: "row 1: queue: got 0, must be at least 1", 5: "row 1: queue: got 0, must be at least 1"},
        unsteady={9: "still rising by 3.2 % over the last 60 ms"},
    )


def fraction() -> Results:
    """2^(5-2), generators D = AB and E = AC."""
    factors = (*FACTORS, factor("D", "lookup threads", "4", "8"), factor("E", "ring length", "64", "1024"))
    coded = [(a, b, c, a * b, a * c) for c, b, a in product((-1.0, 1.0), repeat=3)]
    return results_of(
        experiment(coded, factors=factors, kind="fractional", generators=("D=AB", "E=AC")),
        lambda coded, number: paper_value(coded) + 5e6 * coded[4] + 2e6 * (number % 3),
    )


def surface() -> Results:
    """A central composite design over two quantities, with its highest point at (0.4, -0.3)."""
    sizes = tuple(
        Level(coded=at, label=f"{size} B", overrides={"load.frame": f"{size} B"})
        for at, size in ((-1.0, 200), (1.0, 1400))
    )
    cores = tuple(Level(coded=at, label=str(count), overrides={"cores": count}) for at, count in ((-1.0, 2), (1.0, 10)))
    factors = (
        Factor(letter="A", name="frame size", levels=sizes, is_quantity=True, is_whole=True),
        Factor(letter="B", name="cores", levels=cores, is_quantity=True),
    )
    far = 2.0**0.5
    coded = [
        *((a, b) for b in (-1.0, 1.0) for a in (-1.0, 1.0)),
        (-far, 0.0), (far, 0.0), (0.0, -far), (0.0, far),
        *[(0.0, 0.0)] * 5,
    ]  # fmt: skip
    return results_of(
        experiment(coded, factors=factors, kind="central_composite"),
        noisy(
            lambda at, _: 1e6 * (5000.0 - 800.0 * (at[0] - 0.4) ** 2 - 500.0 * (at[1] + 0.3) ** 2
            + 200.0 * (at[0] - 0.4) * (at[1] + 0.3)), 20e6),
    )  # fmt: skip


def sample(count: int = 200) -> Results:
    """A random sample of three quantities and one that does nothing."""
    names = (("A", "frame size"), ("B", "cores"), ("C", "clock"), ("D", "ring length"))
    ends = (("64 B", "1518 B"), ("1", "16"), ("1 GHz", "3 GHz"), ("64", "4096"))
    factors = tuple(
        Factor(
            letter=letter,
            name=name,
            levels=tuple(
                Level(coded=at, label=label, overrides={f"set.{letter}": int(label) if label.isdecimal() else label})
                for at, label in zip((-1.0, 1.0), pair, strict=True)
            ),
            is_quantity=True,
        )
        for (letter, name), pair in zip(names, ends, strict=True)
    )
    random_ = random.Random(3)
    coded = [tuple(random_.uniform(-1.0, 1.0) for _ in factors) for _ in range(count)]
    return results_of(
        experiment(coded, factors=factors, kind="latin_hypercube", evaluator="solve"),
        lambda at, _: 1e9 * (5.0 + 3.0 * at[0] + 1.5 * at[1] + 0.7 * at[0] * at[1] - 0.8 * at[2] ** 2),
    )


def constant() -> Results:
    return results_of(experiment(), lambda *_: 1e9)


def without_answers() -> Results:
    return results_of(experiment(), paper_value, problems=dict.fromkeys(range(8), "router: no load"))


def multilevel() -> Results:
    factors = (
        factor("A", "cipher", "none", "AES-128", "AES-256", "CAST"),
        factor("B", "engines", "1", "2", "4", is_quantity=False),
    )
    coded = [(a.coded, b.coded) for a in factors[0].levels for b in factors[1].levels]
    by = {-1.0: 900e3, -1.0 / 3.0: 600e3, 1.0 / 3.0: 500e3, 1.0: 200e3}
    return results_of(
        experiment(
            coded,
            factors=factors,
            kind="multilevel",
            replications=2,
            responses=(Response(name="rate", of="forwarded_pps", transform="log"),),
        ),
        noisy(lambda at, _: min(by.items(), key=lambda pair: abs(pair[0] - at[0]))[1] * (2.0 + at[1]), 5e3),
    )
