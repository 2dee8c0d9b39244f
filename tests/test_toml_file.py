"""Faults of files that people write: each with its place, what is allowed, and all at once."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from pydantic import Field, model_validator

from routecast.errors import FileProblem
from routecast.quantity.bounded_file import read_text
from routecast.quantity.fields import Duration
from routecast.quantity.file_model import FileModel
from routecast.quantity.toml_file import format_value, parse_toml, toml_string, validated


class Part(FileModel):
    length: Duration = Field(description="How long it takes")
    kind: str = Field(default="", alias="is")


class Whole(FileModel):
    name: str
    parts: list[Part] = Field(default_factory=list, min_length=1)
    named: dict[str, Part] = Field(default_factory=dict)
    pair: tuple[Part, ...] | None = None

    @model_validator(mode="after")
    def _differ(self) -> Whole:
        if self.name in self.named:
            raise ValueError("a part has the name of the whole")
        return self


GOOD = 'name = "x"\n[[parts]]\nlength = "1 s"\n'


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("", "name", "is missing: give it"),
        ('name = "x"\n[[parts]]\n', "parts[0].length", "is missing: How long it takes"),
        ('name = "x"\n[[parts]]\nlength = "1 m"\n', "parts[0].length", "not known"),
        (GOOD + "lenght = 3\n", "parts[0].lenght", 'did you mean "length"'),
        (GOOD + "si = 3\n", "parts[0].si", 'known are "length", "is"'),
        (GOOD + "[named.a]\nlenth = 3\n", "named.a.lenth", 'did you mean "length"'),
        (GOOD + "[[pair]]\nlenth = 3\n", "pair[0].lenth", 'did you mean "length"'),
        (GOOD + "[nmed.a]\n", "nmed", 'did you mean "named"'),
        (GOOD + '[named.x]\nlength = "1 s"\n', "", "a part has the name of the whole"),
        ('name = "x"\nparts = 3\n', "parts", "got 3: must be a list: [value, …]"),
    ],
)
def test_a_fault_has_its_place_and_says_what_is_allowed(text: str, place: str, words: str) -> None:
    with pytest.raises(FileProblem) as caught:
        validated(Whole, parse_toml(text, "file"), "file")
    result = {problem.place: problem.message for problem in caught.value.problems}
    assert words in result[place]


def test_a_list_whose_entries_are_wrong_is_not_called_too_short_as_well() -> None:
    with pytest.raises(FileProblem) as caught:
        validated(Whole, parse_toml('name = "x"\n[[parts]]\nlength = 3\n', "file"), "file")
    assert [problem.place for problem in caught.value.problems] == ["parts[0].length"]


@pytest.mark.parametrize("text", ["name = ", "a = 1\na = 2", "x = " + "[" * 5000, "\0"])
def test_what_is_no_toml_is_reported_so(text: str) -> None:
    with pytest.raises(FileProblem, match="is no TOML"):
        parse_toml(text, "file")


def test_files_that_cannot_be_read_are_faults_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "large.toml").write_bytes(b"#" * 100)
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    for name, words in (
        ("large.toml", "larger than 10 bytes: no study"),
        ("bytes.toml", "cannot be read"),
        ("missing.toml", "cannot be read"),
        ("nul\0.toml", "cannot be read"),
        (".", "cannot be read|larger"),
    ):
        with pytest.raises(FileProblem, match=words):
            read_text(tmp_path / name, kind="study", max_file_bytes=10)


@pytest.mark.parametrize(
    ("text", "place"), [('name = "x"\n[parts]\nlength = "1 s"\n', "parts"), (GOOD + '[pair]\nlength = "1 s"\n', "pair")]
)
def test_one_table_where_a_list_is_wanted_is_answered_with_double_brackets(text: str, place: str) -> None:
    with pytest.raises(FileProblem) as caught:
        validated(Whole, parse_toml(text, "file"), "file")
    assert dict(caught.value.problems) == {
        place: f"is one table, but the key is a list: write [[{place}]] for [{place}], or [{{ … }}] in a line"
    }


def test_a_table_in_the_place_of_a_text_is_not_printed_in_the_words_of_another_language() -> None:
    with pytest.raises(FileProblem) as caught:
        validated(Whole, parse_toml('name = { a = 1 }\n[[parts]]\nlength = "1 s"\n', "file"), "file")
    assert dict(caught.value.problems) == {"name": 'got a table: must be a text: "…"'}


class Counted(FileModel):
    count: int = 1
    on: bool = True
    more: dict[str, int] = Field(default={}, description="More of it")


def test_a_value_of_another_kind_is_reported_with_the_kind_in_words_of_toml() -> None:
    text = 'count = "four"\non = "maybe"\nmore = "file.toml"\n'
    with pytest.raises(FileProblem) as caught:
        validated(Counted, parse_toml(text, "file"), "file")
    messages = dict(caught.value.problems)
    assert messages["count"] == 'got "four": must be a whole number'
    assert messages["on"] == 'got "maybe": must be true or false'
    assert messages["more"] == 'got "file.toml": must be a table: { key = value, … }'


class NeverWritten(list):
    """A list that must not be written out: with what its entries hold it may be larger than any memory."""

    def __repr__(self):
        raise AssertionError


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ([1, 2.5, "x"], "[1, 2.5, 'x']"),
        ([[1]], "a list of 1"),
        (NeverWritten([NeverWritten()] * 3), "a list of 3"),
        (NeverWritten([1] * 1000), "a list of 1000"),
        (1 << 20_000, "a number of 20001 bits"),
        ([1 << 20_000], "a list of 1"),
        ("x" * 1000, '"' + "x" * 59 + "…"),
    ],
    ids=["short", "nested", "lists", "long", "number", "numbers", "text"],
)
def test_a_wrong_value_is_shown_in_a_line_whatever_it_holds(value, text):
    assert format_value(value) == text


@pytest.mark.parametrize("text", ["", 'a "b" \\', "\x00\t\r\n\x1f\x7f\x85", "\N{GRINNING FACE}é\u2028", "\u202e"])
def test_every_text_is_read_back_from_a_toml_string(text: str) -> None:
    assert tomllib.loads(f"a = {toml_string(text)}  # {toml_string(text)}") == {"a": text}


def test_half_a_character_is_no_fault_of_a_toml_string() -> None:
    assert tomllib.loads(f"a = {toml_string(chr(0xDCFF))}") == {"a": "?"}
