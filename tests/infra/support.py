"""What the tests of infra/ share: the templates as data, and a stack of them in moto, an AWS for tests that runs in this process."""

import functools
import json
import os
import re
from pathlib import Path

import boto3
from samcli.yamlhelper import yaml_parse
from samtranslator.parser.parser import Parser
from samtranslator.translator.translator import Translator

ROOT = Path(__file__).resolve().parents[2]
SAM = ROOT / "infra" / "sam"
REGION = "eu-central-1"
UNKNOWN_TO_MOTO = ("AWS::Lambda::EventSourceMapping", "AWS::Lambda::Alias", "AWS::Scheduler::Schedule", "AWS::CloudWatch::Alarm")
os.environ.update(AWS_ACCESS_KEY_ID="testing", AWS_SECRET_ACCESS_KEY="testing", AWS_DEFAULT_REGION=REGION)
os.environ.pop("AWS_PROFILE", None)


def template(name="template.yaml"):
    """A template as data, its short intrinsic functions in their long form."""
    return yaml_parse((SAM / name).read_text())


def parameters(stage):
    """The parameters of a stage, as text."""
    return {name: str(value) for name, value in yaml_parse((SAM / "parameters" / f"{stage}.yaml").read_text()).items()}


def translated():
    """A copy of template.yaml, translated once."""
    return json.loads(_translated())


@functools.cache
def _translated():
    """template.yaml as CloudFormation gets it: without SAM's types."""
    source = template()
    # `sam package` puts these in the place of the local paths.
    for function in ("IngestFunction", "RedriveFunction"):
        source["Resources"][function]["Properties"]["CodeUri"] = {"Bucket": "artefacts", "Key": "ingest.zip"}
    source["Resources"]["ConfigurationLayer"]["Properties"]["ContentUri"] = {"Bucket": "artefacts", "Key": "pipeline.zip"}
    for nested in ("Observability", "MaintenanceFunctions"):
        source["Resources"].pop(nested)
    source["Outputs"].pop("AlarmTopicArn")
    return json.dumps(Translator({}, Parser(), boto_session=boto3.Session()).translate(source, {}))


def translated_maintenance():
    """A copy of maintenance.yaml, translated once."""
    return json.loads(_translated_maintenance())


@functools.cache
def _translated_maintenance():
    """maintenance.yaml as CloudFormation gets it."""
    source = template("maintenance.yaml")
    for each in source["Resources"].values():
        if each["Type"] == "AWS::Serverless::Function":
            each["Properties"]["CodeUri"] = {"Bucket": "artefacts", "Key": "ingest.zip"}
    return json.dumps(Translator({}, Parser(), boto_session=boto3.Session()).translate(source, {}))


def maintenance_parameters(values):
    """What template.yaml gives maintenance.yaml for parameters of its own."""
    source = template()
    given = {name: each.get("Default") for name, each in source["Parameters"].items()} | values
    made = {"ConfigurationLayer": "arn:aws:lambda:eu-central-1:111122223333:layer:sluice:1", "AWS::StackName": "sluice-test"}
    found = {}
    for name, value in source["Resources"]["MaintenanceFunctions"]["Properties"]["Parameters"].items():
        match value:
            case {"Ref": other} | {"Fn::Join": [",", {"Ref": other}]}:
                found[name] = str((given | made)[other])
            case {"Fn::GetAtt": _}:
                found[name] = "arn:aws:sns:eu-central-1:111122223333:alarms"
            case _:
                raise ValueError(value)
    return found


class Conditions:
    """Conditions of a template for given parameters. moto leaves nulls in lists where CloudFormation leaves out AWS::NoValue, so choices are made here."""

    def __init__(self, source, values):
        defaults = {name: parameter.get("Default") for name, parameter in source.get("Parameters", {}).items()}
        self.values = {**defaults, **values}
        self.conditions = source.get("Conditions", {})

    def is_true(self, condition):
        (kind, operands), = condition.items()
        match kind:
            case "Condition":
                return self.is_true(self.conditions[operands])
            case "Fn::Equals":
                return self.text(operands[0]) == self.text(operands[1])
            case "Fn::Not":
                return not self.is_true(operands[0])
            case "Fn::And":
                return all(self.is_true(each) for each in operands)
            case "Fn::Or":
                return any(self.is_true(each) for each in operands)
        raise ValueError(condition)

    def text(self, value):
        match value:
            case {"Ref": name}:
                return str(self.values[name])
            case {"Fn::Join": ["", {"Ref": name}]}:
                return str(self.values[name]).replace(",", "")
            case dict():
                raise ValueError(value)
        return str(value)

    def choose(self, value):
        """`value` with every Fn::If decided and every AWS::NoValue left out."""
        match value:
            case {"Fn::If": [name, then, otherwise]}:
                return self.choose(then if self.is_true({"Condition": name}) else otherwise)
            case dict():
                chosen = {key: self.choose(each) for key, each in value.items()}
                return {key: each for key, each in chosen.items() if each != {"Ref": "AWS::NoValue"}}
            case list():
                return [each for each in map(self.choose, value) if each != {"Ref": "AWS::NoValue"}]
        return value

    def resources(self, source):
        """The resources and outputs that there are."""
        def there(entries):
            return {
                name: self.choose({key: each for key, each in entry.items() if key != "Condition"})
                for name, entry in entries.items()
                if self.is_true({"Condition": entry["Condition"]} if "Condition" in entry else {"Fn::Equals": ["", ""]})
            }
        rest = {key: each for key, each in source.items() if key not in ("Conditions", "Rules", "Metadata")}
        return {**rest, "Resources": there(source["Resources"]), "Outputs": there(source.get("Outputs", {}))}


def deploy(name, source, values):
    """Makes a stack in moto, and gives back its resources' physical names by their logical ones."""
    client = boto3.client("cloudformation")
    unknown = values.keys() - source["Parameters"].keys()
    assert not unknown, f"the template has no parameters {unknown}"
    missing = {name for name, each in source["Parameters"].items() if "Default" not in each} - values.keys()
    assert not missing, f"the template needs {missing}"
    source = Conditions(source, values).resources(source)
    # test_mapping.py and test_schedules.py look at these.
    missing = [key for key, each in source["Resources"].items() if each["Type"] in UNKNOWN_TO_MOTO]
    for key in missing:
        source["Resources"].pop(key)
    source["Outputs"] = {key: each for key, each in source["Outputs"].items() if each["Value"].get("Ref") not in missing}
    given = [{"ParameterKey": key, "ParameterValue": value} for key, value in values.items()]
    client.create_stack(StackName=name, TemplateBody=json.dumps(source), Parameters=given, Capabilities=["CAPABILITY_IAM"])
    pages = client.get_paginator("list_stack_resources").paginate(StackName=name)
    return {each["LogicalResourceId"]: each.get("PhysicalResourceId") for page in pages for each in page["StackResourceSummaries"]}


def artefacts():
    """The bucket in which `sam package` leaves code and layer."""
    client = boto3.client("s3")
    client.create_bucket(Bucket="artefacts", CreateBucketConfiguration={"LocationConstraint": REGION})
    for key in ("ingest.zip", "pipeline.zip"):
        client.put_object(Bucket="artefacts", Key=key, Body=b"PK\x05\x06" + bytes(18))


def metrics():
    """Names of the metrics that telemetry emits, from its source; the codes of dead letters included."""
    source = (ROOT / "shared/telemetry/src/metric.rs").read_text()
    names = set(re.findall(r'=> \("([a-z_]+)", Unit::', source))
    reasons = (ROOT / "shared/model/src/reason.rs").read_text()
    codes = re.findall(r'Self::\w+ => "([A-Z0-9_]+)"', reasons)
    return names | {f"dead_letters_{code}" for code in codes}
