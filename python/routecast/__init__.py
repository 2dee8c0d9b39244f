"""routecast measures, predicts and plans software routers."""

__version__ = "0.1.0"
