"""The event-source mapping, for each way to deploy, is a request that Lambda's API model knows, and loses nothing."""

import botocore.session
import pytest
from botocore.validate import ParamValidator

import scenarios
from support import Conditions, parameters, template

MODEL = botocore.session.get_session().get_service_model("lambda")
REQUEST = MODEL.shape_for("CreateEventSourceMappingRequest")
NUMBERS = ("BatchSize", "MaximumBatchingWindowInSeconds", "MaximumRetryAttempts", "StartingPositionTimestamp")


def resolved(value, values):
    """`value` with its references and texts filled in; things of the stack get a made-up ARN."""
    match value:
        case {"Ref": "IngestFunction.Alias"}:
            return "arn:aws:lambda:eu-central-1:111122223333:function:sluice-ingest:live"
        case {"Ref": name}:
            given = values[name]
            return given.split(",") if name == "KafkaBootstrapServers" else given
        case {"Fn::GetAtt": _}:
            return "arn:aws:s3:::failed-batches"
        case {"Fn::Sub": text}:
            for name, given in values.items():
                text = text.replace(f"${{{name}}}", str(given))
            return text
        case dict():
            return {key: resolved(each, values) for key, each in value.items()}
        case list():
            return [resolved(each, values) for each in value]
    return value


def request(scenario):
    """The mapping as the request that CloudFormation makes of it."""
    source = template()
    values = {**{name: each.get("Default") for name, each in source["Parameters"].items()}, **scenarios.values(scenario)}
    there = Conditions(source, values).resources(source)["Resources"]
    (mapping,) = [each for each in there.values() if each["Type"] == "AWS::Lambda::EventSourceMapping"]
    found = resolved(mapping["Properties"], values)
    for name in found.keys() & set(NUMBERS):
        found[name] = int(found[name])
    if pollers := found.get("ProvisionedPollerConfig"):
        found["ProvisionedPollerConfig"] = {name: int(each) for name, each in pollers.items()}
    if "SelfManagedEventSource" in found:
        servers = found["SelfManagedEventSource"]["Endpoints"]["KafkaBootstrapServers"]
        found["SelfManagedEventSource"] = {"Endpoints": {"KAFKA_BOOTSTRAP_SERVERS": servers}}
    return found


@pytest.mark.parametrize("scenario", scenarios.ALL)
def test_the_mapping_is_a_valid_request(scenario):
    found = request(scenario)
    report = ParamValidator().validate(found, REQUEST)
    assert not report.has_errors(), report.generate_report()
    for kind in (each["Type"] for each in found.get("SourceAccessConfigurations", [])):
        assert kind in MODEL.shape_for("SourceAccessType").enum
    assert ("StartingPositionTimestamp" in found) == (found["StartingPosition"] == "AT_TIMESTAMP")


@pytest.mark.parametrize("scenario", scenarios.ALL)
def test_no_batch_is_given_up_without_being_kept(scenario):
    found = request(scenario)
    is_provisioned = "ProvisionedPollerConfig" in found
    assert is_provisioned == ("DestinationConfig" in found)
    # Without a bound, Lambda would try 10 times beside a destination; with one, records would be dropped without it.
    assert (found["MaximumRetryAttempts"] >= 1_000) if is_provisioned else (found["MaximumRetryAttempts"] == -1)
    for never in ("FilterCriteria", "MaximumRecordAgeInSeconds", "BisectBatchOnFunctionError", "FunctionResponseTypes"):
        assert never not in found, f"{never} loses or reorders records, or expects an answer that the function does not give"
    group = found.get("AmazonManagedKafkaEventSourceConfig") or found["SelfManagedKafkaEventSourceConfig"]
    assert group["ConsumerGroupId"] and "SchemaRegistryConfig" not in group and "ConsumptionMode" not in group


SIGNING = {
    "msk, scram": ["SASL_SCRAM_512_AUTH"],
    "msk, mtls": ["CLIENT_CERTIFICATE_TLS_AUTH"],
    "own, plain": ["BASIC_AUTH", "VPC_SUBNET", "VPC_SUBNET", "VPC_SECURITY_GROUP"],
    "own, scram-256, own authority": ["SASL_SCRAM_256_AUTH", "SERVER_ROOT_CA_CERTIFICATE", "VPC_SUBNET", "VPC_SUBNET", "VPC_SECURITY_GROUP"],
    "own, none, no vpc": [],
    "dev": [],
}


@pytest.mark.parametrize("scenario", SIGNING)
def test_the_mapping_signs_in_as_asked(scenario):
    assert [each["Type"] for each in request(scenario).get("SourceAccessConfigurations", [])] == SIGNING[scenario]


@pytest.mark.parametrize("stage", ["dev", "prod"])
def test_a_stage_gives_every_parameter_a_value_that_is_allowed(stage):
    source = template()["Parameters"]
    for name, value in parameters(stage).items():
        rule = source[name]
        allowed = [str(each) for each in rule.get("AllowedValues", [])]
        assert not allowed or value in allowed, name
        if rule["Type"] == "Number":
            assert rule.get("MinValue", 0) <= int(value) <= rule.get("MaxValue", 10**12), name
