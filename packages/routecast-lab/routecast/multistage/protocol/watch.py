"""Who is alive: judged from what elements return, in rounds, so that a pause of this process is no silence of theirs.

Of every element it is known when it was last seen. Who cannot be seen because those who would see it are gone is "not
seen", which is another thing than dead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

__all__ = [
    "ANSWERS_TO_COME_BACK",
    "DEAD_ROUNDS",
    "PATH_CHANCE",
    "PATH_ROUNDS",
    "SILENT_ROUNDS",
    "BalancerView",
    "BalancerWatch",
    "MemberView",
    "MemberWatch",
]

SILENT_ROUNDS = 8
"""Rounds of own frames that a member leaves unanswered until it gets no flows."""
ANSWERS_TO_COME_BACK = 3
DEAD_ROUNDS = 5
"""Rounds without any sign of a load balancer until it is called dead."""
PATH_ROUNDS = 3
"""Least rounds in which a member returns nothing on a path on which others do, until it gets no flows."""
PATH_CHANCE = 1e-6
"""Greatest chance at which a member that loses as many frames on its other paths would have returned nothing on one.

A member in overload loses own frames on all paths, and lacks nothing.
"""


@dataclass(slots=True)
class MemberView:
    """What a load balancer has counted of a member.

    ``returned``: all frames, own ones included; ``sent``: neighbours' frames; ``is_dead``: the verdict of its program,
    with ``unanswered`` frames;
    ``paths``: returned own frames by path.
    """

    returned: int
    is_dead: bool = False
    unanswered: int = 0
    paths: tuple[int, ...] = ()
    sent: int = 0


@dataclass(slots=True)
class BalancerView:
    """What is seen of a load balancer: whether each of its links is up, its counts, and answers to its calls.

    ``down``: names of interfaces that are down; ``answers``: by interface, that to the members first.
    """

    members: Mapping[int, MemberView]
    answers: tuple[int, ...] = ()
    down: tuple[str, ...] = ()


@dataclass(slots=True)
class MemberWatch:
    """The signs of a member, and the verdicts on it.

    ``returned``: by load balancer; ``sent``: neighbours' frames to it, and when last; ``missed``: rounds without a
    sign; ``silences`` and ``returns``: verdicts of this process beside those of the programs, and their ends;
    ``lacks``: the paths on which it returns nothing while others do; ``differences``: audits in a row in which it could
    not be made as it should be.
    """

    returned: dict[str, int] = field(default_factory=dict)
    sent: int = 0
    sent_s: float = 0.0
    seen_s: float = 0.0
    missed: int = 0
    in_a_row: int = 0
    is_silent: bool = False
    is_dead: bool = False
    differences: int = 0
    silences: int = 0
    returns: int = 0
    path_counts: dict[str, tuple[int, ...]] = field(default_factory=dict)
    path_missed: list[int] = field(default_factory=list)
    path_others: list[tuple[int, int]] = field(default_factory=list)
    path_is_out: bool = False
    lacks: frozenset[int] = frozenset()

    def hear(self, views: Mapping[str, MemberView], now_s: float) -> bool:
        """Take in what the load balancers have counted; return whether anything came from it since the last round."""
        is_heard = False
        sent = sum(view.sent for view in views.values())
        if sent != self.sent:
            self.sent, self.sent_s = sent, now_s
        for balancer in [*self.returned]:
            if balancer not in views:  # what it counted before it is back is no sign of now
                del self.returned[balancer]
        for balancer, view in views.items():
            before = self.returned.get(balancer)
            if view.returned != before:
                self.returned[balancer] = view.returned
                # A count that fell is one that began anew, and nothing came before it is above 0.
                is_heard |= before is not None and view.returned > 0
        if is_heard:
            self.seen_s, self.missed = now_s, 0
            self.in_a_row += 1
        else:
            self.missed += 1
            self.in_a_row = 0
        return is_heard

    def judge_paths(self, came: Sequence[bool], others: Sequence[bool], is_tried: Sequence[bool]) -> frozenset[int]:
        """Return the paths that it lacks, after a round of own frames on all paths.

        ``came``: whether its frame came back, by path; ``others``: whether another member's did; ``is_tried``: whether
        the path has a destination.
        """
        if len(self.path_missed) != len(came):
            self.path_missed, self.path_others = [0] * len(came), [(0, 0)] * len(came)
        lacks = set()
        for path, is_back in enumerate(came):
            if is_back or not is_tried[path]:
                self.path_missed[path], self.path_others[path] = 0, (0, 0)
                continue
            if others[path]:
                self.path_missed[path] += 1
                back, sent = self.path_others[path]
                self.path_others[path] = (back + sum(came), sent + sum(is_tried) - 1)
            missed, (back, sent) = self.path_missed[path], self.path_others[path]
            # Laplace's rule of succession: the chance of a loss where none of so many was lost is not 0.
            if missed >= PATH_ROUNDS and ((sent - back + 1) / (sent + 2)) ** missed <= PATH_CHANCE:
                lacks.add(path)
        return frozenset(lacks)


@dataclass(slots=True)
class BalancerWatch:
    """The signs of a load balancer.

    ``sign_s``: the last sign of any kind, ``seen_s``: that of the last round that had one, ``missed``: rounds since;
    ``heard``: frames that members returned to it, by number, and when last; ``heard_answers``: answers to its calls;
    ``unanswered``: its calls without an answer, by interface, and ``answers`` when it ``called`` last; ``down``: its
    interfaces that are down.
    """

    sign_s: float = 0.0
    seen_s: float = 0.0
    missed: int = 0
    heard: dict[int, int] = field(default_factory=dict)
    heard_s: float = -1.0
    heard_answers: tuple[int, ...] = ()
    answers: tuple[int, ...] = ()
    unanswered: list[int] = field(default_factory=list)
    called: bool = False
    down: tuple[str, ...] = ()
    state: str = "new"
