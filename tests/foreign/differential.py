#!/usr/bin/env python3
"""differential.py SLUICE FOLDER [SEEDS]: random tables of all types and random changes, written by Sluice through its events and by PyArrow as a plain
Parquet file, both read by DuckDB: equal. The oracle is this script's own dictionary of rows. A failing seed is printed."""
import base64
import datetime as dt
import decimal
import json
import os
import random
import subprocess
import sys
import uuid

import pyarrow as pa
import pyarrow.parquet as pq

from compare import canon, connect

UTC = dt.timezone.utc


def text(r):
    return "".join(r.choice(["a", "Z", " ", "é", "서", "😀", "\"", "\\", "\n", "/", "\u0000"]) for _ in range(r.randint(0, 40)))


def number(r, bits):
    edge = [0, 1, -1, 2**(bits - 1) - 1, -2**(bits - 1)]
    return r.choice(edge) if r.random() < 0.3 else r.randint(-2**(bits - 1), 2**(bits - 1) - 1)


def dec(precision, scale):
    def make(r):
        unscaled = r.choice([0, 1, -1, 10**precision - 1, -(10**precision) + 1, r.randint(-10**precision + 1, 10**precision - 1)])
        return decimal.Decimal(unscaled).scaleb(-scale, decimal.Context(prec=60))
    return make


def instant(r):
    return dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=r.choice([0, -1, 1, r.randint(-60 * 10**15, 10**17)]))


# Iceberg type: Arrow type, a random value, the value as JSON in the event.
PRIMITIVES = {
    "boolean": (pa.bool_(), lambda r: r.random() < 0.5, lambda v: v),
    "int": (pa.int32(), lambda r: number(r, 32), lambda v: v),
    "long": (pa.int64(), lambda r: number(r, 64), lambda v: v),
    "double": (pa.float64(), lambda r: r.choice([0.0, 0.1, -1e300, 5e-324, r.uniform(-1e6, 1e6)]), lambda v: v),
    "float": (pa.float32(), lambda r: float(r.choice([0.5, -0.25, 1.5, 2.0**100, r.randint(-1000, 1000) / 8])), lambda v: v),
    "decimal(9,2)": (pa.decimal128(9, 2), dec(9, 2), lambda v: format(v, "f")),
    "decimal(18,6)": (pa.decimal128(18, 6), dec(18, 6), lambda v: format(v, "f")),
    "decimal(38,10)": (pa.decimal128(38, 10), dec(38, 10), lambda v: format(v, "f")),
    "date": (pa.date32(), lambda r: dt.date(1, 1, 1) + dt.timedelta(days=r.randint(0, 3652058)), lambda v: v.isoformat()),
    "time": (pa.time64("us"), lambda r: (dt.datetime.min + dt.timedelta(microseconds=r.randint(0, 86_400_000_000 - 1))).time(), lambda v: v.isoformat()),
    "timestamp": (pa.timestamp("us"), instant, lambda v: v.isoformat()),
    "timestamptz": (pa.timestamp("us", "UTC"), lambda r: instant(r).replace(tzinfo=UTC),
                    lambda v: v.astimezone(dt.timezone(dt.timedelta(hours=5, minutes=30))).isoformat() if 1 < v.year < 9999 else v.isoformat()),
    "string": (pa.string(), text, lambda v: v),
    "uuid": (pa.binary(16), lambda r: uuid.UUID(int=r.getrandbits(128)), lambda v: str(v).upper()),
    "binary": (pa.binary(), lambda r: r.randbytes(r.randint(0, 20)), lambda v: base64.b64encode(v).decode()),
    "fixed[5]": (pa.binary(5), lambda r: r.randbytes(5), lambda v: base64.b64encode(v).decode()),
}


def primitive(name):
    arrow, make, to_json = PRIMITIVES[name]
    return name, arrow, make, to_json


def nullable(make):
    return lambda r: None if r.random() < 0.2 else make(r)


def lifted(to_json):
    return lambda v: None if v is None else to_json(v)


def listed(inner):
    name, arrow, make, to_json = inner
    make, to_json = nullable(make), lifted(to_json)
    return f"list<{name}>", pa.list_(arrow), lambda r: [make(r) for _ in range(r.randint(0, 4))], lambda v: [to_json(x) for x in v]


def structured(a, b):
    make_a, make_b = nullable(a[2]), nullable(b[2])
    json_a, json_b = lifted(a[3]), lifted(b[3])
    return (f"struct<x: {a[0]}, y: {b[0]}>", pa.struct([("x", a[1]), ("y", b[1])]),
            lambda r: {"x": make_a(r), "y": make_b(r)}, lambda v: {"x": json_a(v["x"]), "y": json_b(v["y"])})


def mapped(inner):
    name, arrow, make, to_json = inner
    make, to_json = nullable(make), lifted(to_json)
    return (f"map<string, {name}>", pa.map_(pa.string(), arrow),
            lambda r: {f"k{i}": make(r) for i in range(r.randint(0, 3))}, lambda v: {k: to_json(x) for k, x in v.items()})


def column(r):
    pick = lambda: primitive(r.choice([name for name in PRIMITIVES if name != "uuid"]))
    kind = r.randint(0, 9)
    return listed(pick()) if kind == 0 else structured(pick(), pick()) if kind == 1 else mapped(pick()) if kind == 2 else primitive(r.choice(list(PRIMITIVES)))


def events(r, columns, rows):
    """Random changes in batches; `rows` becomes the state after them."""
    offset = 0
    for _ in range(r.randint(1, 4)):
        records = []
        for _ in range(r.randint(1, 40)):
            key = r.randint(0, 25)
            if r.random() < 0.2:
                rows.pop(key, None)
                value = {"meta": {"table": "t", "op": "D"}, "data": {"id": key}}
            else:
                row = {name: nullable(make)(r) for name, (_, _, make, _) in columns.items()}
                rows[key] = row
                data = {name: lifted(columns[name][3])(value) for name, value in row.items()}
                value = {"meta": {"table": "t", "op": r.choice("IUR")}, "data": {"id": key, **data}}
            raw = base64.b64encode(json.dumps(value, ensure_ascii=r.random() < 0.5).encode()).decode()
            records.append({"topic": "t", "partition": 0, "offset": offset, "timestamp": 1, "value": raw})
            offset += 1
        yield {"eventSource": "SelfManagedKafka", "records": {"t-0": records}}


def config(r, columns):
    listed = "\n".join(f'"{name}" = {{ type = "{kind}" }}' for name, (kind, *_) in columns.items())
    partition = r.choice(['[]', '["bucket(3, id)"]', '["truncate(10, id)"]'])
    return f"""
[catalog]
type = "sql"
warehouse = "warehouse"
uri = "sqlite://catalog.db"
[source]
id = "differential"
[[source.formats]]
type = "envelope"
[route]
table = "d.{{table}}"
[tables."d.t"]
on_missing_table = "create"
on_unknown_column = "add"
key = ["id"]
partition_by = {partition}
[tables."d.t".columns]
id = {{ type = "int" }}
{listed}
"""


def canonical(row):
    return " ".join(f"{name}={canon(value)}" for name, value in sorted(row.items()))


def run(binary, folder, seed):
    r = random.Random(seed)
    columns = {f"c{i}": column(r) for i in range(r.randint(1, 8))}
    lake = f"{folder}/differential-{seed}"
    os.makedirs(lake)
    open(f"{lake}/sluice.toml", "w").write(config(r, columns))
    rows = {}
    for number_, event in enumerate(events(r, columns, rows)):
        path = f"{lake}/event-{number_}.json"
        json.dump(event, open(path, "w"))
        out = subprocess.run([binary, "--config", f"{lake}/sluice.toml", "--json", "invoke", "ingest", "--event", path], capture_output=True, text=True)
        reply = json.loads(out.stdout)
        if out.returncode or reply["reply"]["tally"]["dead_letters"]:
            letters = subprocess.run([binary, "--config", f"{lake}/sluice.toml", "errors", "list"], capture_output=True, text=True)
            return f"records were refused: {out.stdout} {letters.stdout}"
    shown = json.loads(subprocess.run([binary, "--config", f"{lake}/sluice.toml", "--json", "table", "show", "d.t"], capture_output=True, text=True).stdout)
    present = [name for name in columns if any(name == shown_column[0] for shown_column in shown["columns"])]
    absent = [name for name in columns if name not in present and any(row[name] is not None for row in rows.values())]
    if absent:
        return f"columns with values are missing: {absent}"
    arrays = {"id": pa.array(list(rows), pa.int32())}
    for name in present:
        values = [row[name].bytes if isinstance(row[name], uuid.UUID) else row[name] for row in rows.values()]
        arrays[name] = pa.array([list(v.items()) if isinstance(v, dict) and columns[name][0].startswith("map") else v for v in values], columns[name][1])
    pq.write_table(pa.table(arrays), f"{lake}/expected.parquet")
    con = connect()
    # A uuid is sixteen bytes to PyArrow's file; DuckDB shows Iceberg's as a UUID.
    show = ", ".join(f'encode("{n}"::VARCHAR) AS "{n}"' if n in present and columns[n][0] == "uuid" else f'"{n}"' for n in ["id", *present])
    metadata = shown["metadata_location"].removeprefix("file://")
    fetch = lambda query: [dict(zip([c[0] for c in con.execute(query).description], row)) for row in con.execute(query).fetchall()]
    ours = fetch(f"SELECT {show} FROM iceberg_scan('{metadata}')") if shown["files"] else []
    theirs = fetch(f"SELECT * FROM read_parquet('{lake}/expected.parquet')")
    for row in ours:
        for name in present:
            if columns[name][0] == "uuid" and row[name] is not None:
                row[name] = uuid.UUID(bytes(row[name]).decode()).bytes
    ours, theirs = sorted(map(canonical, ours)), sorted(map(canonical, theirs))
    if ours != theirs:
        return f"only Sluice's: {[x for x in ours if x not in theirs][:2]}; only PyArrow's: {[x for x in theirs if x not in ours][:2]}"
    return None


def main():
    binary, folder, seeds = sys.argv[1], sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 40
    first = int(os.environ.get("DIFFERENTIAL_SEED", "0"))
    failed = 0
    for seed in range(first, first + seeds):
        problem = run(binary, folder, seed)
        if problem:
            failed += 1
            print(f"DIFFERENTIAL_SEED={seed}: {problem}")
    print(f"differential (Sluice and PyArrow, read by DuckDB): {seeds - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
