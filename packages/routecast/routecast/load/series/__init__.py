"""Traffic over days: series of rates, and the tables in their files."""

from routecast.load.series._table import DAY_S, SeriesTable, SeriesUnit, TrafficSeries, shortened

__all__ = ["DAY_S", "SeriesTable", "SeriesUnit", "TrafficSeries", "shortened"]
