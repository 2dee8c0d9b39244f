"""The row of a flow, as the load balancer computes it of a frame's headers."""

from __future__ import annotations

import pytest

from routecast.lab._lab import flow_row, flow_table

ROWS = 65_536


def _rows(count: int) -> list[int]:
    return [flow_row("198.18.1.2", "198.19.1.2", 17, (1024 + port, 7), False) for port in range(count)]


def test_flows_spread_over_the_rows_and_the_members() -> None:
    rows = _rows(4096)
    assert all(0 <= row < ROWS for row in rows)
    # 4,096 of 65,536 rows drawn at random: 3,970 different ones in the mean, deviation below 11.
    assert 3_900 < len(set(rows)) < 4_040
    first = [choices[0] for choices in flow_table([(0, 1.0), (1, 1.0), (2, 2.0)], 1, rows)]
    shares = [first.count(number) / len(first) for number in range(3)]
    assert shares == pytest.approx([0.25, 0.25, 0.5], abs=0.04)


@pytest.mark.parametrize(("source", "destination"), [("198.18.1.2", "198.19.1.2"), ("2001:2::1", "2001:2::2")])
def test_fragments_go_by_addresses_and_protocol(source: str, destination: str) -> None:
    whole = {flow_row(source, destination, 17, (port, 7), False) for port in range(1024, 1088)}
    parts = {flow_row(source, destination, 17, (port, 7), True) for port in range(1024, 1088)}
    assert len(whole) > 60
    assert len(parts) == 1


def test_ports_count_only_where_the_protocol_has_them() -> None:
    assert flow_row("198.18.1.2", "198.19.1.2", 1, (8, 0), False) == flow_row(
        "198.18.1.2", "198.19.1.2", 1, None, False
    )


def test_there_and_back_are_two_flows() -> None:
    there = flow_row("198.18.1.2", "198.19.1.2", 6, (1024, 80), False)
    assert there != flow_row("198.19.1.2", "198.18.1.2", 6, (80, 1024), False)
