"""Traffic matrices from files: their values, and the messages about wrong files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from routecast.errors import FileProblem
from routecast.noc.patterns import read_matrix

DEMAND = np.array([[0.0, 0.25, 0.0], [0.5, 0.0, 0.125], [0.0, 0.0, 0.0]])


def written(folder: Path, text: str) -> Path:
    path = folder / "traffic.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_square_pairs_and_an_array_give_the_same_matrix(tmp_path: Path) -> None:
    np.save(tmp_path / "traffic.npy", DEMAND)
    square = written(tmp_path, "0, 0.25, 0\n0.5, 0, 0.125\n0, 0, 0\n")
    np.testing.assert_array_equal(read_matrix(square, nodes=3), DEMAND)
    pairs = written(tmp_path, "source,target,load\n0,1,0.25\n1,0,0.5\n1,2,0.125\n")
    np.testing.assert_array_equal(read_matrix(pairs, nodes=3), DEMAND)
    np.testing.assert_array_equal(read_matrix(tmp_path / "traffic.npy", nodes=3), DEMAND)


def test_pairs_reach_as_far_as_the_highest_node_unless_the_topology_is_known(tmp_path: Path) -> None:
    pairs = written(tmp_path, "source,target,load\n0,1,0.25\n")
    assert read_matrix(pairs).shape == (2, 2)
    assert read_matrix(pairs, nodes=16).shape == (16, 16)


def test_a_byte_order_mark_is_ignored(tmp_path: Path) -> None:
    assert read_matrix(written(tmp_path, "\ufeff0,1\n1,0\n"), nodes=2).sum() == 2
    assert read_matrix(written(tmp_path, "\ufeffsource,target,load\n0,1,1\n"), nodes=2).sum() == 1


def test_rates_are_divided_by_the_rate_of_a_link(tmp_path: Path) -> None:
    pairs = written(tmp_path, "source,target,rate_bps\n0,1,2e9\n")
    assert read_matrix(pairs, link_rate_bps=8e9)[0, 1] == 0.25
    square = written(tmp_path, "0,2e9\n0,0\n")
    assert read_matrix(square, link_rate_bps=8e9)[0, 1] == 0.25


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is empty"),
        ("0,1\n2\n", "row 1: has 1 numbers and the file 2 rows"),
        ("0,1,2\n0,0,0\n", "row 0: has 3 numbers and the file 2 rows"),
        ("0,1,2\n" * 4, "row 0: has 3 numbers and the file 4 rows (as 3 more rows have another number)"),
        ("0,1e308\n1e308,0\n", 'row 0, column 1: got "1e308": give a finite number'),
        ("0,-1\n0,0\n", 'row 0, column 1: got "-1": give a finite number from 0'),
        ("0,nan\n0,0\n", 'row 0, column 1: got "nan"'),
        ("0,0\ninf,0\n", 'row 1, column 0: got "inf"'),
        ("0,x\n0,0\n", 'row 0, column 1: got "x"'),
        ("0,0.5\n0.5,0\n", "is 2 x 2 and the topology has 3 nodes"),
        ("source,target,load\n0,3,1\n", 'row 1, column target: got "3": nodes are numbered 0 to 2'),
        ("source,target,load\n-1,2,1\n", 'row 1, column source: got "-1"'),
        ("source,target,load\n0,1,1\n0,1,2\n", "row 2: 0 to 1 is already given above"),
        ("source,target,load\n0,1\n", "row 1: has 2 cells"),
        ("source,target,load\n0,1,-3\n", 'row 1, column load: got "-3"'),
        ("source,target,load\n", "names no pair of nodes"),
        ("source,target,loda\n0,1,1\n", 'did you mean "load"'),
        ("source,target,rate_bps\n0,1,1\n", "no link rate is given"),
    ],
)
def test_a_wrong_file_is_refused_with_its_place(tmp_path: Path, text: str, words: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(FileProblem) as refused:
        read_matrix(path, nodes=3)
    assert words in str(refused.value)
    assert str(refused.value).count("a matrix is square") <= 1
    assert str(path) in str(refused.value)


def test_all_faults_are_reported_at_once_up_to_a_limit(tmp_path: Path) -> None:
    path = written(tmp_path, "\n".join(",".join(["-1"] * 30) for _ in range(30)))
    with pytest.raises(FileProblem) as refused:
        read_matrix(path)
    assert len(refused.value.problems) == 21
    assert "and 880 more" in str(refused.value)


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.zeros((2, 3)), "shape (2, 3)"),
        (np.zeros(4), "shape (4,)"),
        (np.zeros((0, 0)), "is empty"),
        (np.array([[0, -1], [0, 0]]), 'row 0, column 1: got "-1.0"'),
        (np.array([[0, 1e300], [0, 0]]), 'row 0, column 1: got "1e+300"'),
        (np.array([["a", "b"], ["c", "d"]]), "give a square array of real numbers"),
    ],
)
def test_a_wrong_array_is_refused(tmp_path: Path, array: np.ndarray, words: str) -> None:
    np.save(tmp_path / "traffic.npy", array)
    with pytest.raises(FileProblem) as refused:
        read_matrix(tmp_path / "traffic.npy")
    assert words in str(refused.value)


def test_link_rates_and_loads_do_not_go_together(tmp_path: Path) -> None:
    path = written(tmp_path, "source,target,load\n0,1,0.5\n")
    with pytest.raises(FileProblem, match="name the column rate_bps"):
        read_matrix(path, link_rate_bps=1e9)
    with pytest.raises(FileProblem, match="a link carries more than 0"):
        read_matrix(path, link_rate_bps=0)
