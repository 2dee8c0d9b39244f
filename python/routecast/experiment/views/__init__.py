"""The report of a designed experiment: its question, what varied, the findings, and whether to trust them."""

from routecast.experiment.views.page import experiment_page, experiment_sections, write_experiment

__all__ = ["experiment_page", "experiment_sections", "write_experiment"]
