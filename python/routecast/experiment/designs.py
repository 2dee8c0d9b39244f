"""Designs: the combinations of levels that are tried, and the effects that they confound.

Full factorial designs try every combination of levels once, the first factor fastest. Effects are words of factor
letters; aliases and defining relations are products of such words.

A fraction 2^(k-p) runs the full design of k - p factors; the column of each further factor is a product of theirs, its
*generator* (``D=AB``). Multiplying both sides by D gives a word that is 1 in every run (``I = ABD``); all products of
those words are the *defining relation*, and multiplying it by an effect gives the aliases of that effect, which no
analysis can tell from it (Box, Hunter and Hunter, Statistics for Experimenters, 1978, ch. 12; Jain 1991, ch. 19). The
standard fraction of each size has the highest resolution and the least aberration; its generators are those of Box,
Hunter and Hunter, table 12.15, and of Montgomery, Design and Analysis of Experiments, 8th ed., table 8.14.

Plackett-Burman designs screen the main effects of k factors in the next multiple of four runs above k (R. L. Plackett
and J. P. Burman, "The design of optimum multifactorial experiments", Biometrika 33(4), 1946): for a prime q = 3 mod 4
the quadratic residues modulo q are the high levels of the first run, every further run is the one before moved on by
one factor, and a last run has all factors low. An interaction of two factors is spread over the main effects of all
others: it is assumed to be small.

Central composite designs, for response surfaces of second order, are a factorial, two points on the axis of each factor
and the centre. The distance alpha of the axial points from the centre is by shape (NIST/SEMATECH e-Handbook of
Statistical Methods, sec. 5.3.3.6.1; Box and Wilson 1951; Box and Hunter 1957):

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
from typing import TYPE_CHECKING, Literal

from routecast.errors import ModelProblem, Problem
from routecast.experiment.model import Design, Factor
from routecast.quantity.did_you_mean import did_you_mean

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = [
    "IDENTITY",
    "SIZES",
    "STANDARD",
    "Fraction",
    "Shape",
    "Spread",
    "WordProblem",
    "central_composite",
    "design_problem",
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
    "spelled",
    "standard_fraction",
]

Spread = Literal["random", "even"]
_MOST_EVEN = 1000
"""To exchange coordinates of more points takes longer than to try the points."""


def latin_hypercube(
    factors: int, points: int, *, seed: int, spread: Spread = "random"
) -> tuple[tuple[float, ...], ...]:
    """Return coded levels in -1..+1; each factor has one in each of ``points`` equal intervals.

    McKay et al. 1979. ``spread``: ``even`` exchanges coordinates as long as the centred discrepancy falls, so that the
    points fill the space better. Raises ModelProblem: too many points to spread evenly.
    """
    from numpy.random import default_rng
    from scipy.stats import qmc

    if spread == "even" and points > _MOST_EVEN:
        raise design_problem(
            "spread",
            f'"even" takes at most {_MOST_EVEN:,} points; so many as {points:,} fill the space without it: "random"',
        )
    optimization: Literal["random-cd"] | None = "random-cd" if spread == "even" else None
    return _coded(qmc.LatinHypercube(d=factors, seed=default_rng(seed), optimization=optimization).random(points))


def sobol(factors: int, points: int, *, seed: int) -> tuple[tuple[float, ...], ...]:
    """Return the first points of a scrambled Sobol sequence (Owen 1998), as :func:`latin_hypercube`.

    Raises ModelProblem: the number of points is not a power of 2: the sequence is balanced only for these.
    """
    from numpy.random import default_rng
    from scipy.stats import qmc

    if points & (points - 1):
        less, more = 1 << (points.bit_length() - 1), 1 << points.bit_length()
        raise design_problem(
            "points",
            f"{points:,} is no power of 2, where alone a Sobol sequence is balanced: take {less:,} or {more:,}",
        )
    return _coded(qmc.Sobol(d=factors, seed=default_rng(seed)).random_base2(points.bit_length() - 1))


def design_problem(key: str, message: str) -> ModelProblem:
    """Return the error of a design that cannot be made; ``key``: in the table of the design."""
    return ModelProblem("design", [Problem(key, message)])


def snap_to_levels(rows: Sequence[Sequence[float]], factors: Sequence[Factor]) -> tuple[tuple[float, ...], ...]:
    """Map the coordinates of factors that are not quantities to levels, each level from an equal interval."""

    def nearest(factor: Factor, coded: float) -> float:
        count = len(factor.levels)
        return factor.levels[min(int((coded + 1.0) / 2.0 * count), count - 1)].coded

    return tuple(
        tuple(
            value if factor.is_quantity else nearest(factor, value) for value, factor in zip(row, factors, strict=True)
        )
        for row in rows
    )


def _coded(unit: NDArray[np.float64]) -> tuple[tuple[float, ...], ...]:
    return tuple(map(tuple, (2.0 * unit - 1.0).tolist()))


IDENTITY = "I"
"""The word without letters: the mean."""


class WordProblem(ValueError):
    """A text is not a word of the factors' letters; the message gives the reason."""


def parse_word(text: str, letters: Sequence[str]) -> tuple[int, int]:
    """Read a word as (mask, sign): bit ``n`` of the mask stands for the ``n``-th letter.

    Raises WordProblem: a letter is not a factor's, or occurs twice.

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
            raise WordProblem(f'"{letter}" comes twice in "{text}": a square is 1, leave both out')
        mask |= bit
    if not word:
        raise WordProblem(f'"{text}" has no letter')
    return mask, sign


def spelled(mask: int, letters: Sequence[str], sign: int = 1) -> str:
    """Write a word.

    Examples
    --------
    >>> spelled(5, "ABC", -1), spelled(0, "ABC")
    ('-AC', 'I')
    """
    word = "".join(letter for number, letter in enumerate(letters) if mask >> number & 1) or IDENTITY
    return word if sign > 0 else f"-{word}"


def letters_of(factors: int) -> tuple[str, ...]:
    """Return the first letters that name factors: capitals, then small ones, without I, the identity.

    Examples
    --------
    >>> letters_of(9)[-2:]
    ('H', 'J')
    """
    capitals = "ABCDEFGHJKLMNOPQRSTUVWXYZ"
    return tuple((capitals + capitals.lower())[:factors])


def masks_up_to(factors: int, most_letters: int) -> Iterable[int]:
    """Yield the masks of all words of at most ``most_letters`` letters: shorter first, then by alphabet."""
    for count in range(1, min(most_letters, factors) + 1):
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
    """Return every combination of the factors' coded levels, the first factor fastest.

    Examples
    --------
    >>> multilevel([(-1.0, 0.0, 1.0), (-1.0, 1.0)])[:4]
    ((-1.0, -1.0), (0.0, -1.0), (1.0, -1.0), (-1.0, 1.0))
    """
    return tuple(tuple(reversed(row)) for row in product(*reversed(levels)))


_MOST_FACTORS = 24


@dataclass(frozen=True, slots=True)
class Fraction:
    """A fraction of a 2^k design; make one with :meth:`of`.

    Parameters
    ----------
    letters : tuple of str
        Of the k factors.
    generators : tuple of str
        p of them: ``("D=AB", "E=-AC")``.
    defining : tuple of (int, int)
        The 2^p - 1 words that are 1 in every run as (mask, sign), shorter ones first;
        :attr:`defining_relation` spells them.
    """

    letters: tuple[str, ...]
    generators: tuple[str, ...]
    defining: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, letters: Sequence[str], generators: Sequence[str]) -> Fraction:
        """Return the fraction that generators make.

        Parameters
        ----------
        letters : sequence of str
            Of all factors, in their order.
        generators : sequence of str
            ``"D=AB"``: a factor, then a product of factors that no generator makes.

        Raises
        ------
        routecast.errors.ModelProblem
            A generator is no such equation, or confounds two factors with each other; all faults at once.

        Examples
        --------
        >>> fraction = Fraction.of("ABCD", ["D=ABC"])
        >>> fraction.resolution, fraction.defining_relation, fraction.aliases("AB")
        (4, ('ABCD',), ('CD',))
        """
        letters = tuple(letters)
        words, problems = _defining_words(letters, generators)
        if not problems and len(letters) > _MOST_FACTORS:
            problems.append(
                Problem("generators", f"{len(letters)} factors: fractions are made of at most {_MOST_FACTORS}")
            )
        if problems:
            raise ModelProblem("design", problems)
        group: list[tuple[int, int]] = [(0, 1)]
        for mask, sign in words:
            group += [(mask ^ other, sign * its) for other, its in group]
        defining = sorted(group[1:], key=lambda word: (word[0].bit_count(), _alphabetic(word[0])))
        for mask, _ in defining:
            if mask.bit_count() < 3:
                pair = " and ".join(spelled(mask, letters))
                raise design_problem(
                    "generators",
                    f"they confound {pair} with each other in every run: give one of them another generator",
                )
        return cls(letters, tuple(generators), tuple(defining))

    @property
    def defining_relation(self) -> tuple[str, ...]:
        """The words that are 1 in every run: ``("ABD", "ACE", "BCDE")``; empty for a full design."""
        return tuple(spelled(mask, self.letters, sign) for mask, sign in self.defining)

    @property
    def resolution(self) -> int:
        """Number of letters of the shortest defining word; 0 for a full design, which confounds nothing."""
        return min((mask.bit_count() for mask, _ in self.defining), default=0)

    @property
    def runs(self) -> int:
        """Combinations, 2^(k-p)."""
        return 1 << (len(self.letters) - len(self.generators))

    @property
    def coded(self) -> tuple[tuple[float, ...], ...]:
        """The combinations in the standard order of the factors that no generator makes, shape (2^(k-p), k)."""
        equations = [_equation(text, self.letters) for text in self.generators]
        generated = {factor: (mask, sign) for factor, mask, sign in equations}
        base = [number for number in range(len(self.letters)) if number not in generated]
        rows = []
        for levels in full(len(base)):
            row = [0.0] * len(self.letters)
            for number, level in zip(base, levels, strict=True):
                row[number] = level
            for number, (mask, sign) in generated.items():
                product = float(sign)
                for other in base:
                    if mask >> other & 1:
                        product *= row[other]
                row[number] = product
            rows.append(tuple(row))
        return tuple(rows)

    def aliases(self, effect: str) -> tuple[str, ...]:
        """Return the effects that are confounded with an effect, shorter ones first; ``"-CD"``: with the other sign.

        Raises
        ------
        WordProblem
            The effect is not a word of the factors' letters.
        """
        mask, sign = (0, 1) if effect == "I" else parse_word(effect, self.letters)
        others = sorted(
            ((mask ^ word, sign * its) for word, its in self.defining),
            key=lambda pair: (pair[0].bit_count(), _alphabetic(pair[0])),
        )
        return tuple(spelled(other, self.letters, its) for other, its in others)

    def alias_chains(self, most_letters: int = 2) -> tuple[tuple[str, ...], ...]:
        """Return the distinguishable effects, each as the chain of words that share its estimate.

        Parameters
        ----------
        most_letters : int
            Longest words that are listed: 2 leaves out interactions of three and more factors. Chains in which no word
            is that short are left out.

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
        for mask in masks_up_to(len(self.letters), most_letters):
            if mask in seen:
                continue
            coset = [(mask, 1), *((mask ^ word, sign) for word, sign in self.defining)]
            seen |= {word for word, _ in coset}
            short = [word for word in coset if word[0].bit_count() <= most_letters]
            short.sort(key=lambda pair: (pair[0].bit_count(), _alphabetic(pair[0])))
            chains.append(tuple(spelled(word, self.letters, sign) for word, sign in short))
        return tuple(chains)


def fraction_of(design: Design, factors: Sequence[Factor]) -> Fraction | None:
    """Return the fraction of a fractional design, with its aliases; None for other designs."""
    if design.kind != "fractional":
        return None
    return Fraction.of([factor.letter for factor in factors], design.generators)


def _alphabetic(mask: int) -> tuple[int, ...]:
    return tuple(number for number in range(mask.bit_length()) if mask >> number & 1)


def _equation(text: str, letters: tuple[str, ...]) -> tuple[int, int, int]:
    """Return a generator as (number of its factor, mask and sign of its column)."""
    left, equals, right = (part.strip() for part in text.partition("="))
    if not equals:
        raise WordProblem(f'"{text}" is no generator: write a factor and what its column is, such as "D=AB"')
    mask, sign = parse_word(left, letters)
    if mask.bit_count() != 1 or sign < 0:
        raise WordProblem(f'"{left}" is no single factor: write "D=AB" for "the column of D is that of AB"')
    return mask.bit_length() - 1, *parse_word(right, letters)


def _defining_words(letters: tuple[str, ...], generators: Sequence[str]) -> tuple[list[tuple[int, int]], list[Problem]]:
    problems: list[Problem] = []
    equations: list[tuple[int, int, int, str]] = []
    for number, text in enumerate(generators):
        place = f"generators[{number}]"
        try:
            factor, mask, sign = _equation(text, letters)
        except WordProblem as problem:
            problems.append(Problem(place, str(problem)))
            continue
        if factor in {word for word, *_ in equations}:
            problems.append(Problem(place, f'"{letters[factor]}" has a generator already'))
        elif mask.bit_count() < 2:
            what = f'"{text}" gives two factors the same column: multiply at least two factors'
            problems.append(Problem(place, what))
        else:
            equations.append((factor, mask, sign, place))
    generated = sum(1 << factor for factor, *_ in equations)
    for _, mask, _, place in equations:
        if mask & generated:
            factors = spelled(mask & generated, letters)
            what = f"{factors} comes from a generator itself: multiply only factors without one"
            problems.append(Problem(place, what))
    return [(1 << factor | mask, sign) for factor, mask, sign, _ in equations], problems


STANDARD: dict[tuple[int, int], tuple[int, str]] = {
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
        Of the factors, as :func:`~routecast.experiment.designs.letters_of` gives them.
    runs : int, optional
        Combinations, a power of 2.
    resolution : int, optional
        Least resolution; of ``runs``, if both are given.

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
    tabulated = {p: words for (k, p), words in STANDARD.items() if k == count}
    fitting = [
        p for p, (reached, _) in tabulated.items() if runs in {None, 2 ** (count - p)} and reached >= (resolution or 3)
    ]
    if not fitting:
        known = ", ".join(
            f"resolution {reached} in {2 ** (count - p)} runs" for p, (reached, _) in sorted(tabulated.items())
        )
        wanted = [f"of resolution {resolution}"] if resolution else []
        wanted += [f"in {runs} runs"] if runs else []
        raise design_problem(
            "runs" if runs else "resolution",
            f"there is no standard fraction {' '.join(wanted)} of {count} factors: "
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
    """Return a central composite design: the factorial, two axial points of each factor, then the centre.

    ``factorial``: a full design, or a fraction of resolution V or more; ``centre_points``: how often the centre is
    tried.

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


SIZES = (8, 12, 20, 24, 32, 44, 48)
"""Numbers of runs that are a prime q = 3 mod 4 plus 1."""


def plackett_burman(factors: int) -> tuple[tuple[float, ...], ...]:
    """Return the smallest Plackett-Burman design for at most 47 factors, as coded levels -1 and +1.

    Raises ValueError: there are more factors.

    Examples
    --------
    >>> "".join("+" if level > 0 else "-" for level in plackett_burman(11)[0])
    '++-+++---+-'
    """
    runs = next((size for size in SIZES if size > factors), None)
    if runs is None:
        raise ValueError(f"{factors} factors: at most {SIZES[-1] - 1}")
    prime = runs - 1
    high = {0} | {number * number % prime for number in range(1, prime)}
    first = [1.0 if number in high else -1.0 for number in range(prime)]
    shifted = [tuple(first[(number - run) % prime] for number in range(factors)) for run in range(prime)]
    return (*shifted, (-1.0,) * factors)
