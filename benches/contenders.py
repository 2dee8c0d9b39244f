"""Who runs a workload: routecast in this process, each peer in one of its own. All report their CPU time."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from workloads import Variant, Workload

from routecast.evaluate.simulate import Simulate

__all__ = ["Contender", "Missing", "Peer", "Sample", "find_limit", "find_peers", "ours"]

_HERE = Path(__file__).parent
_CACHE = _HERE.parent / "build" / "benches"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One run: its CPU time, and what it found in the steady state."""

    frames: int
    cpu_s: float
    throughput_pps: float
    loss_ratio: float
    latency_mean_s: float

    @property
    def frames_per_s(self) -> float:
        """Frames simulated per second of CPU time."""
        return self.frames / self.cpu_s


@dataclass(frozen=True, slots=True)
class Contender:
    """A name and how to run the workload with a seed."""

    name: str
    run: Callable[[int], Sample]


@dataclass(frozen=True, slots=True)
class Missing(Exception):
    """A peer that cannot run here, why, and what installs it."""

    name: str
    reason: str
    remedy: str


def ours(workload: Workload, variant: Variant) -> Contender:
    """Return routecast on one path: the whole of ``Simulate(…).trial``, checks and conversions included."""

    def run(seed: int, frames: int = variant.frames) -> Sample:
        simulator = Simulate(variant.model, seed=seed, path=variant.path)
        begin = time.process_time()
        trial = simulator.trial(workload.load, frames / workload.load.rate_pps)
        cpu_s = time.process_time() - begin
        assert trial.offered_frames is not None
        assert trial.latency is not None
        return Sample(
            frames=trial.offered_frames,
            cpu_s=cpu_s,
            throughput_pps=trial.forwarded_pps,
            loss_ratio=trial.loss_ratio,
            latency_mean_s=trial.latency.mean_s,
        )

    # Loading the extension and starting its threads is not simulating.
    run(0, max(variant.frames // 20, 200_000))
    return Contender(variant.name, run)


@dataclass(frozen=True, slots=True)
class Peer:
    """Another simulator, as a program ``… WORKLOAD FRAMES WARMUP_US SEED`` that prints one line of JSON."""

    name: str
    title: str
    command: tuple[str, ...]

    def on(self, workload: Workload) -> Contender:
        """Return the peer on a workload."""

        def run(seed: int) -> Sample:
            return self.sample(workload.name, workload.peer_frames[self.name], workload.warmup_us, seed)

        return Contender(self.title, run)

    def sample(self, workload: str, frames: int, warmup_us: float, seed: int) -> Sample:
        """Run the program once."""
        arguments = (workload, str(frames), str(warmup_us), str(seed))
        done = subprocess.run([*self.command, *arguments], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"{self.title} failed on {workload}: {done.stderr.strip()}")
        return Sample(**json.loads(done.stdout))


def find_peers() -> tuple[list[Peer], list[Missing]]:
    """Return the peers that can run here, and the others with reasons."""
    peers, missing = [], []
    for find in (_ns3, lambda: _python("SimPy"), lambda: _python("Ciw"), find_limit):
        try:
            peers.append(find())
        except Missing as problem:
            missing.append(problem)
    return peers, missing


def _python(name: str) -> Peer:
    try:
        version = metadata.version(name)
    except metadata.PackageNotFoundError:
        remedy = "pip install --group bench (make bench does it)"
        raise Missing(name, "not installed in this environment", remedy) from None
    script = _HERE / "peers" / f"{name.lower()}_peer.py"
    return Peer(name, f"{name} {version}", (sys.executable, str(script)))


def find_limit() -> Peer:
    """Return the limit program; raises Missing where there is no gcc."""
    # A program for this processor's own instructions is not for another one.
    processor = next((line for line in _cpuinfo() if line.startswith(("flags", "Features"))), "")
    program = _compiled(
        "limit", "gcc", "limit.c", ("-O3", "-march=native", "-std=gnu11"), (), processor, "apt install gcc"
    )
    return Peer("limit", "limit program (one workload only)", (str(program),))


def _cpuinfo() -> list[str]:
    try:
        return Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return []


def _ns3() -> Peer:
    version = _ns3_version()
    remedy = "apt install g++ libns3-dev"
    program = _compiled("ns-3", "g++", "ns3_peer.cc", ("-O3", "-std=c++17"), ("-lns3-core",), version, remedy)
    return Peer("ns-3", f"ns-3 {version} events".replace("  ", " "), (str(program),))


def _compiled(
    name: str,
    compiler: str,
    source_name: str,
    flags: tuple[str, ...],
    libraries: tuple[str, ...],
    version: str,
    remedy: str,
) -> Path:
    """Return the program of a source below ``peers``, compiled where its source, flags or version are new."""
    path = shutil.which(compiler)
    if path is None:
        raise Missing(name, f"there is no {compiler}", remedy)
    source = _HERE / "peers" / source_name
    key = hashlib.sha256(source.read_bytes() + " ".join((*flags, version)).encode()).hexdigest()[:12]
    program = _CACHE / f"{source.stem}-{key}"
    if not program.exists():
        _CACHE.mkdir(parents=True, exist_ok=True)
        fresh = program.with_suffix(".new")
        command = [path, *flags, str(source), "-o", str(fresh), *libraries]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            errors = [line for line in done.stderr.splitlines() if "error" in line.lower()]
            raise Missing(name, (errors or [done.stderr.strip()])[0], remedy)
        fresh.replace(program)
    return program


def _ns3_version() -> str:
    """Return Debian's version of ns-3, which its own pkg-config file leaves out; empty where dpkg is not."""
    if shutil.which("dpkg-query") is None:
        return ""
    command = ["dpkg-query", "--show", "--showformat=${Version}", "libns3-dev"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip().partition("-")[0] if done.returncode == 0 else ""
