"""Running a command line, from arguments to an exit code."""

from __future__ import annotations

import io
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from routecast.errors import FileProblem, RoutecastError

__all__ = ["DEFECT", "INTERRUPTED", "run"]

Handler = Callable[..., object]

INTERRUPTED = 130
DEFECT = 70
"""EX_SOFTWARE of sysexits.h: an error that routecast did not raise on purpose."""


def run(arguments: Sequence[str], *, begin: Callable[[Handler], object] = lambda handler: None) -> int:
    """Run one command and return its exit code; a traceback is printed only under ``--debug``.

    ``begin`` receives the handler of SIGINT after the command is imported and before it starts.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A file name may have undecodable bytes, a JSON text half a surrogate pair: as escapes they can be printed.
        sys.stdout.reconfigure(errors="backslashreplace")
    words = [argument for argument in arguments if argument != "--debug"]
    debug = len(words) < len(arguments)
    try:
        with _interruptible() as interrupt:
            return _command(words, lambda: begin(interrupt))
    except KeyboardInterrupt:
        return _report("interrupted", INTERRUPTED, debug=debug)
    except BrokenPipeError:
        # The reader of stdout has ended (`routecast board | head`), which is no error.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except RoutecastError as error:
        return _report(_message(error, words), error.exit_code, debug=debug)
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError, FileExistsError) as error:
        return _report(f"{error.filename}: {error.strerror}{_example_hint(error.filename)}", 2, debug=debug)
    except OSError as error:
        return _report(f"{error.filename or 'system'}: {error.strerror or error}", 3, debug=debug)
    except ImportError as error:
        if (error.name or "").startswith("routecast.lab"):
            from routecast.wings import not_installed

            return _report(str(not_installed("this command")), 3, debug=debug)
        return _report(
            f"{error}: run `make demo` or `pip install .` to build and install what is missing", 3, debug=debug
        )
    except Exception as error:
        hint = "" if debug else "; add --debug to see where"
        return _report(f"a defect of routecast: {type(error).__name__}: {error}{hint}", DEFECT, debug=debug)


@contextmanager
def _interruptible() -> Iterator[Handler]:
    """Yield a handler of signals that raises KeyboardInterrupt even if an import or a class replaces the exception.

    SIGTERM acts like Ctrl-C, because batch systems send it when a job's time is over; finished work is kept.
    """
    was_interrupted = False

    def interrupt(*_: object) -> None:
        nonlocal was_interrupted
        was_interrupted = True
        raise KeyboardInterrupt

    is_default = threading.current_thread() is threading.main_thread() and (
        signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    )
    if is_default:
        signal.signal(signal.SIGTERM, interrupt)
    try:
        yield interrupt
    except RoutecastError:
        raise
    except Exception as error:  # numpy raises an ImportError, pydantic a SchemaError
        if was_interrupted:
            raise KeyboardInterrupt from error
        raise
    finally:
        if is_default:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _command(arguments: Sequence[str], begin: Callable[[], object]) -> int:
    if not arguments and "_ROUTECAST_COMPLETE" not in os.environ:  # completion has no arguments either
        from routecast.cli.questions import questions

        begin()
        print(questions(), flush=True)
        return 0
    from routecast.cli.thin import thin_command

    if command_line := thin_command(arguments):
        begin()
        command_line()
        sys.stdout.flush()
        return 0
    from typer.main import get_command

    from routecast.cli.app import app

    command = get_command(app)
    begin()
    try:
        command.main(args=list(arguments), prog_name="routecast")
    except SystemExit as leave:
        context: Any = leave.__context__
        if isinstance(context, BrokenPipeError):  # click exits with 1, the code of a failed criterion
            raise context from None
        code = leave.code if isinstance(leave.code, int) else 0
        if type(context).__name__ == "MissingParameter":  # click's class, or typer's copy of it
            from routecast.cli.questions import example_of

            if example := example_of(context.ctx.command_path):
                print(example, file=sys.stderr)
        if code == INTERRUPTED:
            print("routecast: interrupted", file=sys.stderr)
        return code
    return 0


def _message(error: RoutecastError, arguments: Sequence[str]) -> str:
    """Return the message of an error, with the right command if a file is of another kind."""
    if not isinstance(error, FileProblem):
        return str(error)
    from routecast.cli.file_kinds import wrong_kind_message

    return wrong_kind_message(error.subject, arguments) or f"{error}{_example_hint(error.subject)}"


def _example_hint(path: object) -> str:
    from routecast.cli.examples import example_hint

    return example_hint(str(path))


def _report(message: str, code: int, *, debug: bool) -> int:
    if debug:
        traceback.print_exc()
    sys.stdout.flush()
    print(f"routecast: {message}", file=sys.stderr)
    return code
