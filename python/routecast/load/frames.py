"""Frame sizes: fixed, the RFC 2544 set, IMIX and RFC 6985 genomes."""

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
"""RFC 6985 sec. 4: letters of the IMIX genome; ``z`` is the MTU-sized frame and must be given a size."""

_IMIX_MIDDLE_BYTES = (570, 594)
_LONGEST_SEQUENCE = 100_000
_SMALLEST_BYTES, _LARGEST_BYTES = 64, 65_535
_TABLE_ENTRY = re.compile(r"(\d{1,6})\s*[x*]\s*(\d{1,6})\s*(?:B|bytes?)?", re.IGNORECASE)
_GENOME_RUN = re.compile(r"([a-jz])(\d{0,6})")


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameMix:
    """A sequence of frame sizes (RFC 6985: the genome), repeated in order or drawn at random.

    Parameters
    ----------
    name : str
        How people call it: ``"64 B"``, ``"IMIX"``.
    sequence_bytes : tuple of int
        One period of the sequence, FCS included, each >= 64.
    order : {"sequence", "random"}
        ``sequence`` repeats it as it stands; ``random`` draws each frame from it with equal chances.

    Raises
    ------
    routecast.errors.ModelProblem
        The sequence is empty or a size is not from 64 to 65,535 bytes.
    """

    name: str
    sequence_bytes: tuple[int, ...]
    order: Literal["sequence", "random"] = "sequence"

    def __post_init__(self) -> None:
        wrong = [
            Problem(
                f"sequence_bytes[{index}]",
                f"got {size}: frames have {_SMALLEST_BYTES} to {_LARGEST_BYTES} whole bytes, FCS included",
            )
            for index, size in enumerate(self.sequence_bytes)
            if not isinstance(size, int) or not _SMALLEST_BYTES <= size <= _LARGEST_BYTES
        ]
        if not self.sequence_bytes:
            wrong.append(Problem("sequence_bytes", "is empty: give at least one frame size"))
        if self.order not in {"sequence", "random"}:
            wrong.append(Problem("order", f'got {self.order!r}: allowed are "sequence" and "random"'))
        if wrong:
            raise ModelProblem(f"frame mix {self.name!r}", wrong)

    @classmethod
    def fixed(cls, frame_bytes: int) -> FrameMix:
        """All frames of one size."""
        return cls(name=f"{frame_bytes} B", sequence_bytes=(frame_bytes,))

    @classmethod
    def rfc2544(cls) -> tuple[FrameMix, ...]:
        """Return the seven mixes of an RFC 2544 test: one fixed size after the other, not mixed."""
        return tuple(cls.fixed(size) for size in RFC2544_FRAME_BYTES)

    @classmethod
    def imix(cls, middle_bytes: Literal[570, 594] = 570) -> FrameMix:
        """Internet mix 7:4:1 of 64, 570 (or 594) and 1518 bytes, drawn at random.

        570 bytes is the middle size of FD.io CSIT's ``IMIX_v4_1`` and of common testers; 594 is the 576-byte
        IP packet of the simple IMIX in an Ethernet frame (576 + 14 + 4).

        Examples
        --------
        >>> round(FrameMix.imix().mean_bytes, 2)
        353.83
        """
        name = "IMIX" if middle_bytes == _IMIX_MIDDLE_BYTES[0] else f"IMIX {middle_bytes}"
        return cls(name=name, sequence_bytes=(64,) * 7 + (middle_bytes,) * 4 + (1518,), order="random")

    @classmethod
    def table(cls, frames_of_bytes: Sequence[tuple[int, int]], *, name: str = "") -> FrameMix:
        """Build a mix from rows ``(share, frame_bytes)`` with whole shares, drawn at random.

        Examples
        --------
        >>> FrameMix.table([(7, 64), (4, 594), (1, 1518)]).name
        '7x64+4x594+1x1518'
        """
        total = sum(share for share, _ in frames_of_bytes)
        wrong = [
            Problem(f"table[{index}]", f"got a share of {share}: shares are whole numbers >= 1")
            for index, (share, _) in enumerate(frames_of_bytes)
            if share < 1
        ]
        if total > _LONGEST_SEQUENCE:
            wrong.append(Problem("table", f"shares sum up to {total}: at most {_LONGEST_SEQUENCE}; divide them"))
        if wrong:
            raise ModelProblem(f"frame mix {name!r}", wrong)
        sequence = tuple(size for share, size in frames_of_bytes for _ in range(share))
        text = "+".join(f"{share}x{size}" for share, size in frames_of_bytes)
        return cls(name=name or text, sequence_bytes=sequence, order="random")

    @classmethod
    def genome(cls, letters: str, *, mtu_frame_bytes: int | None = None) -> FrameMix:
        """Build the sequence that an RFC 6985 genome spells, in its order.

        Parameters
        ----------
        letters : str
            E.g. ``"aaafg"``; a number after a letter repeats it: ``"a7d4g"``.
        mtu_frame_bytes : int or None
            Size of ``z``; RFC 6985 sec. 4 demands it where ``z`` occurs.

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
            raise QuantityProblem(letters, f"{letters[:60]!r} uses z: say the size of the MTU-sized frame as well")
        counted = [(sizes[letter], int(count or "1")) for letter, count in runs]
        length = sum(count for _, count in counted)
        if not 1 <= length <= _LONGEST_SEQUENCE or any(count < 1 for _, count in counted):
            raise QuantityProblem(letters, f"the genome spells {length} frames: allowed are 1 to {_LONGEST_SEQUENCE}")
        sequence = tuple(size for size, count in counted for _ in range(count))
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
        head = words[0].lower() if words else ""
        if head == "imix":
            middle = words[1].removesuffix("B") if len(words) > 1 else "570"
            if len(words) > 2 or middle not in {"570", "594"}:
                raise QuantityProblem(
                    text, f"{text[:60]!r} is no IMIX: allowed are IMIX, IMIX 570, IMIX 594, or a table 7x64, 4x594"
                )
            return cls.imix(570 if middle == "570" else 594)
        if head == "genome":
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

    def spelt(self) -> tuple[str, Mapping[str, int]]:
        """Return the genome of the sequence, and the sizes of its capital letters: those RFC 6985 has no letter for.

        Both are empty where there are more such sizes than capital letters.

        Examples
        --------
        >>> FrameMix.imix().spelt()
        ('a7A4g', {'A': 570})
        """
        letters = {size: letter for letter, size in GENOME_BYTES.items()}
        others = [size for size in self.share_by_bytes if size not in letters]
        if len(others) > len(string.ascii_uppercase):
            return "", {}
        custom = dict(zip(string.ascii_uppercase, others, strict=False))
        letters |= {size: letter for letter, size in custom.items()}
        runs = ((letters[size], len(list(run))) for size, run in groupby(self.sequence_bytes))
        return "".join(letter if count == 1 else f"{letter}{count}" for letter, count in runs), custom

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
