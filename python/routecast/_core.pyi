"""The compiled core of routecast: the packet-level simulator."""

from collections.abc import Callable, Sequence

__all__ = ["SimulationError", "__version__", "hdr_merged", "hdr_quantiles_s", "simulate"]

__version__: str

class SimulationError(Exception):
    """A scenario that cannot be simulated. Arguments: kind, message, duration_s, needed_s."""

def hdr_merged(hdr_base64: Sequence[str]) -> str:
    """Return the histogram of all values of several HDR histograms; of none, an empty text.

    Raises
    ------
    ValueError
        A text is no histogram.
    """

def hdr_quantiles_s(hdr_base64: str, probabilities: Sequence[float]) -> list[float]:
    """Return times in seconds read out of an HDR histogram, one per probability (0..1).

    Parameters
    ----------
    hdr_base64 : str
        Base64 of the compressed V2 form, in nanoseconds, as ``Delay.hdr_base64`` carries it.
    probabilities : sequence of float

    Raises
    ------
    ValueError
        The text is no histogram, or the histogram is empty.
    """

def simulate(
    scenario: str,
    *,
    replications: int = 1,
    target_relative_half_width: float | None = None,
    most: int = 64,
    progress: Callable[[float], object] | None = None,
) -> str:
    """Simulate a scenario, given and answered as JSON; see :mod:`routecast.evaluate.simulate` for the public way.

    Parameters
    ----------
    scenario : str
        Router, load and run with indices for names; ``crates/sim/src/scenario.rs`` documents each field.
    replications : int
        Independent replications, run in parallel.
    target_relative_half_width : float, optional
        Go on, up to ``most`` replications, until the 95 % half-width of the mean latency is this share of it.
    most : int
        Most replications.
    progress : callable, optional
        Called about every 50 ms with the finished share, 0..1.

    Returns
    -------
    str
        The outcome.

    Raises
    ------
    SimulationError
        The scenario is wrong, or its transient did not end.
    """
