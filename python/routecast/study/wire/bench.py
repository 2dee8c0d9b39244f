"""Where a wire study measures: something that sets a device up and answers trials."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from routecast.evaluate.protocol import Evaluator

__all__ = ["Bench", "TestbedBench"]

Option = str | int | float | bool


class Bench(Protocol):
    """A place where devices are measured: the test bed, or in a test a simulated one that says so."""

    def device(self, name: str, options: Mapping[str, Option]) -> AbstractContextManager[Evaluator]:
        """Set a device up with its options; leaving the context removes it."""
        ...


class TestbedBench:
    """A test bed: ``"namespaces"`` or a ``*.testbed.toml``."""

    __test__ = False  # no test, whatever pytest takes the name for

    def __init__(self, file: str, folder: Path) -> None:
        self._file = file if file == "namespaces" else str(folder / file)

    def device(self, name: str, options: Mapping[str, Option]) -> AbstractContextManager[Evaluator]:
        """Set the test bed up with a device under test."""
        from routecast.testbed.opening import open_testbed

        return open_testbed(self._file, device=name, options=options)
