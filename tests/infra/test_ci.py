"""CI runs what developers run, and nothing else."""

import re

import yaml

from support import ROOT

WORKFLOW = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def commands():
    return [step["run"] for job in WORKFLOW["jobs"].values() for step in job["steps"] if "run" in step]


def test_ci_runs_the_targets_of_the_makefile():
    called = {target for command in commands() for target in re.findall(r"\bmake ([a-z-]+)", command)}
    assert {"check", "test", "package"} <= called <= TARGETS


def test_every_job_ends_and_has_no_rights_to_write():
    assert WORKFLOW["permissions"] == {"contents": "read"}
    for name, job in WORKFLOW["jobs"].items():
        assert job["timeout-minutes"] <= 120 and "permissions" not in job, name


def test_the_toolchain_is_the_one_of_the_workspace():
    version = re.search(r'^rust-version = "([\d.]+)"', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)[1]
    used = {each for command in commands() for each in re.findall(r"toolchain install ([\d.]+)", command)}
    assert used == {version}


def test_documents_name_only_targets_that_there_are():
    for path in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/*.md"), *ROOT.glob("infra/**/README.md")]:
        named = set(re.findall(r"`make ([a-z-]+)", path.read_text())) | set(re.findall(r"^make ([a-z-]+)", path.read_text(), re.MULTILINE))
        assert named <= TARGETS, f"{path}: {named - TARGETS}"
