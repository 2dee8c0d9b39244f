"""How many cores a device under test can be given on a test bed: said before anything is measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

from routecast.errors import EnvironmentProblem, QuantityProblem
from routecast.testbed.devices import DEVICES
from routecast.testbed.document import InterfacesFile, NamespacesFile
from routecast.testbed.placement import place

__all__ = ["device_options", "possible_counts"]

_OPTION = "cores"


def possible_counts(
    file: NamespacesFile | InterfacesFile, counts: Sequence[int]
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Return the numbers of cores that the bed's device can be given, and of each other one in words why not.

    The number of an external device is what its owner says it has.

    Raises QuantityProblem: the device cannot be given several cores by routecast; EnvironmentProblem: None of the
    numbers is possible on this machine.
    """
    name = file.dut.device
    written = ",".join(map(str, counts))
    if isinstance(file, InterfacesFile):
        if len(counts) > 1:
            message = (
                f"--cores {written}: an external device has the cores that its owner gives it: write the one number "
                "that it has now, and measure again when it has another"
            )
            raise QuantityProblem(written, message)
        return tuple(counts), ()
    if _OPTION in file.dut.options:
        message = f"--cores {written}: the device has the option cores = {file.dut.options[_OPTION]}: give one of them"
        raise QuantityProblem(written, message)
    if max(counts) > 1 and not _takes_cores(name):
        able = ", ".join(sorted(device for device in DEVICES if _takes_cores(device)))
        message = f"--cores {written}: the device {name} forwards on one core here; several can be given to {able}"
        raise QuantityProblem(written, message)
    possible, refusals = [], []
    for count in counts:
        try:
            place(file.cores.tester, file.cores.receiver, file.cores.dut, cores=count)
        except EnvironmentProblem as problem:
            refusals.append(str(problem))
        else:
            possible.append(count)
    if not possible:
        raise EnvironmentProblem("; ".join(refusals))
    return tuple(possible), tuple(refusals)


def device_options(file: NamespacesFile | InterfacesFile, count: int | None) -> dict[str, int]:
    """Return the options that give the bed's device so many cores; none where it has them anyway."""
    is_given = isinstance(file, NamespacesFile) and count is not None and _takes_cores(file.dut.device)
    return {_OPTION: count} if is_given and count is not None else {}


def _takes_cores(name: str) -> bool:
    return any(option.name == _OPTION for option in fields(DEVICES[name].options))
