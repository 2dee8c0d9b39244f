"""What routecast says, command by command, kept as files: what no change of the house's inside may alter.

Every file says on top which command made it; ``make corpus`` writes all of them again. Long ones are compressed
(tests/kept_text.py). Numbers are rounded to nine
digits, or six, so that the last bits of a processor's vector units are no difference; what names the run, the machine
or the time is left out.
"""

from __future__ import annotations

import contextlib
import difflib
import io
import json
import math
import os
import re
import shutil
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from kept_text import file_of, read_kept, write_kept

from routecast.cli.run import run
from routecast.cli.schema import Kind

__all__ = [
    "HERE",
    "ROOT",
    "Page",
    "commands",
    "differences",
    "hold",
    "place_of",
    "plain",
    "recorded",
    "short_studies",
    "skeleton",
    "studies",
    "write_short_studies",
]

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
RATES = ("100 kpps", "1 Mpps", "10 Mpps")
STUDIES = (
    "diversified_router",
    "kvm_tuning",
    "meyer2014",
    "msr_energy",
    "napi_power",
    "noc_single_plane",
    "noc_two_planes",
    "router_generations",
    "vmware_msr",
)
"""Those that need neither a wire nor this host."""

SHORT: dict[str, dict[str, Any]] = {
    "kvm_tuning": {"run": {"duration": "20 ms"}, "left_out": {"values": 3}},
    "msr_energy": {
        "saving": {"days": 5},
        "sweep": {"budgets": [2000, 2500], "payback": ["0 s", "60 s", "600 s"]},
        "plan": {"budgets": [2000, 2500]},
        "mismatch": {"steps": ["15 min", "60 min"]},
    },
    "napi_power": {
        "run": {"frames": 8_000, "compare": False},
        "clock": {"frequencies": ["1 GHz", "3 GHz"], "memory": [0.2]},
    },
    "noc_two_planes": {"case": {"matrices": 2, "load": [0.4, 1.0], "topology": {"columns": 4, "rows": 4}}},
    "vmware_msr": {"run": {"duration": "20 ms"}, "left_out": {"values": 3}},
}
"""Studies that take long at their own length, and what makes them short; "case" is of each case that has the key."""

_BOUND = re.compile(r' *"(?:low|high)_')
_NUMBER = re.compile(r"-?\d+\.\d+(?:e[+-]?\d+)?|-?\d+e[+-]?\d+")
_PROVENANCE = (
    "calibrations",  # a digest changes with the version and the priors
    "made",
    "provenance",
    "versions",
    "environment",
    "seconds",
    "elapsed_s",
    "wall_s",
    "time_s_of_search",
    "solve_s",
    "search_s",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One file of the corpus: the command that makes it and, while it is made, its arguments."""

    name: str
    arguments: tuple[str, ...]

    @property
    def path(self) -> Path:
        """Where it is kept."""
        return HERE / f"{self.name}.txt"

    @property
    def digits(self) -> int:
        """How many are kept: fewer where solvers and samplers, which stop at a tolerance, have a part in it."""
        return 9 if self.name.startswith(("solve/", "simulate/", "noc/")) else 6

    @property
    def least(self) -> float:
        """What is less is 0: loads and gaps of networks on chip are of the order of 1."""
        return 1e-10 if "noc" in self.name else 0.0

    @property
    def command(self) -> str:
        """What a user types."""
        return "routecast " + " ".join(f'"{each}"' if " " in each else each for each in self.arguments)


def commands() -> Iterator[Page]:
    """Every page but those of studies."""
    for file in sorted(ROOT.glob("examples/*.router.toml")):
        name = file.name.removesuffix(".router.toml")
        for rate in RATES:
            where = (f"examples/{file.name}", "--load", rate)
            slug = rate.replace(" ", "")
            yield Page(name=f"solve/{name}@{slug}", arguments=("solve", *where, "--json"))
            how = ("--duration", "20ms", "--seed", "1", "--json")
            yield Page(name=f"simulate/{name}@{slug}", arguments=("simulate", *where, *how))
    for kind in Kind:
        yield Page(name=f"schema/{kind.value}", arguments=("schema", kind.value))

    for file in sorted(ROOT.glob("examples/*.noc.toml")):
        for verb in ("power", "optimum", "simulate", "compare"):
            name = f"noc/{verb}-{file.name.removesuffix('.noc.toml')}"
            yield Page(name=name, arguments=("noc", verb, f"examples/{file.name}", "--json"))
    for file in sorted(ROOT.glob("examples/*.placement.toml")):
        name = f"plan/placement-{file.name.removesuffix('.placement.toml')}"
        # So much time that no slow machine ends the comparison of the mappings before its end.
        how = ("--no-simulate", "--seconds", "600", "--json")
        yield Page(name=name, arguments=("plan", "placement", f"examples/{file.name}", *how))
    yield Page(name="plan/cluster-li2012", arguments=("plan", "cluster", "examples/li2012.cluster.toml", "--json"))
    mapping = "examples/ixp2850-mapping.router.toml"
    yield Page(name="plan/mapping-ixp2850", arguments=("plan", "mapping", mapping, "--json"))
    for file in sorted(ROOT.glob("examples/*.experiment.toml")):
        name = f"experiment/{file.name.removesuffix('.experiment.toml')}"
        yield Page(name=name, arguments=("experiment", f"examples/{file.name}", "--json", "--out", "OUT"))


def studies() -> Iterator[Page]:
    """The page of every study that runs anywhere; each makes two files."""
    for name in STUDIES:
        yield Page(name=f"study/{name}", arguments=("study", name, "--out", "OUT", "--json"))


def short_studies() -> Iterator[Page]:
    """The pages of the short variants of long studies; each makes two files."""
    for name in SHORT:
        arguments = ("study", f"SHORT/studies/{name}.study.toml", "--out", "OUT", "--json")
        yield Page(name=f"study/short/{name}", arguments=arguments)


def write_short_studies(folder: Path) -> None:
    """Write the short variants of long studies into ``folder``, beside what they read."""
    for data in ROOT.glob("packages/routecast*/routecast/**/data"):
        for name in ("studies", "measured"):
            if (data / name).is_dir():
                shutil.copytree(data / name, folder / name, dirs_exist_ok=True)
    for name, changes in SHORT.items():
        path = folder / "studies" / f"{name}.study.toml"
        document = tomllib.loads(path.read_text())
        for table, values in changes.items():
            for part in document[table] if isinstance(document[table], list) else [document[table]]:
                _change(part, values)
        path.write_text(tomli_w.dumps(document))


def _change(table: dict[str, Any], values: dict[str, Any]) -> None:
    for key, value in values.items():
        if isinstance(value, dict) and key in table:
            _change(table[key], value)
        elif key == "load" and isinstance(table.get("traffic"), dict):
            table["traffic"]["load"] = value
        elif key in table or key == "compare":
            table[key] = value


def recorded(page: Page, out: Path, short: Path = Path("SHORT")) -> str:
    """Run the command of a page, with ``out`` for OUT and ``short`` for SHORT, and give what its file should hold."""
    stdout, stderr = io.StringIO(), io.StringIO()
    arguments = [str(out) if each == "OUT" else each.replace("SHORT", str(short)) for each in page.arguments]
    with contextlib.chdir(ROOT), contextlib.redirect_stdout(stdout), contextlib.redirect_stderr(stderr):
        code = run(arguments)
    return as_page(page, code, stdout.getvalue(), stderr.getvalue(), {str(out): "OUT", str(short): "SHORT"})


def as_page(page: Page, code: int, stdout: str, stderr: str, places: dict[str, str]) -> str:
    """Give what the file of a page should hold, from what its command printed and the exit code."""
    if stdout.startswith(("{", "[")):
        stdout = json.dumps(plain(json.loads(stdout), page.digits, page.least), indent=1, ensure_ascii=False) + "\n"
    if code:
        stdout += f"exit code {code}\n" + "".join(f"{line}\n" for line in _messages(stderr))
    for place, name in (*places.items(), (str(ROOT), ".")):
        stdout = stdout.replace(place, name)
    return f"$ {page.command}\n{stdout}"


def hold(path: Path, now: str, digits: int = 6) -> None:
    """Fail where a file of the corpus is not what is said now; write it where ``make corpus`` asks for that.

    Numbers are the same where ``digits`` of them are, give or take one of the last: another processor's vector units
    may round the other way. The bounds of a calibration's intervals, quantiles of draws at a fit that such a rounding
    moves, have a digit less.
    """
    if os.environ.get("ROUTECAST_REWRITE_CORPUS"):
        write_kept(path, now)
    changes = differences(read_kept(path), now, digits)
    if changes:
        name = path.relative_to(HERE)
        full = ROOT / "build" / "corpus" / name
        full.parent.mkdir(parents=True, exist_ok=True)
        full.write_text(now)
        show = f"zcat {file_of(path).relative_to(ROOT)}" if file_of(path) != path else f"cat {path.relative_to(ROOT)}"
        more = [f"… {len(changes) - 40} more lines"] if len(changes) > 40 else []
        whole = f"all of it: diff <({show}) {full.relative_to(ROOT)}"
        pytest.fail("\n".join([f"{name}: {now.partition(chr(10))[0]}", *changes[:40], *more, whole]))


def differences(before: str, now: str, digits: int) -> list[str]:
    """Return a unified diff of two pages, each change below the place where it is; empty where they are the same."""
    kept, lines = before.splitlines(), now.splitlines()
    if len(kept) == len(lines):
        pairs = zip(kept, lines, strict=True)
        lines = [line if _same(line, after, digits) else after for line, after in pairs]
    if kept == lines:
        return []
    shown = []
    for line in list(difflib.unified_diff(kept, lines, "corpus", "now", lineterm="", n=1))[2:]:
        if hunk := re.match(r"@@ -(\d+)(?:,(\d+))? ", line):
            shown.append(f"@@ {place_of(kept, int(hunk[1]) - (hunk[2] != '0'))}, line {hunk[1]}")
        else:
            shown.append(line)
    return shown


def place_of(lines: list[str], number: int) -> str:
    """Return where the line after ``number``, counted from 0, stands; a change begins below a line of context.

    In a document the place is keys and names, in a report the section and the number of its table.
    """
    number = min(number + 1, len(lines) - 1)
    above = lines[: number + 1]
    if lines[:1] == ["<!doctype html>"]:
        starts = [index for index, line in enumerate(above) if "<section" in line]
        section = above[starts[-1] :] if starts else above
        name = re.search(r'id="([^"]*)"', section[0]) if starts else None
        tables = sum("<table" in line for line in section)
        return f"section {name[1] if name else 'before all'}" + (f", table {tables}" if tables else "")
    steps: list[str] = []
    depth = len(lines[number]) - len(lines[number].lstrip()) if lines else 0
    for index in range(number - 1, 0, -1):
        line = lines[index]
        indent = len(line) - len(line.lstrip())
        if indent < depth and line.endswith(("{", "[")):
            depth = indent
            key, name = re.match(r' *"([^"]*)"', line), re.match(r' *"name": "(.*)"', lines[index + 1])
            steps += [key[1]] if key else [name[1]] if name else []
    return " > ".join(reversed(steps)) or "top"


def _same(before: str, after: str, digits: int) -> bool:
    if before == after:
        return True
    digits -= bool(_BOUND.match(before))
    numbers = zip(_NUMBER.findall(before), _NUMBER.findall(after), strict=False)
    return _NUMBER.sub("#", before) == _NUMBER.sub("#", after) and all(
        math.isclose(float(item), float(other), rel_tol=1.01 * 10 ** (1 - digits)) for item, other in numbers
    )


def plain(value: Any, digits: int = 6, least: float = 0.0) -> Any:
    """Plain data with rounded numbers, without what names the run, the machine or the time.

    What is less than ``least`` is the difference of equal numbers, and 0.
    """
    if isinstance(value, dict):
        return {key: plain(each, digits, least) for key, each in value.items() if key not in _PROVENANCE}
    if isinstance(value, list):
        return [plain(each, digits, least) for each in value]
    if isinstance(value, float):
        return float(f"{value:.{digits}g}") if abs(value) >= least else 0.0
    return value


def skeleton(html: str) -> str:
    """A report without scripts, styles and drawings, and without what names its run."""
    for mark in ("script", "style", "svg"):
        html = re.sub(rf"<{mark}\b.*?</{mark}>", f"<{mark}/>", html, flags=re.S)
    html = re.sub(r'<section id="provenance">.*?</section>', "", html, flags=re.S)
    html = re.sub(r"<footer.*?</footer>", "", html, flags=re.S)
    # What the scripts are, other tests say.
    html = re.sub(r"(&#39;sha256-[A-Za-z0-9+/=]+&#39; ?)+", "…", html)
    html = re.sub(r"data:[a-z]+/[a-z0-9+-]+;base64,[A-Za-z0-9+/=]+", "data:", html)
    return _NUMBER.sub(lambda item: f"{float(item[0]):.6g}", html)


def _messages(stderr: str) -> list[str]:
    return [line for line in stderr.splitlines() if line.startswith(("routecast: ", "  "))]
