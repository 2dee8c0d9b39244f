"""The linear model of a design: its terms, which of them the runs tell apart, the fit, its effects and their noise."""
