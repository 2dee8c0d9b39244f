"""The standard fractions of 2^k designs: of each size the one of the highest resolution and least aberration.

Generators as tabulated by Box, Hunter and Hunter, Statistics for Experimenters, 1978, table 12.15, and by Montgomery,
Design and Analysis of Experiments, 8th ed., table 8.14.
"""

from __future__ import annotations

from collections.abc import Sequence

from routecast.errors import ModelProblem, Problem
from routecast.experiment.designs.fractional import Fraction
from routecast.experiment.designs.words import letters_of

__all__ = ["STANDARD", "standard_fraction"]

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
    """Return the standard fraction in a number of runs, or the smallest one that reaches a resolution.

    Parameters
    ----------
    letters : sequence of str
        Of the factors, as :func:`~routecast.experiment.designs.words.letters_of` gives them.
    runs : int, optional
        Combinations, a power of 2.
    resolution : int, optional
        Least resolution; of ``runs``, if both are given.

    Raises
    ------
    routecast.errors.ModelProblem
        None of the tabulated fractions is such; the message lists those of so many factors.

    Examples
    --------
    >>> standard_fraction("ABCDEFG", resolution=4).runs
    16
    """
    count = len(letters)
    tabulated = {p: found for (k, p), found in STANDARD.items() if k == count}
    fitting = [
        p for p, (reached, _) in tabulated.items() if runs in {None, 2 ** (count - p)} and reached >= (resolution or 3)
    ]
    if not fitting:
        known = ", ".join(
            f"resolution {reached} in {2 ** (count - p)} runs" for p, (reached, _) in sorted(tabulated.items())
        )
        wanted = " ".join(
            [*([f"of resolution {resolution}"] if resolution else []), *([f"in {runs} runs"] if runs else [])]
        )
        what = (
            f"there is no standard fraction {wanted} of {count} factors: "
            f"{f'there are {known}' if known else 'give generators, or take kind full'}"
        )
        raise ModelProblem("design", [Problem("runs" if runs else "resolution", what)])
    alphabet = letters_of(count)
    spelling = dict(zip(alphabet, letters, strict=True))
    generators = tabulated[max(fitting)][1].split()
    return Fraction.of(letters, ["".join(spelling.get(one, one) for one in text) for text in generators])
