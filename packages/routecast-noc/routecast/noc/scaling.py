"""Power by the hop and dynamic voltage and frequency scaling of one plane (Li 2012, eqs. 6.1-6.3, 7.1-7.3)."""

from __future__ import annotations

from routecast.errors import RoutecastError
from routecast.quantity.schema import value

__all__ = ["Scaling"]

# A load above capacity by rounding alone is no overload.
_ROUNDING = 1e-9


@value
class Scaling:
    """The expansion factor of one plane: voltage V_max/alpha and clock f_max/alpha, 1 <= alpha <= alpha_max.

    Power is relative to that of one link that is always busy at full voltage.

    The bottleneck, slowed down, is loaded bottleneck * alpha, which must not be above 1. Li (2012) prints this
    "virtual load" upside down, rho = mu/(gamma alpha); its eq. 6.3 needs it as here. With ``alpha_max`` infinite alpha
    is 1/bottleneck, so that power grows with the third power of the load (properties 1 and 2).

    Raises
    ------
    RoutecastError
        ``alpha_max`` below 1.
    """

    alpha_max: float

    def __post_init__(self) -> None:
        if not self.alpha_max >= 1:
            msg = f"alpha_max {self.alpha_max:g}: V_max / V_min is at least 1 (1 is no scaling; Li (2012) uses 3)"
            raise RoutecastError(msg)

    @property
    def slowest(self) -> float:
        """Least relative clock, 1/alpha_max."""
        return 1 / self.alpha_max

    def alpha(self, bottleneck: float) -> float:
        """Return the largest expansion factor that a bottleneck load, in capacities at full clock, allows.

        Raises
        ------
        RoutecastError
            The load is over capacity, so that no clock carries it, or it is negative or not a number.
        """
        if not bottleneck >= 0:
            msg = f"bottleneck load {bottleneck:g}: it is 0 or more, in capacities of a link at full clock"
            raise RoutecastError(msg)
        if bottleneck > 1 + _ROUNDING:
            msg = f"the bottleneck is loaded {bottleneck:.4g} times its capacity at full clock: lower the load"
            raise RoutecastError(msg)
        return self.alpha_max if bottleneck <= self.slowest else max(1.0, 1 / bottleneck)

    def power(self, hop_flow: float, bottleneck: float) -> float:
        """Return the power of a plane whose flows sum to ``hop_flow`` (eq. 6.2): hop_flow / alpha^2."""
        return hop_flow / self.alpha(bottleneck) ** 2
