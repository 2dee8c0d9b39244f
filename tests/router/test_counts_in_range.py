"""Counts of router files are bounded at their fields: one that no machine has is answered at once."""

from __future__ import annotations

import tracemalloc

import pytest

from routecast.errors import FileProblem
from routecast.router.files import parse_router

_SERVER = '[[server]]\nname = "host"\ncores = 4\n'
_TECHNOLOGY = 'technology = "kvm-vhost-2012"\n'
_TEXTS = {
    "virtual": f'builder = "virtual"\ninterfaces = 1\nports = 2\n{_TECHNOLOGY}{_SERVER}'
    '[[machine]]\nname = "vm"\nvcpus = 1\n',
    "parallel": f'builder = "parallel"\nmachines = 2\ninterfaces = 1\nports = 2\n{_TECHNOLOGY}{_SERVER}',
    "multistage": f'builder = "multistage"\nports_per_balancer = 1\ntechnology = "vmware-esxi-4.0"\n{_SERVER}'
    '[[balancer]]\nname = "lb"\n[[router]]\nname = "br"\nvcpus = 1\n',
    "multicore": 'builder = "multicore"\ncores = 4\nunits = 4\nports = 2\nservice = { per_packet = "1 us" }\n',
    "softirq": 'builder = "softirq"\ncores = 4\nports = 2\nper_packet = "1 us"\n',
    "explicit": '[[port]]\nname = "p"\nlink = "1 Gbit/s"\nentry = "t"\n[[pool]]\nname = "cpu"\nunits = 4\n[[task]]\n'
    'name = "t"\nparallel = 1\nroute = { to = ["p"] }\n',
}


@pytest.mark.parametrize("count", [-1, 0, 100_000_000, 99_999_999_999_999_999_999])
@pytest.mark.parametrize(
    ("kind", "key", "place", "most"),
    [
        ("virtual", "cores", "server[0].cores", 512),
        ("virtual", "vcpus", "machine[0].vcpus", 1024),
        ("virtual", "interfaces", "interfaces", 1024),
        ("virtual", "ports", "ports", 1024),
        ("parallel", "cores", "server[0].cores", 512),
        ("parallel", "machines", "machines", 4096),
        ("parallel", "ports", "ports", 1024),
        ("multistage", "cores", "server[0].cores", 512),
        ("multistage", "vcpus", "router[0].vcpus", 1024),
        ("multistage", "ports_per_balancer", "ports_per_balancer", 1024),
        ("multicore", "cores", "cores", 4096),
        ("multicore", "units", "units", 65536),
        ("multicore", "ports", "ports", 1024),
        ("softirq", "cores", "cores", 4096),
        ("softirq", "ports", "ports", 1024),
        ("explicit", "units", "pool[0].units", 65536),
        ("explicit", "parallel", "task[0].parallel", 65536),
    ],
)
def test_a_count_out_of_range_is_refused_at_its_place_with_the_range_and_takes_no_memory(
    kind: str, key: str, place: str, most: int, count: int
) -> None:
    lines = [f"{key} = {count}" if line.startswith(f"{key} =") else line for line in _TEXTS[kind].splitlines()]
    assert f"{key} = {count}" in lines
    tracemalloc.start()
    try:
        with pytest.raises(FileProblem) as refused:
            parse_router("\n".join(lines))
        most_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    problems = {problem.place: problem.message for problem in refused.value.problems}
    assert problems[place] == f"got {count}: allowed is 1 to {most}"
    assert most_bytes < 50_000_000


@pytest.mark.parametrize("kind", _TEXTS)
def test_the_files_themselves_are_read(kind: str) -> None:
    assert parse_router(_TEXTS[kind])[0].tasks


@pytest.mark.parametrize("count", [-7, 99_999_999_999_999_999_999])
@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('processor = { base = "ixp2850", engines = { count = N } }', "processor.engines.count"),
        ('processor = { base = "ixp2850", engines = { threads = N } }', "processor.engines.threads"),
        ('processor = { base = "ixp2850", engines = { registers = N } }', "processor.engines.registers"),
        ('processor = { base = "ixp2850", engines = { code_words = N } }', "processor.engines.code_words"),
        ('processor = { base = "ixp2850", ports = N }', "processor.ports"),
        ('processor = "ixp2850"\nblock = [{ name = "lookup", present = false, threads = N }]', "block[0].threads"),
        ('processor = "ixp2850"\nblock = [{ name = "lookup", engines = N }]', "block[0].engines"),
        ('processor = "ixp2850"\nblock = [{ name = "lookup", stub = true, registers = N }]', "block[0].registers"),
        ('processor = "ixp2850"\nblock = [{ name = "lookup", stub = true, code_words = N }]', "block[0].code_words"),
        ('processor = "agilio-cx"\norganisation = "parallel"\nthreads = N', "threads"),
    ],
)
def test_counts_of_a_network_processor_are_in_range_also_where_nothing_uses_them(
    text: str, place: str, count: int
) -> None:
    with pytest.raises(FileProblem) as refused:
        parse_router(f'builder = "network_processor"\n{text.replace("N", str(count))}\n')
    problems = {problem.place: problem.message for problem in refused.value.problems}
    assert problems[place].startswith(f"got {count}: allowed is ")
