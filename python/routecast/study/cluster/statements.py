"""What the thesis says of its designs (Li 2012, sec. 8.1 and 8.3.3), beside what is found on this study's traffic."""

from __future__ import annotations

from routecast.study.cluster.result import ClusterResult
from routecast.study.stated import Statement

__all__ = ["statements"]


def statements(result: ClusterResult) -> tuple[Statement, ...]:
    """Return what the thesis states beside what is found; nothing where one of its designs does not exist."""
    found = result.answer
    if not result.goal_designs or not set(ROMAN) <= {one.name for one in found.others}:
        return ()
    kwh = {name: found.kwh_per_day(result.named(name).energy_j) for name in ROMAN}
    bound = found.kwh_per_day(found.bound.energy_j)
    goals = result.goal_designs
    tight, loose = goals[0], goals[-1]
    tight_kwh, loose_kwh = found.kwh_per_day(tight.energy_j), found.kwh_per_day(loose.energy_j)
    chosen = found.kwh_per_day(found.design.energy_j)
    prices = [result.named(name).price for name in ROMAN]
    usual = min(kwh["Design-I"], kwh["Design-II"])
    rows = [
        (
            "Design-II needs the most energy, above the optimum by",
            "8.3.3",
            "about 2 kWh",
            f"{kwh['Design-II'] - bound:.2f} kWh"
            + ("" if kwh["Design-II"] >= max(*kwh.values(), tight_kwh) else ", not the most"),
        ),
        (
            "Design-I needs less than Design-II by",
            "8.3.3",
            "about 1 kWh",
            f"{kwh['Design-II'] - kwh['Design-I']:.2f} kWh",
        ),
        (
            "Design-IV needs more than the optimum by",
            "8.3.3",
            "about 0.25 kWh",
            f"{kwh['Design-IV'] - bound:.2f} kWh",
        ),
        (
            "The goal program at the tightest budget is like Designs I and III",
            "8.3.3",
            "similar",
            f"{tight_kwh:.2f} against {kwh['Design-I']:.2f} and {kwh['Design-III']:.2f} kWh",
        ),
        (
            "With looser budgets it saves, against the other designs",
            "8.3.3",
            "1 to 2 kWh a day",
            f"{min(kwh.values()) - loose_kwh:.2f} to {max(kwh.values()) - loose_kwh:.2f} kWh",
        ),
        (
            "The designs of the thesis save, against Designs I and II",
            "8.3.3",
            "roughly 10 %, up to 20 %",
            f"{100 * (1 - chosen / usual):.1f} % to {100 * (1 - loose_kwh / kwh['Design-II']):.1f} %",
        ),
        (
            "Design-I is the cheapest of Designs I to IV",
            "8.3.3",
            "yes",
            "yes" if result.named("Design-I").price <= min(prices) else "no",
        ),
        (
            "The almost optimal design costs, relative to the others",
            "8.3.3",
            "1.5 to 2 times",
            f"{loose.price / max(prices):.2f} to {loose.price / min(prices):.2f} times",
        ),
        (
            "Saving algorithms save, against machines for the peak that stay on",
            "8.1",
            "up to 60 %",
            f"{100 * (1 - found.design.energy_j / found.always_on_j):.0f} % over the mean day"
            + (f", {100 * _trace_saving(result):.0f} % over the trace" if found.trace_savings else ""),
        ),
    ]
    steps = sorted({one.run_s for one in result.sampled})
    if len(steps) > 1:
        fine, coarse = steps[0], steps[-1]
        lost = result.of_sampling(coarse, fine).kwh_per_day - result.of_sampling(coarse, coarse).kwh_per_day
        own = result.of_sampling(coarse, fine).kwh_per_day - result.of_sampling(fine, fine).kwh_per_day
        rows.append(
            (
                f"A design for {coarse / 60:g} min run at {fine / 60:g} min needs more by",
                "fig. 8.6",
                "0.8 kWh a day",
                f"{lost:+.2f} kWh; {own:+.2f} kWh against a design for {fine / 60:g} min".replace("-", "−"),
            )
        )
    return tuple(Statement(says=says, where=where, thesis=thesis, here=here) for says, where, thesis, here in rows)


ROMAN = ("Design-I", "Design-II", "Design-III", "Design-IV")


def _trace_saving(result: ClusterResult) -> float:
    always, online = result.answer.trace_savings[0], result.answer.trace_savings[3]
    return 1.0 - online.schedule.energy_j / always.schedule.energy_j
