"""What the analysis of a designed experiment says, as values."""

from routecast.experiment.analysis.outcome.analysis import Analysis, Cell, Mean, Means, Missing
from routecast.experiment.analysis.outcome.check import Check, Residuals
from routecast.experiment.analysis.outcome.effect import AnovaRow, Effect, Lenth, LevelEffect
from routecast.experiment.analysis.outcome.screening import Screened, Screening
from routecast.experiment.analysis.outcome.surface import LackOfFit, Stationary, Surface, SurfaceTerm

__all__ = [
    "Analysis",
    "AnovaRow",
    "Cell",
    "Check",
    "Effect",
    "LackOfFit",
    "Lenth",
    "LevelEffect",
    "Mean",
    "Means",
    "Missing",
    "Residuals",
    "Screened",
    "Screening",
    "Stationary",
    "Surface",
    "SurfaceTerm",
]
