"""All commands by panel of the help; the module of a command is imported when the command or its help is used."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import cache, cached_property, partial
from importlib import import_module
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path
from types import CodeType
from typing import Annotated, Any, get_args, get_type_hints

import typer
from typer.core import TyperGroup
from typer.main import get_group

from routecast.cli.thin import with_typer_signature
from routecast.wings import EXTRAS, CommandGroup, extra_of, not_installed, wings

__all__ = ["app"]


PANELS: Mapping[str, Mapping[str, str | CommandGroup]] = {
    "How many, which, where": {
        "size": "cli.size:size",
        "power": CommandGroup(
            "Watts: models, meters, metrics, and the operating point that needs the fewest.",
            {
                "meters": "lab.cli.power_meters:meters",
                "read": "lab.cli.power_meters:read",
                "fit": "cli.power_models:fit",
                "show": "cli.power_models:show",
                "table": "lab.cli.power_table:power_table_command",
                "day": "plan.power.commands:power_day_command",
                "optimise": "plan.power.commands:optimise",
            },
        ),
    },
    "What would it do": {
        "solve": "cli.solve:solve",
        "simulate": "cli.simulate:simulate",
        "sweep": "cli.sweep:sweep",
        "day": "plan.day.commands:day",
        "explore": "cli.explore:explore",
        "function": "cli.function:function",
        "workload": "lab.cli.workload:workload",
    },
    "Is it true": {
        "study": "cli.study:study",
        "validate": "cli.validate:validate",
        "board": "replications.accuracy.commands:board",
        "compare": "cli.compare:compare",
        "next": "cli.validate:next_measurement",
    },
    "Measure": {
        "measure": "lab.cli.measure:measure",
        "benchmark": CommandGroup(
            "The procedures of RFC 2544, on a test bed or on a model.", {"rfc2544": "lab.cli.benchmark:rfc2544"}
        ),
        "watch": "lab.cli.watch:watch",
        "doctor": "lab.cli.doctor:doctor",
        "testbed": CommandGroup(
            "Test beds and devices under test: put up, take down, list; test the tester itself.",
            {
                "up": "lab.cli.testbed:up",
                "down": "lab.cli.testbed:down",
                "list": "lab.cli.testbed:list_beds",
                "devices": "lab.cli.testbed:devices",
                "selftest": "lab.cli.testbed:selftest",
            },
        ),
        "hardware": CommandGroup(
            "Hosts and what elementary operations cost on them: list, show, probe this one.",
            {
                "probe": "lab.cli.hardware_probe:probe",
                "list": "cli.hardware:list_hardware",
                "show": "cli.hardware:show",
            },
        ),
        "import": "lab.cli.exchange:import_trials",
        "export": "lab.cli.exchange:export_trials",
    },
    "Begin": {"init": "cli.init:init", "examples": "cli.examples:examples", "schema": "cli.schema:schema"},
}
"""The commands of core and lab by the question that they answer, as ``module:function`` below ``routecast``.

Groups of the core have commands of wings as well.
"""


@cache
def _spec(name: str) -> ModuleSpec | None:
    """Return the spec of a module; None if it, or a package that holds it, is not installed."""
    try:
        return find_spec(name)
    except ModuleNotFoundError:
        return None


class LazyCommand:
    """A command whose name and help are known; its module is imported when the command is used."""

    deprecated = False
    short_help = None

    def __init__(
        self, name: str, target: str | CommandGroup, package: str, panel: str | None = None, group: str = ""
    ) -> None:
        self.name = name
        self._group = group
        self.rich_help_panel = panel
        self._target = target
        self._package = package

    @cached_property
    def hidden(self) -> bool:
        """Whether the command's module is not installed, or that of none of the group's commands."""
        commands = self._target.commands.values() if isinstance(self._target, CommandGroup) else (self._target,)
        return all(_spec(f"{self._package}.{command.partition(':')[0]}") is None for command in commands)

    @cached_property
    def help(self) -> str:
        """The group's help, or the docstring of the command's function, read without running its module."""
        if isinstance(self._target, CommandGroup):
            return self._target.help
        module, _, function = self._target.partition(":")
        name = f"{self._package}.{module}"
        spec = _spec(name)
        loader: Any = spec.loader if spec else None
        code = next(
            constant
            for constant in loader.get_code(name).co_consts
            if isinstance(constant, CodeType) and constant.co_name == function
        )
        return inspect.cleandoc(code.co_consts[0] or "")

    @cached_property
    def _command(self) -> Any:
        if self.hidden:
            words = (self._group, self.name) if self._group else (self.name,)
            extra = extra_of("commands", words[0]) or str(self._target).partition(".")[0]
            raise not_installed(f"routecast {' '.join(words)}", extra)
        parent = typer.Typer(rich_markup_mode="markdown", pretty_exceptions_enable=False)
        if isinstance(self._target, CommandGroup):
            parent.add_typer(typer.Typer(no_args_is_help=True, help=self.help), name=self.name)
        else:
            module, _, name = self._target.partition(":")
            function = getattr(import_module(f"{self._package}.{module}"), name)
            parent.command(self.name)(with_typer_signature(function) if hasattr(function, "parameters") else function)
        command: Any = get_group(parent).commands[self.name]
        command.rich_help_panel = self.rich_help_panel
        if isinstance(self._target, CommandGroup):
            command.commands = {
                name: LazyCommand(name, target, self._package, group=self.name)
                for name, target in self._target.commands.items()
            }
        for parameter in command.params:
            parameter.process_value = partial(_refuse_empty_path, parameter.process_value, parameter)
        return command

    def __getattr__(self, name: str) -> Any:
        return getattr(self._command, name)


class Commands(TyperGroup):
    """The command ``routecast`` with all commands of the core and of the wings."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        packages = (("routecast", PANELS), *((wing.package, wing.commands) for wing in wings()))
        self.commands: Any = {
            name: LazyCommand(name, target, package, panel)
            for panel in PANELS
            for package, panels in packages
            for name, target in panels.get(panel, {}).items()
        }
        for extra, names in EXTRAS.items():
            for name in names["commands"]:
                self.commands.setdefault(name, LazyCommand(name, ":", f"routecast.{extra}.absent"))


def _refuse_empty_path(process: Callable[..., object], parameter: Any, context: Any, value: Any) -> object:
    """Refuse an empty text as a path: it would name the current folder."""
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
        from routecast.version import VERSION

        typer.echo(f"routecast {VERSION}")
        raise typer.Exit
