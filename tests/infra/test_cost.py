"""The table of docs/cost.md follows from its formulas; its counts are those of the code."""

import math
import re

from support import ROOT, metrics
from test_names import alarms

TEXT = (ROOT / "docs/cost.md").read_text()
MONTH_S = 2_628_000


def worked_out(rate, window, tables):
    """Invocations and dollars a month: U = 1, M = 0.5, N = 1, P = 3.7."""
    invocations = max(rate / 3.7, 1 / window)
    fullness = min(1, rate / 3.7 / invocations)
    cpu = (0.025 + 0.020 * min(tables, 50) / 50) * fullness / (512 / 1_769)
    duration = cpu + 0.4 * math.ceil(tables / 16)
    lambda_ = 0.0000002 + 0.0000166667 * 0.5 * duration
    commit = 5 * 0.000005 + 2 * 0.0000004 + 2 * 0.000001
    return MONTH_S * invocations, MONTH_S * invocations * (lambda_ + tables * commit)


def test_the_table_is_worked_out_from_the_formulas():
    rows = re.findall(r"^\| ([\d.]+) MB/s \| (\d+) s \| (\d+) \| ([\d,]+) \| ([\d,.]+) \|$", TEXT, re.MULTILINE)
    assert len(rows) >= 6
    for rate, window, tables, invocations, dollars in rows:
        expected = worked_out(float(rate), int(window), int(tables))
        shown = float(invocations.replace(",", "")), float(dollars.replace(",", ""))
        assert math.isclose(shown[0], expected[0], rel_tol=0.01), (rate, window, tables, expected)
        assert math.isclose(shown[1], expected[1], abs_tol=0.5), (rate, window, tables, expected)


def emitted(module):
    """The metrics that an event of telemetry emits."""
    source = (ROOT / f"shared/telemetry/src/{module}.rs").read_text().split("#[cfg(test)]")[0]
    return set(re.findall(r"Metric::([A-Z]\w+)", source))


def test_metrics_and_alarms_are_counted():
    # Those of dead letters are counted by their codes.
    of_a_batch = emitted("batch") - {"DeadLetters"}
    assert f"({len(of_a_batch)} + codes" in TEXT
    assert f"{len(emitted('job'))} names for each of the four maintenance functions" in TEXT
    assert len(of_a_batch | emitted("job")) == len([name for name in metrics() if not name.startswith("dead_letters_")])
    assert f"0.10 · {len(alarms())} " in TEXT


def test_the_requests_of_a_commit_are_those_that_the_contract_counts():
    counted = (ROOT / "tests/contract/tests/requests.rs").read_text()
    assert "Asked { catalog: 2, gets: 2, puts: 4, others: Vec::new() }" in counted
    assert "2 of the catalog; 2 GET and (4 + U) PUT" in TEXT
