"""``routecast testbed``: put test beds up and down, list them and the devices, test the tester itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from routecast.cli.console import data, print_json, progress_bar, remark
from routecast.cli.options import AsJson, grouped
from routecast.lab.cli.bed_options import DeviceOptions

if TYPE_CHECKING:
    from routecast.lab.testbed.selftest import SelfTestCheck

__all__ = ["devices", "down", "list_beds", "selftest", "up"]

_SLEEP_S = 0.2

BedArgument = Annotated[
    str, typer.Argument(metavar="namespaces|FILE", help='"namespaces", or a *.testbed.toml.', show_default=False)
]


@grouped
def up(
    testbed: BedArgument,
    *,
    device: DeviceOptions,
    wait: Annotated[
        bool, typer.Option("--wait", help="Stay, and take it down on Ctrl-C; needed for devices that are XDP programs.")
    ] = False,
) -> None:
    """Set up a test bed with its device, and keep it up for work by hand."""
    from routecast.errors import EnvironmentProblem
    from routecast.lab.testbed import make_bed

    with make_bed(testbed, **device.bed(), on_remark=remark) as bed:
        if not wait and bed.has_programs():
            raise EnvironmentProblem(
                f"device {bed.device.name} has XDP programs, which end with the process that attached them: add --wait"
            )
        for port in bed.ports:
            place = f" in {port.netns}" if port.netns else ""
            data().print(f"{port.name}: {port.interface}{place}, {port.mac}, {port.ipv4}", markup=False)
        device_place = f" in {bed.site.netns}" if bed.site.netns else ""
        data().print(f"device: {bed.device.title}{device_place}", markup=False)
        if wait:
            import time

            remark("up; Ctrl-C takes it down")
            while True:  # short sleeps, because a signal just before a sleep is handled after it
                time.sleep(_SLEEP_S)
        bed.keep()
        remark(f"up; `routecast testbed down {bed.name}` takes it down")


def down(
    name: Annotated[str | None, typer.Argument(help="Name of the test bed.", show_default=False)] = None,
    *,
    everything: Annotated[bool, typer.Option("--all", help="All test beds that no process is using.")] = False,
) -> None:
    """Take a test bed down: one that was put up, or the remains of a killed run."""
    from routecast.errors import FileProblem, Problem
    from routecast.lab.testbed import state

    if (name is None) == (not everything):
        raise FileProblem("testbed down", [Problem("", "give the name of a test bed, or --all")])
    if name is not None:
        if name not in state.beds():
            names = ", ".join(state.beds()) or "none"
            raise FileProblem("testbed down", [Problem("", f"there is no test bed {name!r}; there are: {names}")])
        state.remove(name)
        remark(f"test bed {name!r} is down")
        return
    for removed in state.clean_dead(on_remark=remark, include_kept=True):
        remark(f"test bed {removed!r} is down")


def list_beds(*, as_json: AsJson = False) -> None:
    """List the test beds of this machine: in use, put up to stay, or left by a killed run."""
    from routecast.cli.console import print_table
    from routecast.lab.testbed import state
    from routecast.lab.testbed.views import beds_table

    beds = [state.describe_bed(name) for name in state.beds()]
    if as_json:
        print_json(beds)
        return
    if not beds:
        remark("no test beds")
        return
    print_table(data(), beds_table(beds))


def devices(*, as_json: AsJson = False) -> None:
    """List the devices under test, their options, and what is missing for them and for the tester on this machine."""
    from routecast.cli.console import print_table
    from routecast.lab.testbed.devices import DEVICES, device_entry, make_device
    from routecast.lab.testbed.tester import back_ends
    from routecast.lab.testbed.views import back_ends_table, devices_table

    entries = [make_device(name, {}) for name in DEVICES]
    if as_json:
        print_json([device_entry(device) for device in entries])
        return
    print_table(data(), devices_table(entries))
    print_table(data(), back_ends_table(back_ends()))


def selftest(
    *,
    testbed: Annotated[
        str, typer.Option("--testbed", metavar="namespaces|FILE", help="Whose cores and priority are used.")
    ] = "namespaces",
    as_json: AsJson = False,
) -> None:
    """Measure the tester without a device: highest rates, accuracy of the rate, latency floor, counting.

    Back ends that this machine lacks are left out, with the reason; if the tester cannot choose a back end itself, the
    command exits with 3.
    """
    from routecast.cli.console import print_table
    from routecast.errors import CriterionFailed, EnvironmentProblem, FileProblem, Problem
    from routecast.evaluate.plain import plain
    from routecast.lab.testbed.document import NamespacesFile
    from routecast.lab.testbed.reading import read_testbed
    from routecast.lab.testbed.selftest import self_test
    from routecast.lab.testbed.tester import notes_of
    from routecast.lab.testbed.views import selftest_tables

    file = read_testbed(testbed)
    if not isinstance(file, NamespacesFile):
        raise FileProblem(testbed, [Problem("kind", "a self-test needs no interfaces: use a test bed of namespaces")])
    with progress_bar("selftest") as progress:
        result = self_test(file, on_remark=remark, on_progress=progress)
    if as_json:
        print_json(plain(result))
    else:
        for table in selftest_tables(result):
            print_table(data(), table)
        for reason in dict.fromkeys(
            f"{check.back_end}, {check.where}: {check.reason}" for check in result.checks if check.reason
        ):
            remark(reason)
        for note in notes_of(result.facts.get("tester", {})):
            remark(note)
    reasons = [check.reason for check in result.checks if check.back_end == "auto" and check.trial is None]
    if reasons:
        raise EnvironmentProblem(f"the tester cannot test itself: {reasons[0]}")
    faults = [fault for check in result.checks for fault in _faults(check)]
    if faults:
        raise CriterionFailed(f"the tester fails its own test: {'; '.join(faults)}")


def _faults(check: SelfTestCheck) -> list[str]:
    trial = check.trial
    if trial is None:
        return []
    name = f"{check.back_end} {check.frame_bytes} B"
    counted = (trial.forwarded_frames or 0) + (trial.dropped_frames or 0)
    faults = (
        [f"{name}: {trial.offered_frames} sent are not {counted} counted"] if counted != trial.offered_frames else []
    )
    faults += [f"{name}: {reason}" for reason in trial.invalid if "(S12)" in reason or "kernel counted" in reason]
    if check.name == "rate" and not trial.is_valid:
        faults.append(f"{name}: {'; '.join(trial.invalid)}")
    return faults
