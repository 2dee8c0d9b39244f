"""Designs: the combinations of levels that are tried, and the effects that they confound.

Full factorial designs try every combination of levels once; the first factor changes fastest. Effects are words of
factor letters; aliases and defining relations are products of such words.

A fraction 2^(k-p) runs the full design of k - p factors; the column of each further factor is a product of theirs, its
*generator* (``D=AB``). Multiplying both sides by D gives a word that is 1 in every run (``I = ABD``); all products of
those words are the *defining relation*, and multiplying it by an effect gives the aliases of that effect, which no
analysis can tell from it (Box, Hunter and Hunter, Statistics for Experimenters, 1978, ch. 12; Jain 1991, ch. 19). The
standard fraction of each size has the highest resolution and the least aberration; its generators are those of Box,
Hunter and Hunter, table 12.15, and of Montgomery, Design and Analysis of Experiments, 8th ed., table 8.14.

Plackett-Burman designs screen the main effects of k factors in the next multiple of four runs above k (R. L. Plackett
and J. P. Burman, "The design of optimum multifactorial experiments", Biometrika 33(4), 1946): for a prime q = 3 mod 4
the quadratic residues modulo q are the high levels of the first run, every further run is the previous run shifted by
one factor, and in the last run all factors are low. The interaction of two factors is spread over the main effects of
all others, so the analysis assumes that it is small.

Central composite designs, for response surfaces of second order, consist of a factorial design, two points on the axis
of each factor, and the centre. The shape sets the distance alpha of the axial points from the centre (NIST/SEMATECH
e-Handbook of Statistical Methods, sec. 5.3.3.6.1; Box and Wilson 1951; Box and Hunter 1957):

- *rotatable* (circumscribed): alpha = F^(1/4) for F factorial points, outside the levels -1 and +1, so that the
  variance of a prediction depends on its distance from the centre alone;
- *face_centred*: alpha = 1, three levels of each factor;
- *inscribed*: the rotatable design shrunk until its axial points stand at -1 and +1.

Latin hypercubes and Sobol sequences, from SciPy, sample large spaces as coded levels.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from math import prod
from typing import TYPE_CHECKING, Literal

from routecast.errors import ModelProblem, Problem
from routecast.experiment.model import Design, Factor
from routecast.quantity.did_you_mean import did_you_mean

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = [
    "IDENTITY",
    "PLACKETT_BURMAN_SIZES",
    "STANDARD_FRACTIONS",
    "Fraction",
    "Shape",
    "Spread",
    "WordProblem",
    "central_composite",
    "design_problem",
    "format_word",
    "fraction_of",
    "full",
    "latin_hypercube",
    "letters_of",
    "masks_up_to",
    "multilevel",
    "parse_word",
    "plackett_burman",
    "rotatable_alpha",
    "snap_to_levels",
    "sobol",
    "standard_fraction",
]

Spread = Literal["random", "even"]
_MAX_EVEN_POINTS = 1000
"""Spreading more points evenly takes longer than running them."""


def latin_hypercube(
    factors: int, points: int, *, seed: int, spread: Spread = "random"
) -> tuple[tuple[float, ...], ...]:
    """Return the coded levels -1..+1 of a Latin hypercube (McKay et al. 1979), shape (points, factors).

    Each factor has one point in each of ``points`` equal intervals. ``spread``: ``even`` exchanges coordinates as long
    as the centred discrepancy falls, so that the points fill the space better. Raises ModelProblem: there are too many
    points to spread evenly.
    """
    from numpy.random import default_rng
    from scipy.stats import qmc

    if spread == "even" and points > _MAX_EVEN_POINTS:
        raise design_problem(
            "spread",
            f'"even" takes at most {_MAX_EVEN_POINTS:,} points, got {points:,}: take "random", which fills the space '
            "as well with so many points",
        )
    optimization: Literal["random-cd"] | None = "random-cd" if spread == "even" else None
    return _coded_from_unit(
        qmc.LatinHypercube(d=factors, seed=default_rng(seed), optimization=optimization).random(points)
    )


def sobol(factors: int, points: int, *, seed: int) -> tuple[tuple[float, ...], ...]:
    """Return the first points of a scrambled Sobol sequence (Owen 1998), as :func:`latin_hypercube`.

    Raises ModelProblem: the number of points is not a power of 2; only then is the sequence balanced.
    """
    from numpy.random import default_rng
    from scipy.stats import qmc

    if points & (points - 1):
        fewer, more = 1 << (points.bit_length() - 1), 1 << points.bit_length()
        raise design_problem(
            "points",
            f"a Sobol sequence is balanced only with a power of 2 points, got {points:,}: take {fewer:,} or {more:,}",
        )
    return _coded_from_unit(qmc.Sobol(d=factors, seed=default_rng(seed)).random_base2(points.bit_length() - 1))


def design_problem(key: str, message: str) -> ModelProblem:
    """Return the error of a design that cannot be made; ``key``: the wrong key of the table ``[design]``."""
    return ModelProblem("design", [Problem(key, message)])


def snap_to_levels(rows: Sequence[Sequence[float]], factors: Sequence[Factor]) -> tuple[tuple[float, ...], ...]:
    """Replace the coordinates of factors that are not quantities by levels; each level has an equal interval."""

    def snapped(factor: Factor, column: tuple[float, ...]) -> Sequence[float]:
        if factor.is_quantity:
            return column
        levels, count = [level.coded for level in factor.levels], len(factor.levels)
        return [levels[min(int((coded + 1.0) / 2.0 * count), count - 1)] for coded in column]

    return tuple(zip(*map(snapped, factors, zip(*rows, strict=True)), strict=True))


def _coded_from_unit(unit: NDArray[np.float64]) -> tuple[tuple[float, ...], ...]:
    return tuple(map(tuple, (2.0 * unit - 1.0).tolist()))


IDENTITY = "I"
"""The name of the word without letters, which stands for the mean."""


class WordProblem(ValueError):
    """The text is not a word of the factors' letters; the message gives the reason."""


def parse_word(text: str, letters: Sequence[str]) -> tuple[int, int]:
    """Return the mask and the sign of a word; bit ``n`` of the mask stands for the ``n``-th letter.

    Raises WordProblem: a letter names no factor, or occurs twice.

    Examples
    --------
    >>> parse_word("-AC", "ABC")
    (5, -1)
    """
    stripped = text.replace(" ", "")
    sign = -1 if stripped.startswith("-") else 1
    word = stripped.lstrip("+-")
    mask = 0
    for letter in word:
        if letter not in letters:
            raise WordProblem(f'"{letter}" is no factor: {did_you_mean(letter, letters)}')
        bit = 1 << letters.index(letter)
        if mask & bit:
            raise WordProblem(f'"{letter}" occurs twice in "{text}": its square is 1, so leave both out')
        mask |= bit
    if not word:
        raise WordProblem(f'"{text}" has no letter')
    return mask, sign


def format_word(mask: int, letters: Sequence[str], sign: int = 1) -> str:
    """Return the text of a word.

    Examples
    --------
    >>> format_word(5, "ABC", -1), format_word(0, "ABC")
    ('-AC', 'I')
    """
    word = "".join(letter for number, letter in enumerate(letters) if mask >> number & 1) or IDENTITY
    return word if sign > 0 else f"-{word}"


def letters_of(factors: int) -> tuple[str, ...]:
    """Return the letters of the first factors: capitals, then small letters, without I, which is the identity.

    Examples
    --------
    >>> letters_of(9)[-2:]
    ('H', 'J')
    """
    capitals = "ABCDEFGHJKLMNOPQRSTUVWXYZ"
    return tuple((capitals + capitals.lower())[:factors])


def masks_up_to(factors: int, max_letters: int) -> Iterable[int]:
    """Yield the masks of all words of at most ``max_letters`` letters, shorter words first, then by alphabet."""
    for count in range(1, min(max_letters, factors) + 1):
        for letters in combinations(range(factors), count):
            yield sum(1 << letter for letter in letters)


def full(factors: int) -> tuple[tuple[float, ...], ...]:
    """Return the 2^k combinations of k factors as coded levels -1 and +1, in standard (Yates) order.

    Examples
    --------
    >>> full(2)
    ((-1.0, -1.0), (1.0, -1.0), (-1.0, 1.0), (1.0, 1.0))
    """
    return multilevel([(-1.0, 1.0)] * factors)


def multilevel(levels: Sequence[Sequence[float]]) -> tuple[tuple[float, ...], ...]:
    """Return every combination of the factors' coded levels; the first factor changes fastest.

    Examples
    --------
    >>> multilevel([(-1.0, 0.0, 1.0), (-1.0, 1.0)])[:4]
    ((-1.0, -1.0), (0.0, -1.0), (1.0, -1.0), (-1.0, 1.0))
    """
    return tuple(tuple(reversed(row)) for row in product(*reversed(levels)))


_MAX_FACTORS = 24


@dataclass(frozen=True, slots=True)
class Fraction:
    """A fraction of a 2^k design, which :meth:`of` makes.

    Parameters
    ----------
    letters : tuple of str
        Letters of the k factors.
    generators : tuple of str
        The p generators: ``("D=AB", "E=-AC")``.
    defining : tuple of (int, int)
        The 2^p - 1 words that are 1 in every run, as (mask, sign), shorter words first;
        :attr:`defining_relation` has them as texts.
    """

    letters: tuple[str, ...]
    generators: tuple[str, ...]
    defining: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, letters: Sequence[str], generators: Sequence[str]) -> Fraction:
        """Return the fraction with these generators.

        Parameters
        ----------
        letters : sequence of str
            Letters of all factors, in their order.
        generators : sequence of str
            ``"D=AB"``: a factor, then a product of factors that have no generator.

        Raises
        ------
        routecast.errors.ModelProblem
            A generator is not such an equation, or confounds two factors with each other; all faults at once.

        Examples
        --------
        >>> fraction = Fraction.of("ABCD", ["D=ABC"])
        >>> fraction.resolution, fraction.defining_relation, fraction.aliases("AB")
        (4, ('ABCD',), ('CD',))
        """
        letters = tuple(letters)
        words, problems = _defining_words(letters, generators)
        if not problems and len(letters) > _MAX_FACTORS:
            problems.append(Problem("generators", f"got {len(letters)} factors: a fraction has at most {_MAX_FACTORS}"))
        if problems:
            raise ModelProblem("design", problems)
        group: list[tuple[int, int]] = [(0, 1)]
        for mask, sign in words:
            group += [(mask ^ other_mask, sign * other_sign) for other_mask, other_sign in group]
        defining = sorted(group[1:], key=_word_order)
        for mask, _ in defining:
            if mask.bit_count() < 3:
                pair = " and ".join(format_word(mask, letters))
                raise design_problem(
                    "generators",
                    f"they confound {pair} with each other in every run: give one of them another generator",
                )
        return cls(letters, tuple(generators), tuple(defining))

    @property
    def defining_relation(self) -> tuple[str, ...]:
        """The words that are 1 in every run: ``("ABD", "ACE", "BCDE")``; empty for a full design."""
        return tuple(format_word(mask, self.letters, sign) for mask, sign in self.defining)

    @property
    def resolution(self) -> int:
        """Number of letters of the shortest defining word; 0 for a full design, which has no aliases."""
        return min((mask.bit_count() for mask, _ in self.defining), default=0)

    @property
    def runs(self) -> int:
        """Number of combinations, 2^(k-p)."""
        return 1 << (len(self.letters) - len(self.generators))

    @property
    def coded(self) -> tuple[tuple[float, ...], ...]:
        """The combinations in the standard order of the factors without a generator, shape (2^(k-p), k)."""
        equations = [_parse_generator(text, self.letters) for text in self.generators]
        generated = {factor: (mask, sign) for factor, mask, sign in equations}
        base = [factor for factor in range(len(self.letters)) if factor not in generated]
        rows = []
        for levels in full(len(base)):
            row = [0.0] * len(self.letters)
            for factor, level in zip(base, levels, strict=True):
                row[factor] = level
            for factor, (mask, sign) in generated.items():
                row[factor] = sign * prod(row[other] for other in base if mask >> other & 1)
            rows.append(tuple(row))
        return tuple(rows)

    def aliases(self, effect: str) -> tuple[str, ...]:
        """Return the effects that are confounded with an effect, shorter words first; ``"-CD"`` has the opposite sign.

        Raises
        ------
        WordProblem
            The effect is not a word of the factors' letters.
        """
        mask, sign = (0, 1) if effect == "I" else parse_word(effect, self.letters)
        others = sorted(((mask ^ word, sign * word_sign) for word, word_sign in self.defining), key=_word_order)
        return tuple(format_word(other, self.letters, other_sign) for other, other_sign in others)

    def alias_chains(self, max_letters: int = 2) -> tuple[tuple[str, ...], ...]:
        """Return the effects that the fraction separates, each as the chain of words that share its estimate.

        Parameters
        ----------
        max_letters : int
            Number of letters of the longest listed words: 2 leaves out interactions of three and more factors. A chain
            of longer words only is left out.

        Returns
        -------
        tuple of tuple of str
            ``(("A", "BD"), ("B", "AD"), …)``: a chain's first word is its shortest.

        Examples
        --------
        >>> Fraction.of("ABC", ["C=AB"]).alias_chains()
        (('A', 'BC'), ('B', 'AC'), ('C', 'AB'))
        """
        chains: list[tuple[str, ...]] = []
        seen = {mask for mask, _ in self.defining}
        for mask in masks_up_to(len(self.letters), max_letters):
            if mask in seen:
                continue
            coset = [(mask, 1), *((mask ^ word, sign) for word, sign in self.defining)]
            seen |= {word for word, _ in coset}
            listed = sorted((word for word in coset if word[0].bit_count() <= max_letters), key=_word_order)
            chains.append(tuple(format_word(word, self.letters, sign) for word, sign in listed))
        return tuple(chains)


def fraction_of(design: Design, factors: Sequence[Factor]) -> Fraction | None:
    """Return the fraction of a fractional design, which knows its aliases; None for other designs."""
    if design.kind != "fractional":
        return None
    return Fraction.of([factor.letter for factor in factors], design.generators)


def _word_order(word: tuple[int, int]) -> tuple[int, tuple[int, ...]]:
    """Return the sort key of a word: shorter words first, then by alphabet."""
    mask = word[0]
    return mask.bit_count(), tuple(number for number in range(mask.bit_length()) if mask >> number & 1)


def _parse_generator(text: str, letters: tuple[str, ...]) -> tuple[int, int, int]:
    """Return the number of the factor of a generator, and the mask and sign of its column."""
    left, equals, right = (part.strip() for part in text.partition("="))
    if not equals:
        raise WordProblem(f'"{text}" is not a generator: write a factor and its column, such as "D=AB"')
    mask, sign = parse_word(left, letters)
    if mask.bit_count() != 1 or sign < 0:
        raise WordProblem(f'"{left}" is not one factor: write "D=AB" where the column of D is the product of A and B')
    return mask.bit_length() - 1, *parse_word(right, letters)


def _defining_words(letters: tuple[str, ...], generators: Sequence[str]) -> tuple[list[tuple[int, int]], list[Problem]]:
    problems: list[Problem] = []
    equations: list[tuple[int, int, int, str]] = []
    for number, text in enumerate(generators):
        place = f"generators[{number}]"
        try:
            factor, mask, sign = _parse_generator(text, letters)
        except WordProblem as problem:
            problems.append(Problem(place, str(problem)))
            continue
        if factor in {word for word, *_ in equations}:
            problems.append(Problem(place, f'"{letters[factor]}" has a generator already'))
        elif mask.bit_count() < 2:
            message = f'"{text}" gives two factors the same column: multiply at least two factors'
            problems.append(Problem(place, message))
        else:
            equations.append((factor, mask, sign, place))
    generated = sum(1 << factor for factor, *_ in equations)
    for _, mask, _, place in equations:
        if mask & generated:
            factors = format_word(mask & generated, letters)
            message = f"{factors} has a generator itself: multiply only factors without a generator"
            problems.append(Problem(place, message))
    return [(1 << factor | mask, sign) for factor, mask, sign, _ in equations], problems


STANDARD_FRACTIONS: dict[tuple[int, int], tuple[int, str]] = {
    (3, 1): (3, "C=AB"),
    (4, 1): (4, "D=ABC"),
    (5, 1): (5, "E=ABCD"),
    (5, 2): (3, "D=AB E=AC"),
    (6, 1): (6, "F=ABCDE"),
    (6, 2): (4, "E=ABC F=BCD"),
    (6, 3): (3, "D=AB E=AC F=BC"),
    (7, 1): (7, "G=ABCDEF"),
    (7, 2): (4, "F=ABCD G=ABDE"),
    (7, 3): (4, "E=ABC F=BCD G=ACD"),
    (7, 4): (3, "D=AB E=AC F=BC G=ABC"),
    (8, 2): (5, "G=ABCD H=ABEF"),
    (8, 3): (4, "F=ABC G=ABD H=BCDE"),
    (8, 4): (4, "E=BCD F=ACD G=ABC H=ABD"),
    (9, 2): (6, "H=ACDFG J=BCEFG"),
    (9, 3): (4, "G=ABCD H=ACEF J=CDEF"),
    (9, 4): (4, "F=BCDE G=ACDE H=ABDE J=ABCE"),
    (9, 5): (3, "E=ABC F=BCD G=ACD H=ABD J=ABCD"),
    (10, 3): (5, "H=ABCG J=BCDE K=ACDF"),
    (10, 4): (4, "G=BCDF H=ACDF J=ABDE K=ABCE"),
    (10, 5): (4, "F=ABCD G=ABCE H=ABDE J=ACDE K=BCDE"),
    (10, 6): (3, "E=ABC F=BCD G=ACD H=ABD J=ABCD K=AB"),
    (11, 4): (5, "H=ABCG J=BCDE K=ACDF L=ABCDEFG"),
    (11, 5): (4, "G=CDE H=ABCD J=ABF K=BDEF L=ADEF"),
    (11, 6): (4, "F=ABC G=BCD H=CDE J=ACD K=ADE L=BDE"),
    (11, 7): (3, "E=ABC F=BCD G=ACD H=ABD J=ABCD K=AB L=AC"),
    (12, 8): (3, "E=ABC F=ABD G=ACD H=BCD J=ABCD K=AB L=AC M=AD"),
    (13, 9): (3, "E=ABC F=ABD G=ACD H=BCD J=ABCD K=AB L=AC M=AD N=BC"),
    (14, 10): (3, "E=ABC F=ABD G=ACD H=BCD J=ABCD K=AB L=AC M=AD N=BC O=BD"),
    (15, 11): (3, "E=ABC F=ABD G=ACD H=BCD J=ABCD K=AB L=AC M=AD N=BC O=BD P=CD"),
}
"""Resolution and generators by (k, p)."""


def standard_fraction(letters: Sequence[str], *, runs: int | None = None, resolution: int | None = None) -> Fraction:
    """Return the standard fraction in a number of runs, or the smallest fraction that reaches a resolution.

    Parameters
    ----------
    letters : sequence of str
        Letters of the factors, as :func:`~routecast.experiment.designs.letters_of` returns them.
    runs : int, optional
        Number of combinations, a power of 2.
    resolution : int, optional
        Lowest permitted resolution, also where ``runs`` is given.

    Raises
    ------
    routecast.errors.ModelProblem
        No tabulated fraction fits; the message lists those for this number of factors.

    Examples
    --------
    >>> standard_fraction("ABCDEFG", resolution=4).runs
    16
    """
    count = len(letters)
    tabulated = {p: words for (k, p), words in STANDARD_FRACTIONS.items() if k == count}
    fitting = [
        p
        for p, (tabulated_resolution, _) in tabulated.items()
        if runs in {None, 2 ** (count - p)} and tabulated_resolution >= (resolution or 3)
    ]
    if not fitting:
        known = ", ".join(
            f"resolution {tabulated_resolution} in {2 ** (count - p)} runs"
            for p, (tabulated_resolution, _) in sorted(tabulated.items())
        )
        requested = [f"of resolution {resolution}"] if resolution else []
        requested += [f"in {runs} runs"] if runs else []
        raise design_problem(
            "runs" if runs else "resolution",
            f"there is no standard fraction {' '.join(requested)} of {count} factors: "
            f"{f'there are {known}' if known else 'give generators, or take kind full'}",
        )
    spelling = dict(zip(letters_of(count), letters, strict=True))
    generators = tabulated[max(fitting)][1].split()
    return Fraction.of(letters, ["".join(spelling.get(letter, letter) for letter in text) for text in generators])


Shape = Literal["rotatable", "face_centred", "inscribed"]


def rotatable_alpha(factorial_points: int) -> float:
    """Return the distance of axial points that makes a design rotatable.

    Examples
    --------
    >>> round(rotatable_alpha(4), 3), round(rotatable_alpha(8), 3), rotatable_alpha(16)
    (1.414, 1.682, 2.0)
    """
    return float(factorial_points**0.25)


def central_composite(
    factorial: Sequence[Sequence[float]], *, shape: Shape = "rotatable", centre_points: int = 5
) -> tuple[tuple[float, ...], ...]:
    """Return a central composite design: the factorial, two axial points of each factor, then the centre points.

    ``factorial``: a full design, or a fraction of resolution V or more; ``centre_points``: number of runs at the
    centre.

    Examples
    --------
    >>> central_composite(full(2), shape="face_centred", centre_points=1)[4:]
    ((-1.0, 0.0), (1.0, 0.0), (0.0, -1.0), (0.0, 1.0), (0.0, 0.0))
    """
    factors = len(factorial[0])
    alpha = rotatable_alpha(len(factorial))
    corner, axis = {"rotatable": (1.0, alpha), "face_centred": (1.0, 1.0), "inscribed": (1.0 / alpha, 1.0)}[shape]
    corners = [tuple(corner * level for level in row) for row in factorial]
    axial = [
        tuple(side * axis if number == factor else 0.0 for number in range(factors))
        for factor in range(factors)
        for side in (-1.0, 1.0)
    ]
    return (*corners, *axial, *([(0.0,) * factors] * centre_points))


PLACKETT_BURMAN_SIZES = (8, 12, 20, 24, 32, 44, 48)
"""Numbers of runs of the designs: a prime q = 3 mod 4, plus 1."""


def plackett_burman(factors: int) -> tuple[tuple[float, ...], ...]:
    """Return the smallest Plackett-Burman design for a number of factors, as coded levels -1 and +1.

    Raises ValueError: there are more than 47 factors.

    Examples
    --------
    >>> "".join("+" if level > 0 else "-" for level in plackett_burman(11)[0])
    '++-+++---+-'
    """
    runs = next((size for size in PLACKETT_BURMAN_SIZES if size > factors), None)
    if runs is None:
        raise ValueError(f"got {factors} factors: a Plackett-Burman design has at most {PLACKETT_BURMAN_SIZES[-1] - 1}")
    prime = runs - 1
    high = {0} | {number * number % prime for number in range(1, prime)}
    first = [1.0 if number in high else -1.0 for number in range(prime)]
    shifted = [tuple(first[(number - run) % prime] for number in range(factors)) for run in range(prime)]
    return (*shifted, (-1.0,) * factors)
