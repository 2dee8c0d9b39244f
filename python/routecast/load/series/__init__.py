"""Traffic over days: series of rates, how files bring them, and what is done to them."""

from routecast.load.series._table import DAY_S, TrafficSeries

__all__ = ["DAY_S", "TrafficSeries"]
