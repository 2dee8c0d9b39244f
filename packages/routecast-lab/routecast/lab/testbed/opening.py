"""Open a test bed by name and yield an evaluator that is ready to measure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from routecast.errors import QuantityProblem
from routecast.lab.testbed._interfaces import Interfaces
from routecast.lab.testbed.bed import Bed
from routecast.lab.testbed.devices import make_device
from routecast.lab.testbed.document import NamespacesFile
from routecast.lab.testbed.measure import Measure
from routecast.lab.testbed.meters import meter_for
from routecast.lab.testbed.namespaces import Namespaces
from routecast.lab.testbed.reading import read_testbed
from routecast.lab.testbed.timed import measure_of

__all__ = ["make_bed", "open_testbed", "parse_device_options"]


def parse_device_options(texts: Sequence[str]) -> dict[str, str]:
    """Return the options of the device from the arguments of ``--dut-option``.

    Raises QuantityProblem: a text is not of the form ``key=value``.

    Examples
    --------
    >>> parse_device_options(["rules=100", "ipv6=true"])
    {'rules': '100', 'ipv6': 'true'}
    """
    options = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise QuantityProblem(text, f"--dut-option {text!r}: write key=value, such as rules=100")
        options[key.strip()] = value.strip()
    return options


def make_bed(
    testbed: str | Path,
    *,
    device: str | None = None,
    options: Mapping[str, object] | None = None,
    encapsulation: str | None = None,
    own_network: bool = False,
    share_cores: bool = False,
    on_remark: Callable[[str], None] = lambda _: None,
) -> Bed:
    """Return the test bed of a file, or the built-in ``"namespaces"``; it is up while its context lasts.

    Parameters
    ----------
    testbed : str or Path
    device : str, optional
        The device under test, instead of the file's.
    options : mapping of str to object, optional
        Its options.
    encapsulation : str, optional
        VLAN tags and tunnel of test frames, instead of the file's: ``"vlan:10"``, ``"vxlan:42"``.
    own_network : bool
        Whether frames may leave by interfaces with other traffic or addresses.
    share_cores : bool
        Whether the bed may use cores on which another test bed measures.
    on_remark : callable, optional
        Gets remarks for the user, line by line.

    Raises
    ------
    routecast.errors.FileProblem
        The file or an option is wrong.
    """
    file = read_testbed(testbed, device=device, options=options, encapsulation=encapsulation)
    under_test = make_device(file.dut.device, file.dut.options)
    if isinstance(file, NamespacesFile):
        bed: Bed = Namespaces(file, under_test, on_remark=on_remark)
    else:
        bed = Interfaces(file, under_test, own_network=own_network, on_remark=on_remark)
    bed.share_cores = share_cores
    return bed


@contextmanager
def open_testbed(
    testbed: str | Path,
    *,
    device: str | None = None,
    options: Mapping[str, object] | None = None,
    encapsulation: str | None = None,
    own_network: bool = False,
    share_cores: bool = False,
    on_remark: Callable[[str], None] = lambda _: None,
    power: str | None = None,
    **measure: Any,
) -> Iterator[Measure]:
    """Make a test bed, start its device, and yield an evaluator; the end of the context undoes everything.

    Parameters are those of :func:`make_bed` and of :class:`Measure`, and ``power``: the power meter, instead of the
    file's; ``"auto"`` for the first that can be read here, ``"none"`` for none.

    Raises
    ------
    routecast.errors.RoutecastError
        The file is wrong, or the machine lacks something.
    """
    bed = make_bed(
        testbed,
        device=device,
        options=options,
        encapsulation=encapsulation,
        own_network=own_network,
        share_cores=share_cores,
        on_remark=on_remark,
    )
    meter, no_power = meter_for(bed.power, power)
    with bed, measure_of(bed)(bed, meter=meter, no_power=no_power, **measure) as evaluator:
        bed.begin_measuring()
        yield evaluator
