"""Each role has the actions that its function calls, and no others; each for named resources."""

import ast
import re
import tomllib
from fnmatch import fnmatchcase

import boto3
import botocore.session
import pytest
from botocore import xform_name
from moto import mock_aws

import scenarios
from support import ROOT, artefacts, deploy, maintenance_parameters, translated, translated_maintenance

CALLS = tomllib.loads((ROOT / "tests/infra/calls.toml").read_text())
SOURCES = {
    "s3": "shared/storage/src/s3",
    "glue": "shared/catalog/src/glue",
    "s3tables": "shared/catalog/src/s3tables",
    "secretsmanager": "shared/kafka/src",
}
# EC2 has no resource types for these.
WITHOUT_RESOURCES = set(CALLS["lambda"]["network"][2:])


def called(service):
    """The SDK's methods that the source of a service calls."""
    operations = {xform_name(name) for name in botocore.session.get_session().get_service_model(service).operation_names}
    text = "".join(path.read_text() for path in sorted((ROOT / SOURCES[service]).glob("*.rs")))
    return {method for method in re.findall(r"\bclient\s*\.\s*(\w+)\(", text) if method in operations}


@pytest.mark.parametrize("service", SOURCES)
def test_the_list_of_calls_is_that_of_the_source(service):
    assert called(service) == set(CALLS[service])


def test_no_call_hides_elsewhere():
    for path in ROOT.glob("*/*/src/**/*.rs"):
        if not any(str(path).startswith(str(ROOT / folder)) for folder in SOURCES.values()):
            text = path.read_text()
            for sdk in ("aws_sdk_s3::Client", "aws_sdk_glue::Client", "aws_sdk_s3tables::Client", "aws_sdk_secretsmanager::Client"):
                assert sdk not in text, f"{path} has a client of its own: let SOURCES know"


def test_what_ingest_leaves_to_others_it_does_not_call():
    # Listing and dropping tables and trying the warehouse are verbs of the operator.
    for folder in ("functions/ingest/src", "shared/deadletter/src"):
        for path in (ROOT / folder).rglob("*.rs"):
            for method in (".drop_table(", ".tables().await", ".check_warehouse("):
                assert method not in path.read_text(), f"{path}: {method}: add its calls to functions.ingest"


def expected(values):
    """The actions that the function's role should have, by policy."""
    of = CALLS["functions"]["ingest"]
    actions = {service: {action for call in of[service] for action in CALLS[service][call]} for service in SOURCES}
    lambda_ = CALLS["lambda"]
    is_msk, is_provisioned = values["KafkaSource"] == "msk", values["MinimumPollers"] != "0"
    policies = {"logs": set(lambda_["logs"])}
    if values.get("ConfigurationBucket"):
        policies["configuration"] = {"s3:GetObject"}
    if values.get("WarehouseBucket"):
        policies["warehouse"] = actions["s3"] | ({"kms:GenerateDataKey", "kms:Decrypt"} if values.get("WarehouseKmsKeyArn") else set())
    if values["Catalog"] == "glue":
        policies["glue"] = actions["glue"]
    if values["Catalog"] == "s3tables":
        data = {CALLS["s3_in_table_buckets"][action] for action in actions["s3"]} - {""}
        policies["s3tables"] = actions["s3tables"] | data
    if is_msk:
        policies["msk"] = set(lambda_["msk"]["always"]) | set(lambda_["msk"][values["KafkaAuthentication"]])
    if is_msk or values.get("KafkaSubnetId1") or values.get("FunctionSubnetIds"):
        policies["network"] = set(lambda_["network"])
    if values.get("KafkaSecretArn"):
        policies["kafka-secret"] = set(lambda_["kafka-secret"]) - (set() if values.get("KafkaSecretKmsKeyArn") else {"kms:Decrypt"})
    if values.get("KafkaRootCaSecretArn"):
        policies["kafka-root-ca"] = set(lambda_["kafka-root-ca"])
    if values.get("ErrorTopicMskClusterArn"):
        policies["error-topic"] = set(CALLS["kafka-cluster"]["produce"])
    if values.get("ErrorTopicSecretArn"):
        policies["error-topic-secret"] = actions["secretsmanager"] | ({"kms:Decrypt"} if values.get("ErrorTopicSecretKmsKeyArn") else set())
    if is_provisioned:
        policies["failed-batches"] = set(lambda_["failed-batches"]) - (set() if values.get("KmsKeyArn") else {"kms:GenerateDataKey"})
    return policies


def as_list(value):
    return value if isinstance(value, list) else [value]


def role_policies(values, role="IngestRole"):
    """The statements of a role's policies, as they are in a stack made in moto."""
    with mock_aws():
        artefacts()
        is_main = role in ("IngestRole", "RedriveRole")
        stack = (translated(), values) if is_main else (translated_maintenance(), maintenance_parameters(values))
        role = deploy("sluice-test", *stack)[role]
        client = boto3.client("iam")
        names = client.list_role_policies(RoleName=role)["PolicyNames"]
        documents = {name: client.get_role_policy(RoleName=role, PolicyName=name)["PolicyDocument"] for name in names}
        assert not client.list_attached_role_policies(RoleName=role)["AttachedPolicies"]
    # moto gives a document as Python wrote it.
    return {name: ast.literal_eval(each)["Statement"] if isinstance(each, str) else each["Statement"] for name, each in documents.items()}


@pytest.mark.parametrize("scenario", scenarios.ALL)
def test_the_role_has_what_its_function_calls_and_nothing_else(scenario):
    values = scenarios.values(scenario)
    policies = role_policies(values)
    found = {name: {action for each in statements for action in as_list(each["Action"])} for name, statements in policies.items()}
    assert found == expected(values)
    assert_least(policies)


@pytest.mark.parametrize("scenario", scenarios.ALL)
def test_redrive_may_do_with_tables_what_ingest_may_and_nothing_with_kafka(scenario):
    values = scenarios.values(scenario)
    policies = role_policies(values, "RedriveRole")
    found = {name: {action for each in statements for action in as_list(each["Action"])} for name, statements in policies.items()}
    tables = {name: actions for name, actions in expected(values).items() if name in ("logs", "configuration", "warehouse", "glue", "s3tables")}
    network = {"network": set(CALLS["lambda"]["network"])} if values.get("FunctionSubnetIds") else {}
    assert found == tables | network
    assert_least(policies)


MAINTENANCE = {"Compact": "compact", "RewriteManifests": "rewrite-manifests", "ExpireSnapshots": "expire-snapshots", "RemoveOrphans": "remove-orphans"}


@pytest.mark.parametrize("scenario", ["prod", "prod with an encrypted warehouse", "dev with a configuration in a bucket", "rest, in a vpc"])
@pytest.mark.parametrize("role", MAINTENANCE)
def test_a_maintenance_role_has_what_its_function_calls_and_nothing_else(role, scenario):
    values = scenarios.values(scenario)
    policies = role_policies(values, f"{role}Role")
    found = {name: {action for each in statements for action in as_list(each["Action"])} for name, statements in policies.items()}
    of = CALLS["functions"][MAINTENANCE[role]]
    actions = {service: {action for call in calls for action in CALLS[service][call]} for service, calls in of.items()}
    wanted = {"logs": set(CALLS["lambda"]["logs"])}
    if values.get("ConfigurationBucket"):
        wanted["configuration"] = {"s3:GetObject"}
    wanted["warehouse"] = actions["s3"] | ({"kms:GenerateDataKey", "kms:Decrypt"} if values.get("WarehouseKmsKeyArn") else set())
    if values["Catalog"] == "glue":
        wanted["glue"] = actions["glue"]
    if values.get("FunctionSubnetIds"):
        wanted["network"] = set(CALLS["lambda"]["network"])
    assert found == wanted
    assert_least(policies)


@pytest.mark.parametrize("role", ["TimerRole", "MaintainRole"])
def test_schedules_and_the_state_machine_start_only_what_is_theirs(role):
    policies = role_policies(scenarios.values("prod"), role)
    assert_least(policies)
    resources = [resource for statements in policies.values() for each in statements for resource in as_list(each["Resource"])]
    assert resources and all("*" not in resource and "sluice-test-" in resource for resource in resources), resources


def assert_least(policies):
    """No wildcard stands for actions, none for all things of a service."""
    for name, statement in ((name, each) for name, statements in policies.items() for each in statements):
        assert statement["Effect"] == "Allow" and "NotAction" not in statement and "NotResource" not in statement
        actions, resources = as_list(statement["Action"]), as_list(statement["Resource"])
        assert all("*" not in action for action in actions), name
        if not set(actions) <= WITHOUT_RESOURCES:
            assert all(names_something(resource) for resource in resources), f"{name}: {resources}"


def names_something(resource):
    """Whether an ARN names an account's own thing, and not all things of a service."""
    match = re.fullmatch(r"arn:aws:(?P<service>[\w-]+):(?P<region>[\w-]*):(?P<account>\d*):(?P<thing>.+)", resource)
    if not match or match["thing"].startswith("*"):
        # Network interfaces have no names before they are made; the account and the region bound them.
        return bool(match and match["service"] == "ec2" and match["account"] and match["thing"] == "*/*")
    return True


def test_the_check_of_resources_tells_good_from_bad():
    good = ["arn:aws:s3:::lake/tables/*", "arn:aws:glue:eu-central-1:111122223333:table/erp/*", "arn:aws:ec2:eu-central-1:1:*/*"]
    bad = ["*", "arn:aws:s3:::*", "arn:aws:glue:eu-central-1:111122223333:*", "arn:aws:ec2:::*/*", "arn:aws:kms:*:1:key/1"]
    assert [names_something(each) for each in good + bad] == [True] * len(good) + [False] * len(bad)


def test_iam_permissions_of_msk_name_the_topic_and_the_group():
    statements = role_policies(scenarios.values("prod"))["msk"]
    resources = {action: as_list(each["Resource"]) for each in statements for action in as_list(each["Action"])}
    cluster = "arn:aws:kafka:eu-central-1:111122223333:{}/prod/11111111-2222-3333-4444-555555555555-2"
    assert resources["kafka-cluster:ReadData"] == [cluster.format("topic") + "/cdc.erp"]
    assert resources["kafka-cluster:AlterGroup"] == [cluster.format("group") + "/sluice-prod"]
    assert resources["kafka-cluster:Connect"] == [cluster.format("cluster")]


def test_the_error_topic_is_the_only_one_that_the_function_may_write():
    statements = role_policies(scenarios.values("prod with an error topic"))["error-topic"]
    resources = {action: as_list(each["Resource"]) for each in statements for action in as_list(each["Action"])}
    cluster = "arn:aws:kafka:eu-central-1:111122223333:{}/errors/11111111-2222-3333-4444-555555555555-3"
    assert resources["kafka-cluster:WriteData"] == [cluster.format("topic") + "/sluice.errors"]
    assert resources["kafka-cluster:WriteDataIdempotently"] == [cluster.format("cluster")]


@pytest.mark.parametrize("stage", ["dev", "prod"])
def test_the_role_may_write_where_the_configuration_of_its_stage_sends_rows(stage):
    values = scenarios.values(stage)
    settings = tomllib.loads((ROOT / f"infra/pipeline/{stage}/sluice.toml").read_text())
    arns = values["GlueResourceArns"].split(",")
    databases = {name.split(".")[0] for name in [*settings["route"]["allow"], settings["errors"]["table"]]}
    for database in databases:
        assert "*" not in database, "an open route can be in no least-privilege role"
        for thing in ("catalog", f"database/{database}", f"table/{database}/*"):
            assert any(fnmatchcase(arn, f"arn:aws:glue:*:*:{thing}".replace("/*", "/[*]")) for arn in arns), thing
    warehouse = f"s3://{values['WarehouseBucket']}/{values['WarehousePrefix']}"
    assert f"{settings['catalog']['warehouse']}/".startswith(warehouse)
    assert settings["catalog"]["type"] == values["Catalog"]
    assert settings["errors"].get("topic", "") == values.get("ErrorTopic", "")
