"""Options of a device under test as people write them on a command line."""

from __future__ import annotations

from collections.abc import Sequence

from routecast.errors import QuantityProblem

__all__ = ["pairs"]


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
