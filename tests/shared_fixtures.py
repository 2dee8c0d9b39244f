"""What all tests share: tiers, rights, commands and results. No test times anything, so a busy machine fails none.

Tiers are markers: ``make quick`` leaves out ``slow`` and ``wire``, ``make test`` leaves out ``thorough``,
``make test-thorough`` runs everything. See docs/CONTRIBUTING.md. The
conftest.py of ``tests`` and that of ``packages/routecast`` register this module.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from fcntl import LOCK_EX, LOCK_SH, flock
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from in_process import Completed, completed

# How many examples a property is tried on is a matter of the tier: tests do not say it themselves. At a desk they are
# new ones each time; continuous integration repeats the same, so a failure is of the change.
settings.register_profile("desk", deadline=None, max_examples=10)
settings.register_profile("ci", deadline=None, max_examples=25, derandomize=True)
settings.register_profile(
    "thorough", deadline=None, max_examples=500, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile("ci" if os.environ.get("CI") else "desk")

# Shells start what runs in the background deaf to Ctrl-C, nohup to SIGHUP, and children inherit it. Tests send both.
for _number, _handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, _handler)

# Processes of a run share the cores of the machine, and so do the test beds of their tests.
os.environ.setdefault("ROUTECAST_SHARE_CORES", "1")

PATIENCE_S = 120.0
"""No test waits for a tenth of this; the end of a wait that would have none."""


@cache
def missing_for_the_wire() -> str:
    """Return what keeps this process from test beds of network namespaces; empty if nothing does."""
    from routecast.lab.testbed.checks import NAMESPACE_CAPABILITIES, missing

    if lacking := missing(NAMESPACE_CAPABILITIES):
        return f"needs root: this process lacks {', '.join(lacking)}"
    return "" if shutil.which("ip") else "needs iproute2: apt install iproute2"


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip tests that are marked "wire" where no test bed can be made."""
    if item.get_closest_marker("wire") and (reason := missing_for_the_wire()):
        pytest.skip(reason)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let several processes begin with the files that take longest: at the end, none waits long for another.

    Files on the wire come behind other slow ones, when the compiler that may run beside them has ended.
    """
    if "PYTEST_XDIST_WORKER" not in os.environ:
        return
    slow = Counter(item.path for item in items if item.get_closest_marker("slow"))
    wire = {item.path for item in items if item.get_closest_marker("wire")}

    def place(item: pytest.Item) -> tuple[bool, bool, int]:
        is_quick = item.path not in wire and item.path not in slow
        return is_quick, item.path in wire, -slow[item.path]

    items.sort(key=place)  # stable: the tests of a file stay together and in their order


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Let tests that are marked "alone" run while no other process of the same run has a test.

    Test beds are of the whole machine: the start of any bed removes what a killed run left of another. Whoever comes
    stands in line at the gate, so that who waits to be alone is not passed by others for ever.
    """
    if "PYTEST_XDIST_WORKER" not in os.environ:
        yield
        return
    is_alone = item.get_closest_marker("alone") is not None
    # Locks on files that are there leave nothing behind, and end with the process.
    with Path(__file__).open() as gate, Path(__file__).with_name("conftest.py").open() as turn:
        flock(gate, LOCK_EX)
        flock(turn, LOCK_EX if is_alone else LOCK_SH)
        if not is_alone:
            gate.close()
        yield


Start = Callable[..., "subprocess.Popen[str]"]
Until = Callable[..., None]


@pytest.fixture
def start() -> Iterator[Start]:
    """Start a program; however the test ends, it and what it started in a session of its own are killed."""
    started: list[tuple[subprocess.Popen[str], bool]] = []

    def start_one(command: Sequence[str | Path], **how: Any) -> subprocess.Popen[str]:
        process = subprocess.Popen(command, text=True, **how)
        started.append((process, bool(how.get("start_new_session"))))
        return process

    yield start_one
    for process, leads_a_group in started:
        if leads_a_group:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        process.kill()
        process.wait(PATIENCE_S)
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()


@pytest.fixture
def until() -> Until:
    """Wait until something is so; fail if it is not after minutes, or if the program that makes it so has ended."""

    def wait(is_so: Callable[[], object], what: str, program: subprocess.Popen[str] | None = None) -> None:
        end_s = time.monotonic() + PATIENCE_S
        while not is_so():
            assert program is None or program.poll() is None or is_so(), (
                f"the program ended with {program.returncode} before {what}"
            )
            assert time.monotonic() < end_s, f"not within {PATIENCE_S:g} s: {what}"
            time.sleep(0.01)

    return wait


Command = Callable[..., Completed]


@pytest.fixture
def command() -> Command:
    """Run ``routecast`` in this process."""
    return completed


Once = Callable[[str, Callable[[Path], object]], Path]


@pytest.fixture(scope="session")
def once(tmp_path_factory: pytest.TempPathFactory) -> Once:
    """Make a folder once for all processes of a run, and give it to everybody who asks for its name."""
    base = tmp_path_factory.getbasetemp()
    shared = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "once"
    shared.mkdir(exist_ok=True)

    def made(name: str, make: Callable[[Path], object]) -> Path:
        folder, done = shared / name, shared / f"{name}.done"
        with (shared / f"{name}.lock").open("a") as lock:
            flock(lock, LOCK_EX)
            if not done.exists():
                shutil.rmtree(folder, ignore_errors=True)
                folder.mkdir()
                make(folder)
                done.touch()
        return folder

    return made


Study = Callable[[str], Path]


@pytest.fixture(scope="session")
def study(once: Once) -> Study:
    """Run a shipped study once for all processes of a run, and give its folder.

    Beside the folder's own files lie what ``routecast study NAME --json`` left: ``stdout.txt``, ``stderr.txt`` and
    ``exit_code.txt``. Who wants the result as an object, or runs the study again, does so in a copy
    (``in_process.copy_to_go_on``).
    """

    def folder_of(name: str) -> Path:
        def make(folder: Path) -> None:
            done = completed("study", name, "--out", folder, "--json")
            (folder / "stdout.txt").write_text(done.stdout)
            (folder / "stderr.txt").write_text(done.stderr)
            (folder / "exit_code.txt").write_text(str(done.returncode))

        return once(name, make)

    return folder_of


ATTEMPTS = 8
"""How often a trial is run that other work on this machine may disturb."""

Undisturbed = Callable[..., Any]


@pytest.fixture
def undisturbed() -> Undisturbed:
    """Run a trial and judge its rate, loss and latency; a failure counts only where the trial says nothing of others.

    What other work did to a trial, the trial itself tells (``routecast.lab.testbed.checks.disturbances``). One that was
    disturbed and does not pass is run again; where that is so of every attempt, the test is skipped and says what
    disturbed them. What holds on every machine (conservation, counts, order, words) is for ``run`` to assert. Of a run
    with many trials, ``trials`` gives those that matter.
    """
    from routecast.lab.testbed.checks import disturbances

    def judged(
        run: Callable[[], Any],
        judge: Callable[[Any], None],
        *,
        trials: Callable[[Any], Iterable[Any]] = lambda trial: (trial,),
        attempts: int = ATTEMPTS,
    ) -> Any:
        reasons: list[str] = []
        for _ in range(attempts):
            result = run()
            try:
                judge(result)
            except AssertionError:
                disturbed = [reason for trial in trials(result) for reason in disturbances(trial)]
                if not disturbed:
                    raise
                reasons.append(disturbed[0])
            else:
                return result
        pytest.skip(f"disturbed by other work in each of {attempts} attempts: {'; '.join(dict.fromkeys(reasons))}")

    return judged
