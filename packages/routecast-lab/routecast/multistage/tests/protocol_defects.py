"""Defects that the simulated worlds must find: one-line changes of the protocol's source, planted into a copy of it."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

__all__ = ["DEFECTS", "PACKAGE", "Defect", "search", "search_all"]

PACKAGE = Path(__file__).parents[1] / "protocol"
_SEEDS = 300
_HOURS_EACH = 1.0
_TIMEOUT_S = 240.0


@dataclass(frozen=True, slots=True)
class Defect:
    """A change of one place of a file: ``name``: what it does wrong."""

    name: str
    file: str
    old: str
    new: str


DEFECTS = (
    Defect(
        "a claim from another network is believed",
        "neighbours.py",
        "        if of_address != segment:\n",
        "        if False:\n",
    ),
    Defect(
        "a claim is believed without asking the owner",
        "neighbours.py",
        "            if entry.claim_asks >= CLAIM_ASKS:\n",
        "            if entry.claim_asks >= 0:\n",
    ),
    Defect(
        "the router's own addresses are not defended",
        "neighbours.py",
        "        if address in self.networks.own:\n",
        "        if False:\n",
    ),
    Defect(
        "the router's own MAC addresses are neighbours'",
        "neighbours.py",
        "        if not _is_unicast(mac) or mac in self.own_macs:\n",
        "        if not _is_unicast(mac):\n",
    ),
    Defect(
        "a MAC address in use on another network is believed",
        "neighbours.py",
        "        return any(self.entries[address].segment != segment for address in self._of_mac.get(mac, ()))\n",
        "        return False\n",
    ),
    Defect(
        "look-ups take the solicitations of known neighbours",
        "neighbours.py",
        "        if self._left < 1.0 + reserve:\n",
        "        if self._left < 1.0:\n",
    ),
    Defect(
        "load balancers do not forget a MAC address that nobody has",
        "neighbours.py",
        "        return [ForgetMac(entry.mac)]\n",
        "        return []\n",
    ),
    Defect(
        "the new neighbour is set before the old one is removed",
        "neighbours.py",
        '        return [*self._put(moved), *forgotten, Event(name, "neighbour moved", text)]\n',
        "        return [*self._put(moved), RemoveNeighbour(entry.segment, entry.address), *forgotten]\n",
    ),
    Defect(
        "a probe for a duplicate address is a claim of it",
        "neighbours.py",
        "        if is_probe:\n",
        "        if False:\n",
    ),
    Defect(
        "stated neighbours change",
        "neighbours.py",
        "        if entry.is_static:\n            self.counts",
        "        if False:\n            self.counts",
    ),
    Defect(
        "neighbours are confirmed far too rarely",
        "neighbours.py",
        "            return self._put(Entry(segment, address, mac, now_s, now_s + REACHABLE_S))\n".lstrip(),
        "return self._put(Entry(segment, address, mac, now_s, now_s + 10 * REACHABLE_S))\n",
    ),
    Defect(
        "the epoch does not increase",
        "changes.py",
        "        self.membership.epoch += 1\n",
        "        self.membership.epoch += 0\n",
    ),
    Defect(
        "the membership is stored after its table is in force",
        "changes.py",
        "        return [Store(), self.publication()]\n",
        "        return [self.publication(), Store()]\n",
    ),
    Defect(
        "the takeover is not stored",
        "takeover.py",
        "        yield Activate(name)\n        yield Store()\n",
        "        yield Activate(name)\n",
    ),
    Defect(
        "an audit does not compare epochs",
        "audit.py",
        "        if reading.epoch != self._membership.epoch:\n",
        "        if False:\n",
    ),
    Defect(
        "an audit does not compare neighbours of load balancers",
        "audit.py",
        "        if reading.macs is not None and reading.macs != macs and not self.is_learning:\n",
        "        if False:\n",
    ),
    Defect(
        "verdicts are not handed to the standby",
        "verdicts.py",
        "            wanted = is_out or (watch.is_dead and balancer != self._membership.active)\n",
        "            wanted = is_out\n",
    ),
    Defect(
        "members are not asked before a takeover",
        "takeover.py",
        "        return not watch.down and now_s - watch.heard_s <= 1.5 * CALL_EVERY_S\n",
        "        return not watch.down\n",
    ),
    Defect(
        "a round without an answer does not end the answers in a row",
        "watch.py",
        "            self.missed += 1\n            self.in_a_row = 0\n",
        "            self.missed += 1\n",
    ),
    Defect(
        "a count of returned frames that begins anew is an answer",
        "watch.py",
        "                is_heard |= before is not None and view.returned > 0\n",
        "                is_heard |= True\n",
    ),
)


def plant(defect: Defect, folder: Path) -> Path:
    """Copy the package with a defect into a folder, and return where it is.

    Raises ValueError: the source does not have the text just once.
    """
    copy = folder / "protocol"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    file = copy / defect.file
    text = file.read_text(encoding="utf-8")
    if text.count(defect.old) != 1:
        raise ValueError(f"{defect.file} has the text of {defect.name!r} {text.count(defect.old)} times")
    file.write_text(text.replace(defect.old, defect.new), encoding="utf-8")
    return copy


def search(defect: Defect) -> str:
    """Return the first violation that a defect leads to; empty if none is found."""
    from routecast.multistage.tests.protocol_world import World

    first = 1
    with tempfile.TemporaryDirectory() as folder:
        copy = plant(defect, Path(folder))
        while True:
            command = [sys.executable, "-m", "routecast.multistage.tests.protocol_defects", str(copy), str(first)]
            try:
                result = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
            except subprocess.TimeoutExpired:
                return ""
            if result.returncode == 1 and not result.stderr:
                return ""
            if result.returncode:
                raise RuntimeError(result.stderr)
            seed = int(result.stdout.split()[1].strip(",:"))
            # What the world finds without the defect too is no finding.
            if not World(seed).run(_HOURS_EACH * 3600.0):
                return result.stdout.strip()
            first = seed + 1


def search_all(processes: int) -> int:
    """Search all defects, print what is found; return 1 if one is not found."""
    found = []
    with ThreadPoolExecutor(processes) as pool:
        futures = {pool.submit(search, defect): defect for defect in DEFECTS}
        for future in as_completed(futures):
            found.append(future.result())
            verdict = (
                f"found: {futures[future].name}: {found[-1]}" if found[-1] else f"NOT FOUND: {futures[future].name}"
            )
            print(verdict, flush=True)
    print(f"{sum(map(bool, found))} of {len(found)} defects found")
    return int(not all(found))


def _main(copy: Path, first: int) -> int:
    """Run worlds with the package at ``copy`` until one has a violation."""
    name = "routecast.multistage.protocol"
    spec = importlib.util.spec_from_file_location(name, copy / "__init__.py", submodule_search_locations=[str(copy)])
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    from routecast.multistage.tests.protocol_world import World

    assert Path(sys.modules[f"{name}.machine"].__file__ or "").parent == copy
    for seed in range(first, _SEEDS + 1):
        try:
            violations = World(seed).run(_HOURS_EACH * 3600.0)
        except Exception as error:
            print(f"seed {seed}: {type(error).__name__}: {error}")
            return 0
        if violations:
            print(f"seed {seed}, {violations[0].time_s:.2f} s: {violations[0].what}")
            return 0
    return 1


if __name__ == "__main__":
    raise SystemExit(_main(Path(sys.argv[1]), int(sys.argv[2])))
