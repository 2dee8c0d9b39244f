"""The numbers of cores that a device under test can have on a test bed, known before anything is measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

from routecast.errors import EnvironmentProblem, QuantityProblem
from routecast.lab.testbed.devices import DEVICES
from routecast.lab.testbed.document import InterfacesFile, NamespacesFile
from routecast.lab.testbed.placement import assign_cores

__all__ = ["device_options", "possible_counts"]

_CORES_OPTION = "cores"


def possible_counts(
    file: NamespacesFile | InterfacesFile, counts: Sequence[int]
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Return the numbers of cores in ``counts`` that the bed's device can have, and the reasons against the others.

    An external device has the number of cores that its owner states.

    Raises QuantityProblem: routecast cannot give the device several cores; EnvironmentProblem: no number is possible on
    this machine.
    """
    name = file.dut.device
    option = ",".join(map(str, counts))
    if isinstance(file, InterfacesFile):
        if len(counts) > 1:
            message = (
                f"--cores {option}: an external device has the cores that its owner gives it: write the one number "
                "that it has now, and measure again when it has another"
            )
            raise QuantityProblem(option, message)
        return tuple(counts), ()
    if _CORES_OPTION in file.dut.options:
        message = (
            f"--cores {option}: the device has the option cores = {file.dut.options[_CORES_OPTION]}: give one of them"
        )
        raise QuantityProblem(option, message)
    if max(counts) > 1 and not _has_cores_option(name):
        devices = ", ".join(sorted(device for device in DEVICES if _has_cores_option(device)))
        message = f"--cores {option}: the device {name} forwards on one core here; several can be given to {devices}"
        raise QuantityProblem(option, message)
    possible, refusals = [], []
    for count in counts:
        try:
            assign_cores(file.cores.tester, file.cores.receiver, file.cores.dut, cores=count)
        except EnvironmentProblem as problem:
            refusals.append(str(problem))
        else:
            possible.append(count)
    if not possible:
        raise EnvironmentProblem("; ".join(refusals))
    return tuple(possible), tuple(refusals)


def device_options(file: NamespacesFile | InterfacesFile, count: int | None) -> dict[str, int]:
    """Return the options that give the bed's device ``count`` cores; empty if its default is that number."""
    if count is None or not isinstance(file, NamespacesFile) or not _has_cores_option(file.dut.device):
        return {}
    return {_CORES_OPTION: count}


def _has_cores_option(name: str) -> bool:
    return any(field.name == _CORES_OPTION for field in fields(DEVICES[name].options))
