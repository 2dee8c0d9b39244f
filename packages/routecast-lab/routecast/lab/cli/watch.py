"""``routecast watch``: how much headroom a router in service has left."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from routecast.cli.console import check_output_file, data, print_json, print_notes, remark, share_bar
from routecast.cli.copies import copy_files, print_copies
from routecast.cli.options import AsJson
from routecast.errors import CriterionFailed, EnvironmentProblem, QuantityProblem

if TYPE_CHECKING:
    from routecast.lab.watch import LookRound, Rounds, Watched

__all__ = ["watch"]


def watch(
    interface: Annotated[str | None, typer.Argument(metavar="INTERFACE", help="Where frames come in.")] = None,
    *,
    netns: Annotated[
        str | None, typer.Option("--netns", metavar="NAME", help="Network namespace of the interface.")
    ] = None,
    duration: Annotated[str, typer.Option("--for", metavar="TIME", help="Time of the look.")] = "3 s",
    probe: Annotated[
        bool,
        typer.Option(
            "--probe",
            help="Let packets gather for a second, so that full polls are seen at any load; each waits up to 5 ms.",
        ),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="--probe: do not ask.")] = False,
    ring: Annotated[
        int | None,
        typer.Option("--ring", metavar="FRAMES", min=1, help="--probe: receive ring, where ethtool knows it not."),
    ] = None,
    record: Annotated[
        Path | None,
        typer.Option("--record", metavar="FILE", help="Also write what was seen, for --replay.", dir_okay=False),
    ] = None,
    replay: Annotated[
        Path | None,
        typer.Option(
            "--replay", metavar="FILE", help="Answer from a recorded look instead of a router.", dir_okay=False
        ),
    ] = None,
    save_router: Annotated[
        Path | None,
        typer.Option(
            "--save-router", metavar="FILE.toml", help="Write it as a router file, for solve, simulate and others."
        ),
    ] = None,
    save_points: Annotated[
        Path | None,
        typer.Option("--save-points", metavar="FILE.csv", help="Write it as a table of points, for size and others."),
    ] = None,
    restore: Annotated[
        bool, typer.Option("--restore", help="Put back what a watch that was killed left, and do nothing else.")
    ] = False,
    every: Annotated[
        str | None, typer.Option("--every", metavar="TIME", help="Look again and again, until Ctrl-C.")
    ] = None,
    count: Annotated[
        int | None, typer.Option("--count", metavar="N", min=1, help="--every: end after so many looks.")
    ] = None,
    alarm: Annotated[
        list[str] | None,
        typer.Option(
            "--alarm", metavar="CONDITION", help='Leave with 1 if it holds: "headroom < 20 %"; may be repeated.'
        ),
    ] = None,
    state: Annotated[
        Path | None,
        typer.Option("--state", metavar="FILE.json", help="Keep what is learnt of the day there.", dir_okay=False),
    ] = None,
    profile: Annotated[
        str | None,
        typer.Option("--profile", metavar="SERIES", help="Daily peak before a day was seen: geant, abilene, a file."),
    ] = None,
    growth: Annotated[
        str | None, typer.Option("--growth", metavar="GROWTH", help='Say when the daily peak is too high: "30 %/year".')
    ] = None,
    prometheus: Annotated[
        str | None,
        typer.Option("--prometheus", metavar="PORT", help="--every: serve /metrics on [ADDRESS:]PORT of 127.0.0.1."),
    ] = None,
    write_unit: Annotated[
        Path | None,
        typer.Option(
            "--write-unit", metavar="FOLDER", help="Write a unit of systemd and a dashboard of Grafana, and end."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Look at a router in service: at which load will it saturate, and how much is that above the present one?

    Reads the kernel's own tracepoints; sends nothing, and changes nothing without --probe.
    """
    from routecast.lab.watch import (
        Alarm,
        Growth,
        Rounds,
        answered,
        machine_identity,
        parse_endpoint,
        points_table,
        read_memory,
        read_profile,
        read_recording,
        repeated,
        router_text,
        write_recording,
    )
    from routecast.lab.watch import restore as put_back
    from routecast.lab.watch import watch as look_at
    from routecast.quantity import format_duration, parse_duration_s

    if restore:
        restored = put_back()
        if as_json:
            print_json({"restored": list(restored)})
        else:
            data().print(f"put back: {', '.join(restored)}" if restored else "nothing was left", markup=False)
        return
    if write_unit is not None:
        _write_unit(write_unit, as_json=as_json)
        return
    replayed = None
    if replay is not None:
        if interface is not None or probe or record is not None or every is not None:
            problem = "answers from a file: give no interface, --probe, --record or --every"
            raise typer.BadParameter(problem, param_hint="--replay")
        replayed = read_recording(replay)
        interface, netns = replayed.interface, replayed.netns
    if interface is None:
        raise typer.BadParameter(
            "name the interface where frames come in: routecast watch eth0", param_hint="INTERFACE"
        )
    duration_s = parse_duration_s(duration)
    every_s = None if every is None else parse_duration_s(every)
    for option, given in (("--count", count), ("--prometheus", prometheus)):
        if every_s is None and given is not None:
            raise QuantityProblem("", f'{option} is for looks that go on: give --every, such as --every "60 s"')
    if every_s is not None and every_s < duration_s:
        raise QuantityProblem(
            every or "",
            f"--every {every} is shorter than a look, {format_duration(duration_s)}: give more, or less --for",
        )
    if prometheus is not None:
        parse_endpoint(prometheus)
    check_output_file(state, "--state", ".json")
    for path, option in ((record, "--record"), (save_router, "--save-router"), (save_points, "--save-points")):
        check_output_file(path, option)
    if every_s is not None and (record or save_router or save_points):
        raise QuantityProblem("", "--record, --save-router and --save-points are of a single look: leave out --every")
    alarms = [Alarm.parse(text) for text in alarm or ()]
    growing = None if growth is None else Growth.parse(growth)
    of_profile = None if profile is None else read_profile(profile)
    identity = machine_identity()
    memory = read_memory(state, interface, netns, identity=identity, profile=of_profile)
    for note in memory.notes:
        remark(note)
    rounds = Rounds(memory, alarms=alarms, growth=growing, state=state)
    answers: list[bool] = []

    def consent(wait_s: float) -> bool:
        if not answers:
            answers.append(_is_agreed(interface, wait_s, yes=yes))
        return answers[0]

    def look(on_progress: Callable[[float], object] | None = None) -> Watched:
        if replayed is not None:
            return answered(replayed)
        return look_at(
            interface,
            netns=netns,
            duration_s=duration_s,
            probe=probe,
            ring_frames=ring,
            consent=consent,
            on_progress=on_progress,
            on_recording=None if record is None else lambda recording: write_recording(recording, record),
        )

    if every_s is not None:
        _go_on(look, rounds, every_s=every_s, count=count, prometheus=prometheus, as_json=as_json)
        return
    with share_bar(f"looking at {interface}") as on_progress:
        (seen,) = repeated(lambda: look(on_progress), rounds, every_s=duration_s, count=1)
    assert seen.watched is not None
    for path, text in (
        (save_router, lambda of: router_text(of, today=datetime.now(tz=UTC).date())),
        (save_points, points_table),
    ):
        if path is not None:
            path.write_text(text(seen.watched), encoding="utf-8")
            remark(f"wrote {path}")
    has_further = any(option is not None for option in (alarm, state, profile, growth))
    if as_json:
        print_json(seen.to_json() if has_further else seen.watched.to_json())
    else:
        _print(seen, has_further=has_further)
    _fail_if_firing(rounds, seen)


def _is_agreed(interface: str, wait_s: float, *, yes: bool) -> bool:
    from routecast.quantity import format_duration

    remark(
        f"The probe lets packets of {interface} gather, at one queue after the other, for a second at most: each then "
        f"waits up to {format_duration(wait_s)}, half of that in the median. Nothing is sent, and the settings are put "
        "back."
    )
    if yes:
        return True
    if not sys.stdin.isatty():
        raise EnvironmentProblem("--probe asks before it delays packets, and nobody can answer here: give --yes")
    return typer.confirm("Go on?", err=True)


def _go_on(
    look: Callable[[], Watched],
    rounds: Rounds,
    *,
    every_s: float,
    count: int | None,
    prometheus: str | None,
    as_json: bool,
) -> None:
    """Look until Ctrl-C, which is no failure, and print a line of each look."""
    from routecast.lab.watch import LatestRound, repeated, serve

    last: LookRound | None = None
    with ExitStack() as stack:
        latest = LatestRound(rounds)
        if prometheus is not None:
            server = serve(prometheus, latest)
            stack.callback(server.close)
            remark(f"metrics on port {server.port}, at /metrics")
        try:
            for last in repeated(look, rounds, every_s=every_s, count=count):
                latest.update(last)
                _print_line(last, as_json=as_json)
        except KeyboardInterrupt:
            sys.stdout.flush()
    if as_json:
        remark(rounds.summary())
    else:
        print(rounds.summary(), flush=True)
    _fail_if_firing(rounds, last)


def _print_line(seen: LookRound, *, as_json: bool) -> None:
    if as_json:
        print(json.dumps(seen.to_json(), ensure_ascii=False, allow_nan=False), flush=True)
        return
    print(seen.describe(), flush=True)
    for now in seen.alarms:
        if now.has_changed:
            print(f"{seen.at:%Y-%m-%d %H:%M:%S}  {now}", flush=True)
    for warning in seen.warnings:
        remark(warning)


def _fail_if_firing(rounds: Rounds, last: LookRound | None) -> None:
    if last is not None and rounds.firing:
        texts = {now.alarm: now.verdict.text for now in last.alarms}
        raise CriterionFailed(
            "; ".join(f"alarm: {alarm}{f': {texts[alarm]}' if alarm in texts else ''}" for alarm in rounds.firing)
        )


def _write_unit(folder: Path, *, as_json: bool) -> None:
    """Write the files for systemd and Grafana, with the path of this program."""
    import routecast.lab

    shipped = Path(str(routecast.lab.__file__)).parent / "data" / "watch"
    program = shutil.which(sys.argv[0]) or shutil.which("routecast") or _SHIPPED_PROGRAM
    texts = {
        path.name: path.read_text(encoding="utf-8").replace(_SHIPPED_PROGRAM, str(Path(program).absolute()))
        for path in sorted(shipped.iterdir())
    }
    print_copies(
        *copy_files(texts, folder, force=False, original="what ships", elsewhere="--write-unit"), as_json=as_json
    )


_SHIPPED_PROGRAM = "/usr/local/bin/routecast"
_STATES = {"fires": "fires", "fine": "does not fire", "not known": "is not known"}


def _print(seen: LookRound, *, has_further: bool) -> None:
    from routecast.quantity import format_duration, format_pps, format_ratio

    assert seen.watched is not None
    watched = seen.watched
    console, saturation = data(), watched.saturation

    def line(name: str, text: str) -> None:
        console.print(f"{name:<12} {text}", markup=False, highlight=False)

    is_threaded = any(instance.thread_pid for instance in watched.instances)
    poller = "a NAPI thread polls" if is_threaded else "softirqs poll"
    place = f"{watched.interface} of {watched.netns}" if watched.netns else watched.interface
    line("interface", f"{place}, {poller}")
    batches = f", {watched.packets_per_poll:.3g} packets a poll" if watched.rate_pps else ""
    line("rate", f"{format_pps(watched.rate_pps)}{batches}")
    line(
        "busy",
        f"{format_ratio(watched.busy_ratio)} of a core; the watch itself {format_ratio(watched.own_ratio, 2)} of that",
    )
    if saturation.reason:
        line("saturates", f"not known: {saturation.reason}")
    else:
        line(
            "saturates",
            f"at {format_pps(saturation.pps)} (95 %: {' to '.join(map(format_pps, saturation.interval_pps))})",
        )
        if len(watched.cores) > 1:
            line("limits", f"{watched.limits} first")
        line("headroom", f"{format_ratio(watched.headroom_ratio)}, {format_pps(saturation.pps - watched.rate_pps)}")
        how = "while packets gathered" if saturation.source == "probe" else "as they came"
        line(
            "seen", f"{saturation.polls} full polls among full ones, {how}; {format_duration(saturation.cycle_s)} each"
        )
    if len(watched.cores) > 1:
        for core in watched.cores:
            alone = core.saturation
            carries = "not known alone" if alone.reason else f"saturates at {format_pps(alone.pps)}"
            line("", f"{core.name}: {format_pps(core.rate_pps)}, busy {format_ratio(core.busy_ratio)}, {carries}")
    lost = ", ".join(f"{count} at the {place}" for place, count in watched.lost.items())
    line("lost", lost or "nothing in the meantime")
    if has_further:
        for name, text in seen.learnt_lines():
            line(name, text)
        for now in seen.alarms:
            line("alarm", f"{now.alarm} {_STATES[now.verdict.state]}: {now.verdict.text}")
        for warning in seen.warnings:
            remark(warning)
    if not watched.is_restored:
        remark(f"the settings of {watched.interface} are not as before: routecast watch --restore")
    notes = list(watched.notes)
    if not saturation.reason and saturation.share_ratio < 0.98:
        notes.append(
            f"the poller had the core for {format_ratio(saturation.share_ratio)} of the time that it wanted it; with "
            f"all of the core it would carry {format_pps(saturation.whole_core_pps)}"
        )
    print_notes(console, notes)
