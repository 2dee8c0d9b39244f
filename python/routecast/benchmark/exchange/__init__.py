"""Results of other tools as Trials, and Trials as files that other tools read.

Formats are told by their keys. What a file says wrongly but readably becomes a note of the trial; what makes a trial no
result makes it invalid, with its reason; what is missing or contradictory is an error with the file and the key.
"""

from routecast.benchmark.exchange.formats import FORMATS, read_records
from routecast.benchmark.exchange.record import Record
from routecast.benchmark.exchange.table import csv_text, write_parquet
from routecast.benchmark.exchange.uti import uti_documents
from routecast.benchmark.exchange.validate_table import validate_text

__all__ = ["FORMATS", "Record", "csv_text", "read_records", "uti_documents", "validate_text", "write_parquet"]
