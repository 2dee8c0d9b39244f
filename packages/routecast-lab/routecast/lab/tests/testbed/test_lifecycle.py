"""A test bed leaves the machine as it was, however the run ends."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from routecast.errors import EnvironmentProblem
from routecast.lab.testbed import _napi as napi
from routecast.lab.testbed import make_bed, netns, state
from routecast.lab.testbed.bed import SHARE_CORES
from routecast.lab.testbed.dut_host import Missing, run_command
from routecast.lab.testbed.state import change_link

pytestmark = pytest.mark.wire

Start = Callable[..., subprocess.Popen[str]]

RUN = """
import sys, time
from routecast.lab.testbed import make_bed
with make_bed(sys.argv[1], on_remark=lambda line: print(line, file=sys.stderr, flush=True)) as bed:
    bed.site.spawn("sleep", sys.argv[2])
    bed.site.run("sysctl", "-qw", "net.ipv4.ip_forward=1")
    print("up", flush=True)
    for _ in range(30_000):  # a signal that comes just before a sleep is heard after it
        time.sleep(0.01)
"""
SLEEPS_S = f"1000.{os.getpid()}"
"""Sleeping time of the process in a bed, which differs between test runs."""


@pytest.fixture
def name() -> Iterator[str]:
    """Yield a name that no other process uses for its bed."""
    name = f"t{os.getpid() % 100_000}-{time.monotonic_ns() % 10_000}"
    yield name
    if name in state.beds():
        state.remove(name)


@pytest.fixture
def bed_file(tmp_path: Path, name: str) -> str:
    path = tmp_path / "bed.testbed.toml"
    path.write_text(f'name = "{name}"\nkind = "namespaces"\nnetworks = 4\n')
    return str(path)


Up = Callable[[str], subprocess.Popen[str]]


@pytest.fixture
def up(start: Start) -> Up:
    """Start a program that puts a bed up and waits."""

    def start_up(bed_file: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", RUN, bed_file, SLEEPS_S]
        process = start(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n", process.communicate(timeout=120)[1]
        return process

    return start_up


def left(name: str) -> dict[str, list[str]]:
    """Return the namespaces, processes, state files and pins of a bed."""
    namespaces = [namespace for namespace in netns.names() if namespace.startswith(f"rc-{name}-")]
    return {
        "namespaces": namespaces,
        "processes": [str(pid) for namespace in namespaces for pid in netns.process_ids(namespace)],
        "files": [str(path) for path in state.FOLDER.glob(f"{name}*")] if state.FOLDER.is_dir() else [],
        "pins": [str(path) for path in state.PINS.glob(f"{name}*")] if state.PINS.is_dir() else [],
    }


def settings() -> dict[str, str]:
    """Return the settings of this namespace that a careless test bed might change."""
    results = {}
    for folder in ("net/ipv4", "net/ipv6/conf/all", "net/ipv6/conf/default", "net/core"):
        for path in sorted(Path("/proc/sys", folder).iterdir()):
            if path.is_file():
                try:
                    results[str(path)] = path.read_text()
                except OSError:
                    continue
    return results


def sleepers() -> set[int]:
    text = subprocess.run(["pgrep", "-f", f"^sleep {SLEEPS_S}$"], capture_output=True, text=True, check=False).stdout
    return set(map(int, text.split()))


NOTHING = {"namespaces": [], "processes": [], "files": [], "pins": []}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_that_ends_the_run_takes_the_bed_down(up: Up, bed_file: str, name: str, number: int) -> None:
    before, asleep = settings(), sleepers()
    process = up(bed_file)
    assert len(left(name)["namespaces"]) == 3
    assert len(sleepers() - asleep) == 1
    process.send_signal(number)
    process.communicate(timeout=120)
    assert process.returncode != 0
    assert left(name) == NOTHING
    assert sleepers() <= asleep
    assert settings() == before


def test_the_end_of_the_context_and_an_exception_in_it_take_the_bed_down(bed_file: str, name: str) -> None:
    before = settings()
    with make_bed(bed_file) as bed:
        assert bed.site.run("cat", "/proc/sys/net/ipv4/ip_forward").strip() == "1"
    assert left(name) == NOTHING
    with pytest.raises(ZeroDivisionError), make_bed(bed_file):
        raise ZeroDivisionError
    assert left(name) == NOTHING
    assert settings() == before


@pytest.mark.alone  # the start of a bed in another process would remove what it looks for
def test_a_killed_run_leaves_a_bed_that_the_next_start_removes(
    up: Up, bed_file: str, name: str, tmp_path: Path
) -> None:
    before, asleep = settings(), sleepers()
    process = up(bed_file)
    process.kill()
    process.communicate(timeout=120)
    assert len(left(name)["namespaces"]) == 3
    assert len(sleepers() - asleep) == 1
    other = tmp_path / "other.testbed.toml"
    other.write_text(f'name = "o{name[1:]}"\nkind = "namespaces"\nnetworks = 1\n')
    remarks: list[str] = []
    with make_bed(str(other), on_remark=remarks.append):
        assert left(name) == NOTHING  # the start of any bed removes what is left of every dead one
    assert any(name in line for line in remarks)
    assert sleepers() <= asleep
    assert settings() == before


@pytest.mark.alone  # the start of a bed in another process would remove what it looks for
def test_the_same_bed_starts_again_after_a_kill(up: Up, bed_file: str, name: str) -> None:
    process = up(bed_file)
    process.kill()
    process.communicate(timeout=120)
    with make_bed(bed_file) as bed:
        assert len(netns.process_ids(bed.site.netns or "")) == 0
    assert left(name) == NOTHING


@pytest.mark.alone  # the start of a bed in another process would remove what it looks for
def test_a_bed_whose_state_was_lost_is_removed_by_the_names_of_its_namespaces(up: Up, bed_file: str, name: str) -> None:
    asleep = sleepers()
    process = up(bed_file)
    process.kill()
    process.communicate(timeout=120)
    (state.FOLDER / f"{name}.json").unlink()
    with make_bed(bed_file):
        pass
    assert left(name) == NOTHING
    assert sleepers() <= asleep


def test_two_runs_on_one_bed_are_refused_with_the_process_that_has_it(up: Up, bed_file: str, name: str) -> None:
    process = up(bed_file)
    try:
        with pytest.raises(EnvironmentProblem, match=f"in use by process {process.pid}") as refused, make_bed(bed_file):
            pass
        assert re.search(r"which holds cores? [\d, ]+ since 20\S+ \S+ UTC: wait for it, or end it", str(refused.value))
        assert "a name and cores of its own" in str(refused.value)
        assert len(left(name)["namespaces"]) == 3, "the refused run must not touch the other's bed"
        with pytest.raises(EnvironmentProblem, match=f"in use by process {process.pid}"):
            state.remove(name)
    finally:
        process.terminate()
        process.communicate(timeout=120)
    assert left(name) == NOTHING


def test_a_lock_that_a_command_of_a_killed_owner_still_holds_is_waited_for(name: str) -> None:
    hold = (
        "import os, sys, time\n"
        "from routecast.lab.testbed import state\n"
        "lock = state.BedLock(sys.argv[1])\n"
        "bed = state.BedState(bed=sys.argv[1], pid_start_ticks=state.start_ticks(os.getpid()))\n"
        "bed.write()\n"
        "if os.fork() == 0:\n"
        "    time.sleep(0.3)\n"
        "    os._exit(0)\n"
        "os.kill(os.getpid(), 9)\n"
    )
    killed = subprocess.run([sys.executable, "-c", hold, name], check=False)
    assert killed.returncode == -signal.SIGKILL
    lock = state.BedLock(name)
    leftover = state.BedState.read(name)
    if leftover is not None:  # the start of a bed in another process may have removed it
        state.clean(leftover)
    lock.release()
    assert name not in state.beds()


def test_a_lock_that_is_held_while_a_dead_bed_is_removed_is_waited_for(name: str) -> None:
    hold = (
        "import sys, time\n"
        "from routecast.lab.testbed import state\n"
        "lock = state.BedLock(sys.argv[1])\n"
        "print('held', flush=True)\n"
        "time.sleep(0.3)\n"
        "lock.release()\n"
    )
    with subprocess.Popen([sys.executable, "-c", hold, name], stdout=subprocess.PIPE, text=True) as cleaner:
        assert cleaner.stdout is not None
        assert cleaner.stdout.readline() == "held\n"
        assert state.BedState.read(name) is None
        state.BedLock(name).release()
        assert cleaner.wait(timeout=60) == 0


def test_a_bed_that_was_put_up_stays_until_it_is_taken_down(bed_file: str, name: str) -> None:
    with make_bed(bed_file) as bed:
        bed.keep()
    assert len(left(name)["namespaces"]) == 3
    assert state.describe_bed(name)["state"] == "put up to stay"
    with (
        pytest.raises(EnvironmentProblem, match=rf"\(cores? .* since .* UTC\): .*testbed down {name}"),
        make_bed(bed_file),
    ):
        pass
    assert name not in state.clean_dead(on_remark=lambda _: None)
    state.remove(name)
    assert left(name) == NOTHING


def test_a_start_that_fails_half_way_leaves_nothing(bed_file: str, name: str) -> None:
    bed = make_bed(bed_file)

    def fail(site: object) -> None:
        raise EnvironmentProblem("no")

    bed.device.start = fail  # type: ignore[method-assign]  # the device is broken on purpose
    with pytest.raises(EnvironmentProblem, match="no"), bed:
        pass
    assert left(name) == NOTHING


def test_a_device_whose_programs_are_missing_is_refused_before_anything_is_made(bed_file: str, name: str) -> None:
    bed = make_bed(bed_file)
    bed.device.missing = lambda: (Missing(program="vpp", package="vpp"),)  # type: ignore[method-assign]  # it lacks one
    with pytest.raises(EnvironmentProblem, match="linux needs vpp: apt install vpp"), bed:
        pass
    assert left(name) == NOTHING


def test_settings_outside_the_bed_are_set_back_even_after_a_kill(name: str) -> None:
    namespace = f"rc-{name}-x"
    run_command(["ip", "netns", "add", namespace])
    try:
        run_command(["ip", "-n", namespace, "link", "add", "v0", "type", "veth", "peer", "name", "v1"])

        def flags() -> set[str]:
            return set(json.loads(run_command(["ip", "-n", namespace, "-j", "link", "show", "v0"]))[0]["flags"])

        bed_state = state.BedState(bed=name)
        change_link(bed_state, namespace, "v0", "promiscuous", on=True)
        change_link(bed_state, namespace, "v0", "up", on=True)
        assert {"UP", "PROMISC"} <= flags()
        on_disk = state.BedState.read(name)
        assert on_disk is not None
        assert len(on_disk.settings) == 2
        state.clean(on_disk)  # what the next start does for a killed run
        assert not {"UP", "PROMISC"} & flags()
    finally:
        run_command(["ip", "netns", "del", namespace])


def test_the_device_works_on_its_core_and_the_bed_says_so(bed_file: str) -> None:
    with make_bed(bed_file) as bed:
        threads = bed.facts()["device_threads"]
        assert isinstance(threads, list)
        assert [thread["cores"] for thread in threads] == [[bed.placement.dut]]
        assert threads[0]["scheduler"] == "FIFO"
        before = bed.device_threads()
        bed.device.restart("link")
        bed.bind_threads()
        assert bed.device_threads() != before  # another thread, bound again
        assert [fact["cores"] for fact in bed.facts()["device_threads"]] == [[bed.placement.dut]]  # type: ignore[attr-defined]  # a list


def test_a_process_that_is_no_kernel_thread_is_never_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    # In a container, the number that the kernel gives for its thread may be another process: this one, say.
    monkeypatch.setattr(napi, "threads", lambda netns, interface: (os.getpid(), 2**22 - 1))
    before = os.sched_getaffinity(0), os.sched_getscheduler(0)
    assert napi.bind(None, "d0", cpu=min(os.sched_getaffinity(0)), priority=40) == ()
    assert (os.sched_getaffinity(0), os.sched_getscheduler(0)) == before


def test_another_bed_with_ports_of_the_same_names_has_its_own_threads(bed_file: str, tmp_path: Path) -> None:
    other = tmp_path / "other.testbed.toml"
    other.write_text(f'name = "n{os.getpid() % 100_000}"\nkind = "namespaces"\nnetworks = 1\n')
    with make_bed(bed_file) as first, make_bed(str(other)) as second:
        assert len(first.device_threads()) == len(second.device_threads()) == 1
        assert first.device_threads() != second.device_threads()
        (line,) = [line for line in first.neighbours() if second.name in line]
        assert re.search(rf"process {os.getpid()} is up on the same cores \(cores? [\d, ]+ since 20\S+ \S+ UTC\)", line)


def test_a_bed_on_cores_where_another_one_measures_is_refused_unless_it_may_share_them(
    bed_file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(SHARE_CORES, raising=False)
    other = tmp_path / "other.testbed.toml"
    other.write_text(f'name = "n{os.getpid() % 100_000}"\nkind = "namespaces"\nnetworks = 1\n')
    # Beds of other programs on this machine are not the subject.
    beds = state.beds
    with make_bed(bed_file, share_cores=True) as first:
        names = {first.name, f"n{os.getpid() % 100_000}"}
        monkeypatch.setattr(state, "beds", lambda: tuple(name for name in beds() if name in names))
        with make_bed(str(other)):
            pass  # a bed that only stands is no reason to refuse
        first.begin_measuring()
        with pytest.raises(EnvironmentProblem, match="measures on the same cores") as refused, make_bed(str(other)):
            raise AssertionError("the cores are not free")
        message = str(refused.value)
        assert repr(first.name) in message
        assert re.search(r"\(cores? [\d, ]+ since 20", message)
        assert "--share-cores" in message
        assert "name" not in message
        with make_bed(str(other), share_cores=True) as second:
            second.begin_measuring()
            assert any(f"test bed {first.name!r}" in line and "measures on" in line for line in second.neighbours())
            # The first bed goes on measuring.
            assert any(f"test bed {second.name!r}" in line and "measures on" in line for line in first.neighbours())


def test_a_bed_that_was_put_up_to_stay_is_a_neighbour(bed_file: str, tmp_path: Path) -> None:
    other = tmp_path / "other.testbed.toml"
    other.write_text(f'name = "n{os.getpid() % 100_000}"\nkind = "namespaces"\nnetworks = 1\n')
    with make_bed(str(other)) as kept:
        kept.keep()
    try:
        with make_bed(bed_file) as bed:
            (line,) = [line for line in bed.neighbours() if kept.name in line]
            assert re.match(rf"test bed '{kept.name}' is up on the same cores \(cores? ", line)
            assert any(kept.name in note for note in bed.notes_for((0,)))
    finally:
        state.remove(kept.name)


def test_routes_lead_to_all_networks_in_both_families(bed_file: str) -> None:
    with make_bed(bed_file) as bed:
        for target in ("198.19.1.2", "198.19.64.2", "2001:2:0:8001::2", "2001:2:0:8040::2"):
            (route,) = json.loads(bed.site.run("ip", "-j", "route", "get", target))
            assert route["dev"] == "d1", target
        for port in bed.ports:
            text = run_command(["ip", "-n", port.netns or "", "-j", "route", "show", "default"])
            assert json.loads(text)[0]["dev"] == port.interface


@pytest.mark.parametrize(
    ("allowed", "options", "cores"),
    [
        ({0}, {}, (0, 0)),
        ({0, 1}, {}, (0, 1)),
        ({0, 1}, {"dut": 0}, (1, 0)),
        ({0}, {"receiver": 0}, (0, 0)),
        ({0, 1}, {"receiver": 0}, (0, 1)),
        ({0, 1}, {"receiver": 1}, (1, 0)),
        ({0, 1, 2}, {"receiver": 0}, (1, 2)),
        ({0, 1}, {"receiver": 0, "dut": 1}, (0, 1)),
        ({0, 1, 2}, {"receiver": 0, "dut": 1}, (2, 1)),
    ],
)
def test_the_device_has_a_core_of_its_own_wherever_there_is_one(
    allowed: set[int], options: dict[str, int], cores: tuple[int, int], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from routecast.lab.testbed import placement

    monkeypatch.setattr(os, "sched_getaffinity", lambda _: allowed)
    monkeypatch.setattr(placement, "_CPU_FOLDER", tmp_path)  # each core is a physical one
    result = placement.assign_cores(**options)
    assert (result.tester, result.dut) == cores


def test_one_core_for_generator_and_device_is_reported() -> None:
    allowed = os.sched_getaffinity(0)
    from routecast.lab.testbed.placement import assign_cores

    assert assign_cores().tester != assign_cores().dut or len(allowed) == 1
    assignment = assign_cores(tester=min(allowed), dut=min(allowed))
    assert "share core" in assignment.notes[0]
    with pytest.raises(EnvironmentProblem, match=r"cores\.dut: core 4095"):
        assign_cores(dut=4095)
