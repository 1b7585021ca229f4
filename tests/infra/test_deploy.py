"""The stacks can be made, as far as moto goes; what they make is set as the documents say."""

import boto3
import pytest
from moto import mock_aws

import scenarios
from support import artefacts, deploy, template, translated


@pytest.fixture
def prod():
    with mock_aws():
        artefacts()
        yield deploy("sluice-prod", translated(), scenarios.values("prod"))


@pytest.mark.parametrize("scenario", scenarios.ALL)
def test_the_stack_is_made(scenario):
    with mock_aws():
        artefacts()
        made = deploy("sluice", translated(), scenarios.values(scenario))
        assert {"IngestFunction", "IngestRole", "IngestLogGroup"} <= made.keys()
        state = boto3.client("cloudformation").describe_stacks(StackName="sluice")["Stacks"][0]["StackStatus"]
        assert state == "CREATE_COMPLETE"


def test_the_function_is_as_the_parameters_say(prod):
    found = boto3.client("lambda").get_function_configuration(FunctionName="sluice-prod-ingest")
    assert (found["Runtime"], found["Handler"], found["Timeout"], found["MemorySize"]) == ("provided.al2023", "bootstrap", 300, 512)
    assert found["Environment"]["Variables"] == {"SLUICE_CONFIG": "/opt/prod/sluice.toml", "SLUICE_LOG": "info"}


def test_failed_batches_are_kept_encrypted_private_and_long(prod):
    client, bucket = boto3.client("s3"), prod["FailedBatchBucket"]
    (rule,) = client.get_bucket_encryption(Bucket=bucket)["ServerSideEncryptionConfiguration"]["Rules"]
    assert rule["ApplyServerSideEncryptionByDefault"]["SSEAlgorithm"] == "aws:kms"
    blocks = template()["Resources"]["FailedBatchBucket"]["Properties"]["PublicAccessBlockConfiguration"]
    assert len(blocks) == 4 and all(blocks.values())
    lifecycle = template()["Resources"]["FailedBatchBucket"]["Properties"]["LifecycleConfiguration"]["Rules"]
    assert lifecycle[0]["ExpirationInDays"] == {"Ref": "FailedBatchRetentionDays"}


def test_logs_end_after_the_retention(prod):
    (group,) = boto3.client("logs").describe_log_groups(logGroupNamePrefix="/aws/lambda/sluice-prod-ingest")["logGroups"]
    assert group["retentionInDays"] == 90


def test_what_holds_data_outlives_the_stack():
    for name, each in template()["Resources"].items():
        if each["Type"] in ("AWS::S3::Bucket", "AWS::Logs::LogGroup"):
            assert (each["DeletionPolicy"], each["UpdateReplacePolicy"]) == ("Retain", "Retain"), name


def test_the_alarms_stack_is_made():
    with mock_aws():
        made = deploy(
            "sluice-prod-observability",
            template("observability.yaml"),
            {"PipelineName": "sluice-prod", "FunctionName": "sluice-prod-ingest", "TimeoutSeconds": "300", "EventSourceMappingId": "1"},
        )
        names = [each["DashboardName"] for each in boto3.client("cloudwatch").list_dashboards()["DashboardEntries"]]
        assert names == ["sluice-prod"] and made["AlarmTopic"].endswith(":sluice-prod-alarms")
