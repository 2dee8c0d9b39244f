"""Fractional factorial designs 2^(k-p): generators, the defining relation, resolution, and what is confounded.

A fraction runs the full design of k - p factors; the column of each further factor is a product of theirs, its
*generator* (``D=AB``). Multiplying both sides by D gives a word that is 1 in every run (``I = ABD``); all products of
those words are the *defining relation*, and multiplying it by an effect gives the effects that no analysis can tell
from that one: its aliases (Box, Hunter and Hunter, Statistics for Experimenters, 1978, ch. 12; Jain 1991, ch. 19).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from routecast.errors import ModelProblem, Problem
from routecast.experiment.designs.full import full
from routecast.experiment.designs.words import WordProblem, masks_up_to, parse_word, spelled
from routecast.experiment.model import Design, Factor

__all__ = ["Fraction", "fraction_of"]

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
            A generator is no such equation, or confounds two factors with each other; all of them at once.

        Examples
        --------
        >>> fraction = Fraction.of("ABCD", ["D=ABC"])
        >>> fraction.resolution, fraction.defining_relation, fraction.aliases("AB")
        (4, ('ABCD',), ('CD',))
        """
        letters = tuple(letters)
        words, problems = _defining_words(letters, generators)
        if not problems and len(letters) > _MOST_FACTORS:
            what = f"{len(letters)} factors: fractions are made of at most {_MOST_FACTORS}"
            problems.append(Problem("generators", what))
        if problems:
            raise ModelProblem("design", problems)
        group: list[tuple[int, int]] = [(0, 1)]
        for mask, sign in words:
            group += [(mask ^ other, sign * its) for other, its in group]
        defining = sorted(group[1:], key=lambda word: (word[0].bit_count(), _alphabetic(word[0])))
        for mask, _ in defining:
            if mask.bit_count() < 3:
                pair = " and ".join(spelled(mask, letters))
                what = f"they confound {pair} with each other in every run: give one of them another generator"
                raise ModelProblem("design", [Problem("generators", what)])
        return cls(letters, tuple(generators), tuple(defining))

    @property
    def defining_relation(self) -> tuple[str, ...]:
        """The words that are 1 in every run: ``("ABD", "ACE", "BCDE")``; empty for a full design."""
        return tuple(spelled(mask, self.letters, sign) for mask, sign in self.defining)

    @property
    def resolution(self) -> int:
        """Letters of the shortest defining word; 0 for a full design, which confounds nothing."""
        return min((mask.bit_count() for mask, _ in self.defining), default=0)

    @property
    def runs(self) -> int:
        """Combinations, 2^(k-p)."""
        return 1 << (len(self.letters) - len(self.generators))

    @property
    def coded(self) -> tuple[tuple[float, ...], ...]:
        """The combinations in the standard order of the factors that no generator makes, shape (2^(k-p), k)."""
        equations = [_equation(text, self.letters) for text in self.generators]
        made = {factor: (mask, sign) for factor, mask, sign in equations}
        base = [number for number in range(len(self.letters)) if number not in made]
        rows = []
        for levels in full(len(base)):
            row = [0.0] * len(self.letters)
            for number, level in zip(base, levels, strict=True):
                row[number] = level
            for number, (mask, sign) in made.items():
                product = float(sign)
                for other in base:
                    if mask >> other & 1:
                        product *= row[other]
                row[number] = product
            rows.append(tuple(row))
        return tuple(rows)

    def aliases(self, effect: str) -> tuple[str, ...]:
        """Return the effects that are confounded with one, shorter ones first; ``"-CD"``: with the other sign.

        Raises
        ------
        WordProblem
            The effect is no word of the factors' letters.
        """
        mask, sign = (0, 1) if effect == "I" else parse_word(effect, self.letters)
        others = sorted(
            ((mask ^ word, sign * its) for word, its in self.defining),
            key=lambda one: (one[0].bit_count(), _alphabetic(one[0])),
        )
        return tuple(spelled(other, self.letters, its) for other, its in others)

    def alias_chains(self, most_letters: int = 2) -> tuple[tuple[str, ...], ...]:
        """Return the effects that the runs can tell apart, each as a chain of words that stand for the same number.

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
            seen |= {one for one, _ in coset}
            short = [one for one in coset if one[0].bit_count() <= most_letters]
            short.sort(key=lambda one: (one[0].bit_count(), _alphabetic(one[0])))
            chains.append(tuple(spelled(one, self.letters, sign) for one, sign in short))
        return tuple(chains)


def fraction_of(design: Design, factors: Sequence[Factor]) -> Fraction | None:
    """Return the fraction of a fractional design, with its aliases; None of any other."""
    if design.kind != "fractional":
        return None
    return Fraction.of([factor.letter for factor in factors], design.generators)


def _alphabetic(mask: int) -> tuple[int, ...]:
    return tuple(number for number in range(mask.bit_length()) if mask >> number & 1)


def _equation(text: str, letters: tuple[str, ...]) -> tuple[int, int, int]:
    """Return a generator as (number of the factor that it makes, mask, sign)."""
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
        except WordProblem as wrong:
            problems.append(Problem(place, str(wrong)))
            continue
        if factor in {one for one, *_ in equations}:
            problems.append(Problem(place, f'"{letters[factor]}" has a generator already'))
        elif mask.bit_count() < 2:
            what = f'"{text}" gives two factors the same column: multiply at least two factors'
            problems.append(Problem(place, what))
        else:
            equations.append((factor, mask, sign, place))
    made = sum(1 << factor for factor, *_ in equations)
    for _, mask, _, place in equations:
        if mask & made:
            what = f"{spelled(mask & made, letters)} comes from a generator itself: multiply only factors without one"
            problems.append(Problem(place, what))
    return [(1 << factor | mask, sign) for factor, mask, sign, _ in equations], problems
