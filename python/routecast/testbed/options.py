"""Which device under test, with which options: from names and texts to the object that the test bed starts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from routecast.errors import FileProblem, Problem, QuantityProblem
from routecast.router.did_you_mean import did_you_mean
from routecast.testbed.site import Device

__all__ = ["make_device", "pairs"]


def make_device(name: str, options: Mapping[str, object]) -> Device:
    """Make a device under test.

    Raises
    ------
    routecast.errors.FileProblem
        There is no such device, or an option is wrong; places as in the ``[dut]`` of a file.
    """
    from routecast.testbed.devices import DEVICES
    from routecast.testbed.devices.options import read_options

    if name not in DEVICES:
        hint = did_you_mean(name, tuple(DEVICES))
        raise FileProblem("device under test", [Problem("device", f"got {name!r}: {hint}")])
    kind = DEVICES[name]
    device: Device = kind(read_options(f"device {name}", kind.options, options))
    return device


def pairs(texts: Sequence[str]) -> dict[str, str]:
    """Split what people write after ``--dut-option``.

    Raises
    ------
    routecast.errors.QuantityProblem
        A text is no ``key=value``.

    Examples
    --------
    >>> pairs(["rules=100", "ipv6=true"])
    {'rules': '100', 'ipv6': 'true'}
    """
    found = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise QuantityProblem(text, f"--dut-option {text!r}: write key=value, such as rules=100")
        found[key.strip()] = value.strip()
    return found
