"""The server's controller over ``ipmitool dcmi power reading`` (IPMI DCMI 1.5, sec. 6.6.1).

It reports the power of the whole server, network cards and fans included, in whole watts and at intervals of its own.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from routecast.errors import EnvironmentProblem
from routecast.lab.testbed.meters._meter import Zone
from routecast.lab.testbed.meters._sampled import Sample, Source
from routecast.lab.testbed.meters._web import Credentials

_TIMEOUT_S = 10.0
_POWER = re.compile(r"Instantaneous power reading:\s*(\d+(?:\.\d+)?)\s*Watts", re.IGNORECASE)
_STATE = re.compile(r"Power reading state is:\s*(\S+)", re.IGNORECASE)
_COMMAND: Final = ("dcmi", "power", "reading")

RunProgram = Callable[[Sequence[str], Mapping[str, str]], str]
"""Runs a program with additions to its environment and returns what it prints."""


def run_program(command: Sequence[str], environment: Mapping[str, str]) -> str:
    """Run a program and return its output, then its errors.

    Raises EnvironmentProblem: the program is missing, or it does not end.
    """
    try:
        completed = subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=_TIMEOUT_S,
            stdin=subprocess.DEVNULL,
            env={**os.environ, "LC_ALL": "C", **environment},
        )
    except FileNotFoundError as problem:
        raise EnvironmentProblem("power meter ipmi: ipmitool is missing: apt install ipmitool") from problem
    except subprocess.TimeoutExpired as problem:
        raise EnvironmentProblem(f"power meter ipmi: ipmitool did not answer within {_TIMEOUT_S:g} s") from problem
    except OSError as problem:
        raise EnvironmentProblem(f"power meter ipmi: ipmitool cannot run: {problem.strerror}") from problem
    return completed.stdout + completed.stderr


def parse_dcmi(text: str) -> float:
    """Read the watts from what ``ipmitool dcmi power reading`` prints.

    Raises EnvironmentProblem: it prints no power, or a power that cannot be true.
    """
    power = _POWER.search(text)
    state = _STATE.search(text)
    if power is None:
        lines = text.strip().splitlines()
        answer = f"says {lines[0].strip()!r}" if lines else "has no output"
        advice = ""
        if "Could not open device" in text:
            advice = ": modprobe ipmi_devintf ipmi_si, and run as root; not every machine has a controller"
        elif "Invalid" in text or "DCMI" in text.upper():
            advice = ": the controller has no DCMI power reading; many answer Redfish: redfish:https://CONTROLLER"
        raise EnvironmentProblem(f"power meter ipmi: ipmitool {answer}{advice}")
    if state is not None and state[1].lower() != "activated":
        raise EnvironmentProblem(
            f"power meter ipmi: the controller's power reading is {state[1]}: ipmitool dcmi power activate"
        )
    if float(power[1]) == 0.0:
        raise EnvironmentProblem(
            "power meter ipmi: the controller says 0 W while the machine runs: it has the command, but no sensor"
        )
    return float(power[1])


class IpmiSource(Source):
    """Watts of a server as its controller reports them.

    ``host`` is the address of the controller, empty for this machine's; ``credentials`` are for a controller on the
    network; ``run`` runs a program.
    """

    def __init__(
        self, host: str = "", *, credentials: Credentials | None = None, run: RunProgram = run_program
    ) -> None:
        self._host = host
        self._credentials = credentials
        self._run = run
        self.name = f"ipmi:{host}" if host else "ipmi"
        self.scope = "bmc"
        self.zones = (Zone(name="server", scope="bmc"),)

    def read(self) -> Mapping[str, float]:
        """Return the watts.

        Raises EnvironmentProblem: ipmitool is missing, or the controller reports no power.
        """
        return {"server": parse_dcmi(self._run(*self._command()))}

    def notes(self, samples: Sequence[Sample]) -> Sequence[str]:
        """Return the note that the meter does not resolve short intervals."""
        return ("DCMI reports whole watts, at intervals of the controller's choice: only long trials are metered well",)

    def _command(self) -> tuple[Sequence[str], Mapping[str, str]]:
        if not self._host:
            return ("ipmitool", *_COMMAND), {}
        user = self._credentials.user if self._credentials else ""
        password = self._credentials.password if self._credentials else ""
        # -E takes the password from the environment: a command line can be read by everybody.
        account = ("-U", user) if user else ()
        return (("ipmitool", "-I", "lanplus", "-H", self._host, *account, "-E", *_COMMAND), {"IPMI_PASSWORD": password})
