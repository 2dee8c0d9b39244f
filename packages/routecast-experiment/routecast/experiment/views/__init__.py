"""The report of a designed experiment: its question, its factors, its findings, and checks of the analysis."""

from routecast.experiment.views.page import experiment_page, experiment_sections, write_experiment

__all__ = ["experiment_page", "experiment_sections", "write_experiment"]
