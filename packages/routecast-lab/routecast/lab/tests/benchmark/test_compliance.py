"""The compliance statement follows from the profile's values; profiles are read strictly; time is planned."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from benchmark_fakes import profile_with

from routecast.errors import FileProblem, ModelProblem
from routecast.lab.benchmark import (
    PROCEDURES,
    ModelRig,
    Profile,
    plan_of,
    read_profile,
    run_benchmark,
    shipped_profiles,
)
from routecast.lab.benchmark._compliance import CONDITIONS, compliance_of, hashes_left_out, modifiers_left_out
from routecast.lab.benchmark.plan import Clock, expected
from routecast.lab.benchmark.procedures.throughput import search_statements
from routecast.lab.benchmark.streams import Stream, StreamProfile, stream_of
from routecast.lab.benchmark.values import Compliance
from routecast.quantity.catalogue import shipped_files
from routecast.router import ServiceCost, multicore

ROUTER = multicore(1, ServiceCost(per_packet_s=1e-6), link_bps=1e9)


def judged(profile: Profile, *, ran: frozenset[str] = CONDITIONS) -> Compliance:
    """Judge a profile as if all conditions had been run, so that its values alone decide."""
    plan = plan_of(profile)
    return compliance_of(
        profile,
        procedures=plan.procedures,
        frame_bytes=plan.frame_bytes,
        streams=plan.streams,
        evaluator="measure",
        ran=ran,
    )


def sections(compliance: Compliance) -> set[str]:
    return {f"{deviation.document} {deviation.section} {deviation.requirement}" for deviation in compliance.deviations}


def test_the_values_of_the_profile_rfc2544_satisfy_every_must_and_should() -> None:
    result = judged(read_profile("rfc2544"))
    assert result.deviations == ()
    assert result.level == "unconditional"
    assert "Unconditionally compliant" in result.statement


def test_no_run_without_routing_updates_and_conditions_is_called_compliant() -> None:
    result = judged(read_profile("rfc2544"), ran=frozenset())
    assert [f"{deviation.section} {deviation.requirement}" for deviation in result.deviations] == ["13 MUST"]
    assert result.level == "not compliant"
    assert result.statement.startswith("NOT compliant with RFC 2544: 1 MUST and 0 SHOULD is not satisfied.")


@pytest.mark.parametrize("section", sorted(CONDITIONS))
def test_each_condition_that_did_not_run_is_one_deviation(section: str) -> None:
    profile = read_profile("rfc2544")
    profile = replace(
        profile,
        stream=tuple(
            item for item in profile.stream if not (item.broadcast or item.management or item.routing_updates)
        ),
    )
    result = judged(profile, ran=CONDITIONS - {section})
    assert [deviation.section for deviation in result.deviations] == [section]
    assert result.level == ("not compliant" if section == "13" else "conditional")


def test_a_run_claims_no_condition_that_it_leaves_out() -> None:
    result = run_benchmark(
        plan_of(read_profile("quick"), procedures=["throughput"]), ModelRig(model=ROUTER, with_="solve")
    )
    missing = {deviation.section for deviation in result.compliance.deviations} & CONDITIONS
    assert missing == CONDITIONS
    left_out = {entry.section for entry in result.not_run}
    assert {f"RFC 2544 sec. {section}" for section in CONDITIONS - {"13"}} <= left_out


def test_a_stream_with_broadcast_frames_is_the_condition_of_sec_11_1() -> None:
    (stream,) = (stream_of(profile) for profile in read_profile("rfc2544").stream if profile.broadcast)
    assert stream.name == "IPv4, 1 % broadcast frames"
    left_out = {entry.section for entry in modifiers_left_out([stream])}
    assert "RFC 2544 sec. 11.1" not in left_out
    assert "RFC 2544 sec. 11.1" in {item.section for item in modifiers_left_out([])}
    refused = ModelRig(model=ROUTER, with_="simulate").refuses(stream)
    assert "(1 % broadcast frames): run it on a test bed" in refused


def test_a_stream_with_management_queries_is_the_condition_of_sec_11_2() -> None:
    (stream,) = (stream_of(item) for item in read_profile("rfc2544").stream if item.management)
    assert stream.name == "IPv4, a management query each second"
    assert "RFC 2544 sec. 11.2" not in {entry.section for entry in modifiers_left_out([stream])}


def test_all_streams_of_the_profile_rfc2544_and_routing_updates_are_unconditional() -> None:
    result = judged(read_profile("rfc2544"), ran=frozenset({"13"}))
    assert (result.level, result.deviations) == ("unconditional", ())


def test_a_run_of_single_flows_says_what_rfc_4814_wants_besides() -> None:
    single, many = Stream(name="one"), Stream(name="many", networks=256)
    ports, macs = "RFC 4814 sec. 4.5", "RFC 4814 sec. 4.2"
    assert [entry.section for entry in hashes_left_out([single], 1)] == [ports, macs]
    assert [entry.section for entry in hashes_left_out([single], 100)] == [macs]
    assert [entry.section for entry in hashes_left_out([single, many], 1)] == [macs]


def test_a_stream_with_routing_updates_is_the_condition_of_sec_11_3() -> None:
    (stream,) = (stream_of(item) for item in read_profile("rfc2544").stream if item.routing_updates)
    assert stream.name == "IPv4, a routing update each second"
    assert "RFC 2544 sec. 11.3" not in {entry.section for entry in modifiers_left_out([stream])}


def test_a_wait_of_a_device_that_gets_no_routing_update_is_that_of_the_learning_frames_alone() -> None:
    result = judged(profile_with("rfc2544", trial={"before": 0.0}), ran=CONDITIONS - {"13"})
    assert [deviation.section for deviation in result.deviations] == ["13", "23 b"]


def test_broadcast_frames_and_filters_are_two_streams() -> None:
    with pytest.raises(ValueError, match="25 filters and 1 % broadcast frames are separate conditions"):
        StreamProfile(broadcast=True, filters=25)


def test_the_profile_quick_says_in_what_it_does_not_comply() -> None:
    result = judged(read_profile("quick"))
    assert result.level == "not compliant"
    assert result.statement.startswith("NOT compliant")
    # Short trials, cut pauses, few repetitions, verified losses.
    wanted = {
        "RFC 2544 9 SHOULD",
        "RFC 2544 24 SHOULD",
        "RFC 2544 23 d SHOULD",
        "RFC 2544 23 e SHOULD",
        "RFC 2544 26.1 MUST",
        "RFC 2544 26.2 MUST",
        "RFC 2544 26.4 MUST",
        "RFC 2544 26.5 MUST",
        "RFC 6201 4 MUST",
    }
    assert wanted <= sections(result)
    short = next(deviation for deviation in result.deviations if deviation.section == "24")
    assert short.done.startswith("200 ms")


def test_goals_that_trials_may_exceed_are_not_rfc_1242s_throughput() -> None:
    result = judged(read_profile("ndrpdr"))
    assert "RFC 2544 26.1 MUST" in sections(result)
    statements = " ".join(search_statements(read_profile("ndrpdr"), plan_of(read_profile("ndrpdr")).streams))
    # RFC 9971: the goals of FD.io CSIT, the conversion between ports, the width, the phases.
    for text in ("exceed ratio 0.5", "duration sum 21 s", "twice the load of a port", "Goal width", "sec. 23"):
        assert text in statements


@pytest.mark.parametrize(
    ("table", "values", "section"),
    [
        ("trial", {"settle": 4.9}, "RFC 2544 23 e SHOULD"),
        ("trial", {"residual": 1.0}, "RFC 2544 23 d SHOULD"),
        ("trial", {"before": 0.0}, "RFC 2544 23 a and b SHOULD"),
        ("throughput", {"verify_losses": 1}, "RFC 2544 26.1 MUST"),
        ("throughput", {"slice": 0.6}, "RFC 2544 24 SHOULD"),
        ("latency", {"repeats": 19}, "RFC 2544 26.2 MUST"),
        ("latency", {"duration": 119.0}, "RFC 2544 26.2 SHOULD"),
        ("latency", {"rates": (0.5,)}, "RFC 2544 26.2 MUST"),
        ("frame_loss", {"step": 0.2}, "RFC 2544 26.3 MUST"),
        ("frame_loss", {"stop_after": 1}, "RFC 2544 26.3 SHOULD"),
        ("frame_loss", {"duration": 59.0}, "RFC 2544 24 SHOULD"),
        ("back_to_back", {"longest": 1.0}, "RFC 2544 26.4 MUST"),
        ("back_to_back", {"repeats": 49}, "RFC 2544 26.4 SHOULD"),
        ("back_to_back", {"residual": 1.0}, "RFC 9004 5.4 MUST"),
        ("recovery", {"overload": 1.2}, "RFC 2544 26.5 MUST"),
        ("recovery", {"recovery": 0.4}, "RFC 2544 26.5 MUST"),
        ("recovery", {"overload_duration": 30.0}, "RFC 2544 26.5 MUST"),
        ("reset", {"before": 10.0}, "RFC 6201 4 MUST"),
        ("reset", {"rate": 0.5}, "RFC 2544 26.6 MUST"),
    ],
)
def test_each_value_that_falls_short_is_one_deviation(table: str, values: dict[str, object], section: str) -> None:
    result = judged(profile_with("rfc2544", **{table: values}))
    assert sections(result) == {section}
    must = section.endswith("MUST")
    assert result.level == ("not compliant" if must else "conditional")


def test_a_procedure_that_is_not_run_is_not_judged() -> None:
    profile = profile_with("rfc2544", reset={"before": 1.0})
    plan = plan_of(profile, procedures=["throughput"])
    result = compliance_of(
        profile,
        procedures=plan.procedures,
        frame_bytes=plan.frame_bytes,
        streams=plan.streams,
        evaluator="simulate",
        ran=CONDITIONS,
    )
    assert result.level == "unconditional"
    assert "predictions" in result.statement


def test_a_run_of_the_letter_takes_most_of_a_day_and_a_quick_one_a_minute() -> None:
    quick = plan_of(read_profile("quick"))
    seconds = sum(expected(quick.profile, name).seconds for _, _, name in quick.stages())
    assert 20.0 < seconds <= 60.0
    full = plan_of(read_profile("rfc2544"), procedures=["latency"], streams=quick.streams)
    # 20 trials of 120 s with 9 s of pauses for seven sizes: 5 h (RFC 2544 sec. 26.2).
    hours = sum(expected(full.profile, "latency").seconds for _, _, name in full.stages() if name == "latency") / 3600
    assert hours == pytest.approx(5.0, abs=0.3)


def test_progress_ends_at_its_total() -> None:
    plan = plan_of(read_profile("quick"))
    reports: list[tuple[int, int]] = []
    clock = Clock(plan.stages(), plan.profile, lambda done, total, what: reports.append((done, total)))
    for stream, size, procedure in plan.stages():
        clock.begin(stream, size, procedure)
        for _ in range(5):
            clock.trial(0.5, is_known=False)
        clock.end()
    assert [done for done, _ in reports] == sorted(done for done, _ in reports)
    assert reports[-1][0] == reports[-1][1] == round(clock.total_s)


def test_the_shipped_profiles_are_those_of_the_documentation() -> None:
    assert shipped_profiles() == ("ndrpdr", "quick", "rfc2544")
    assert read_profile("rfc2544").frames == (64, 128, 256, 512, 1024, 1280, 1518)  # RFC 2544 sec. 9.1


def test_an_unknown_profile_is_guessed() -> None:
    with pytest.raises(FileProblem, match='did you mean "quick"'):
        read_profile("quik")


def test_a_profiles_faults_are_all_named_with_their_places(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    text = shipped_files("benchmark", ".toml")["quick"].read_text(encoding="utf-8")
    text = text.replace("step = 0.1", "step = 1.5").replace('settle = "10 ms"', 'settle = "20 parsecs"')
    file.write_text(text + "\nvorsicht = 1\n", encoding="utf-8")
    with pytest.raises(FileProblem) as caught:
        read_profile(file)
    output = str(caught.value)
    for place in ("frame_loss.step", "trial.settle", "vorsicht"):
        assert place in output


def test_a_goal_whose_lengths_contradict_each_other_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(
        'name = "x"\ntitle = "x"\nframes = ["64 B"]\n[throughput]\n[[throughput.goal]]\nname = "g"\n'
        'initial_trial = "2 s"\nfinal_trial = "1 s"\n',
        encoding="utf-8",
    )
    with pytest.raises(FileProblem, match="initial_trial <= final_trial <= duration_sum"):
        read_profile(file)


def test_an_unknown_procedure_is_guessed() -> None:
    with pytest.raises(ModelProblem, match='did you mean "latency"'):
        plan_of(read_profile("quick"), procedures=["latensy"])


def test_procedures_that_rest_on_the_throughput_bring_it() -> None:
    plan = plan_of(read_profile("quick"), procedures=["recovery"])
    assert plan.procedures == ("throughput", "recovery")
    assert "throughput was run as well" in plan.notes[0]
    assert set(plan_of(read_profile("quick")).procedures) == set(PROCEDURES)


def test_reset_is_run_with_the_smallest_frame_and_bursts_for_throughput_alone() -> None:
    plan = plan_of(read_profile("rfc2544"))
    assert {size for stream, size, name in plan.stages() if name == "reset"} == {64}
    assert {name for stream, _, name in plan.stages() if stream.burst_frames > 1} == {"throughput"}
