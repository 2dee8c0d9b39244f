"""The report of a benchmark: a page that a reviewer can check against the RFCs, its figures, and a published schema."""

from routecast.report.benchmark.page import benchmark_page, write_report
from routecast.report.benchmark.schema import benchmark_schema

__all__ = ["benchmark_page", "benchmark_schema", "write_report"]
