"""What a router is sized for: a rate of some frames, the loss that is allowed, and how sure it has to be."""

from __future__ import annotations

from routecast.errors import QuantityProblem
from routecast.load.frames import FrameMix
from routecast.load.offered import WIRE_OVERHEAD_BYTES, IntendedRate
from routecast.quantity.schema import field, value

__all__ = ["Target"]


@value
class Target:
    """A rate over all ports that is offered and, but for the allowed loss, has to be forwarded."""

    rate_pps: float = field("Frames per second")
    frames: FrameMix = field("Their sizes, FCS included", default_factory=lambda: FrameMix.fixed(64))
    confidence_ratio: float = field("Probability with which the target is to be met, more than 0, less than 1")
    loss_ratio: float = field("Share of the frames that may be lost, 0 or more, less than 1", default=0.0)

    @classmethod
    def parse(cls, rate: str, frames: str = "", *, confidence_ratio: float = 0.95, loss_ratio: float = 0.0) -> Target:
        """Read a target; bits per second are those of the links, with gap and preamble (S1).

        Raises
        ------
        routecast.errors.RoutecastError
            The rate is neither in frames nor in bits per second, the frames are unknown, or a share is out of range.

        Examples
        --------
        >>> round(Target.parse("10 Gbit/s", "64 B").rate_pps)
        14880952
        """
        mix = FrameMix.parse(frames) if frames else FrameMix.fixed(64)
        rate_pps = IntendedRate.parse(rate).pps(mix)
        if not 0.0 <= loss_ratio < 1.0:
            raise QuantityProblem(f"{loss_ratio}", f"got a loss of {loss_ratio}: 0 or more and less than 1")
        if not 0.0 < confidence_ratio < 1.0:
            raise QuantityProblem(
                f"{confidence_ratio}", f"got a probability of {confidence_ratio}: more than 0 and less than 1"
            )
        return cls(rate_pps=rate_pps, frames=mix, confidence_ratio=confidence_ratio, loss_ratio=loss_ratio)

    @property
    def rate_bps(self) -> float:
        """The same on the links, with gap and preamble."""
        return self.rate_pps * 8.0 * (self.frames.mean_bytes + WIRE_OVERHEAD_BYTES)

    @property
    def forwarded_pps(self) -> float:
        """What has to be forwarded."""
        return self.rate_pps * (1.0 - self.loss_ratio)
