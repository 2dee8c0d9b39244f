"""``routecast watch``: how much headroom a router in service has left."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from routecast.cli.console import data, print_json, print_notes, remark, share_bar
from routecast.cli.options import AsJson
from routecast.errors import EnvironmentProblem

if TYPE_CHECKING:
    from routecast.lab.watch import Watched

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
    restore: Annotated[
        bool, typer.Option("--restore", help="Put back what a watch that was killed left, and do nothing else.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Look at a router in service: at which load will it saturate, and how much is that above the present one?

    Reads the kernel's own tracepoints; sends nothing, and changes nothing without --probe.
    """
    from routecast.lab.watch import answered, read_recording, write_recording
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
    if replay is not None:
        if interface is not None or probe or record is not None:
            raise typer.BadParameter(
                "answers from a file: give no interface, --probe or --record", param_hint="--replay"
            )
        recorded = answered(read_recording(replay))
        if as_json:
            print_json(recorded.to_json())
        else:
            _print(recorded)
        return
    if interface is None:
        raise typer.BadParameter(
            "name the interface where frames come in: routecast watch eth0", param_hint="INTERFACE"
        )

    def consent(wait_s: float) -> bool:
        remark(
            f"The probe lets packets of {interface} gather, at one queue after the other, for a second at most: each "
            f"then waits up to {format_duration(wait_s)}, half of that in the median. Nothing is sent, and the "
            "settings are put back."
        )
        if yes:
            return True
        if not sys.stdin.isatty():
            raise EnvironmentProblem("--probe asks before it delays packets, and nobody can answer here: give --yes")
        return typer.confirm("Go on?", err=True)

    with share_bar(f"looking at {interface}") as on_progress:
        watched = look_at(
            interface,
            netns=netns,
            duration_s=parse_duration_s(duration),
            probe=probe,
            ring_frames=ring,
            consent=consent,
            on_progress=on_progress,
            on_recording=None if record is None else lambda recording: write_recording(recording, record),
        )
    if as_json:
        print_json(watched.to_json())
    else:
        _print(watched)


def _print(watched: Watched) -> None:
    from routecast.quantity import format_duration, format_pps, format_ratio

    console, saturation = data(), watched.saturation

    def line(name: str, text: str) -> None:
        console.print(f"{name:<12} {text}", markup=False, highlight=False)

    is_threaded = any(instance.thread_pid for instance in watched.instances)
    poller = "a NAPI thread polls" if is_threaded else "softirqs poll"
    place = f"{watched.interface} of {watched.netns}" if watched.netns else watched.interface
    line("interface", f"{place}, {poller}")
    line("rate", f"{format_pps(watched.rate_pps)}, {watched.packets_per_poll:.3g} packets a poll")
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
    if not watched.is_restored:
        remark(f"the settings of {watched.interface} are not as before: routecast watch --restore")
    notes = list(watched.notes)
    if not saturation.reason and saturation.share_ratio < 0.98:
        notes.append(
            f"the poller had the core for {format_ratio(saturation.share_ratio)} of the time that it wanted it; with "
            f"all of the core it would carry {format_pps(saturation.whole_core_pps)}"
        )
    print_notes(console, notes)
