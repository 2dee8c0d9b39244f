"""The answer of a run as a row of a ledger."""

from __future__ import annotations

import json

from routecast.evaluate.ledger import Columns, Row
from routecast.experiment.model import Answer, Run

__all__ = ["COLUMNS", "answer_of", "row_of"]

COLUMNS: Columns = {
    "task": "text",
    "row": "whole",
    "replication": "whole",
    "values": "text",
    "problem": "text",
    "unsteady": "text",
    "bottleneck": "text",
}
"""One table for all experiments, whatever their responses: ``values`` is a JSON object."""


def row_of(run: Run, answer: Answer) -> Row:
    """Return the row of an answer."""
    return {
        "task": run.key,
        "row": run.row,
        "replication": run.replication,
        # As Python writes them, floats come back as they were, NaN and infinity too.
        "values": json.dumps(dict(answer.values)),
        "problem": answer.problem,
        "unsteady": answer.unsteady,
        "bottleneck": answer.bottleneck,
    }


def answer_of(row: Row) -> Answer:
    """Return the answer of a row."""
    return Answer(
        key=str(row["task"]),
        values=json.loads(str(row["values"])),
        problem=str(row["problem"]),
        unsteady=str(row["unsteady"]),
        bottleneck=str(row["bottleneck"]),
    )
