"""Names in the templates exist in the code: environment variables, metrics, files. Times fit each other."""

import json
import re
import tomllib

import pytest

from support import ROOT, SAM, metrics, parameters, template

CODE = "".join(path.read_text() for path in [*ROOT.glob("shared/*/src/**/*.rs"), *ROOT.glob("functions/*/src/**/*.rs")])
# Lambda's own metrics (AWS's documentation: "Viewing metrics for Lambda functions", "Event source mapping metrics").
OF_FUNCTIONS = {"Invocations", "Errors", "Throttles", "Duration", "OffsetLag"}
OF_MAPPINGS = {
    "MaxOffsetLag", "PolledEventCount", "FilteredOutEventCount", "InvokedEventCount", "FailedInvokeEventCount", "DroppedEventCount", "CommittedEventCount",
    "OnFailureDestinationDeliveredEventCount", "PollingErrorCount", "CommitErrorCount",
}


STATES = {"ExecutionsFailed", "ExecutionsSucceeded"}


def functions():
    return {name: each["Properties"] for name, each in template()["Resources"].items() if each["Type"] == "AWS::Serverless::Function"}


def test_every_environment_variable_is_read_by_the_code():
    environments = [each["Environment"] for each in functions().values()]
    environments.append(template("maintenance.yaml")["Globals"]["Function"]["Environment"])
    found = {name for each in environments for name in each["Variables"]}
    assert "SLUICE_CONFIG" in found
    for name in found:
        assert f'"{name}"' in CODE, f"nothing reads {name}"


@pytest.mark.parametrize("stage", ["dev", "prod"])
def test_the_configuration_is_where_the_function_looks(stage):
    _, _, packed = functions()["IngestFunction"]["Environment"]["Variables"]["SLUICE_CONFIG"]["Fn::If"]
    path = packed["Fn::Sub"]
    layer = (SAM / template()["Resources"]["ConfigurationLayer"]["Properties"]["ContentUri"]).resolve()
    assert (layer / path.replace("${Stage}", parameters(stage)["Stage"]).removeprefix("/opt/")).is_file()


@pytest.mark.parametrize("stage", ["dev", "prod"])
def test_the_function_has_time_to_commit(stage):
    settings = tomllib.loads((ROOT / f"infra/pipeline/{stage}/sluice.toml").read_text())
    rule = template()["Parameters"]["TimeoutSeconds"]
    timeout_ms = int(parameters(stage).get("TimeoutSeconds", rule["Default"])) * 1_000
    # A batch gets at least three quarters of the time before the reserve begins.
    assert timeout_ms >= 4 * settings["commit"]["reserve_ms"]
    default = int(re.search(r'read\("reserve_ms", problems\)\.unwrap_or\(([\d_]+)\)', CODE)[1].replace("_", ""))
    assert rule["MinValue"] * 1_000 >= 4 * default
    # Lambda ends the polling of Kafka for functions that may take longer than 14 minutes.
    assert rule["MaxValue"] <= 14 * 60


def alarms():
    found = template("observability.yaml")["Resources"] | template("maintenance.yaml")["Resources"]
    return {name: each["Properties"] for name, each in found.items() if each["Type"] == "AWS::CloudWatch::Alarm"}


def dashboard():
    body = template("observability.yaml")["Resources"]["Dashboard"]["Properties"]["DashboardBody"]["Fn::Sub"]
    return json.loads(re.sub(r"\$\{([\w:]+)\}", r"\1", body))


def used():
    """(namespace, metric, dimension) of all alarms and widgets."""
    for name, alarm in alarms().items():
        stats = [each["MetricStat"]["Metric"] for each in alarm.get("Metrics", []) if "MetricStat" in each] or [alarm]
        for metric in stats:
            (dimension,) = metric["Dimensions"]
            yield name, (metric["Namespace"], metric["MetricName"], dimension["Name"])
    for widget in dashboard()["widgets"]:
        for row in widget["properties"]["metrics"]:
            if isinstance(row[0], str):
                yield widget["properties"]["title"], tuple(row[:3])


def test_alarms_and_dashboard_use_metrics_that_there_are():
    emitted = metrics()
    assert {"records_received", "unbalanced", "dead_letters_TYPE_MISMATCH"} <= emitted
    found = list(used())
    assert len(found) > 60
    for place, (namespace, metric, dimension) in found:
        match namespace, dimension:
            case "Sluice", "FunctionName":
                assert metric in emitted, f"{place}: nothing emits {metric}"
            case "AWS/Lambda", "FunctionName":
                assert metric in OF_FUNCTIONS, f"{place}: {metric}"
            case "AWS/Lambda", "EventSourceMappingUUID":
                assert metric in OF_MAPPINGS, f"{place}: {metric}"
            case "AWS/States", "StateMachineArn":
                assert metric in STATES, f"{place}: {metric}"
            case _:
                raise AssertionError(f"{place}: {namespace} has no {dimension}")


def test_every_metric_is_described_and_no_other():
    described = set(re.findall(r"^\| `([\w<>]+)` \|", (ROOT / "docs/metrics.md").read_text(), re.MULTILINE))
    plain = {name for name in metrics() if not name.startswith("dead_letters_")}
    assert described == plain | {"dead_letters_<CODE>"}


def test_a_document_holds_all_metrics():
    # The embedded metric format allows a hundred.
    assert len(metrics()) <= 100


def test_every_alarm_has_an_entry_in_the_runbook_and_the_other_way_round():
    runbook = (ROOT / "docs/runbook.md").read_text()
    entries = dict(re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", runbook, re.MULTILINE | re.DOTALL))
    assert set(entries) == set(alarms())
    for name, text in entries.items():
        for part in ("**Means**", "**Look**", "**Do**"):
            assert part in text, f"{name} lacks {part}"
    for name, alarm in alarms().items():
        assert alarm["AlarmName"] == {"Fn::Sub": f"${{PipelineName}}-{name}"} and "docs/runbook.md" in alarm["AlarmDescription"]
        assert alarm["AlarmActions"] in ([{"Ref": "AlarmTopic"}], [{"Ref": "AlarmTopicArn"}])


def test_expressions_of_alarms_and_widgets_use_metrics_of_theirs():
    for name, alarm in alarms().items():
        rows = alarm.get("Metrics", [])
        ids = {each["Id"] for each in rows}
        for text in (each["Expression"] for each in rows if "Expression" in each):
            text = text["Fn::Sub"] if isinstance(text, dict) else text
            words = set(re.findall(r"[a-z]\w*", re.sub(r"\$\{\w+\}", "", text)))
            assert words and words <= ids - {"result"}, f"{name}: {text}"
        assert not rows or [each["Id"] for each in rows if each.get("ReturnData", True)] == ["result"], name
