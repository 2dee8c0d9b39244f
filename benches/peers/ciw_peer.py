"""The benchmark workloads on Ciw, as its documentation would write them.

``python ciw_peer.py WORKLOAD FRAMES WARMUP_US SEED`` prints one line of JSON. Time is in microseconds. Ciw keeps
a record of every visit; reading them is not part of the CPU time.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import ciw  # type: ignore[import-untyped]  # the library has no types

CBR_GAP_US = 2 * 0.416667


def w1() -> Any:
    """Four nodes, each fed by every fourth frame: Ciw has no receive-side scaling of its own."""
    return ciw.create_network(
        arrival_distributions=[ciw.dists.Deterministic(CBR_GAP_US) for _ in range(4)],
        service_distributions=[ciw.dists.Deterministic(1.0) for _ in range(4)],
        number_of_servers=[1] * 4,
        queue_capacities=[512] * 4,
        routing=[[0.0] * 4] * 4,
    )


def w2() -> Any:
    return ciw.create_network(
        arrival_distributions=[ciw.dists.Exponential(0.9)],
        service_distributions=[ciw.dists.Exponential(1.0)],
        number_of_servers=[1],
        queue_capacities=[49],
    )


def w3() -> Any:
    """Nodes 1 to 4: receiving NIC, bus, cores, sending NIC; frames come by the bus twice."""
    return ciw.create_network(
        arrival_distributions=[ciw.dists.Exponential(3.2), None, None, None],
        service_distributions=[ciw.dists.Exponential(1.0 / mean_us) for mean_us in (0.15, 0.1, 1.0, 0.15)],
        number_of_servers=[1, 1, 4, 1],
        routing=ciw.routing.ProcessBased(lambda _individual, _simulation: [2, 3, 2, 4]),
    )


def main() -> None:
    workload, frames, warmup_us, seed = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4])
    begin = time.process_time()
    ciw.seed(seed)
    simulation = ciw.Simulation({"W1": w1, "W2": w2, "W3": w3}[workload]())
    simulation.simulate_until_max_customers(frames, method="Arrive")
    cpu_s = time.process_time() - begin
    born: dict[int, float] = {}
    gone: dict[int, float] = {}
    visits: dict[int, int] = {}
    rejected: list[float] = []
    for record in simulation.get_all_records():
        if record.record_type == "rejection":
            rejected.append(record.arrival_date)
            continue
        who = record.id_number
        visits[who] = visits.get(who, 0) + 1
        born[who] = min(born.get(who, record.arrival_date), record.arrival_date)
        gone[who] = max(gone.get(who, 0.0), record.exit_date)
    steps = 5 if workload == "W3" else 1
    done = {who: gone[who] for who, count in visits.items() if count == steps}
    sojourn_us = [end - born[who] for who, end in done.items() if born[who] >= warmup_us]
    dropped = sum(at >= warmup_us for at in rejected)
    # Ciw has no record of who is still inside: count them as not dropped.
    inside = frames - len(rejected) - len(done)
    arrived = sum(at >= warmup_us for who, at in born.items() if who in done) + dropped + inside
    answer = {
        "frames": frames,
        "cpu_s": cpu_s,
        "throughput_pps": sum(end >= warmup_us for end in done.values()) / (simulation.current_time - warmup_us) * 1e6,
        "loss_ratio": dropped / arrived,
        "latency_mean_s": sum(sojourn_us) / len(sojourn_us) * 1e-6,
    }
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
