"""Who has which address: the rules of the table of neighbours, each with the sibling in which it must not act."""

from __future__ import annotations

import pytest

from routecast.multistage.protocol.actions import (
    Action,
    Announce,
    Event,
    ForgetMac,
    RemoveNeighbour,
    SetNeighbour,
    Solicit,
)
from routecast.multistage.protocol.neighbours import (
    CLAIM_ASKS,
    CLAIM_S,
    GONE_S,
    LOOK_UPS,
    MAX_ASKED,
    MAX_ENTRIES,
    MOVE_S,
    REACHABLE_S,
    SOLICITS_PER_S,
    NeighbourTable,
    Networks,
)

OWN_MAC = "02:ff:00:00:00:01"
HOST, OTHER, THIRD = "02:00:00:00:00:0a", "02:00:00:00:00:0b", "02:00:00:00:00:0c"
ADDRESS, SIX, FOREIGN = "198.18.1.2", "2001:2:0:1::2", "198.18.2.2"
TICK_S = 0.02


def table_of(**settings: object) -> NeighbourTable:
    """Return an empty table of two networks."""
    networks = Networks(["left", "right"], [["198.18.1.1/24", "2001:2:0:1::1/64"], ["198.18.2.1/24"]])
    return NeighbourTable(networks, own_macs=[OWN_MAC], **settings)  # type: ignore[arg-type]


def learn(table: NeighbourTable, address: str = ADDRESS, mac: str = HOST, segment: int = 0, now_s: float = 0.0) -> None:
    """Look an address up, and let its owner answer."""
    table.want(address, now_s)
    assert SetNeighbour(segment, address, mac) in table.hear(segment, address, mac, now_s, is_for_us=True)


def run(
    table: NeighbourTable, since_s: float, until_s: float, answering: str = "", address: str = ADDRESS
) -> dict[float, Action]:
    """Tick until then; the host with the MAC ``answering`` answers who asks it. Return the actions by their times."""
    result = {}
    now_s = since_s
    while now_s < until_s:
        now_s += TICK_S
        actions = table.tick(now_s)
        for action in actions:
            if (
                isinstance(action, Solicit)
                and action.mac in (None, answering)
                and answering
                and action.address == address
            ):
                actions += table.hear(action.segment, action.address, answering, now_s, is_for_us=True)
        for place, action in enumerate(actions):
            result[now_s + place * 1e-6] = action
    return result


def macs(table: NeighbourTable) -> dict[str, str]:
    """Return the MAC address of each entry."""
    return {address: entry.mac for address, entry in table.entries.items()}


def test_an_answer_to_a_look_up_makes_an_entry_and_an_unasked_claim_makes_none() -> None:
    table = table_of()
    assert table.hear(0, ADDRESS, HOST, 0.0, is_for_us=False) == []
    assert not table.entries
    assert table.want(ADDRESS, 0.0) == [Solicit(0, ADDRESS)]
    assert table.hear(0, ADDRESS, HOST, 0.01, is_for_us=False) == [SetNeighbour(0, ADDRESS, HOST)]


def test_a_host_that_asks_for_the_router_becomes_known() -> None:
    table = table_of()
    assert table.hear(0, ADDRESS, HOST, 0.0, is_for_us=True) == [SetNeighbour(0, ADDRESS, HOST)]


@pytest.mark.parametrize("is_known", [False, True])
def test_a_claim_from_another_network_is_dropped_and_counted(is_known: bool) -> None:
    table = table_of()
    if is_known:
        learn(table)
    actions = table.hear(1, ADDRESS, OTHER, 0.1, is_for_us=True)
    assert [type(action) for action in actions] == [Event]
    assert macs(table) == ({ADDRESS: HOST} if is_known else {})
    assert table.counts[1]["foreign"] == 1


@pytest.mark.parametrize("segment", [0, 1])
def test_a_claim_of_an_own_address_is_defended_once_a_second(segment: int) -> None:
    table = table_of()
    for step in range(10):
        actions = table.hear(segment, "198.18.1.1", OTHER, step * 0.01, is_for_us=True)
        assert (Announce(segment) in actions) == (step == 0)
    assert Announce(segment) in table.hear(segment, "198.18.1.1", OTHER, 1.1, is_for_us=True)
    assert table.counts[segment]["own"] == 11
    assert not table.entries


def test_a_claim_of_an_own_address_just_after_a_defence_is_answered_without_another_one() -> None:
    """Every neighbour that heard the claim believes it until the router announces itself again."""
    table = table_of()
    assert table.is_settled
    assert Announce(0) in table.hear(0, "198.18.1.1", OTHER, 5.0, is_for_us=True)
    assert table.is_settled
    assert Announce(0) not in table.hear(0, "198.18.1.1", OTHER, 5.2, is_for_us=True)
    assert table.next_s == 6.0
    assert not table.is_settled
    defences = [time_s for time_s, action in run(table, 5.2, 9.0).items() if action == Announce(0)]
    assert len(defences) == 1
    assert defences[0] == pytest.approx(6.0, abs=TICK_S)
    assert table.is_settled


@pytest.mark.parametrize("mac", [OWN_MAC, "ff:ff:ff:ff:ff:ff", "00:00:00:00:00:00", "01:00:5e:00:00:01"])
def test_no_neighbour_has_an_own_or_a_group_mac_address(mac: str) -> None:
    table = table_of()
    table.want(ADDRESS, 0.0)
    table.hear(0, ADDRESS, mac, 0.0, is_for_us=True)
    assert not table.entries
    learn(table)
    table.hear(0, ADDRESS, mac, 0.1, is_for_us=True)
    run(table, 0.1, 1.0, HOST)
    assert macs(table) == {ADDRESS: HOST}


def test_a_mac_address_in_use_on_another_network_is_nobodys_here() -> None:
    table = table_of()
    learn(table, FOREIGN, OTHER, 1)
    table.want(ADDRESS, 0.0)
    table.hear(0, ADDRESS, OTHER, 0.0, is_for_us=True)
    assert ADDRESS not in table.entries
    learn(table)
    table.hear(0, ADDRESS, OTHER, 0.1, is_for_us=True)
    run(table, 0.1, CLAIM_S + 0.5)
    assert macs(table)[ADDRESS] == HOST


def test_a_claim_falls_whose_mac_address_comes_into_use_on_another_network_while_the_owner_is_asked() -> None:
    """Seed 187 of the simulated worlds: the MAC address was looked at when it was claimed, and not when it was set."""
    table = table_of()
    learn(table)
    assert Solicit(0, ADDRESS, HOST) in table.hear(0, ADDRESS, OTHER, 0.1, is_for_us=False)
    learn(table, FOREIGN, OTHER, 1, 0.2)
    run(table, 0.2, 1.0)
    assert macs(table) == {ADDRESS: HOST, FOREIGN: OTHER}


def test_a_mac_address_that_its_network_forgot_is_free() -> None:
    table = table_of()
    learn(table, FOREIGN, OTHER, 1)
    run(table, 0.0, GONE_S + 1.0)
    assert FOREIGN not in table.entries
    learn(table, ADDRESS, OTHER, 0, GONE_S + 1.0)


def test_a_probe_for_a_duplicate_address_claims_nothing() -> None:
    """RFC 5227 sec. 2.1.1, RFC 4862 sec. 5.4: it asks whether somebody has the address."""
    table = table_of()
    learn(table)
    assert table.hear(0, ADDRESS, OTHER, 0.1, is_for_us=True, is_probe=True) == []
    assert table.hear(0, "198.18.1.1", OTHER, 0.1, is_for_us=True, is_probe=True) == []
    table.want(SIX, 0.1)
    assert table.hear(0, SIX, OTHER, 0.1, is_for_us=True, is_probe=True) == []
    assert macs(table) == {ADDRESS: HOST}


@pytest.mark.parametrize("is_for_us", [False, True])
@pytest.mark.parametrize("address", [ADDRESS, SIX])
def test_an_owner_that_answers_keeps_its_address(address: str, is_for_us: bool) -> None:
    """Also against an advertisement with the override flag: RFC 4861 would let that one in at once."""
    table = table_of()
    learn(table, address)
    actions = table.hear(0, address, OTHER, 1.0, is_for_us=is_for_us)
    assert actions == [Solicit(0, address, HOST)]
    run(table, 1.0, 6.0, HOST, address)
    assert macs(table) == {address: HOST}
    assert table.counts[0]["refused"] == 1


def test_an_address_moves_within_a_second_where_the_owner_is_silent() -> None:
    """As VRRP does it: the new one announces itself, the old one is gone."""
    table = table_of()
    learn(table)
    table.hear(0, ADDRESS, OTHER, 1.0, is_for_us=False)
    actions = run(table, 1.0, 2.0, OTHER)
    assert macs(table) == {ADDRESS: OTHER}
    asked = [action for action in actions.values() if isinstance(action, Solicit)]
    # One more came at once; who has it now is asked too, for a claim is no answer.
    assert [action.mac for action in asked] == [HOST] * (CLAIM_ASKS - 1) + [OTHER]
    order = [action for action in actions.values() if not isinstance(action, Solicit | Event)]
    assert order == [SetNeighbour(0, ADDRESS, OTHER), ForgetMac(HOST)]  # no time with neither


def test_a_mac_address_of_two_addresses_is_forgotten_with_the_second() -> None:
    table = table_of()
    learn(table)
    learn(table, SIX)
    table.hear(0, ADDRESS, OTHER, 0.1, is_for_us=False)
    assert ForgetMac(HOST) not in run(table, 0.1, 1.0).values()
    table.hear(0, SIX, OTHER, 1.0, is_for_us=False)
    assert ForgetMac(HOST) in run(table, 1.0, 2.0).values()


def test_a_silent_change_is_found_within_five_seconds() -> None:
    table = table_of()
    learn(table)
    actions = run(table, 0.0, 5.0, OTHER)
    found_s = next(time_s for time_s, action in actions.items() if action == SetNeighbour(0, ADDRESS, OTHER))
    assert REACHABLE_S < found_s <= MOVE_S + 5 * TICK_S
    assert MOVE_S + 5 * TICK_S < 5.0


def test_a_frame_that_waited_confirms_nothing_later_than_when_it_came() -> None:
    """Seed 10040 of the simulated worlds: the process stalled, and what it read then confirmed a host that had gone."""
    table = table_of()
    learn(table)
    table.hear(0, ADDRESS, HOST, 3.0, is_for_us=True, since_s=0.5)
    assert table.entries[ADDRESS].confirmed_s == 0.5
    assert Solicit(0, ADDRESS, HOST) in table.tick(3.0)
    table.hear(0, ADDRESS, HOST, 3.02, is_for_us=True, since_s=0.2)
    assert table.entries[ADDRESS].confirmed_s == 0.5


def test_solicitations_without_an_answer_before_a_claim_count() -> None:
    """Seed 10074 of the simulated worlds: a claim while the owner was asked began the whole time anew."""
    table = table_of()
    learn(table)
    run(table, 0.0, REACHABLE_S + 0.4)
    assert table.entries[ADDRESS].unanswered == 2
    table.hear(0, ADDRESS, OTHER, REACHABLE_S + 0.4, is_for_us=True)
    assert macs(table) == {ADDRESS: HOST}
    run(table, REACHABLE_S + 0.4, MOVE_S)
    assert macs(table) == {ADDRESS: OTHER}


def test_a_claimant_that_does_not_answer_loses_the_address_within_a_second() -> None:
    """Seed 51150 of the simulated worlds: a forger's claim and the owner's announcement came at the same moment."""
    table = table_of()
    learn(table)
    table.hear(0, ADDRESS, THIRD, 0.1, is_for_us=False)
    table.hear(0, ADDRESS, OTHER, 0.12, is_for_us=False)
    run(table, 0.12, 0.1 + CLAIM_S + 3 * TICK_S)
    assert macs(table) == {ADDRESS: OTHER}
    moved_s = table.entries[ADDRESS].confirmed_s
    run(table, moved_s, moved_s + 0.9, THIRD)
    assert macs(table) == {ADDRESS: THIRD}


def test_a_host_that_answers_stays_and_one_that_is_gone_goes() -> None:
    table = table_of()
    learn(table)
    run(table, 0.0, 30.0, HOST)
    assert macs(table) == {ADDRESS: HOST}
    confirmed_s = table.entries[ADDRESS].confirmed_s
    actions = run(table, 30.0, 40.0)
    gone_s = next(time_s for time_s, action in actions.items() if isinstance(action, RemoveNeighbour))
    assert 0.0 <= gone_s - confirmed_s - GONE_S <= 12 * TICK_S
    assert ForgetMac(HOST) in actions.values()


def test_a_stated_neighbour_is_never_asked_and_never_changes() -> None:
    table = table_of(static={ADDRESS: HOST})
    assert table.start([], 0.0) == [SetNeighbour(0, ADDRESS, HOST)]
    for now_s in (0.1, 0.5, 1.0):
        table.hear(0, ADDRESS, OTHER, now_s, is_for_us=True)
    table.hear(0, ADDRESS, HOST, 1.1, is_for_us=True)
    assert run(table, 1.1, 20.0, OTHER) == {}
    assert macs(table) == {ADDRESS: HOST}
    assert table.counts[0]["refused"] == 3


def test_look_ups_end_and_their_table_is_bounded() -> None:
    table = table_of()
    now_s = 0.0
    asked = 0
    for number in range(4 * MAX_ASKED):
        now_s += 0.005
        asked += len(table.want(f"2001:2:0:1::{number + 16:x}", now_s))
        assert sum(map(len, table._asked)) <= MAX_ASKED
    assert asked > MAX_ASKED
    solicits = [action for action in run(table, now_s, now_s + 5.0).values() if isinstance(action, Solicit)]
    assert len(solicits) <= LOOK_UPS * MAX_ASKED
    assert not any(table._asked)
    assert table.is_settled


def test_entries_of_a_network_are_bounded_and_leave_room_for_the_others() -> None:
    table = table_of()
    for number in range(MAX_ENTRIES):
        mac = f"02:01:00:00:{number >> 8:02x}:{number & 255:02x}"
        table.hear(0, f"2001:2:0:1::{number + 16:x}", mac, 0.0, is_for_us=True)
    assert len(table.entries) == MAX_ENTRIES // 2
    assert table.counts[0]["full"] == MAX_ENTRIES // 2
    learn(table, FOREIGN, OTHER, 1)


def test_solicitations_are_bounded_by_second_and_a_flood_hides_no_move() -> None:
    """Seed 267 of the simulated worlds: look-ups took all solicitations, and an owner was not asked."""
    table = table_of()
    learn(table)
    now_s, sent, number = 0.0, 0, 0
    while now_s < 3.0:
        now_s += TICK_S
        for _ in range(64):
            number += 1
            sent += len(table.want(f"2001:2:0:1::{number + 16:x}", now_s))
        actions = table.tick(now_s)
        if abs(now_s - 1.0) < TICK_S / 2:
            actions += table.hear(0, ADDRESS, OTHER, now_s, is_for_us=False)
        for action in actions:
            sent += isinstance(action, Solicit)
        if abs(now_s - 2.0) < TICK_S / 2:
            assert macs(table)[ADDRESS] == OTHER
    assert 1000 < sent <= 3.0 * SOLICITS_PER_S + 101


def test_a_claimant_is_told_of_once_a_second_and_counted_always() -> None:
    table = table_of()
    learn(table, FOREIGN, HOST, 1)
    told = sum(len(table.hear(0, FOREIGN, OTHER, step * 0.1, is_for_us=True)) for step in range(30))
    assert told == 3
    assert table.counts[0]["foreign"] == 30


def test_jumping_over_idle_time_leaves_what_ticks_leave() -> None:
    ticked, jumped = table_of(), table_of()
    for table in (ticked, jumped):
        learn(table)
    now_s = 0.0
    while now_s < 100.5:
        for action in ticked.tick(now_s):
            assert action == Solicit(0, ADDRESS, HOST)
            ticked.hear(0, ADDRESS, HOST, now_s, is_for_us=True)
        now_s = min(ticked.next_s, 100.5)
    jumped.pass_idle(100.5)
    entries = [table.entries[ADDRESS] for table in (ticked, jumped)]
    assert entries[0].confirmed_s == pytest.approx(entries[1].confirmed_s) == 100.0
    assert entries[0].due_s == pytest.approx(entries[1].due_s)
    assert jumped.next_s == pytest.approx(entries[1].due_s)
