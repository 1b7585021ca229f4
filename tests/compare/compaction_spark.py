#!/usr/bin/env python3
"""compaction_spark.py JARS FOLDER CORES ACTION…: one Spark process. An action is `rewrite:NAME` or `sums:NAME`; NAME is a table of the JDBC catalog in FOLDER/spark.db, or a metadata
file. Prints a line of JSON for each: the wall and CPU seconds of the call (the JVM's), those of the process so far, peak resident memory, and what the table holds."""
import glob
import json
import os
import sys
import time

from pyspark.sql import SparkSession

COLUMNS = "id, customer, status, reference, total, weight, created, note"


def session(jars, folder, cores):
    builder = SparkSession.builder.master(f"local[{cores}]").appName("compaction").config("spark.jars", ",".join(glob.glob(f"{jars}/*.jar")))
    settings = {
        "spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1", "spark.ui.enabled": "false", "spark.driver.memory": "2g",
        "spark.sql.session.timeZone": "UTC", "spark.sql.iceberg.compression-codec": "zstd", "spark.sql.iceberg.compression-level": "1", "spark.sql.shuffle.partitions": str(cores), "spark.local.dir": f"{folder}/spark-local",
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.catalog.c": "org.apache.iceberg.spark.SparkCatalog", "spark.sql.catalog.c.type": "jdbc", "spark.sql.catalog.c.uri": f"jdbc:sqlite:{folder}/spark.db",
        "spark.sql.catalog.c.jdbc.schema-version": "V1", "spark.sql.catalog.c.warehouse": f"file://{folder}/spark", "spark.sql.catalog.c.cache-enabled": "false",
    }
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def cpu(pid):
    fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def peak_mb(pid):
    return next(int(line.split()[1]) / 1000 for line in open(f"/proc/{pid}/status") if line.startswith("VmHWM"))


def rewrite(spark, name, cores):
    options = {"rewrite-all": "true", "remove-dangling-deletes": "true", "target-file-size-bytes": str(128 << 20), "max-concurrent-file-group-rewrites": str(cores)}
    options = ", ".join(f"'{key}', '{value}'" for key, value in options.items())
    spark.sql(f"CALL c.system.rewrite_data_files(table => 'bench.{name}', options => map({options}))").collect()


def sums(spark, name):
    rows = spark.read.format("iceberg").load(name) if name.endswith(".json") else spark.table(f"c.bench.{name}")
    rows.createOrReplaceTempView("rows")
    total = spark.sql(f"SELECT count(*), sum(CAST(xxhash64({COLUMNS}) AS DECIMAL(38, 0))) FROM rows").collect()[0]
    files = {} if name.endswith(".json") else {row[0]: row[1] for row in spark.sql(f"SELECT content, count(*) FROM c.bench.{name}.files GROUP BY content").collect()}
    return {"rows": total[0], "sum": str(total[1]), "files": files}


def main(jars, folder, cores, *actions):
    start = time.time()
    spark = session(jars, folder, cores)
    jvm = spark.sparkContext._gateway.proc.pid
    for action in actions:
        kind, name = action.split(":", 1)
        wall, before = time.time(), cpu(jvm)
        result = rewrite(spark, name, cores) if kind == "rewrite" else sums(spark, name)
        call = {"wall": time.time() - wall, "cpu": cpu(jvm) - before, "peak_mb": peak_mb(jvm)}
        process = {"wall": time.time() - start, "cpu": cpu(jvm) + sum(os.times()[:2]), "peak_mb": peak_mb(jvm)}
        print(json.dumps({"call": call, "process": process, "result": result}), flush=True)


main(*sys.argv[1:])
