"""Designs: which combinations of levels are tried, and what they confound."""

from routecast.experiment.designs.composite import Shape, central_composite, rotatable_alpha
from routecast.experiment.designs.fractional import Fraction
from routecast.experiment.designs.full import full, multilevel
from routecast.experiment.designs.samples import Spread, latin_hypercube, sobol
from routecast.experiment.designs.screening import plackett_burman
from routecast.experiment.designs.standard import STANDARD, standard_fraction
from routecast.experiment.designs.words import WordProblem, letters_of

__all__ = [
    "STANDARD",
    "Fraction",
    "Shape",
    "Spread",
    "WordProblem",
    "central_composite",
    "full",
    "latin_hypercube",
    "letters_of",
    "multilevel",
    "plackett_burman",
    "rotatable_alpha",
    "sobol",
    "standard_fraction",
]
