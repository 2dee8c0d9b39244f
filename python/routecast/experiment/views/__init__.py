"""The report of a designed experiment: what was asked, what varied, what was found, and whether to trust it."""

from routecast.experiment.views.page import experiment_page, experiment_sections, write_experiment

__all__ = ["experiment_page", "experiment_sections", "write_experiment"]
