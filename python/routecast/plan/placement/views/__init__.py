"""Placements as tables, figures and pages, for the terminal and for files alike."""
