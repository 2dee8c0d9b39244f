"""Answers for networks on chip as tables, figures and link maps, for the terminal and for pages."""
