"""An interrupted search returns its best mapping, whenever the signal comes."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable

import pytest

CHILD = """
import json, sys, time
from dataclasses import replace
from routecast.plan.tests.placements import multistage, technology
from routecast.plan.placement.answer import answer
from routecast.plan.placement.model import Goal, ServerGroup

goal = Goal(objective=sys.argv[1], target_pps=None if sys.argv[1] == "throughput" else 1e5, seconds=20.0)
technique = technology(sigma=0.1)
servers = (ServerGroup(name="s", number=4, cores=2, technology=technique, idle_w=50.0, busy_w=90.0),)
problem = replace(multistage(4, 4, servers, goal=goal), offered_pps=1e5)
waited = []

def progress(done, total, text):
    if sys.argv[2] in text and not waited:
        waited.append(text)
        print("waits", flush=True)
        for _ in range(6000):  # a signal just before a sleep is handled after it
            time.sleep(0.01)

result = answer(problem, on_progress=progress, simulate=sys.argv[3] == "simulate")
print(json.dumps({"servers": dict(result.best.placement.servers), "notes": result.notes, "value": result.best.value}))
"""


@pytest.mark.parametrize(
    ("objective", "where", "simulate"),
    [
        ("servers", "the least servers", "no"),
        ("watts", "the least watts", "no"),
        ("throughput", "the mapping that carries most", "no"),
        ("throughput", "within", "no"),
        ("throughput", "simulates", "simulate"),
    ],
)
@pytest.mark.slow
def test_an_interrupted_search_answers_with_a_mapping_and_says_so(
    objective: str, where: str, simulate: str, start: Callable[..., subprocess.Popen[str]]
) -> None:
    child = start([sys.executable, "-c", CHILD, objective, where, simulate], stdout=subprocess.PIPE)
    assert child.stdout is not None
    assert child.stdout.readline() == "waits\n"
    child.send_signal(signal.SIGINT)
    stdout, _ = child.communicate(timeout=120)
    assert child.returncode == 0
    printed = json.loads(stdout)
    assert sorted(printed["servers"]) == [f"{kind} {number}" for kind in ("br", "lb") for number in (1, 2, 3, 4)]
    assert set(printed["servers"].values()) <= {"s 1", "s 2", "s 3", "s 4"}
    assert printed["value"] > 0.0
    assert any("interrupted" in note for note in printed["notes"])
