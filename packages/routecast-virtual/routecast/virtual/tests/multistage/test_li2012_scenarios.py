"""Li's scenarios, in code and in the study that ships, map the same elements to the same servers and cores."""

from pathlib import Path

import pytest

import routecast
from routecast.replications.curves.document import CurveStudy
from routecast.replications.curves.simulate import document_of
from routecast.study.reading import read_study
from routecast.virtual.catalogue import technology
from routecast.virtual.tests.multistage.li2012_scenarios import figure_3_14, router_document, table_3_2

STUDY = Path(routecast.__file__).parent / "replications" / "data" / "studies" / "vmware_msr.study.toml"
ESXI = "vmware-esxi-4.0"
READ_TWO_WAYS = {"2L2R-1v1p"}
"""Fig. 3.12 alone shows whether a core has a balancer and a router, as in code, or two of a kind, as in the study."""


def elements(document):
    """Which server, by number, and which virtual cores each element has."""
    servers = [server["name"] for server in document["server"]]
    return {
        machine["name"]: (servers.index(machine["server"]), machine.get("vcpu_cores"))
        for machine in (*document["balancer"], *document["router"])
    }


def curves(figure_name):
    file = read_study(STUDY)
    assert isinstance(file.study, CurveStudy)
    figure = next(item for item in file.study.figure if item.name == figure_name)
    return {curve.name: document_of(file.study, curve, {}) for curve in figure.curve}


@pytest.mark.parametrize(("scenarios", "figure"), [(table_3_2, "fig_3_11_64"), (figure_3_14, "fig_3_14_64")])
def test_code_and_study_state_the_same_scenarios(scenarios, figure):
    ours, studied = scenarios(technology(ESXI)), curves(figure)
    assert set(ours) <= set(studied)
    for name, scenario in ours.items():
        document, other = router_document(scenario, ESXI), studied[name]
        own = elements(document)
        for machine, (server, cores) in elements(other).items():
            assert own[machine][0] == server, (name, machine)
            if name not in READ_TWO_WAYS:
                # The study leaves out an affinity that allows every core of the server.
                assert (cores or [[0, 1]]) == (own[machine][1] or [[0, 1]]), (name, machine)
        assert len(own) == len(elements(other)), name
        for key, usual in (("ports_per_balancer", 1), ("balancing", "round_robin")):
            assert document.get(key, usual) == other.get(key, usual), (name, key)
        assert document["interconnect"].get("links", 1) == other["interconnect"].get("links", 1), name
