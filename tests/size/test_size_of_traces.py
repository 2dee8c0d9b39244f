"""A router file whose load is a trace is sized with the flows of the trace."""

from __future__ import annotations

from pathlib import Path

import pytest

from routecast.size import Target
from routecast.size.modelled import router_of_document, size_router


def test_the_flows_of_a_trace_limit_what_cores_carry(tmp_path: Path) -> None:
    rows = "".join(f"{number * 1e-5:.6f},64,{number % 8}\n" for number in range(4000))
    (tmp_path / "lab.csv").write_text("time_s,frame_bytes,flow\n" + rows)
    document = {
        "builder": "multicore",
        "cores": 4,
        "link": "10 Gbit/s",
        "service": {"per_packet": "1 us"},
        "load": {"arrivals": {"kind": "trace", "trace": "lab.csv"}},
    }
    target = Target.parse("2.5 Mpps")
    router = router_of_document(document, target, subject="lab", folder=tmp_path)
    model, load = router(3)
    assert load is not None
    assert len(load.flows.flows) == 8
    answer = size_router(router, target, counts=range(1, 7))
    rates = {count.cores: count.rate_pps for count in answer.counts}
    # Eight flows of equal shares: three cores have 3, 3 and 2 of them.
    assert rates[3] == pytest.approx(1e6 * 8 / 3, rel=1e-6)
    assert rates[6] == pytest.approx(4e6, rel=1e-6)
    assert len(model.ports) == 2
