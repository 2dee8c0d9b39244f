"""Effects as words of factor letters: the products that aliases and defining relations are made of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations

from routecast.quantity.did_you_mean import did_you_mean

__all__ = ["IDENTITY", "WordProblem", "letters_of", "masks_up_to", "parse_word", "spelled"]

IDENTITY = "I"
"""The word without letters: the mean."""


class WordProblem(ValueError):
    """A text is no word of these letters; says why."""


def parse_word(text: str, letters: Sequence[str]) -> tuple[int, int]:
    """Read a word as (mask, sign): bit ``n`` of the mask stands for the ``n``-th letter.

    Raises
    ------
    WordProblem
        A letter is none of a factor, or comes twice.

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
    """Yield the masks of all words of at most so many letters: shorter first, then by alphabet."""
    for count in range(1, min(most_letters, factors) + 1):
        for chosen in combinations(range(factors), count):
            yield sum(1 << number for number in chosen)
