"""The number of cores that a target needs, and the measurements that would narrow the answer."""

from routecast.calibration.counts import Count
from routecast.calibration.forecast import FactAnswer
from routecast.size._answer import Sizing, Target
from routecast.size._measured import size

__all__ = ["Count", "FactAnswer", "Sizing", "Target", "size"]
