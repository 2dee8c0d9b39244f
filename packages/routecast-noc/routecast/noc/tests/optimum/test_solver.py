"""HiGHS in a thread: Ctrl-C at the worst moments ends one solve and spoils no other."""

from __future__ import annotations

import time

import highspy
import numpy as np
import pytest

from routecast.noc.optimum import program as solver
from routecast.noc.optimum.program import run, silent_solver, solution


def small_program() -> highspy.Highs:
    """Maximise x + y with x + 2 y <= 4 and 3 x + y <= 6: 2.8 at (1.6, 1.2)."""
    model = silent_solver()
    model.addVars(2, np.zeros(2), np.full(2, 10.0))
    model.changeColsCost(2, np.arange(2, dtype=np.int32), np.full(2, -1.0))
    for upper, factors in ((4.0, (1.0, 2.0)), (6.0, (3.0, 1.0))):
        model.addRow(-highspy.kHighsInf, upper, 2, np.arange(2, dtype=np.int32), np.array(factors))
    return model


def long_program() -> highspy.Highs:
    """Return an assignment of many to many, which takes seconds."""
    count = 700
    model = silent_solver()
    costs = np.random.default_rng(1).random(count * count)
    model.addVars(count * count, np.zeros(count * count), np.ones(count * count))
    model.changeColsCost(count * count, np.arange(count * count, dtype=np.int32), costs)
    columns = np.arange(count * count, dtype=np.int32).reshape(count, count)
    for row in (*columns, *columns.T):
        model.addRow(1.0, 1.0, count, np.ascontiguousarray(row), np.ones(count))
    return model


def test_it_solves() -> None:
    model = small_program()
    assert run(model)
    assert list(solution(model).col_value) == pytest.approx([1.6, 1.2])


@pytest.mark.parametrize("moment", ["start", "has_ended"])
def test_ctrl_c_as_it_starts_or_ends_leaves_the_next_one_alone(moment: str, monkeypatch: pytest.MonkeyPatch) -> None:
    done = getattr(solver._Solving, moment)
    due: list[bool] = []

    def struck(*arguments: object) -> object:
        """Do it, and let Ctrl-C strike once before anybody knows that it is done."""
        while (result := done(*arguments)) is False:
            pass
        if due and due.pop():
            raise KeyboardInterrupt
        return result

    for _ in range(5):
        model = small_program()
        with monkeypatch.context() as patch:
            patch.setattr(solver._Solving, moment, struck)
            due.append(True)
            with pytest.raises(KeyboardInterrupt):
                run(model)
            assert run(model)
        assert list(solution(model).col_value) == pytest.approx([1.6, 1.2])


def test_two_searches_of_one_process_do_not_know_of_each_other() -> None:
    first, second = small_program(), small_program()
    item = solver._Solving(first)
    item.start()
    assert run(second)
    item.stop()
    assert list(solution(second).col_value) == pytest.approx([1.6, 1.2])


@pytest.mark.slow
def test_a_stopped_search_can_continue() -> None:
    model = long_program()
    assert not run(model, until=time.monotonic() + 0.05)
    assert run(model)
    # Each row and each column holds one (Birkhoff: the corners of this polytope are permutations).
    chosen = np.array(solution(model).col_value).reshape(700, 700)
    assert np.allclose(chosen.sum(axis=0), 1.0)
    assert np.allclose(np.sort(chosen, axis=1)[:, :-1], 0.0)
