"""compare.py TABLE ANSWERS: each answer of the function, a file of its event's name, has the counts of its row in a table of events/README.md."""

import json
import pathlib
import re
import sys

table, answers = map(pathlib.Path, sys.argv[1:])
COUNTS = ["rows", "deletes", "control", "stale", "replayed"]
row = re.compile(r"^\| ([\w-]+) \| (\d+) \| (\d+) \| (\d+) \| (\d+) \| (\d+) \| (.*?) ?\|$", re.MULTILINE)
expected = {name: (list(map(int, counts)), codes) for name, *counts, codes in row.findall(table.read_text())}
if not expected:
    sys.exit(f"{table} has no rows")
wrong = []
for name, outcome in expected.items():
    answer = json.loads((answers / f"{name}.json").read_text())
    tally = answer["tally"]
    codes = [code for part in outcome[1].split(", ") if part for code in [part.split(" ")]]
    wanted = (outcome[0], {code: int(count) for count, code in codes}, 0)
    found = ([tally[count] for count in COUNTS], tally["dead_letters_by_code"], answer["unbalanced"])
    if found != wanted:
        wrong.append(f"{name}: {found} instead of {wanted}")
if wrong:
    sys.exit("\n".join(wrong))
print(f"{len(expected)} events through cargo lambda, each as {table} says")
