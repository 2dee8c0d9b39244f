"""The compiled part of routecast for networks on chip: the flit-level simulator and routes by load."""

from collections.abc import Callable

__all__ = ["NocError", "__version__", "noc_greedy", "noc_simulate"]

__version__: str

class NocError(Exception):
    """A network on chip that cannot be simulated. Arguments: kind, message.

    Kinds: ``scenario``, ``index``, ``number``, ``length``, ``route``, ``interrupted``, ``outcome``, ``panic``.
    """

def noc_greedy(columns: int, rows: int, rings: bool, demand: bytes) -> bytes:
    """Route flow after flow over the shortest path of a grid that is least loaded so far.

    Parameters
    ----------
    columns, rows : int
    rings : bool
        Whether rows and columns close to rings.
    demand : bytes
        Between routers: float64, source by source, in native order.

    Returns
    -------
    bytes
        The links of one path for every two routers: uint32, source by source and target by target.

    Raises
    ------
    ValueError
        The demand is not one of (routers, routers).
    """

def noc_simulate(scenarios: list[str], *, progress: Callable[[float], object] | None = None) -> list[str]:
    """Simulate planes of networks on chip flit by flit, each given and answered as JSON, in parallel.

    Parameters
    ----------
    scenarios : list of str
        One plane, one load and one seed each; ``crates/noc/src/scenario.rs`` documents each field.
    progress : callable, optional
        Called about every 50 ms with the finished share, 0..1. An exception in it, or a signal, ends the run and is
        raised.

    Returns
    -------
    list of str
        The outcomes in the same order; ``crates/noc/src/outcome.rs`` documents each field.

    Raises
    ------
    NocError
        A scenario is wrong; the message says which one and which entry.
    """
