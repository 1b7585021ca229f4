#!/usr/bin/env python3
"""compaction.py SLUICE JARS FOLDER CASE…: compacts the table of each case, made by the compaction bench in FOLDER/CASE, with `sluice compact` and with Spark's rewrite_data_files.

All start from the same metadata file and so read the same files, which the page cache holds; none deletes any. Figures are of whole processes: wall and CPU seconds (user + system) and
peak resident memory. Spark compacts the same table twice in one process, under two names: the first figure is of the process from its start to the end of the first call, the second of the
second call alone, when the JVM is warm. Then Spark reads what each left, and counts and sums it: a difference is an error."""
import json
import os
import sqlite3
import subprocess
import sys
import time

CONFIG = """
[catalog]
type = "sql"
warehouse = "{folder}/warehouse"
uri = "sqlite://{folder}/sluice.db"
name = "c"
[source]
id = "compare"
[[source.formats]]
type = "envelope"
[route]
table = "bench.{{table}}"
"""
SCHEMA = """
CREATE TABLE IF NOT EXISTS iceberg_tables (catalog_name VARCHAR(255) NOT NULL, table_namespace VARCHAR(255) NOT NULL, table_name VARCHAR(255) NOT NULL,
  metadata_location VARCHAR(1000), previous_metadata_location VARCHAR(1000), iceberg_type VARCHAR(5), PRIMARY KEY (catalog_name, table_namespace, table_name));
CREATE TABLE IF NOT EXISTS iceberg_namespace_properties (catalog_name VARCHAR(255) NOT NULL, namespace VARCHAR(255) NOT NULL, property_key VARCHAR(255) NOT NULL,
  property_value VARCHAR(1000), PRIMARY KEY (catalog_name, namespace, property_key));
INSERT OR REPLACE INTO iceberg_namespace_properties VALUES ('c', 'bench', 'exists', 'true');
"""


class Lake:
    """The folder of tables, and the catalogs that the names of tables are put into."""

    def __init__(self, folder):
        self.folder = folder
        open(f"{folder}/sluice.toml", "w").write(CONFIG.format(folder=folder))

    def metadata(self, case):
        return open(f"{self.folder}/{case}.metadata").read().strip()

    def register(self, catalog, name, metadata):
        with sqlite3.connect(f"{self.folder}/{catalog}.db") as db:
            db.executescript(SCHEMA)
            db.execute("INSERT OR REPLACE INTO iceberg_tables VALUES ('c', 'bench', ?, ?, NULL, 'TABLE')", (name, metadata))

    def location(self, catalog, name):
        with sqlite3.connect(f"{self.folder}/{catalog}.db") as db:
            return db.execute("SELECT metadata_location FROM iceberg_tables WHERE table_name = ?", (name,)).fetchone()[0]


def sluice(binary, lake, name):
    start = time.time()
    process = subprocess.Popen([binary, "--config", f"{lake.folder}/sluice.toml", "--json", "compact", f"bench.{name}"], stdout=subprocess.PIPE)
    reply = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"sluice compact failed: {reply.decode()}")
    return {"wall": time.time() - start, "cpu": usage.ru_utime + usage.ru_stime, "peak_mb": usage.ru_maxrss / 1000}


def spark(jars, lake, cores, *actions):
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "compaction_spark.py")
    run = subprocess.run([sys.executable, script, jars, lake.folder, str(cores), *actions], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if run.returncode:
        sys.exit(f"Spark failed: {run.stderr[-3000:]}")
    return [json.loads(line) for line in run.stdout.splitlines() if line.startswith("{")]


def compare(binary, jars, lake, case):
    """A row for each way, once Spark has found the same rows in what each left."""
    table = case.replace("-", "_").replace("+", "_")
    lake.register("sluice", table, lake.metadata(case))
    ways = [("sluice compact", sluice(binary, lake, table))]
    lake.register("spark", f"{table}_sluice", lake.location("sluice", table))
    left = [f"{table}_sluice"]
    for cores in (1, 2):
        tables = [f"{table}_{cores}_{number}" for number in ("first", "second")]
        for name in tables:
            lake.register("spark", name, lake.metadata(case))
        left += tables
        reads = [f"sums:{name}" for name in (lake.metadata(case), *left)] if cores == 2 else []
        first, second, *held = spark(jars, lake, cores, *[f"rewrite:{name}" for name in tables], *reads)
        ways += [(f"Spark, {cores} thread(s), the process", first["process"]), (f"Spark, {cores} thread(s), the call again", second["call"])]
    before, *after = [read["result"] for read in held]
    for (way, figures), held in zip(ways, after, strict=True):
        if (held["rows"], held["sum"]) != (before["rows"], before["sum"]):
            sys.exit(f"{case}, {way}: {held} where the table held {before}")
        deletes = sum(count for content, count in held["files"].items() if content != "0")
        print(f"| {case} | {way} | {figures['wall']:.2f} | {figures['cpu']:.2f} | {figures['peak_mb']:.0f} | {held['files'].get('0', 0)}, {deletes} |", flush=True)
    print(f"{case}: all hold {before['rows']} rows with the sum {before['sum']}", file=sys.stderr, flush=True)


def main(binary, jars, folder, *cases):
    lake = Lake(folder)
    print("| case | way | wall s | CPU s | peak MB | data files, delete files left |\n|---|---|---|---|---|---|", flush=True)
    for case in cases:
        compare(binary, jars, lake, case)


main(*sys.argv[1:])
