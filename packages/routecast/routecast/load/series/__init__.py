"""Traffic over days: series of rates, their files, and operations on them."""

from routecast.load.series._table import DAY_S, SeriesTable, SeriesUnit, TrafficSeries, shortened

__all__ = ["DAY_S", "SeriesTable", "SeriesUnit", "TrafficSeries", "shortened"]
