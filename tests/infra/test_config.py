"""Configurations of this repository fit the schema that `sluice config-schema` prints."""

import json
import tomllib

import jsonschema
import pytest

from support import ROOT

SCHEMA = json.loads((ROOT / "docs/sluice.schema.json").read_text())
FILES = ["infra/pipeline/dev/sluice.toml", "infra/pipeline/prod/sluice.toml", "events/sluice.toml", "functions/local/src/commands/template.toml"]


@pytest.mark.parametrize("file", FILES)
def test_a_configuration_fits(file):
    jsonschema.validate(tomllib.loads((ROOT / file).read_text()), SCHEMA)


@pytest.mark.parametrize("wrong", [{"commmit": {}}, {"commit": {"max_attempts": "many"}}, {"table_defaults": {"mode": "upset"}}, {"tables": {"a.b": {"typo": 1}}}, {"source": {"formats": [{"typ": "row"}]}}])
def test_a_mistake_does_not(wrong):
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(wrong, SCHEMA)
