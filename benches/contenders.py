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

__all__ = ["Contender", "Missing", "Peer", "Sample", "find_peers", "ours"]

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
            frames = workload.peer_frames[self.name]
            arguments = (workload.name, str(frames), str(workload.warmup_us), str(seed))
            done = subprocess.run([*self.command, *arguments], capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise RuntimeError(f"{self.title} failed on {workload.name}: {done.stderr.strip()}")
            return Sample(**json.loads(done.stdout))

        return Contender(self.title, run)


def find_peers() -> tuple[list[Peer], list[Missing]]:
    """Return the peers that can run here, and the others with reasons."""
    peers, missing = [], []
    for find in (_ns3, lambda: _python("SimPy"), lambda: _python("Ciw")):
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


def _ns3() -> Peer:
    remedy = "apt install g++ libns3-dev"
    compiler = shutil.which("g++")
    if compiler is None:
        raise Missing("ns-3", "there is no g++", remedy)
    source = _HERE / "peers" / "ns3_peer.cc"
    flags = ("-O3", "-std=c++17")
    version = _ns3_version()
    key = hashlib.sha256(source.read_bytes() + " ".join((*flags, version)).encode()).hexdigest()[:12]
    program = _CACHE / f"ns3_peer-{key}"
    if not program.exists():
        _CACHE.mkdir(parents=True, exist_ok=True)
        fresh = program.with_suffix(".new")
        command = [compiler, *flags, str(source), "-o", str(fresh), "-lns3-core"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            errors = [line for line in done.stderr.splitlines() if "error" in line.lower()]
            raise Missing("ns-3", (errors or [done.stderr.strip()])[0], remedy)
        fresh.replace(program)
    return Peer("ns-3", f"ns-3 {version} events".replace("  ", " "), (str(program),))


def _ns3_version() -> str:
    """Return Debian's version of ns-3, which its own pkg-config file leaves out; empty where dpkg is not."""
    if shutil.which("dpkg-query") is None:
        return ""
    command = ["dpkg-query", "--show", "--showformat=${Version}", "libns3-dev"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip().partition("-")[0] if done.returncode == 0 else ""
