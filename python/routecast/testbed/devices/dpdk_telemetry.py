"""Counters of a DPDK process, over the telemetry socket that each has: JSON in place of a command line's text."""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from routecast.errors import EnvironmentProblem

__all__ = ["DpdkTelemetry"]

_LONGEST_ANSWER_BYTES = 16_384
_TIMEOUT_S = 5.0


class DpdkTelemetry:
    """A connection to ``dpdk_telemetry.v2`` (DPDK 20.05 and newer).

    Parameters
    ----------
    path : Path
        Of the socket.

    Raises
    ------
    routecast.errors.EnvironmentProblem
        Nothing listens there, or it does not answer.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket.settimeout(_TIMEOUT_S)
        try:
            self._socket.connect(str(path))
        except OSError as problem:
            self._socket.close()
            raise EnvironmentProblem(f"{path}: no DPDK process answers: {problem.strerror}") from problem
        self.version: str = self._receive()["version"]

    def __enter__(self) -> DpdkTelemetry:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the connection."""
        self._socket.close()

    def port_statistics(self, port: int) -> Mapping[str, int]:
        """Return the statistics of a port as DPDK names them: ``ipackets``, ``opackets``, ``imissed``, …

        Raises
        ------
        routecast.errors.EnvironmentProblem
            There is no such port, or the process does not answer.
        """
        command = f"/ethdev/stats,{port}"
        try:
            self._socket.send(command.encode())
            answer = self._receive().get("/ethdev/stats")
        except (OSError, ValueError) as problem:
            raise EnvironmentProblem(f"{self._path}: {command} is not answered: {problem}") from problem
        if not isinstance(answer, dict):
            raise EnvironmentProblem(f"{self._path}: there is no port {port}")
        return {name: value for name, value in answer.items() if isinstance(value, int)}

    def _receive(self) -> dict[str, Any]:
        try:
            answer: dict[str, Any] = json.loads(self._socket.recv(_LONGEST_ANSWER_BYTES))
        except (OSError, ValueError) as problem:
            raise EnvironmentProblem(
                f"{self._path}: the DPDK process does not answer: {problem}"
            ) from problem
        return answer
