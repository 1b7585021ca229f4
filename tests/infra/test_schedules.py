"""Maintenance: what runs when, in which order, with what it is asked, one at a time."""

import json
import re

import pytest

from schedules import problem
from support import ROOT, template

MAINTENANCE = template("maintenance.yaml")
RESOURCES = MAINTENANCE["Resources"]


def of(kind):
    return {name: each["Properties"] for name, each in RESOURCES.items() if each["Type"] == kind}


def functions():
    return of("AWS::Serverless::Function")


@pytest.mark.parametrize("expression", ["rate(1 minute)", "rate(12 hours)", "cron(15 2 * * ? *)", "cron(0/5 8-17 ? * MON-FRI *)", "cron(0 0 L * ? 2027)", "at(2026-12-01T00:00:00)", "cron(0 9 ? * 2#1 *)"])
def test_good_expressions_pass(expression):
    assert problem(expression) is None


@pytest.mark.parametrize(
    "expression",
    ["rate(banana)", "rate(1 hours)", "rate(5 minute)", "rate(0 minutes)", "cron(0 2 * * *)", "cron(60 2 * * ? *)", "cron(0 24 * * ? *)", "cron(0 2 * * * *)", "cron(0 2 ? * ? *)", "cron(0 2 ? * MOO *)", "cron(5-1 2 * * ? *)", "0 2 * * *", "at(tomorrow)"],
)
def test_bad_expressions_do_not(expression):
    assert problem(expression)


def test_every_schedule_is_an_expression():
    timers = of("AWS::Scheduler::Schedule")
    assert len(timers) == 5
    for name, timer in timers.items():
        parameter = MAINTENANCE["Parameters"][timer["ScheduleExpression"]["Ref"]]
        assert problem(parameter["Default"]) is None, f"{name}: {problem(parameter['Default'])}"
        assert timer["Target"]["RetryPolicy"]["MaximumRetryAttempts"] <= 2


def test_each_function_is_there_runs_alone_and_ends_before_its_lease():
    found = functions()
    globals_ = MAINTENANCE["Globals"]["Function"]
    assert globals_["ReservedConcurrentExecutions"] == 1
    for name, function in found.items():
        crate = function["CodeUri"].removeprefix("../../target/package/").removesuffix(".zip")
        manifest = (ROOT / "functions" / crate / "Cargo.toml").read_text()
        assert f'name = "{crate}"' in manifest, name
        assert "Timeout" not in function and "ReservedConcurrentExecutions" not in function
    row = re.search(r"^\| `lease_ms` \| `(\d+)` \|", (ROOT / "docs/configuration.md").read_text(), re.MULTILINE)
    lease_ms = int(row[1])
    assert globals_["Timeout"] * 1_000 < lease_ms


def requests():
    """What the schedules ask of which target."""
    for name, timer in of("AWS::Scheduler::Schedule").items():
        yield name, timer["Target"]["Arn"], json.loads(timer["Target"]["Input"])


def test_what_schedules_ask_is_a_request():
    source = (ROOT / "functions/maintain/src/request.rs").read_text()
    fields = set(re.findall(r"^    pub (\w+): ", source[source.index("pub struct Request") :], re.MULTILINE))
    modes = {"plan", "execute"}
    assert {"tables", "except", "mode", "plan"} <= fields
    for name, _, request in requests():
        assert set(request) <= fields and request["mode"] in modes, name


def test_orphans_are_only_looked_for():
    asked = {json.dumps(target): request for _, target, request in requests()}
    orphans = asked[json.dumps({"Fn::GetAtt": ["RemoveOrphansFunction", "Arn"]})]
    assert orphans == {"mode": "plan"}
    assert "RemoveOrphans" not in RESOURCES["Maintain"]["Properties"]["Definition"]["States"]


def test_the_state_machine_keeps_the_order_and_ends():
    definition = RESOURCES["Maintain"]["Properties"]["Definition"]
    order, at = [], definition["StartAt"]
    while at:
        state = definition["States"][at]
        order.append(at)
        assert state["TimeoutSeconds"] > MAINTENANCE["Globals"]["Function"]["Timeout"]
        for retry in state["Retry"]:
            # A job that failed is not repeated at once: the next run goes on.
            assert all(error.startswith("Lambda.") for error in retry["ErrorEquals"]) and retry["MaxAttempts"] <= 5
        assert ("Next" in state) != ("End" in state)
        at = state.get("Next")
    assert order == ["Compact", "RewriteManifests", "ExpireSnapshots"] and set(order) == set(definition["States"])
    substitutions = RESOURCES["Maintain"]["Properties"]["DefinitionSubstitutions"]
    assert {name: each["Fn::GetAtt"][0] for name, each in substitutions.items()} == {name: f"{name}Function" for name in order}
