"""Thin commands: they send a request to a process that works, and start without the packages of the command line.

The parameters of a thin command are data. A plain command line is read by them alone. Every other one (``--help``, a
wrong option, a missing argument, completion) goes to the whole command line, which derives its options from the same
data.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Annotated, Any, TypeVar

from routecast.wings import ENTRY_POINTS, CommandGroup, Wing

__all__ = ["JSON", "ThinParameter", "argument", "option", "thin", "thin_command", "with_typer_signature"]

Command = TypeVar("Command", bound=Callable[..., None])


@dataclass(frozen=True, slots=True, kw_only=True)
class ThinParameter:
    """A parameter of a thin command: an argument, or an option with a ``flag`` such as ``--name``.

    ``kind`` is the type of its value, and of an option that is a flag ``bool``; ``default``: its value if it is not
    given; ``minimum`` and ``maximum``: limits of a number.
    """

    name: str
    help: str
    flag: str = ""
    metavar: str = ""
    kind: type[str] | type[int] | type[float] | type[bool] = str
    is_required: bool = False
    default: Any = None
    minimum: float | None = None
    maximum: float | None = None

    def value(self, text: str) -> Any:
        """Return the value of a text; raises ValueError: it is none, or out of the limits."""
        number = self.kind(text)
        if isinstance(number, str):
            return number
        is_small = self.minimum is not None and number < self.minimum
        is_large = self.maximum is not None and number > self.maximum
        if is_small or is_large or not math.isfinite(number):
            raise ValueError(text)
        return number


def argument(name: str, metavar: str, help: str, *, is_required: bool = True, **more: Any) -> ThinParameter:  # noqa: A002
    """Declare an argument; ``more`` are other fields of :class:`ThinParameter`."""
    return ThinParameter(name=name, metavar=metavar, help=help, is_required=is_required, **more)


def option(flag: str, help: str, **more: Any) -> ThinParameter:  # noqa: A002
    """Declare an option; ``more`` are other fields of :class:`ThinParameter`, where ``name`` follows from the flag."""
    kind = more.get("kind", str)
    more = {"name": flag.removeprefix("--").replace("-", "_"), "default": False if kind is bool else None, **more}
    return ThinParameter(flag=flag, help=help, **more)


JSON = option("--json", "Print one JSON document.", kind=bool, name="as_json")


def thin(*parameters: ThinParameter) -> Callable[[Command], Command]:
    """Declare a function, which takes all parameters as keywords, as a thin command."""

    def declare(function: Command) -> Command:
        function.parameters = parameters  # type: ignore[attr-defined]
        return function

    return declare


def thin_command(words: Sequence[str]) -> Callable[[], None] | None:
    """Return the call of a thin command; None if the command line is for the whole command line."""
    if len(words) < 2 or "_ROUTECAST_COMPLETE" in os.environ:
        return None
    for wing in _installed_wings():
        for commands in wing.commands.values():
            group = commands.get(words[0])
            target = group.commands.get(words[1], "") if isinstance(group, CommandGroup) else ""
            module, _, name = target.partition(":")
            if module in wing.thin_modules:
                function = getattr(import_module(f"{wing.package}.{module}"), name)
                values = _values(words[2:], function.parameters)
                return None if values is None else partial(function, **values)
    return None


def _installed_wings() -> Iterator[Wing]:
    """Yield the wings whose entry points lie in folders of modules, without the import of importlib.metadata.

    It may miss a wing, such as one in an archive: the whole command line knows all of them.
    """
    for folder in sys.path:
        try:
            names = [name for name in os.listdir(folder or ".") if name.endswith(".dist-info")]
        except OSError:  # an archive, or no folder
            continue
        for distribution in names:
            try:
                with open(os.path.join(folder, distribution, "entry_points.txt"), encoding="utf-8") as file:
                    text = file.read()
            except (OSError, UnicodeDecodeError):
                continue
            _, _, section = text.partition(f"[{ENTRY_POINTS}]\n")
            for line in section.partition("\n[")[0].splitlines():
                module, _, name = line.partition("=")[2].strip().partition(":")
                if name:
                    try:
                        wing = getattr(import_module(module), name)
                    except (ImportError, AttributeError):  # what an earlier installation has left
                        continue
                    yield wing


def _values(words: Sequence[str], parameters: Sequence[ThinParameter]) -> Mapping[str, Any] | None:
    """Return the values of all parameters; None if a word is not plainly one of them."""
    flags = {parameter.flag: parameter for parameter in parameters if parameter.flag}
    arguments = [parameter for parameter in parameters if not parameter.flag]
    values = {parameter.name: parameter.default for parameter in parameters}
    given: list[str] = []
    remaining = list(words)
    try:
        while remaining:
            word = remaining.pop(0)
            if not word.startswith("-"):
                given.append(word)
                continue
            flag, equals, text = word.partition("=")
            parameter = flags[flag]
            if parameter.kind is bool:
                if equals:
                    return None
                values[parameter.name] = True
                continue
            text = text if equals else remaining.pop(0)
            if text.startswith("-"):
                return None
            values[parameter.name] = parameter.value(text)
        for parameter, text in zip(arguments, given, strict=False):
            values[parameter.name] = parameter.value(text)
    except (KeyError, IndexError, ValueError):
        return None
    required = sum(parameter.is_required for parameter in arguments)
    return values if required <= len(given) <= len(arguments) else None


def with_typer_signature(function: Callable[..., None]) -> Callable[..., None]:
    """Return a thin command as a function whose signature declares its parameters for typer."""
    import inspect
    from functools import wraps

    import typer

    @wraps(function)
    def run(**values: Any) -> None:
        function(**values)

    parameters = []
    for parameter in function.parameters:  # type: ignore[attr-defined]
        limits = {} if parameter.kind in (str, bool) else {"min": parameter.minimum, "max": parameter.maximum}
        settings = {"metavar": parameter.metavar or None, "help": parameter.help, **limits}
        declared = (
            typer.Option(parameter.flag, **settings)
            if parameter.flag
            else typer.Argument(show_default=False, **settings)
        )
        hint: Any = parameter.kind
        if parameter.default is None and not parameter.is_required:
            hint = hint | None
        parameters.append(
            inspect.Parameter(
                parameter.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=inspect.Parameter.empty if parameter.is_required else parameter.default,
                annotation=Annotated[hint, declared],
            )
        )
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run
