"""Every command with its place in the help; its module is imported once it is called, or asked for its options."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import CodeType
from typing import Annotated, Any, cast, get_args, get_type_hints

import typer
from typer.core import TyperGroup
from typer.main import get_group

__all__ = ["app"]


@dataclass(frozen=True, slots=True)
class Group:
    """Commands below a word of their own: what the word's help says, and where each stands."""

    help: str
    commands: Mapping[str, str]


PANELS: Mapping[str, Mapping[str, str | Group]] = {
    "How many, which, where": {
        "size": "size:size",
        "plan": Group(
            "Plan: which machines to buy, which to switch on when, what to put where.",
            {"cluster": "plan:cluster", "mapping": "plan:mapping", "placement": "plan:placement"},
        ),
        "power": Group(
            "Watts: models, meters, metrics, and the operating point that needs the fewest.",
            {
                "meters": "power.models:meters",
                "read": "power.models:read",
                "fit": "power.models:fit",
                "show": "power.models:show",
                "table": "power.routers:power_table_command",
                "day": "power.routers:power_day_command",
                "optimise": "power.routers:optimise",
            },
        ),
    },
    "What would it do": {
        "solve": "solve:solve",
        "simulate": "simulate:simulate",
        "sweep": "sweep:sweep",
        "explore": "explore:explore",
        "experiment": "experiment:experiment",
        "function": "function:function",
        "workload": "workload:workload",
        "noc": Group(
            "Networks on chip: power of routings and planes, the optimum, the fabric flit by flit.",
            {"power": "noc:power", "optimum": "noc:optimum", "simulate": "noc:simulate", "compare": "noc:compare"},
        ),
    },
    "Is it true": {
        "study": "study:study",
        "validate": "validate:validate",
        "board": "validate:board",
        "compare": "compare:compare",
        "next": "validate:next_measurement",
    },
    "Measure": {
        "measure": "measure:measure",
        "benchmark": Group(
            "The procedures of RFC 2544, on a test bed or on a model.", {"rfc2544": "benchmark:rfc2544"}
        ),
        "doctor": "doctor:doctor",
        "testbed": Group(
            "Test beds and devices under test: put up, take down, list; test the tester itself.",
            {
                "up": "testbed:up",
                "down": "testbed:down",
                "list": "testbed:list_beds",
                "devices": "testbed:devices",
                "selftest": "testbed:selftest",
            },
        ),
        "multistage": Group(
            "A router of many machines, in network namespaces: put it up, watch it, change it, let parts of it fail.",
            {
                "predict": "multistage:predict",
                "up": "multistage:up",
                "status": "multistage:status",
                "drain": "multistage:drain",
                "add": "multistage:add",
                "remove": "multistage:remove",
                "weight": "multistage:weight",
                "fail": "multistage:fail",
                "restore": "multistage:restore",
                "trace": "multistage:trace",
                "audit": "multistage:audit",
                "down": "multistage:down",
            },
        ),
        "hardware": Group(
            "Hosts and what elementary operations cost on them: list, show, probe this one.",
            {"probe": "hardware:probe", "list": "hardware:list_hardware", "show": "hardware:show"},
        ),
        "import": "exchange:import_trials",
        "export": "exchange:export_trials",
    },
    "Begin": {"init": "init:init", "examples": "examples:examples", "schema": "schema:schema"},
}
"""The commands by the question that they answer."""


class Later:
    """A command of which the name and the help are known, and the rest once somebody wants it."""

    hidden = deprecated = False
    short_help = None

    def __init__(self, name: str, where: str | Group, panel: str | None = None) -> None:
        self.name = name
        self.rich_help_panel = panel
        self._where = where

    @cached_property
    def help(self) -> str:
        """What a group's help says, or the docstring of the command's function; its module does not run for it."""
        if isinstance(self._where, Group):
            return self._where.help
        module, function = _place(self._where)
        spec = find_spec(module)
        loader: Any = spec.loader if spec else None
        code = loader.get_code(module)
        of_function = next(one for one in code.co_consts if isinstance(one, CodeType) and one.co_name == function)
        return inspect.cleandoc(of_function.co_consts[0] or "")

    @cached_property
    def _whole(self) -> Any:
        one = typer.Typer(rich_markup_mode="markdown", pretty_exceptions_enable=False)
        if isinstance(self._where, Group):
            one.add_typer(typer.Typer(no_args_is_help=True, help=self.help), name=self.name)
        else:
            module, function = _place(self._where)
            one.command(self.name)(getattr(import_module(module), function))
        command: Any = get_group(one).commands[self.name]
        command.rich_help_panel = self.rich_help_panel
        if isinstance(self._where, Group):
            command.commands = {name: Later(name, where) for name, where in self._where.commands.items()}
        for parameter in command.params:
            parameter.process_value = partial(_named, parameter.process_value, parameter)
        return command

    def __getattr__(self, name: str) -> Any:
        return getattr(self._whole, name)


def _place(where: str) -> tuple[str, str]:
    module, _, function = where.partition(":")
    return f"routecast.cli.{module}", function


class Commands(TyperGroup):
    """The word ``routecast`` with all that stands below it."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        later = {name: Later(name, where, panel) for panel, of in PANELS.items() for name, where in of.items()}
        self.commands = cast("dict[str, Any]", later)


def _named(process: Callable[..., object], parameter: Any, context: Any, value: Any) -> object:
    """Let no command take an empty text for a path: it would be the folder that one stands in."""
    is_empty = value == "" or (isinstance(value, tuple) and "" in value)
    if is_empty and _is_path(get_type_hints(context.command.callback)[parameter.name]):
        message = "the path is empty: name a file or a folder; the folder that you are in is '.'"
        raise typer.BadParameter(message, ctx=context, param=parameter)
    return process(context, value)


def _is_path(hint: object) -> bool:
    return hint is Path or any(map(_is_path, get_args(hint)))


app = typer.Typer(
    name="routecast",
    cls=Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


@app.callback()
def routecast(
    *,
    version: Annotated[bool, typer.Option("--version", help="Print the version and leave.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Measure, predict and plan software routers.

    stdout is data, stderr is progress. Exit codes: 0 ok, 1 a criterion failed, 2 usage or bad file, 3 environment.
    """
    if version:
        from routecast import __version__

        typer.echo(f"routecast {__version__}")
        raise typer.Exit
