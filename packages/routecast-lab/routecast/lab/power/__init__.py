"""The table of the power benchmark: watts at loads that are measured."""
