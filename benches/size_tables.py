"""Random tables of measurements with a known truth: what `size` says of them, and how often its intervals hold.

Four questions, each with tables that nobody has seen:

* ``rows``: 2,000 tables with links, cards, ports, noise, units and held-out rows: no answer may be refuted by a row of
  its table, and where a row decides, there must be an answer;
* ``ceilings``: a third of the tables meets a ceiling at 1.5, 2 or 3 times its largest count: coverage of 95 % beyond
  the table, and the width of the intervals where there is no ceiling;
* ``shapes``: 300 smooth routers and 300 whose queues are dealt by modulo (a sawtooth over the cores): how often 50, 80
  and 95 % intervals hold at counts between six measured ones;
* ``repeats``: tables whose points repeat within 3 %, without a repetition.

::

    python benches/size_tables.py [rows|ceilings|shapes|repeats ...] [--tables N]
"""

from __future__ import annotations

import argparse
import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from random import Random
from statistics import fmean, median

from routecast.calibration import fit
from routecast.evaluate.point_table import parse_points
from routecast.evaluate.points import Point
from routecast.load.offered import WIRE_OVERHEAD_BYTES
from routecast.size import Target, size

LINKS_BPS = (1e9, 10e9, 25e9, 40e9, 100e9)
SIZES = (64, 128, 256, 512, 1024, 1518)
LEVELS = (0.5, 0.8, 0.95)


@dataclass(frozen=True, kw_only=True)
class Truth:
    """A router: time of a frame on one core, its cost per byte, contention, and what limits besides."""

    per_frame_s: float
    per_byte_s: float
    contention: float
    cap_bps: float = math.inf
    cap_pps: float = math.inf
    queues: int = 0

    def cores_pps(self, cores: int, frame_bytes: float) -> float:
        """Rate of the cores alone: Amdahl's law; with queues dealt by modulo, that of the fullest core."""
        useful = cores
        if self.queues:
            useful = self.queues / math.ceil(self.queues / cores)
        growth = useful / (1.0 + self.contention * (useful - 1.0))
        return growth / (self.per_frame_s + self.per_byte_s * frame_bytes)

    def pps(self, cores: int, frame_bytes: float) -> float:
        """Rate with everything that limits."""
        wire_pps = self.cap_bps / (8.0 * (frame_bytes + WIRE_OVERHEAD_BYTES))
        return min(self.cores_pps(cores, frame_bytes), wire_pps, self.cap_pps)


def random_truth(random: Random, *, capped: bool) -> Truth:
    """Draw a router; with ``capped``, two of three have a link, a bus or a card that limits some rates."""
    per_frame_s = 10.0 ** random.uniform(-7.2, -5.8)
    kind = random.choice(["link", "link", "bus", "card", "none", "none"]) if capped else "none"
    truth = Truth(
        per_frame_s=per_frame_s,
        per_byte_s=per_frame_s * 10.0 ** random.uniform(-5.0, -3.0),
        contention=random.choice([0.0, 10.0 ** random.uniform(-3.0, -1.0)]),
    )
    if kind == "link":
        return replace(truth, cap_bps=random.choice(LINKS_BPS))
    if kind == "bus":
        return replace(truth, cap_bps=10.0 ** random.uniform(9.5, 11.0))
    if kind == "card":
        return replace(truth, cap_pps=random.uniform(1.5, 6.0) / per_frame_s)
    return truth


def noisy(rate: float, noise: float, random: Random) -> float:
    """Return a measurement of a rate."""
    return rate * math.exp(random.gauss(0.0, noise))


def rows_table(random: Random) -> tuple[str, list[Point], float]:
    """Return a table of random counts, sizes, units and held-out rows as text, its points, and its noise."""
    truth, noise = random_truth(random, capped=True), random.choice([0.002, 0.01, 0.02, 0.03])
    counts = sorted(random.sample([1, 2, 3, 4, 6, 8, 12, 16], random.randint(2, 4)))
    sizes = sorted(random.sample(SIZES, random.randint(1, 3)))
    head, unit, layer = random.choice(
        [("throughput_pps", 1.0, ""), ("throughput_mpps", 1e6, ""), ("throughput_gbps", 1e9, "l1")]
    )
    states_link = math.isfinite(truth.cap_bps) and truth.cap_bps in LINKS_BPS and random.random() < 0.4
    holds_out = random.random() < 0.3
    lines = [",".join(["cores", "frame", head, *(["link_bps", "ports"] if states_link else []), "calibrate"])]
    for cores in counts:
        for frame in sizes:
            rate = noisy(truth.pps(cores, frame), noise, random)
            factor = 8.0 * (frame + WIRE_OVERHEAD_BYTES) if layer else 1.0
            is_held_out = holds_out and cores == counts[-1] and len(counts) > 2
            link = [f"{truth.cap_bps * 1.2:g}" if noise else f"{truth.cap_bps:g}", "1"] if states_link else []
            lines.append(
                ",".join([str(cores), str(frame), f"{rate * factor / unit:.6g}", *link, str(not is_held_out).lower()])
            )
    text = "\n".join(lines) + "\n"
    return text, list(parse_points(text)), noise


def judge_rows(tables: int) -> None:
    """Print how many answers a row refutes, and how many questions that a row decides are answered."""
    refuted, decided, answered, kinds, examples = 0, 0, 0, Counter[str](), []
    for number in range(tables):
        random = Random(number)
        text, points, noise = rows_table(random)
        frame = random.choice(sorted({point.frame_bytes for point in points}))
        own = [point for point in points if point.frame_bytes == frame]
        goal = random.choice(own).throughput_pps * random.choice([0.5, 0.8, 0.93, 1.07, 1.3, 2.0])
        target = Target.parse(f"{goal} pps", f"{frame:g} B")
        result = size(points, target, counts=range(1, 33), next_points=0)
        sure = 3.0 * max(noise, 0.01)
        meets = {p.working_cores: math.log(p.throughput_pps / goal) for p in own}
        met = [cores for cores, margin in meets.items() if margin > sure]
        missed = [cores for cores, margin in meets.items() if margin < -sure]
        cores = None if result.least is None else result.least.cores
        if cores is not None and (any(c >= cores for c in missed) or any(c < cores for c in met)):
            refuted += 1
            examples.append((number, cores, goal, text))
        if met and not any(c >= min(met) for c in missed):
            decided += 1
            answered += cores is not None
            if cores is None:
                kinds["contradiction" if result.contradiction else "cap" if result.cap else "unsure"] += 1
                examples.append((number, None, goal, text))
    print(f"rows: {tables} tables, {refuted} answers refuted by a row")
    print(f"rows: {decided} questions that a row decides, {answered} answered ({answered / max(decided, 1):.1%})")
    print(f"rows: not answered: {dict(kinds)}")
    for example in examples[:3]:
        print(example)


def judge_ceilings(tables: int) -> None:
    """Print coverage beyond the table, and the width where there is no ceiling."""
    inside, widths, without = [], [], []
    for number in range(tables):
        random = Random(10_000 + number)
        truth, counts = random_truth(random, capped=False), [1, 2, 4]
        ceiling = random.choice([1.5, 2.0, 3.0]) * counts[-1] if number % 3 == 0 else math.inf
        if math.isfinite(ceiling):
            low, high = int(ceiling), math.ceil(ceiling)
            most = math.sqrt(truth.cores_pps(low, 64) * truth.cores_pps(high, 64))
            truth = replace(truth, cap_pps=most)
        points = [
            Point(cores=cores, frame_bytes=64.0, throughput_pps=noisy(truth.pps(cores, 64), 0.01, random))
            for cores in counts
        ]
        fitted = fit(points)
        bare = replace(fitted, hazard=0.0)
        for cores in (6, 8, 12, 16):
            asked = replace(points[-1], cores=cores, throughput_pps=noisy(truth.pps(cores, 64), 0.01, random))
            (prediction,), (other,) = fitted.predict([asked]), bare.predict([asked])
            inside.append(prediction.low_pps <= asked.throughput_pps <= prediction.high_pps)
            if not math.isfinite(ceiling):
                widths.append(math.log(prediction.high_pps / prediction.low_pps))
                without.append(math.log(other.high_pps / other.low_pps))
    ratio = fmean(widths) / fmean(without)
    print(f"ceilings: {tables} tables, 95 % intervals hold {fmean(inside):.1%} of {len(inside)} later rates")
    print(f"ceilings: width without a ceiling {fmean(widths):.3f}, {ratio:.2f} times that without unseen ceilings")


def judge_shapes(tables: int) -> None:
    """Print how often intervals hold at counts between and beyond the measured ones."""
    for name, make in (("smooth", smooth), ("sawtooth", sawtooth)):
        _print_coverage(f"shapes, {name}", tables, make, noise=0.01)


def judge_repeats(tables: int) -> None:
    """Print how often intervals hold where points repeat within 3 % and nobody repeated them."""
    _print_coverage("repeats", tables, smooth, noise=0.03)


def smooth(random: Random) -> Truth:
    """Draw a router whose rate is smooth over the cores."""
    return random_truth(random, capped=False)


def sawtooth(random: Random) -> Truth:
    """Draw a router whose 16 to 64 queues are dealt to its cores by modulo."""
    return replace(random_truth(random, capped=False), queues=random.choice([16, 24, 32, 48, 64]))


def _print_coverage(name: str, tables: int, make: Callable[[Random], Truth], *, noise: float) -> None:
    held = {level: [] for level in LEVELS}
    errors = []
    for number in range(tables):
        random = Random(20_000 + number)
        truth = make(random)
        rate = partial(_measured, truth, noise, random)
        chosen_counts = [1, *sorted(random.sample(range(2, 16), 4)), 16]
        fitted = fit([rate(cores) for cores in chosen_counts])
        points = [rate(cores) for cores in range(2, 16) if cores not in chosen_counts]
        for point, prediction in zip(points, fitted.predict(points), strict=True):
            errors.append(abs(prediction.throughput_pps / point.throughput_pps - 1.0))
            for level, (low, high) in prediction.intervals.items():
                held[level].append(low <= point.throughput_pps <= high)
    shares = ", ".join(f"{level:.0%} intervals hold {fmean(hits):.1%}" for level, hits in held.items())
    print(f"{name}: {tables} tables, {shares}; median error {median(errors):.2%}")


def _measured(truth: Truth, noise: float, random: Random, cores: int) -> Point:
    return Point(cores=cores, frame_bytes=64.0, throughput_pps=noisy(truth.pps(cores, 64), noise, random))


JUDGES = {"rows": (judge_rows, 2000), "ceilings": (judge_ceilings, 300), "shapes": (judge_shapes, 300)}
JUDGES["repeats"] = (judge_repeats, 300)


def chosen(arguments: argparse.Namespace) -> Iterator[Callable[[], None]]:
    """Yield the chosen judgements with their number of tables."""
    for name in arguments.what or JUDGES:
        judge, tables = JUDGES[name]
        yield partial(judge, arguments.tables or tables)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="*", choices=[*JUDGES, []])
    parser.add_argument("--tables", type=int, default=0)
    for judge in chosen(parser.parse_args()):
        judge()
