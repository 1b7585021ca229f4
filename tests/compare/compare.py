#!/usr/bin/env python3
"""compare.py SLUICE FOLDER: one 6 MB event of 6,960 change events of an orders table, applied to a table that holds one such event already.

What is timed is CPU time (user + system) of the whole work from the event's bytes to the commit: for Sluice of the whole process, its start
included; for the Python ways inside the process, imports excluded. Each is run five times on a fresh copy; the median counts. They do not do the same:
only Sluice checks, folds by key, deletes older rows and records offsets; the append ways write what they get, and polars and DuckDB do not commit at all."""
import base64
import datetime as dt
import decimal
import json
import os
import random
import resource
import shutil
import statistics
import subprocess
import sys
import time

RUNS = 5
CONFIG = """
[catalog]
type = "sql"
warehouse = "warehouse"
uri = "sqlite://catalog.db"
[source]
id = "compare"
[[source.formats]]
type = "envelope"
[route]
table = "shop.{table}"
[tables."shop.orders"]
on_missing_table = "create"
key = ["order_id"]
columns = { order_id = { type = "long" }, customer_id = { type = "long" }, total = { type = "decimal(18,2)" }, created_at = { type = "timestamptz" } }
"""


def order(r, order_id):
    return {
        "order_id": order_id, "customer_id": r.randint(1, 10**6), "order_no": f"A-{order_id:08}", "status": r.choice(["NEW", "PAID", "SHIPPED"]),
        "currency": r.choice(["EUR", "CHF", "USD"]), "total": f"{r.randint(0, 10**7) / 100:.2f}",
        "created_at": f"2026-03-{r.randint(1, 28):02}T10:15:{r.randint(0, 59):02}.{r.randint(0, 999999):06}Z", "is_gift": r.random() < 0.1,
        "shipping": {"name": "Ada Lovelace", "street": "1 Rue de la Paix", "city": "Genève", "zip": str(r.randint(1000, 9999))},
        "notes": None if r.random() < 0.5 else "please ring twice, the bell is \"quiet\"",
    }


def event(seed, first_offset):
    r = random.Random(seed)
    records = []
    for offset in range(first_offset, first_offset + 6960):
        value = {"meta": {"source": "shop", "table": "orders", "op": r.choice("IU"), "ts_ms": 1772360130000}, "before": None, "data": order(r, r.randint(1, 20000))}
        records.append({"topic": "cdc", "partition": 0, "offset": offset, "timestamp": 1772360130000, "timestampType": "CREATE_TIME",
                        "key": base64.b64encode(b'{"order_id":1}').decode(), "value": base64.b64encode(json.dumps(value).encode()).decode(), "headers": []})
    return json.dumps({"eventSource": "aws:kafka", "records": {"cdc-0": records}}).encode()


def rows(body):
    out = []
    for records in json.loads(body)["records"].values():
        for record in records:
            row = json.loads(base64.b64decode(record["value"]))["data"]
            row["total"] = decimal.Decimal(row["total"])
            row["created_at"] = dt.datetime.fromisoformat(row["created_at"])
            out.append(row)
    return out


def cpu(work):
    before = time.process_time()
    work()
    return time.process_time() - before


def median(measure):
    return statistics.median(measure(run) for run in range(RUNS))


def sluice(binary, folder, first, second):
    lake = f"{folder}/sluice"
    os.makedirs(lake)
    open(f"{lake}/sluice.toml", "w").write(CONFIG)
    for name, body in (("first", first), ("second", second)):
        open(f"{lake}/{name}.json", "wb").write(body)
    invoke = lambda at, name: subprocess.run([binary, "--config", f"{at}/sluice.toml", "invoke", "ingest", "--event", f"{lake}/{name}.json"], check=True, capture_output=True)

    def once(run):
        at = f"{folder}/sluice-{run}"
        os.makedirs(at)
        shutil.copy(f"{lake}/sluice.toml", at)
        invoke(at, "first")
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        invoke(at, "second")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return median(once)


def pyiceberg_way(folder, first, second, apply):
    import pyarrow as pa
    from pyiceberg.catalog.sql import SqlCatalog
    schema = pa.schema([pa.field("order_id", pa.int64(), nullable=False), ("customer_id", pa.int64()), ("order_no", pa.string()), ("status", pa.string()),
                        ("currency", pa.string()), ("total", pa.decimal128(18, 2)), ("created_at", pa.timestamp("us", "UTC")), ("is_gift", pa.bool_()),
                        ("shipping", pa.struct([(n, pa.string()) for n in ("name", "street", "city", "zip")])), ("notes", pa.string())])

    def once(run):
        at = f"{folder}/{apply.__name__}-{run}"
        os.makedirs(at)
        catalog = SqlCatalog("lake", uri=f"sqlite:///{at}/catalog.db", warehouse=f"file://{at}")
        catalog.create_namespace("shop")
        table = catalog.create_table("shop.orders", schema)
        unique = {row["order_id"]: row for row in rows(first)}
        table.append(pa.Table.from_pylist(list(unique.values()), schema=schema))
        return cpu(lambda: apply(table, second, schema))
    return median(once)


def append(table, body, schema):
    import pyarrow as pa
    table.append(pa.Table.from_pylist(rows(body), schema=schema))


def upsert(table, body, schema):
    import pyarrow as pa
    unique = {row["order_id"]: row for row in rows(body)}
    table.upsert(pa.Table.from_pylist(list(unique.values()), schema=schema), join_cols=["order_id"])


def polars_way(folder, second):
    import polars as pl
    return median(lambda run: cpu(lambda: pl.DataFrame(rows(second), infer_schema_length=None).write_parquet(f"{folder}/polars-{run}.parquet", compression="zstd", compression_level=1)))


def duckdb_way(folder, second):
    import duckdb
    lines = f"{folder}/values.json"

    def work(run):
        with open(lines, "wb") as out:
            for records in json.loads(second)["records"].values():
                for record in records:
                    out.write(base64.b64decode(record["value"]) + b"\n")
        duckdb.execute(f"COPY (SELECT unnest(data) FROM read_json('{lines}', format='newline_delimited')) TO '{folder}/duckdb-{run}.parquet' (COMPRESSION zstd)")
    return median(lambda run: cpu(lambda: work(run)))


def main():
    binary, folder = sys.argv[1], sys.argv[2]
    first, second = event(1, 0), event(2, 6960)
    print(f"event: {len(second) / 2**20:.2f} MiB, 6,960 records; median CPU seconds of {RUNS} runs\n")
    ours = sluice(binary, folder, first, second)
    results = [
        ("Sluice upsert, fold, checks, ledger, commit (whole process)", ours),
        ("PyIceberg append, commit", pyiceberg_way(folder, first, second, append)),
        ("PyIceberg upsert, commit", pyiceberg_way(folder, first, second, upsert)),
        ("polars to Parquet, no commit", polars_way(folder, second)),
        ("DuckDB to Parquet, no commit", duckdb_way(folder, second)),
    ]
    print("| way | CPU s | × Sluice |\n|---|---|---|")
    for name, seconds in results:
        print(f"| {name} | {seconds:.3f} | {seconds / ours:.1f} |")


if __name__ == "__main__":
    main()
