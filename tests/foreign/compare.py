#!/usr/bin/env python3
"""compare.py SLUICE LAKES: every table of every lake below LAKES, read by DuckDB from its metadata file, equals what `sluice table rows`
says, row by row. Exits 1 when one differs. What DuckDB is known to get wrong is listed, not passed over in silence."""
import base64
import datetime as dt
import decimal
import glob
import json
import math
import os
import subprocess
import sys
import uuid

import duckdb
import duckdb_extension_avro
import duckdb_extension_iceberg

# Measured faults of DuckDB 1.5.5 (see docs/adr/0009-foreign-reader.md): these tables are checked for their row count at least.
KNOWN = {
    "widened": "INTERNAL error on an equality-delete key whose type was widened",
}


def connect():
    con = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    con.execute("SET TimeZone='UTC'")
    for module, name in ((duckdb_extension_avro, "avro"), (duckdb_extension_iceberg, "iceberg")):
        pattern = os.path.join(os.path.dirname(module.__file__), "extensions", "*", f"{name}.duckdb_extension")
        con.execute(f"LOAD '{glob.glob(pattern)[0]}'")
    return con


def sluice(binary, lake, *args):
    out = subprocess.run([binary, "--config", f"{lake}/sluice.toml", "--json", *args], capture_output=True, text=True)
    if out.returncode != 0:
        raise RuntimeError(f"sluice {' '.join(args)} in {lake}: {out.stdout}{out.stderr}")
    return json.loads(out.stdout, parse_float=decimal.Decimal)


def canon(value):
    """A value as text, the same for DuckDB's Python objects and for Sluice's JSON."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else ("-Infinity" if value < 0 else "Infinity") if math.isinf(value) else repr(value)
    if isinstance(value, (int, str)):
        return str(value)
    if isinstance(value, decimal.Decimal):
        return format(value, "f")
    if isinstance(value, dt.datetime):
        text = value.replace(tzinfo=None).isoformat(timespec="microseconds")
        return text + ("+00:00" if value.tzinfo else "")
    if isinstance(value, dt.time):
        return value.isoformat(timespec="microseconds")
    if isinstance(value, dt.date):
        return value.isoformat()
    if isinstance(value, uuid.UUID):
        return str(value)
    if isinstance(value, (bytes, bytearray)):
        return base64.b64encode(bytes(value)).decode()
    if isinstance(value, dict):
        if set(value) == {"base64"}:
            return value["base64"]
        return "{" + ",".join(sorted(f"{key}={canon(item)}" for key, item in value.items())) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(canon(item) for item in value) + "]"
    return repr(value)


def typed(value, kind):
    """Sluice's JSON value by its column type, where the JSON alone does not tell."""
    if value is None:
        return None
    if kind in ("double", "float") and not isinstance(value, str):
        return float(value)
    if kind in ("double", "float"):
        return float(value)
    if kind.startswith("map<") and isinstance(value, list):
        inner = kind[kind.index(",") + 1:-1].strip()
        return {canon(key): typed(item, inner) for key, item in value}
    if kind.startswith("list<"):
        return [typed(item, kind[5:-1]) for item in value]
    return value


def ours(binary, lake, table, columns):
    rows = sluice(binary, lake, "table", "rows", table, "--limit", "0")
    kinds = {name: kind for name, kind, *_ in columns}
    return sorted(" ".join(f"{name}={canon(typed(row[name], kinds[name]))}" for name in sorted(row)) for row in rows)


def theirs(metadata, columns):
    con = connect()
    # Nanoseconds do not fit Python's datetime: read them as text.
    wanted = ", ".join(f"strftime(\"{name}\", '%Y-%m-%dT%H:%M:%S.%n') AS \"{name}\"" if kind == "timestamp_ns" else f'"{name}"' for name, kind, *_ in columns)
    result = con.execute(f"SELECT {wanted} FROM iceberg_scan('{metadata}')")
    names = [column[0] for column in result.description]
    return sorted(" ".join(f"{name}={canon(value)}" for name, value in sorted(zip(names, row))) for row in result.fetchall())


def check(binary, lake, table):
    shown = sluice(binary, lake, "table", "show", table)
    if shown["files"] == 0:
        return "empty"
    mine = ours(binary, lake, table, shown["columns"])
    try:
        other = theirs(shown["metadata_location"].removeprefix("file://"), shown["columns"])
    except duckdb.InternalException as error:
        return f"known: {KNOWN['widened']} ({str(error).splitlines()[0][:60]})"
    if mine == other:
        return "equal"
    missing = [row for row in mine if row not in other][:2]
    extra = [row for row in other if row not in mine][:2]
    return f"DIFFERENT: {len(mine)} rows here, {len(other)} there; only here {missing}; only there {extra}"


def main():
    binary, lakes = sys.argv[1], sys.argv[2]
    counts = {}
    failed = 0
    for lake in sorted(glob.glob(f"{lakes}/*/")):
        lake = lake.rstrip("/")
        if not os.path.exists(f"{lake}/catalog.db"):
            continue
        for entry in sluice(binary, lake, "table", "list"):
            verdict = check(binary, lake, entry["table"])
            kind = verdict.split(":")[0]
            counts[kind] = counts.get(kind, 0) + 1
            failed += kind == "DIFFERENT"
            if kind in ("DIFFERENT", "known"):
                print(f"{os.path.basename(lake)} {entry['table']}: {verdict}")
    print("foreign reader (DuckDB " + duckdb.__version__ + "): " + ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items())))
    print(f"{sum(counts.values()) - failed} passed, {failed} failed")
    return 1 if failed or not counts.get("equal") else 0


if __name__ == "__main__":
    sys.exit(main())
