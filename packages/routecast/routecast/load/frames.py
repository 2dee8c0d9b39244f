"""Frame sizes: fixed sizes, the RFC 2544 set, IMIX and RFC 6985 genomes."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final, Literal

from routecast.errors import ModelProblem, Problem, QuantityProblem

__all__ = ["GENOME_BYTES", "RFC2544_FRAME_BYTES", "FrameMix"]

RFC2544_FRAME_BYTES: tuple[int, ...] = (64, 128, 256, 512, 1024, 1280, 1518)
"""RFC 2544 sec. 9.1, Ethernet, FCS included."""

GENOME_BYTES: Final[dict[str, int]] = {
    "a": 64,
    "b": 128,
    "c": 256,
    "d": 512,
    "e": 1024,
    "f": 1280,
    "g": 1518,
    "h": 2112,
    "i": 9000,
    "j": 16000,
}
"""RFC 6985 sec. 4: sizes of the letters of an IMIX genome; ``z`` stands for the MTU, whose size must be given."""

_IMIX_MIDDLE_BYTES = (570, 594)
_MAX_SEQUENCE_FRAMES = 100_000
_MIN_BYTES, _MAX_BYTES = 64, 65_535
_TABLE_ENTRY = re.compile(r"(\d{1,6})\s*[x*]\s*(\d{1,6})\s*(?:B|bytes?)?", re.IGNORECASE)
_GENOME_RUN = re.compile(r"([a-jz])(\d{0,6})")


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameMix:
    """A sequence of frame sizes (an RFC 6985 genome), repeated in order or drawn at random.

    Parameters
    ----------
    name : str
        Name on screens and pages: ``"64 B"``, ``"IMIX"``.
    sequence_bytes : tuple of int
        One period of the sequence, FCS included, each >= 64.
    order : {"sequence", "random"}
        ``sequence`` repeats the sequence in order; ``random`` draws each frame from it with equal probability.

    Raises
    ------
    routecast.errors.ModelProblem
        The sequence is empty or a size is not from 64 to 65,535 bytes.
    """

    name: str
    sequence_bytes: tuple[int, ...]
    order: Literal["sequence", "random"] = "sequence"

    def __post_init__(self) -> None:
        problems = [
            Problem(
                f"sequence_bytes[{index}]",
                f"got {size}: frames have {_MIN_BYTES} to {_MAX_BYTES} whole bytes, FCS included",
            )
            for index, size in enumerate(self.sequence_bytes)
            if not isinstance(size, int) or not _MIN_BYTES <= size <= _MAX_BYTES
        ]
        if not self.sequence_bytes:
            problems.append(Problem("sequence_bytes", "is empty: give at least one frame size"))
        if self.order not in {"sequence", "random"}:
            problems.append(Problem("order", f'got {self.order!r}: allowed are "sequence" and "random"'))
        if problems:
            raise ModelProblem(f"frame mix {self.name!r}", problems)

    @classmethod
    def fixed(cls, frame_bytes: int) -> FrameMix:
        """All frames of one size."""
        return cls(name=f"{frame_bytes} B", sequence_bytes=(frame_bytes,))

    @classmethod
    def rfc2544(cls) -> tuple[FrameMix, ...]:
        """Return the seven fixed sizes of an RFC 2544 test, one mix for each."""
        return tuple(cls.fixed(size) for size in RFC2544_FRAME_BYTES)

    @classmethod
    def imix(cls, middle_bytes: Literal[570, 594] = 570) -> FrameMix:
        """Internet mix 7:4:1 of 64, 570 (or 594) and 1518 bytes, drawn at random.

        FD.io CSIT's ``IMIX_v4_1`` and common testers have a middle size of 570 bytes. The size 594 is the 576-byte IP
        packet of the simple IMIX in an Ethernet frame (576 + 14 + 4).

        Examples
        --------
        >>> round(FrameMix.imix().mean_bytes, 2)
        353.83
        """
        name = "IMIX" if middle_bytes == _IMIX_MIDDLE_BYTES[0] else f"IMIX {middle_bytes}"
        return cls(name=name, sequence_bytes=(64,) * 7 + (middle_bytes,) * 4 + (1518,), order="random")

    @classmethod
    def table(cls, shares_by_size: Sequence[tuple[int, int]], *, name: str = "") -> FrameMix:
        """Build a mix from rows ``(share, frame_bytes)`` with whole shares, drawn at random.

        Examples
        --------
        >>> FrameMix.table([(7, 64), (4, 594), (1, 1518)]).name
        '7x64+4x594+1x1518'
        """
        total = sum(share for share, _ in shares_by_size)
        problems = [
            Problem(f"table[{index}]", f"got a share of {share}: shares are whole numbers >= 1")
            for index, (share, _) in enumerate(shares_by_size)
            if share < 1
        ]
        if total > _MAX_SEQUENCE_FRAMES:
            problems.append(
                Problem("table", f"shares sum up to {total}: at most {_MAX_SEQUENCE_FRAMES} are allowed; divide them")
            )
        if problems:
            raise ModelProblem(f"frame mix {name!r}", problems)
        sequence = tuple(size for share, size in shares_by_size for _ in range(share))
        text = "+".join(f"{share}x{size}" for share, size in shares_by_size)
        return cls(name=name or text, sequence_bytes=sequence, order="random")

    @classmethod
    def genome(cls, letters: str, *, mtu_frame_bytes: int | None = None) -> FrameMix:
        """Build the sequence of an RFC 6985 genome, in its order.

        Parameters
        ----------
        letters : str
            E.g. ``"aaafg"``; a number after a letter repeats it: ``"a7d4g"``.
        mtu_frame_bytes : int or None
            Size of ``z``; RFC 6985 sec. 4 requires it if ``z`` occurs.

        Raises
        ------
        QuantityProblem
            A letter is unknown, or ``z`` is used without its size.

        Examples
        --------
        >>> FrameMix.genome("aaafg").sequence_bytes
        (64, 64, 64, 1280, 1518)
        """
        runs = _GENOME_RUN.findall(letters)
        if not letters or "".join(letter + count for letter, count in runs) != letters:
            allowed = ", ".join(f"{letter}={size}" for letter, size in GENOME_BYTES.items())
            raise QuantityProblem(
                letters, f"{letters[:60]!r} is no genome: its letters are {allowed} and z for the MTU"
            )
        sizes = dict(GENOME_BYTES)
        if mtu_frame_bytes is not None:
            sizes["z"] = mtu_frame_bytes
        elif "z" in letters:
            raise QuantityProblem(letters, f"{letters[:60]!r} uses z: give the size of the MTU-sized frame as well")
        size_counts = [(sizes[letter], int(count or "1")) for letter, count in runs]
        length = sum(count for _, count in size_counts)
        if not 1 <= length <= _MAX_SEQUENCE_FRAMES or any(count < 1 for _, count in size_counts):
            raise QuantityProblem(
                letters, f"the genome spells {length} frames: allowed are 1 to {_MAX_SEQUENCE_FRAMES}"
            )
        sequence = tuple(size for size, count in size_counts for _ in range(count))
        return cls(name=f"genome {letters}", sequence_bytes=sequence)

    @classmethod
    def parse(cls, text: str, *, mtu_frame_bytes: int | None = None) -> FrameMix:
        """Read a frame size or a mix of frame sizes.

        ``"64 B"``; ``"IMIX"``, ``"IMIX 570"``, ``"IMIX 594"``; ``"genome aaafg"``; ``"7x64, 4x594, 1x1518"``.

        Raises
        ------
        QuantityProblem
            The text is none of these.

        Examples
        --------
        >>> FrameMix.parse("128 B") == FrameMix.fixed(128)
        True
        """
        from routecast.quantity import parse_frame_bytes  # pint is imported where text is parsed

        if not isinstance(text, str):
            raise QuantityProblem(repr(text), f"{text!r} is no frame mix: write a text such as '64 B' or 'IMIX'")
        words = text.split()
        first_word = words[0].lower() if words else ""
        if first_word == "imix":
            middle_size = words[1].removesuffix("B") if len(words) > 1 else "570"
            if len(words) > 2 or middle_size not in {"570", "594"}:
                raise QuantityProblem(
                    text, f"{text[:60]!r} is no IMIX: allowed are IMIX, IMIX 570, IMIX 594, or a table 7x64, 4x594"
                )
            return cls.imix(570 if middle_size == "570" else 594)
        if first_word == "genome":
            return cls.genome("".join(words[1:]), mtu_frame_bytes=mtu_frame_bytes)
        entries = [_TABLE_ENTRY.fullmatch(part.strip()) for part in re.split(r"[,+;]", text)] if "x" in text else []
        if entries and all(entries):
            try:
                return cls.table([(int(entry[1]), int(entry[2])) for entry in entries if entry])
            except ModelProblem as problem:
                raise QuantityProblem(text, str(problem)) from problem
        try:
            return cls.fixed(parse_frame_bytes(text))
        except QuantityProblem as problem:
            forms = 'other forms are "IMIX", "IMIX 594", "genome aaafg" and "7x64, 4x594, 1x1518"'
            raise QuantityProblem(text, f"{problem}; {forms}") from problem

    def genome_letters(self) -> tuple[str, Mapping[str, int]]:
        """Return the genome of the sequence, and the sizes of its capital letters, which RFC 6985 has no letters for.

        Both are empty if the sequence has more than 26 such sizes.

        Examples
        --------
        >>> FrameMix.imix().genome_letters()
        ('a7A4g', {'A': 570})
        """
        letters = {size: letter for letter, size in GENOME_BYTES.items()}
        others = [size for size in self.share_by_bytes if size not in letters]
        if len(others) > len(string.ascii_uppercase):
            return "", {}
        custom_sizes = dict(zip(string.ascii_uppercase, others, strict=False))
        letters |= {size: letter for letter, size in custom_sizes.items()}
        runs = ((letters[size], len(list(run))) for size, run in groupby(self.sequence_bytes))
        return "".join(letter if count == 1 else f"{letter}{count}" for letter, count in runs), custom_sizes

    @property
    def mean_bytes(self) -> float:
        """Mean frame size in bytes."""
        return sum(self.sequence_bytes) / len(self.sequence_bytes)

    @property
    def is_fixed(self) -> bool:
        """Whether all frames have one size."""
        return len(set(self.sequence_bytes)) == 1

    @property
    def share_by_bytes(self) -> dict[int, float]:
        """Share of the frames by size, smallest first."""
        counts = Counter(self.sequence_bytes)
        return {size: counts[size] / len(self.sequence_bytes) for size in sorted(counts)}
