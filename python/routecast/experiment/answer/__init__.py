"""What one run answers: its router or test bed, the evaluator that is asked, the responses that are read."""

from routecast.experiment.answer.one_run import answer, get_ready

__all__ = ["answer", "get_ready"]
