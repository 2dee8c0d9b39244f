"""What a router of many machines costs when parts of it fail or change, beside what is predicted; in namespaces.

Frames of 64 B in 64 flows at 50 kpps go from host to host; the tester's sequence numbers say which of them are lost.
The time without its flows is what a back-end router's death lost, over the rate that was sent to it.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import statistics
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from xdp_live import attach, attached, frame_ns, redirect, sink

from routecast.errors import RoutecastError
from routecast.lab.testbed.netns import inside
from routecast.lab.testbed.tester import open_tester
from routecast.multistage.appliance import Appliance
from routecast.multistage.prediction import predicted_death

RATE_PPS = 50e3
PARTS = ["alone", "scaling", "deaths", "floods", "changes", "kills", "balancers", "quiet"]
CAP_PPS = 20e3
QUEUE_FRAMES = 256
FLOWS = 64
STALL_S = 2e-3
_UNANSWERED = 1000
_ROUNDS = 256
EXAMPLE = Path(__file__).parents[1] / "examples" / "demo.multistage.toml"


class Hosts:
    """The tester on both hosts of a router."""

    def __init__(self, router: Appliance) -> None:
        layout = router.layout
        ports = [
            {"name": name, "interface": "h0", "netns": f"/run/netns/{layout.netns(name)}"} for name in ("left", "right")
        ]
        self._tester = open_tester({"ports": ports, "send_cpu": 0})
        self._flow = {
            "source_mac": layout.host_mac(0),
            "destination_mac": layout.router_mac(0),
            "source_address": "198.18.1.2",
            "destination_address": "198.19.1.2",
            "destination_port": 7,
        }

    def send(self, duration_s: float, *, rate_pps: float = RATE_PPS, flows: int = FLOWS) -> dict[str, Any]:
        """Send from left to right; what became of it."""
        stream = {
            "port": 0,
            "to_port": 1,
            "rate_pps": rate_pps,
            "sizes": [{"bytes": 64}],
            "flows": [{**self._flow, "source_port": 1024 + number} for number in range(flows)],
        }
        request = {"duration_s": duration_s, "trial_id": 7, "wait_s": 0.1, "streams": [stream]}
        result: dict[str, Any] = json.loads(self._tester.trial(json.dumps(request)))["streams"][0]
        return result

    def close(self) -> None:
        """Let go of the interfaces."""
        self._tester.close()


@contextmanager
def up(text: str) -> Iterator[tuple[Appliance, Hosts]]:
    """A router and the tester at its hosts."""
    with Appliance(text.replace('"demo"', '"bench"')) as router:
        hosts = Hosts(router)
        try:
            yield router, hosts
        finally:
            hosts.close()


def counts(router: Appliance, what: str) -> dict[str, int]:
    """One counter of each back-end router."""
    return {item["name"]: int(item[what]) for item in router.status()["routers"]}


def states(router: Appliance) -> dict[str, str]:
    """State of each back-end router."""
    return {item["name"]: item["state"] for item in router.status()["routers"]}


def wait_for(is_so: Callable[[], bool]) -> None:
    """Wait until something is so, for half a minute at most."""
    deadline = time.monotonic() + 30.0
    while not is_so():
        if time.monotonic() > deadline:
            raise TimeoutError
        time.sleep(0.02)


@contextmanager
def spinning(count: int) -> Iterator[None]:
    """Keep the cores busy with processes that spin."""
    processes = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def during(hosts: Hosts, duration_s: float, after_s: float, change: Callable[[], object]) -> dict[str, Any]:
    """A trial in which something is done."""
    timer = threading.Timer(after_s, change)
    timer.start()
    result = hosts.send(duration_s)
    timer.join()
    return result


def fail(router: Appliance, names: list[str], kind: str) -> None:
    """Let some elements fail."""
    for name in names:
        router.fail(name, kind)


def scaling(text: str) -> None:
    """Throughput of one to eight back-end routers with a cap each, beside the sum of their caps."""
    print(f"\n{CAP_PPS / 1e3:g} kpps a router (emulated by XDP): forwarded, kpps")
    head, _, _ = text.partition("[[router]]")
    for count in (1, 2, 4, 8):
        routers = "".join(f'[[router]]\nname = "br{k}"\ncap = "{CAP_PPS:g} pps"\n' for k in range(count))
        # Two load balancers need a switch outside, which costs more than it shows here.
        item = head.replace('[[balancer]]\nname = "lb0"', '[[balancex]]\nname = "lb0"').split("[[balancer]]")[0]
        with up(item.replace("balancex", "balancer") + routers) as (_, hosts):
            trials = [hosts.send(1.0, rate_pps=1.2 * count * CAP_PPS, flows=512 * count) for _ in range(5)]
        total = count * CAP_PPS
        # A queue that is empty at the beginning takes its length once more than the cap.
        predicted = total + count * QUEUE_FRAMES / 1.0
        rates = [trial["received_frames"] / (trial["last_sent_s"] - trial["first_sent_s"]) for trial in trials]
        rate = statistics.median(rates)
        print(
            f"{count:2} routers: {rate / 1e3:7.2f} of {total / 1e3:g} ({rate / total:7.2%}), predicted "
            f"{predicted / 1e3:7.2f} ({rate / predicted - 1:+.2%})"
        )


def alone(text: str) -> None:
    """What a load balancer takes for a frame on one core, beside a program that only redirects."""
    print("\nload balancer alone on one core, XDP native on veth, 64 B, frames by the kernel (BPF_PROG_TEST_RUN, live)")
    head, _, _ = text.replace('[[balancer]]        # stands by\nname = "lb1"\n', "").partition("[[router]]")
    detector = f"[detector]\nunanswered = {_UNANSWERED}\n"
    with Appliance(f'{head}[[router]]\nname = "br0"\n{detector}'.replace('"demo"', '"bench"')) as router:
        layout = router.layout
        place = layout.netns("lb0")
        member, host, outer = (
            bytes.fromhex(mac.replace(":", ""))
            for mac in (layout.member_mac(0), layout.host_mac(0), layout.router_mac(0))
        )
        outward = [_frame(outer + host, "198.18.1.2", "198.19.1.2", 1024 + number) for number in range(FLOWS)]
        # What the back-end router returns: from its address to the host's, whose flows it has.
        inward = [_frame(host + member, "198.19.1.2", "198.18.1.2", 1024 + number) for number in range(FLOWS)]
        ways = (("outward", "e0", "i0", outward), ("inward", "i0", "e0", inward))
        sinks = [
            inside(layout.inside_switch, lambda: attach(sink(outer + host), "l0")),
            inside(layout.netns("left"), lambda: attach(sink(host + member), "h0")),
        ]
        indices = inside(place, lambda: {name: socket.if_nametoindex(name) for name in ("e0", "i0")})
        programs = {
            name: (inside(place, partial(attached, source)), redirect(indices[to])) for name, source, to, _ in ways
        }
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        for flows in (1, FLOWS):
            results: dict[tuple[str, int], list[float]] = {}
            for round_ in range(_ROUNDS):
                for which in (0, 1):
                    for name, source, _, frames in ways:
                        run = partial(
                            frame_ns, programs[name][which], source, frames[round_ % flows], _UNANSWERED - 2 * FLOWS
                        )
                        results.setdefault((name, which), []).append(inside(place, run))
            for name, *_ in ways:
                ours_ns, plain_ns = (statistics.median(results[name, which]) for which in (0, 1))
                print(
                    f"{flows:2} flow{'s' if flows > 1 else ' '} {name:7}: {ours_ns:4.0f} ns a frame, "
                    f"{1e3 / ours_ns:5.2f} Mpps; "
                    f"a plain redirect {plain_ns:4.0f} ns, {1e3 / plain_ns:5.2f} Mpps: {plain_ns / ours_ns:.1%} of it"
                )
        verdicts = sum(counts(router, "deaths").values())
        passed = counts(router, "sent_frames")["br0"], counts(router, "returned_frames")["br0"]
        print(f"{passed[0]:,} frames to the back-end router, {passed[1]:,} from it, {verdicts} verdicts")
        for number in sinks:
            os.close(number)


def _frame(macs: bytes, source: str, destination: str, port: int) -> bytes:
    packet = struct.pack("!BBHHHBBH", 0x45, 0, 46, 1, 0x4000, 64, socket.IPPROTO_UDP, 0)
    packet += socket.inet_aton(source) + socket.inet_aton(destination) + struct.pack("!HHHH", port, 7, 26, 0)
    return macs + b"\x08\x00" + packet + bytes(18)


def deaths(text: str, count: int, spinners: int) -> None:
    """Time without the flows of a router that dies, and what was predicted."""
    print(f"\ndeaths, {count} of each kind, {spinners} spinning processes")
    # One that dies again soon after stays away for longer each time: not here, where that would be most of the time.
    with up(text.replace("[detector]", '[detector]\nhold = "1 ms"')) as (router, hosts), spinning(spinners):
        detector = router.file.detector
        for kind, victims in (("link", ["br1"]), ("hang", ["br1"]), ("hang", ["br0", "br1"])):
            times_s, ratios, others, reordered, undetected, late, false = [], [], 0, 0, 0, 0, 0
            stalls, others_without_stall = 0, 0
            for _ in range(count):
                before = counts(router, "sent_frames")
                trial = hosts.send(0.2)
                after = counts(router, "sent_frames")
                sent = {name: after[name] - before[name] for name in after}
                rates = {name: RATE_PPS * sent[name] / max(trial["sent_frames"], 1) for name in sent}
                verdicts = counts(router, "deaths")
                balance = {name: a - b for name, a, b in _pairs(router)}
                result = during(hosts, 1.5 if spinners else 0.7, 0.2, partial(fail, router, victims, kind))
                if any(states(router)[name] != "dead" for name in victims):
                    # The command that takes a link down came to it late, or it was not seen.
                    hosts.send(0.5)
                    undetected += sum(states(router)[name] != "dead" for name in victims)
                    late += 1
                    for name in victims:
                        router.restore(name)
                    wait_for(lambda: set(states(router).values()) == {"active"})
                    continue
                lost = {name: a - b - balance[name] for name, a, b in _pairs(router)}
                reordered += result["reordered_frames"]
                false += sum(n - verdicts[name] for name, n in counts(router, "deaths").items() if name not in victims)
                of_others = result["lost_frames"] - sum(lost[name] for name in victims)
                others += of_others
                # The sender is late only where the machine itself stood still.
                stood_still = result["latest_s"] > STALL_S
                stalls += stood_still
                others_without_stall += 0 if stood_still else of_others
                for name in victims:
                    predicted = predicted_death(
                        rate_pps=rates[name], silence_s=detector.silence, unanswered_frames=detector.unanswered
                    )
                    times_s.append(lost[name] / rates[name])
                    ratios.append(lost[name] / predicted.lost_frames)
                    router.restore(name)
                wait_for(lambda: set(states(router).values()) == {"active"})
            times_s.sort()
            last = times_s[min(int(0.99 * len(times_s)), len(times_s) - 1)]
            print(
                f"{kind:5}{len(victims)} at once: without its flows {statistics.median(times_s) * 1e3:6.2f} ms median, "
                f"{last * 1e3:6.2f} p99, {times_s[-1] * 1e3:6.2f} most; "
                f"measured/predicted {statistics.median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f}); "
                f"of others lost {others}, outside the {stalls} trials with a frame that "
                f"left {STALL_S * 1e3:g} ms late or more {others_without_stall}; reordered {reordered}, "
                f"verdicts on others {false}, not found {undetected}, faults that came after their trial {late}"
            )


def _pairs(router: Appliance) -> Iterator[tuple[str, int, int]]:
    sent, returned = counts(router, "sent_frames"), counts(router, "returned_frames")
    for name in sent:
        yield name, sent[name], returned[name]


def changes(text: str, count: int) -> None:
    """Frames lost by planned changes under load."""
    kinds: dict[str, list[dict[str, Any]]] = {}
    with up(text) as (router, hosts):
        steps: tuple[tuple[str, Callable[[], object]], ...] = (
            ("add", lambda: router.add("br3")),  # 0.6 s, most of it before br3 takes any flow
            ("weight", lambda: router.set_weight("br3", 2.0)),
            ("drain", lambda: router.drain("br3", idle_s=0.05, deadline_s=0.1)),
            ("remove", lambda: router.remove("br3")),
        )
        for _ in range(-(-count // len(steps))):
            for name, step in steps:
                duration_s = 0.9 if name == "add" else 0.5
                kinds.setdefault(name, []).append(during(hosts, duration_s, 0.05, step))
        print(f"\nplanned changes under load, {sum(map(len, kinds.values()))}")
    for name, trials in kinds.items():
        print(f"{name:8}{_losses(trials)}")


def _losses(trials: Sequence[dict[str, Any]]) -> str:
    """What trials lost, in all and where the machine did not stand still."""
    lost = [trial["lost_frames"] for trial in trials]
    calm = [item["lost_frames"] for item in trials if item["latest_s"] <= STALL_S]
    return (
        f"{len(lost):5}: {sum(lost)} frames lost, {sum(map(bool, lost))} with a loss; outside the "
        f"{len(lost) - len(calm)} trials with a frame that left {STALL_S * 1e3:g} ms late or more {sum(calm)}"
    )


def restarts(text: str, count: int) -> None:
    """Frames lost while the process that holds the router is ended and another one takes it over."""
    text = text.replace('"demo"', '"bench"')
    router = Appliance(text)
    router.__enter__()
    hosts = Hosts(router)
    trials = []
    try:
        for _ in range(count):

            def again() -> None:
                nonlocal router
                router.leave()
                router = Appliance(text)
                router.__enter__()

            trials.append(during(hosts, 0.8, 0.1, again))
    finally:
        hosts.close()
        router.end()
    print(f"restart {_losses(trials)}")


_CHANGING = """
import sys
from routecast.errors import RoutecastError
from routecast.multistage.appliance import Appliance
router = Appliance(sys.argv[1])
router.__enter__()
if any(one["name"] == "extra" for one in router.status()["routers"]):
    router.remove("extra")
print("up", flush=True)
while True:
    router.add("extra")
    router.set_weight("br0", 2.0)
    router.remove("extra")
    router.set_weight("br0", 1.0)
"""


def kills(text: str, count: int) -> None:
    """What is found after the process that holds a router is killed while it changes it, at random moments."""
    text = text.replace('"demo"', '"bench"')
    random = Random(1)
    problems, lost, broken = 0, [], 0
    for _ in range(count):
        process = subprocess.Popen([sys.executable, "-c", _CHANGING, text], stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(random.uniform(0.0, 0.5))
        process.kill()
        process.communicate()
        try:
            with Appliance(text) as router:
                problems += len(router.audit()["problems"])
                hosts = Hosts(router)
                lost.append(hosts.send(0.1)["lost_frames"])
                hosts.close()
                router.leave()
        except RoutecastError as problem:
            broken += 1
            print(problem)
    Appliance(text).__enter__().end()
    print(
        f"\n{count} kills during changes: {broken} not taken over, {problems} problems found by the audit, "
        f"{sum(lost)} frames lost afterwards"
    )


def balancers(text: str, count: int) -> None:
    """Time without any flow when the load balancer that works dies and the other takes over."""
    print(f"\ndeaths of the load balancer that works, {count} of each kind")
    with up(text) as (router, hosts):
        for kind in ("link", "hang"):
            times_s = []
            for _ in range(count):
                (active,) = (item["name"] for item in router.status()["balancers"] if item["state"] == "active")
                result = during(hosts, 2.0, 0.2, partial(fail, router, [active], kind))
                times_s.append(result["lost_frames"] / RATE_PPS)
                router.restore(active)
                time.sleep(1.0)
            times_s.sort()
            print(f"{kind:5}: {statistics.median(times_s):.3f} s median, {times_s[-1]:.3f} s most")


def floods(text: str, duration_s: float) -> None:
    """Verdicts while one flow floods a back-end router with what it rightly drops, beside other traffic."""
    print(f"\nfloods through one back-end router, {duration_s:g} s each")
    kinds = {"TTL 1": ("198.19.1.2", 40, 1), "no route": ("203.0.113.9", 40, 64), "too long": ("198.19.1.2", 1450, 64)}
    for name, (to, octets, ttl) in kinds.items():
        with up(text) as (router, hosts):
            place = router.layout.netns("left")
            work = partial(_flood, to, octets, ttl, duration_s)
            with ThreadPoolExecutor(1) as pool:
                flood = pool.submit(inside, place, work)
                while not flood.done():
                    hosts.send(1.0)
            verdicts = sum(counts(router, "deaths").values())
        print(f"{name:9}: {flood.result() / duration_s / 1e3:.1f} kpps, {verdicts} verdicts")


def _flood(to: str, octets: int, ttl: int, duration_s: float) -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW) as handle:
        addresses = socket.inet_aton("198.18.1.2"), socket.inet_aton(to)
        header = struct.pack("!BBHHHBBH4s4s", 0x45, 0, octets, 1, 0x4000, ttl, socket.IPPROTO_UDP, 0, *addresses)
        packet = header + struct.pack("!HHHH", 5000, 9, octets - 20, 0) + bytes(octets - 28)
        sent = 0
        end = time.monotonic() + duration_s
        while time.monotonic() < end:
            handle.sendto(packet, (to, 0))
            sent += 1
        return sent


def quiet(text: str, duration_s: float, spinners: int) -> None:
    """Verdicts while nothing fails."""
    with up(text) as (router, hosts), spinning(spinners):
        end = time.monotonic() + duration_s
        (first,) = (item["name"] for item in router.status()["balancers"] if item["state"] == "active")
        takeovers = 0
        while time.monotonic() < end:
            hosts.send(5.0)
            (now,) = (entry["name"] for entry in router.status()["balancers"] if entry["state"] == "active")
            takeovers, first = takeovers + (now != first), now
        false = sum(counts(router, "deaths").values())
    load = os.getloadavg()[0]
    print(f"\n{duration_s:g} s without a fault, load average {load:.1f}: {false} verdicts, {takeovers} takeovers")


def main() -> int:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--deaths", type=int, default=20, metavar="N", help="of each kind")
    parser.add_argument("--floods", type=float, default=10.0, metavar="S", help="each of three")
    parser.add_argument("--changes", type=int, default=40, metavar="N")
    parser.add_argument("--kills", type=int, default=10, metavar="N")
    parser.add_argument("--balancers", type=int, default=5, metavar="N", help="of each kind")
    parser.add_argument("--quiet", type=float, default=60.0, metavar="S", help="time without a fault")
    parser.add_argument("--spinners", type=int, default=6, metavar="N", help="spinning processes")
    parser.add_argument("--only", choices=PARTS, action="append")
    given = parser.parse_args()
    text = EXAMPLE.read_text(encoding="utf-8")
    wanted = given.only or PARTS
    if "alone" in wanted:
        alone(text)
    if "scaling" in wanted:
        scaling(text)
    if "deaths" in wanted:
        deaths(text, given.deaths, 0)
        deaths(text, given.deaths, given.spinners)
    if "floods" in wanted:
        floods(text, given.floods)
    if "changes" in wanted:
        changes(text, given.changes)
        restarts(text, -(-given.changes // 4))
    if "kills" in wanted:
        kills(text, given.kills)
    if "balancers" in wanted:
        balancers(text, given.balancers)
    if "quiet" in wanted:
        quiet(text, given.quiet, given.spinners)
    return 0


if __name__ == "__main__":
    sys.exit(main())
