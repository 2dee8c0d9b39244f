"""Which effects stand out where no run is repeated: Lenth's pseudo standard error.

R. V. Lenth, "Quick and easy analysis of unreplicated factorials", Technometrics 31(4), 1989, 469-473::

    s_0 = 1.5 median |q|          PSE = 1.5 median of the |q| below 2.5 s_0
    ME  = t(0.975; m/3) PSE       SME = t((1 + 0.95^(1/m)) / 2; m/3) PSE

Most effects are taken to be nothing but noise: where more than about half are real the margins are too wide.
"""

from __future__ import annotations

from collections.abc import Sequence

from routecast.experiment.analysis.outcome import Lenth

__all__ = ["lenth"]

_FEWEST = 3


def lenth(values: Sequence[float], confidence: float) -> Lenth | None:
    """Return the margins for m effects; None where there are fewer than three, or most of them are zero."""
    import numpy as np
    from scipy.stats import t as student

    if len(values) < _FEWEST:
        return None
    sizes = np.abs(np.asarray(values, dtype=float))
    first = 1.5 * float(np.median(sizes))
    if first <= 1e-12 * float(sizes.max()):
        return None
    pse = 1.5 * float(np.median(sizes[sizes < 2.5 * first]))
    if pse <= 1e-12 * float(sizes.max()):
        return None
    df = len(sizes) / 3
    simultaneous = (1 + confidence ** (1 / len(sizes))) / 2
    return Lenth(
        pse=pse,
        df=df,
        margin=float(student.ppf(0.5 + confidence / 2, df)) * pse,
        simultaneous_margin=float(student.ppf(simultaneous, df)) * pse,
    )
