"""A SLURM cluster of one node on this machine, which nobody else sees and of which nothing stays.

Its daemons live in namespaces of their own: their ports are no ports of this machine, and the kernel ends all of them,
and all jobs, when the first process there ends. That process ends with its standard input, so also when the tests are
killed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "unshare", "nsenter", "ip")
STARTS_WITHIN_S = 30.0
JOBS_END_WITHIN_S = 120.0
LOOKS_EVERY_S = 0.2
ENDS_WITHIN_S = 10.0
TAIL_LETTERS = 2000
"""How many characters of what the daemons said the reason of a skip repeats."""

# What is not named is as SLURM has it: munge, no accounting, no cores of a job's own. More CPUs than there are: all
# tasks of an array run at once, whatever they ask for. The credential of a job that is put back in the queue has to
# expire first: 5 s is the least that SLURM takes.
CONFIGURATION = """\
ClusterName=routecast
SlurmctldHost=localhost
SlurmUser=root
SlurmdUser=root
AuthInfo=socket={folder}/munge.socket,cred_expire=5
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
MailProg=/bin/true
SchedulerType=sched/builtin
SchedulerParameters=sched_interval=1,batch_sched_delay=0
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
MinJobAge=3600
NodeName=localhost CPUs=16
PartitionName=all Nodes=localhost Default=YES State=UP
"""

# SLURM looks names up for hosts that have more than a loopback address only: 192.0.2.1 is one for documentation.
INIT = """\
hostname localhost
ip link set lo up
ip address add 192.0.2.1/32 dev lo
munged --foreground --force --num-threads=2 --key-file="$PWD/munge.key" --socket="$PWD/munge.socket" \
    --pid-file="$PWD/munge.pid" --log-file="$PWD/munged.log" --seed-file="$PWD/munge.seed" &
until [ -S munge.socket ]; do read -rt 0.05 || [ $? -gt 128 ] || exit; done
slurmctld -D &
slurmd -D &
read -r
"""

NAMESPACES = ("--net", "--uts", "--ipc", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")


@dataclass(frozen=True)
class Slurm:
    """A cluster that is up.

    Parameters
    ----------
    folder : Path
        Of its configuration and state.
    pid : int
        Of a process that knows its namespaces.
    """

    folder: Path
    pid: int

    def command(self, *words: str, cwd: Path, path: str | None = None) -> str:
        """Return what a command prints in which the cluster can be reached.

        Parameters
        ----------
        *words : str
        cwd : Path
            Where it runs; jobs that it submits run there too.
        path : str, optional
            The PATH of the command and of jobs.
        """
        done = self._enter(words, cwd, {} if path is None else {"PATH": path})
        assert done.returncode == 0, f"{words}: {done.stderr}"
        return done.stdout.strip()

    def is_up(self) -> bool:
        """Say whether the node takes jobs."""
        done = self._enter(("sinfo", "--noheader", "--format=%T"), self.folder, {})
        return done.stdout.strip() == "idle"

    def submit_first(self) -> None:
        """Submit a job that leaves a word in the folder of the cluster."""
        self._enter(("sbatch", "--output=first_job", "--wrap=echo done"), self.folder, {})

    def has_run_first(self) -> bool:
        """Say whether that job has run."""
        mark = self.folder / "first_job"
        return mark.exists() and "done" in mark.read_text()

    def await_end(self, *jobs: str, cwd: Path) -> None:
        """Wait until jobs have ended, arrays with all their tasks."""
        until = time.monotonic() + JOBS_END_WITHIN_S
        squeue = ("squeue", "--noheader", f"--jobs={','.join(jobs)}", "--format=%i %T %r")
        while queued := self.command(*squeue, cwd=cwd):
            assert time.monotonic() < until, f"still there: {queued}; {self.log_tail()}"
            time.sleep(LOOKS_EVERY_S)

    def tasks(self, job: str, *, cwd: Path) -> dict[int, dict[str, str]]:
        """Return what SLURM says about the tasks of an array, by their number."""
        lines = self.command("scontrol", "show", "job", "--oneliner", job, cwd=cwd).splitlines()
        tasks = [dict(word.partition("=")[::2] for word in line.split()) for line in lines]
        return {int(task["ArrayTaskId"]): task for task in tasks}

    def log_tail(self) -> str:
        """Return the end of the logs of the daemons."""
        logs = "".join(log.read_text(errors="replace") for log in sorted(self.folder.glob("*.log")))
        return logs[-TAIL_LETTERS:]

    def _enter(
        self, words: tuple[str, ...], cwd: Path, variables: Mapping[str, str]
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["nsenter", "--target", str(self.pid), "--net", "--uts", *words],
            cwd=cwd,
            env={**os.environ, "SLURM_CONF": str(self.folder / "slurm.conf"), **variables},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=STARTS_WITHIN_S,
        )


@contextmanager
def one_node(folder: Path) -> Iterator[Slurm]:
    """Run a cluster; skip the test, and say why, where that cannot be done.

    Parameters
    ----------
    folder : Path
        Empty; what the cluster writes is there.
    """
    if lacking := _lacking():
        pytest.skip(lacking)
    (folder / "slurm.conf").write_text(CONFIGURATION.format(folder=folder))
    for name in ("state", "spool"):
        (folder / name).mkdir()
    key = folder / "munge.key"
    key.touch(0o600)
    key.write_bytes(os.urandom(128))
    with (folder / "daemons.log").open("wb") as log:
        first = subprocess.Popen(
            ["unshare", *NAMESPACES, "bash", "-c", INIT],
            cwd=folder,
            env={**os.environ, "SLURM_CONF": str(folder / "slurm.conf")},
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
        )
    slurm = Slurm(folder, first.pid)
    world, is_up = "", False
    until = time.monotonic() + STARTS_WITHIN_S

    def await_that(comes: Callable[[], bool], what: str) -> None:
        while not comes():
            if first.poll() is not None or time.monotonic() > until:
                pytest.skip(f"SLURM is installed, but {what} here: {slurm.log_tail()}")
            time.sleep(0.05)

    try:
        await_that(slurm.is_up, "no cluster comes up")
        slurm.submit_first()
        await_that(slurm.has_run_first, "its cluster runs no job")
        world = os.readlink(f"/proc/{first.pid}/ns/pid_for_children")
        is_up = True
        yield slurm
    except subprocess.TimeoutExpired as late:
        if is_up:
            raise
        pytest.skip(f"SLURM is installed, but {late.cmd} hangs here: {slurm.log_tail()}")
    finally:
        assert first.stdin
        first.stdin.close()
        try:
            first.wait(ENDS_WITHIN_S)
        except subprocess.TimeoutExpired:
            first.kill()
            first.wait()
        assert not _processes_of(world)


def _lacking() -> str:
    if os.geteuid() != 0:
        return "a SLURM cluster is run by root"
    missing = [program for program in PROGRAMS if shutil.which(program) is None]
    if missing:
        return f"no {', '.join(missing)}: apt install slurmctld slurmd slurm-client munge iproute2"
    return ""


def _processes_of(world: str) -> list[str]:
    """Return the processes of a namespace."""
    results = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if os.readlink(process / "ns" / "pid") == world:
                results.append((process / "comm").read_text())
        except OSError:  # it has ended meanwhile, or is none that this test could have started
            continue
    return results
