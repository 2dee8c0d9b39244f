"""What ``routecast benchmark`` is asked to test: the rig that answers, and the streams it is sent."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from routecast.cli.console import remark

if TYPE_CHECKING:
    from collections.abc import Sequence

    from routecast.benchmark.result import Stream
    from routecast.benchmark.rig import Rig

__all__ = ["EvaluatorName", "rig_asked", "streams_asked"]


class EvaluatorName(StrEnum):
    """Who answers."""

    MEASURE = "measure"
    SIMULATE = "simulate"
    SOLVE = "solve"


def streams_asked(*, bidirectional: bool, ipv6: bool, networks: int, filters: int, burst: int) -> Sequence[Stream]:
    """Return the stream that the options describe; none if there are none."""
    from routecast.benchmark.profile import StreamProfile
    from routecast.benchmark.streams import stream_of

    stream = StreamProfile(
        protocol="IPv6" if ipv6 else "IPv4",
        bidirectional=bidirectional,
        networks=networks,
        filters=filters,
        burst_frames=burst,
    )
    return () if stream == StreamProfile() else (stream_of(stream),)


def rig_asked(
    router: Path | None,
    evaluator: EvaluatorName,
    *,
    testbed: str | None,
    dut: str | None,
    options: Sequence[str],
    outages: Sequence[str],
    own_network: bool,
    power: str | None,
    seed: int,
) -> Rig:
    """Return what answers: a test bed with a device, or a model with an evaluator.

    Raises
    ------
    routecast.errors.RoutecastError
        Nothing to test, an option that the evaluator has no use for, a file that cannot be read.
    """
    from routecast.errors import QuantityProblem

    if evaluator is EvaluatorName.MEASURE:
        if router is not None:
            text = f"{router}: a model is answered by --evaluator simulate or --evaluator solve"
            raise QuantityProblem(str(router), text)
        if testbed is None and dut is None:
            text = (
                "nothing to test: give --testbed namespaces --dut linux, or a *.testbed.toml, "
                "or --evaluator simulate ROUTER.toml"
            )
            raise QuantityProblem("", text)
        if outages:
            raise QuantityProblem(outages[0], "--outage is for a simulated model: a device is really reset")
        from routecast.benchmark.bed_rig import BedRig
        from routecast.testbed.opening import pairs

        return BedRig(
            testbed or "namespaces",
            device=dut,
            options=pairs(options),
            own_network=own_network,
            power=power,
            said=remark,
        )
    if router is None:
        name = evaluator.value
        raise QuantityProblem("", f"--evaluator {name} answers for a model: give a ROUTER.toml as argument")
    if testbed is not None or dut is not None:
        raise QuantityProblem("", f"--testbed and --dut are for --evaluator measure, not {evaluator.value}")
    if power is not None:
        text = f"--power {power}: a model's watts come from its power states; a meter is for --evaluator measure"
        raise QuantityProblem(power, text)
    from routecast.benchmark.rig import ModelRig
    from routecast.router.files import read_router_and_load

    model, _ = read_router_and_load(router)
    lengths_s = _outages(outages)
    if evaluator is EvaluatorName.SOLVE:
        return ModelRig(model=model, with_="solve", seed=seed, outages_s={})
    return ModelRig(model=model, with_="simulate", seed=seed, outages_s=lengths_s)


def _outages(texts: Sequence[str]) -> dict[str, float]:
    from routecast.errors import QuantityProblem
    from routecast.quantity import parse_duration_s

    found = {}
    for text in texts:
        kind, equals, length = text.partition("=")
        if not equals or not kind.strip():
            raise QuantityProblem(text, f"--outage {text!r}: write KIND=TIME, such as process=250ms")
        found[kind.strip()] = parse_duration_s(length)
    return found
