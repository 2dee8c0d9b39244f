"""A router of many machines with a name of its own, and the tester at its hosts."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from routecast.multistage.appliance import Appliance
from routecast.multistage.tests.multistage_hosts import EXAMPLE, Hosts, Steady, hosts_of


@pytest.fixture
def text() -> str:
    """The example, as a router that no other test has."""
    return EXAMPLE.replace('"demo"', f'"t{os.getpid() % 100_000}-{time.monotonic_ns() % 1000}"')


@pytest.fixture
def router(text: str) -> Iterator[Appliance]:
    """The example's router, up."""
    with Appliance(text) as result:
        yield result


@pytest.fixture
def hosts(router: Appliance) -> Iterator[Hosts]:
    """The tester on the hosts of the example's router."""
    with hosts_of(router) as result:
        yield result


@pytest.fixture
def steady() -> Steady:
    """Judge a trial of the bare tester as ``undisturbed`` does whole ones: what came late, other work held up.

    That is a frame that was sent late, or a change (``late_s``) that was not made in its part of the trial.
    """

    def judged(run: Callable[[], dict[str, Any]], judge: Callable[[dict[str, Any]], None], attempts: int = 4) -> Any:
        late = []
        for _ in range(attempts):
            result = run()
            try:
                judge(result)
            except AssertionError:
                if result["latest_s"] < 2e-3 and not result["unsent_frames"] and not result.get("late_s"):
                    raise
                late.append(f"{max(result['latest_s'], result.get('late_s', 0.0)) * 1e3:.0f} ms")
            else:
                return result
        pytest.skip(
            f"disturbed by other work in each of {attempts} attempts: frames or a change came {', '.join(late)} late"
        )

    return judged
