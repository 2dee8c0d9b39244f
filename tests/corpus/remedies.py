"""Apply the remedies that a message names to the file that it is said of, by the sentences that name them."""

from __future__ import annotations

import re
import signal
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tomli_w
from hypothesis import find
from hypothesis.strategies import from_regex

from routecast.errors import Problem, RoutecastError

__all__ = ["Outcome", "TooLongError", "Trier", "classes_of"]

Document = dict[str, Any]
Path_ = tuple[str | int, ...]
Change = Callable[[Document], object]

_DEEPEST = 4
"""Messages that are followed one after the other, from the one that a file got first."""
_LONGEST_S = 10
_EXAMPLES = {"such as", "other forms", "did you mean"}
"""Classes whose values a message writes out: after one of them, no message names another example."""
_KEY = re.compile(r"is no key|no such option|is no parameter|no such table|is the source of a value")
_NESTED = re.compile(r"^[a-z_]+(?:\.[\w-]+|\[[^\]]*\])+: ")


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """Where a message is said, and what the file held there before it was made faulty."""

    path: Path_
    before: Any
    document: Document
    message: str

    @property
    def value(self) -> Any:
        """What stands there now; ``None`` where nothing does."""
        try:
            return _at(self.document, self.path)
        except (KeyError, IndexError, TypeError):
            return None

    def put(self, value: Any, *beside: str | int) -> Change:
        """Write a value here, or at another key of the same table."""
        path = (*self.path[:-1], *beside) if beside else self.path
        return lambda document: _put(document, path, value)

    def drop(self) -> Change:
        """Leave the key out."""
        return lambda document: _at(document, self.path[:-1]).pop(self.path[-1])

    def rename(self, name: str) -> Change:
        """Give the last key another name."""

        def change(document: Document) -> None:
            table, key = _at(document, self.path[:-1]), str(self.path[-1])
            table[key.rpartition(".")[0] + "." * ("." in key) + name.rpartition(".")[2]] = table.pop(key)

        return change

    def name(self, name: str) -> Change | None:
        """Write a known name where the unknown one stands: a key's, a value's, or a part of a value's."""
        wrong = re.search(r"""(?:^|names |there is no )["']([^"']+)["']""", self.message)
        value = self.value
        if isinstance(value, str) and wrong and wrong[1] in value:
            return self.put(value.replace(wrong[1], name))
        if isinstance(value, dict) and wrong and wrong[1] in value:
            # A suggestion is of the last name of a path.
            whole = f"{wrong[1].rpartition('.')[0]}.{name}".removeprefix(".")
            return lambda document: (table := _at(document, self.path)).__setitem__(whole, table.pop(wrong[1]))
        if _KEY.search(self.message):
            table = _at(self.document, self.path[:-1])
            return None if name in table else self.rename(name)
        return self.put(name)


def _at(value: Any, path: Path_) -> Any:
    for step in path:
        value = value[step]
    return value


def _put(document: Document, path: Path_, value: Any) -> None:
    table: Any = document
    for step in path[:-1]:
        if isinstance(table, dict) and not isinstance(table.get(step), (dict, list)):
            table[step] = {}
        table = table[step]
    table[path[-1]] = value


def _literals(text: str) -> list[Any]:
    """Read the examples of a list "a, b and c": quoted texts, numbers, lists, tables and bare words."""
    found = re.findall(r"\"[^\"]*\"|'[^']*'|\[\[.*?\]\]|\[[^\[\]]*\]|[^\s,;\"'()]+", text)
    values: list[Any] = []
    for each in found:
        if each in {"and", "or"}:
            continue
        try:
            values.append(tomllib.loads(f"value = {each}")["value"])
        except tomllib.TOMLDecodeError:
            values.append(each)
    return values


def _number(text: str) -> float | int:
    value = float(text.replace(",", ""))
    return int(value) if value == int(value) and "e" not in text and "." not in text else value


def _names(spot: Spot, match: re.Match[str]) -> Iterator[Change]:
    for name in _literals(match[1]):
        if (change := spot.name(name) if isinstance(name, str) else spot.put(name)) is not None:
            yield change


def _values(spot: Spot, match: re.Match[str]) -> Iterator[Change]:
    for value in _literals(match[1]):
        yield spot.put(value)


def _inside(low: float | None, high: float | None, *, whole: bool) -> list[float | int]:
    if low is not None and high is not None:
        middle = (low + high) / 2
        return [low, high, int(middle) if whole else middle]
    return [low, low + 1] if low is not None else [high, high - 1] if high is not None else []


def _range(spot: Spot, match: re.Match[str]) -> Iterator[Change]:
    low, high = _number(match[1]), _number(match[2])
    for value in _inside(low, high, whole=isinstance(low, int) and isinstance(high, int)):
        yield spot.put(value)


def _bound(spot: Spot, match: re.Match[str]) -> Iterator[Change]:
    limits = [(match[1], _number(match[2])), *([(match[3], _number(match[4]))] if match[3] else [])]
    low = next((limit for sign, limit in limits if sign[0] in ">a"), None)
    high = next((limit for sign, limit in limits if sign[0] == "<"), None)
    if low is not None and high is not None:
        yield spot.put((low + high) / 2)
    for sign, limit in limits:
        if sign in {">=", "<=", "at least"}:
            yield spot.put(limit)
    if high is None and low is not None:
        yield spot.put(low + 1)


def _between(spot: Spot, match: re.Match[str]) -> Iterator[Change]:
    low, high = _number(match[1]), _number(match[2])
    for value in (high, (low + high) / 2):
        yield spot.put(f"{value}{match[3]}" if match[3] else value)


def _cores(spot: Spot, match: re.Match[str]) -> Iterator[Change]:
    for core in range(int(match[1]), int(match[2]) + 1):
        yield spot.put([core])


def _numbered(spot: Spot, match: re.Match[str]) -> Iterator[Change]:
    for number in range(int(match[1])):
        yield spot.put(number)


def _at_most(spot: Spot, match: re.Match[str]) -> Iterator[Change]:
    yield spot.put(int(match[1]))
    yield spot.put(1)


def _sort(*values: Any) -> Callable[[Spot, re.Match[str]], Iterator[Change]]:
    """The value's type is named: any value of the type, after which another message may name a permitted one."""
    return lambda spot, _: (spot.put(value) for value in values)


def _list(spot: Spot, _: re.Match[str]) -> Iterator[Change]:
    yield spot.put([spot.value])
    yield spot.put(["a"])
    yield spot.put([{}])


def _items(spot: Spot, match: re.Match[str]) -> Iterator[Change]:
    if isinstance(spot.before, list) and spot.before:
        yield spot.put((spot.before * int(match[1]))[: int(match[1])])


def _pattern(spot: Spot, match: re.Match[str]) -> Iterator[Change]:
    yield spot.put(find(from_regex(match[1].replace("$", r"\Z")), lambda _: True))


def _one_each(spot: Spot, match: re.Match[str]) -> Iterator[Change]:
    yield spot.put([1.0] * int(match[1]))


def _table_entry(spot: Spot, match: re.Match[str]) -> Iterator[Change]:
    """A level of an experiment: its label and the paths that it sets, as the table beside it does."""
    path = next(iter(_overrides(spot.document)), None)
    if path is not None:
        yield spot.put({"label": "a", "set": path})


def _overrides(document: Document) -> Iterator[Document]:
    for factor in document.get("factor", []):
        for level in factor.get("levels", []):
            if isinstance(level, dict) and isinstance(level.get("set"), dict):
                yield level["set"]
        if "path" in factor and factor.get("levels"):
            yield {factor["path"]: factor["levels"][0]}


def _add_block(spot: Spot, match: re.Match[str]) -> Iterator[Change]:
    def add(document: Document) -> None:
        document["stage"][0].setdefault("blocks", []).append(match[1])

    def leave_out(document: Document) -> None:
        document["block"] = [each for each in document["block"] if each.get("name") != match[1]]

    yield add
    if any(each.get("name") == match[1] for each in spot.document.get("block", [])):
        yield leave_out


def _frequency_of_pool(spot: Spot, match: re.Match[str]) -> Iterator[Change]:
    def change(document: Document) -> None:
        pool = document
        if match.re.groups and match[1]:
            pool = next((each for each in document.get("pool", []) if each.get("name") == match[1]), document)
        elif len(spot.path) > 1 and spot.path[0] == "pool":
            pool = document["pool"][spot.path[1]]
        pool["frequency"] = "3 GHz"

    yield change


def _kinds(spot: Spot, match: re.Match[str]) -> Iterator[Change]:
    for kind in _literals(match[1]):
        yield spot.put(kind, "kind")


def _kinds_of_route(spot: Spot, match: re.Match[str]) -> Iterator[Change]:
    yield spot.put("rss", "kind")
    yield spot.put("round_robin", "kind")

    def random(document: Document) -> None:
        route = _at(document, spot.path[:-1])
        route["kind"], route["weights"] = "random", [1.0] * len(route["to"])

    yield random


def _targets(spot: Spot, _: re.Match[str]) -> Iterator[Change]:
    yield spot.put([f"port {number}" for number in range(len(spot.document.get("port", [])))])


def _value_or_range(spot: Spot, _: re.Match[str]) -> Iterator[Change]:
    for key, value in (("value", 1.0), ("range", [0.0, 1.0]), ("permitted", [0.0, 1.0])):
        yield _added(spot, key, value)


def _organisation(spot: Spot, match: re.Match[str]) -> Iterator[Change]:
    yield lambda document: document.__setitem__("organisation", match[1])


def _given(spot: Spot, match: re.Match[str]) -> Iterator[Change]:
    """The value whose source stands here: any, after which another message may name a permitted one."""
    path = tuple(step for step in spot.path if step != "source")
    yield lambda document: _put(document, path, "x")


def _add_here(spot: Spot, match: re.Match[str]) -> Iterator[Change]:
    for key in ("pattern", "task_graph", "matrix", "flows"):
        yield _added(spot, key)


def _added(spot: Spot, key: str, value: Any = "x") -> Change:
    return lambda document: _put(document, (*spot.path, key), value)


def _cost_as_time(_: Spot, __: re.Match[str]) -> Iterator[Change]:
    def change(value: Any) -> None:
        for key, each in list(value.items()) if isinstance(value, dict) else list(enumerate(value)):
            if isinstance(each, (dict, list)):
                change(each)
            elif isinstance(each, str) and re.fullmatch(r"[\d.]+ cycles(/B)?", each):
                value[key] = "0.1 ns/B" if each.endswith("/B") else "100 ns"

    yield change


def _items_two(spot: Spot, _: re.Match[str]) -> Iterator[Change]:
    yield spot.put((spot.before * 2)[:2] if len(spot.before) < 2 else spot.before[:2])


def _multiple(spot: Spot, _: re.Match[str]) -> Iterator[Change]:
    count = re.search(r"(\d+) flows have", spot.message)
    assert count is not None
    yield spot.put(int(count[1]))
    yield spot.put(2 * int(count[1]))


def _block_names(spot: Spot, _: re.Match[str]) -> Iterator[Change]:
    yield spot.put(["receive"])


def _characters(spot: Spot, match: re.Match[str]) -> Iterator[Change]:
    yield spot.put("x" * int(match[1]))


def _either(spot: Spot, match: re.Match[str]) -> Iterator[Change]:
    yield spot.put(match[1])
    yield spot.put(match[2])


def _day(spot: Spot, _: re.Match[str]) -> Iterator[Change]:
    for value in ("mean", "quantile 0.95", "all"):
        yield spot.put(value)


def _sibling(spot: Spot, match: re.Match[str]) -> Iterator[Change]:
    for value in _literals(match[2]):
        yield spot.put(value, match[1])


def _drop(spot: Spot, _: re.Match[str]) -> Iterator[Change]:
    yield spot.drop()


def _add(spot: Spot, match: re.Match[str]) -> Iterator[Change]:
    for key in _literals(match[1]):
        yield spot.put("x", key)


def _missing(spot: Spot, _: re.Match[str]) -> Iterator[Change]:
    yield spot.put("x")


Rule = tuple[str, re.Pattern[str], Callable[[Spot, re.Match[str]], Iterator[Change]]]
_LIST = r"((?:(?:\"[^\"]*\"|'[^']*'|[\w.:/-]+)(?:, | and | or |, and |, or )?)+)"
RULES: tuple[Rule, ...] = tuple(
    (name, re.compile(pattern), apply)
    for name, pattern, apply in (
        ("did you mean", r'did you mean ("[^"]+")', _names),
        ("known are", rf"(?:known are|allowed are|the nearest of \d+ are|name one of|loads:) {_LIST}", _names),
        (
            "such as",
            r"(?:such as|is like|address like|write a text such as) (\[\[[^;]*?\]\]|[^;]*?)"
            r"(?= is a text| \(|;| for one| or a | or bit|$)",
            _values,
        ),
        ("such as", r"such as (?:[^;]*?) or an? [a-z ]+ such as ([^;]*?)(?= is a text| \(|;|$)", _values),
        ("other forms", r"other forms are (.*)$", _values),
        ("from … to …", r"(?:allowed is|from) (-?[\d.e+-]+(?:,\d{3})*) to (-?[\d.e+-]+(?:,\d{3})*)", _range),
        (
            "at least, above",
            r"(?:allowed is a (?:finite |whole )?number|it is a number|is|are) ([<>]=?|at least) (-?[\d.e+-]+)"
            r"(?: and ([<>]=?) (-?[\d.e+-]+))?",
            _bound,
        ),
        ("from … to …", r"more than (-?[\d.e+-]+) and at most (-?[\d.e+-]+)( [\w/]+)?", _between),
        ("from … to …", r"(-?[\d.e+-]+) to (-?[\d.e+-]+)(?: \w+)? is allowed", _range),
        ("entry of the file", r"has cores (\d+) to (\d+)", _cores),
        ("entry of the file", r"(?:has|the router has) (\d+) (?:units?|ports?), numbered from 0", _numbered),
        ("entry of the file", r"(?:an engine of \S+ has|but \S+ has) (\d+)$", _at_most),
        ("not negative", r"is not negative|is below (?=0)", _sort(0, 1)),
        ("type", r"must be a text|write a text(?! such)", _sort("text")),
        ("type", r"must be a whole number|is not a whole number", _sort(1)),
        ("type", r"must be a number|should be a valid number", _sort(1, 0.5)),
        ("type", r"must be true or false", _sort(True, False)),
        ("type", r"must be a table", _sort({})),
        ("type", r"is not a text", _sort("text")),
        ("list", r"must be a list", _list),
        ("items", r"give at least (\d+)", _items),
        ("pattern", r"should match pattern '(.*)'$", _pattern),
        ("source", r"say where the value (?:of \S+ )?comes from", _sort("text")),
        ("missing", r"^is missing(?!: (?:say where|name one|give at least))", _missing),
        ("set", r'(?:set|needs) (\w+) = ("[^"]+")', _sibling),
        ("one for each", r"has \d+ (?:entries|entry) for (\d+) targets: give one for each", _one_each),
        ("level", r"write \{ label = …, set = \{ path = value \} \}", _table_entry),
        ("blocks", r'no stage runs "([^"]+)": add it', _add_block),
        ("frequency", r'pool "([^"]+)" has no frequency: give it', _frequency_of_pool),
        ("frequency", r"the pool has no frequency: give the frequency", _frequency_of_pool),
        ("as a time", r"or the cost as a time", _cost_as_time),
        ("kind", r"only ([\w, ]+ or \w+) does", _kinds),
        ("kind", r"kind single has one; use rss or round_robin, or random with weights", _kinds_of_route),
        ("targets", r"is empty: kind \w+ needs targets", _targets),
        ("value or range", r"give a value or its permitted range", _value_or_range),
        ("organisation", r'is for organisation "(\w+)"', _organisation),
        ("give", r"give \w+, or leave its source out", _given),
        ("give", r"give (pattern), task_graph, matrix or flows", _add_here),
        ("give", r"give two or more|give the lowest and the highest", _items_two),
        ("give", r"give a multiple of that", _multiple),
        ("give", r"give a load of the case, ([\d.]+)", _values),
        ("give", r"name the blocks that its threads run", _block_names),
        ("use", r'use "mean", "quantile 0.95"', _day),
        ("characters", r"(?:has \d+ characters: at most|at most) (\d+)(?: characters)?$", _characters),
        ("pattern", r"a letter, then letters, digits and _", _sort("table_1")),
        ("in", r"is in (\w+) or ([\w/]+)$", _either),
        ("formula", r"a formula has numbers, names", _sort("2 * 3", "ceil(7 / 2)", "1 if 2 > 1 else 0")),
        ("type", r"give a name or a file in quotes", _sort("x")),
        ("such as", r"brackets: (\"[^\"]+\")$", _values),
        ("at least, above", r"at least one is needed", _sort(1)),
        ("leave out", r"leave (?:them|its source|it) out|or not given", _drop),
    )
)


_INDEPENDENT = (
    re.compile(r"needs? .*stages|the stages need|each (?:address|segment) has its own|is not in \d+\."),
    re.compile(r"less than 1 can|is less than idle_power|needs chains whose last stage|but no server has a price"),
    re.compile(r"there is no file '(?:text|x)'|is not among the values|has one level|write a number of flows"),
    re.compile(r"names \"[^\"]+\": known are|the factor has no path"),
)
"""What else is wrong at a place after its remedy: another part of the file contradicts the value, or the tried value is
of the type that the remedy names and stands for a text, a file or a list that only the author knows."""


@dataclass(slots=True, kw_only=True)
class Outcome:
    """How many sentences of a class were tried, and which did not work."""

    tried: Counter[str] = field(default_factory=Counter)
    values: Counter[str] = field(default_factory=Counter)
    left: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)


def classes_of(message: str) -> list[str]:
    return list(dict.fromkeys(name for name, pattern, _ in RULES if pattern.search(message)))


class TooLongError(BaseException):
    """A permitted value makes a file that takes long to read, such as the largest network: it is not tried."""


def _stop(*_: object) -> None:
    raise TooLongError


@dataclass(frozen=True, slots=True, kw_only=True)
class Trier:
    """Reads changed copies of one file."""

    target: Path
    read: Callable[[Path], object]

    def problems(self, document: Document) -> list[Problem]:
        """Return what is said of a document; nothing where it is read."""
        self.target.write_text(tomli_w.dumps(document), encoding="utf-8")
        before = signal.signal(signal.SIGALRM, _stop)
        signal.alarm(_LONGEST_S)
        try:
            self.read(self.target)
        except RoutecastError as error:
            return list(getattr(error, "problems", [Problem("", str(error))]))
        finally:
            signal.alarm(0)
            signal.signal(signal.SIGALRM, before)
        return []

    def candidates(
        self, document: Document, problem: Problem, fault: Path_, before: Any
    ) -> Iterator[tuple[str, Document]]:
        """Yield each remedy's class and the document after it."""
        nested = _NESTED.match(problem.message)
        path = None if nested or not problem.place else resolve(document, problem.place)
        message = problem.message[nested.end() :] if nested else problem.message
        if ": " in problem.place:
            # The place of a curve and, after it, of its router: the key is in the table that was made faulty.
            last = problem.place.rpartition(".")[2]
            path = (*fault[:-1], last) if _KEY.search(message) else fault
        spot = Spot(path=path or fault, before=before, document=document, message=message)
        for name, pattern, apply in RULES:
            for match in pattern.finditer(message):
                for change in apply(spot, match):
                    changed: Document = tomllib.loads(tomli_w.dumps(document))
                    try:
                        change(changed)
                    except (KeyError, IndexError, TypeError, AttributeError) as error:
                        yield f"! {name}: {error!r}", changed
                        continue
                    yield name, changed

    def works(self, document: Document, problem: Problem, fault: Path_, before: Any, name: str, depth: int = 1) -> str:
        """Return nothing where a changed document has no message at the place, or one whose remedy works."""
        now = self.problems(document)
        here = [
            each
            for each in now
            if _place(each) == _place(problem) and not any(cause.search(str(each)) for cause in _INDEPENDENT)
        ]
        for each in here:
            if _template(each.message) == _template(problem.message) and classes_of(each.message)[:1] not in (
                ["missing"],
            ):
                return str(each)
            if depth == _DEEPEST or (name in _EXAMPLES and name in classes_of(each.message)):
                return str(each)
            after = list(self.candidates(document, each, fault, before))
            if not any(not self.works(changed, each, fault, before, cls, depth + 1) for cls, changed in after):
                return str(each)
        return ""


def _template(message: str) -> str:
    return re.sub(r"got .*?: |^(?:\[.*\]|'[^']*'|\"[^\"]*\"|-?[\d.]+)(?=:| )", "", message)


def _place(problem: Problem) -> str:
    nested = _NESTED.match(problem.message)
    return problem.place + (nested[0] if nested else "")


def resolve(document: Document, place: str) -> Path_ | None:
    """Return the path of a place as messages write it; its last key may be missing."""
    value: Any = document
    path: list[str | int] = []
    rest = place
    while rest:
        rest = rest.removeprefix(".")
        if isinstance(value, dict):
            key = max((key for key in value if re.match(re.escape(key) + r"(?=[.\[]|$)", rest)), key=len, default=None)
            if key is None:
                plain = re.fullmatch(r"[\w-]+(\.[\w-]+)*", rest)
                return (*path, *rest.split(".")) if plain else tuple(path) if path else None
            path.append(key)
            value, rest = value[key], rest[len(key) :]
        elif isinstance(value, list) and (index := re.match(r"\[([^\]]*)\]", rest)):
            step = index[1]
            number = (
                int(step)
                if step.isdigit()
                else next(
                    (
                        i
                        for i, each in enumerate(value)
                        if isinstance(each, dict) and step in (each.get("name"), each.get("kind"))
                    ),
                    None,
                )
            )
            if number is None or number >= len(value):
                return None
            path.append(number)
            value, rest = value[number], rest[index.end() :]
        else:
            # A union's member that the reader of the schema names in a place is no part of the file.
            return tuple(path)
    return tuple(path)
