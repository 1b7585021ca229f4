#!/usr/bin/env python3
"""startup.py FUNCTION…: milliseconds from the start of a function's process to its first request for an event, which is a cold start less Lambda's own part.

Each is started against a fake Runtime API, with the catalog of AWS Glue where it was built in (nothing is asked of it before the first event), else with one in memory.
"""

import http.server
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

STARTS = 11
PATIENCE_S = 10
FORMAT = '[source]\nid = "startup"\n[[source.formats]]\ntype = "debezium"\n'
CATALOGS = {"glue": 'type = "glue"\nwarehouse = "s3://my-lake/tables"\n', "memory": 'type = "memory"\n'}


class RuntimeApi(http.server.ThreadingHTTPServer):
    """Notes when it is first asked for an event, and never has one."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), self.handler())
        self.asked = threading.Event()
        self.at = 0.0
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handler(api):
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                if not api.asked.is_set():
                    api.at = time.perf_counter()
                    api.asked.set()
                time.sleep(PATIENCE_S)

            def log_message(self, *_):
                pass

        return Handler


def start(function, config):
    """Milliseconds of one start; None when the function ended, or asked for nothing."""
    api = RuntimeApi()
    environment = {
        "AWS_LAMBDA_RUNTIME_API": f"127.0.0.1:{api.server_port}",
        "AWS_LAMBDA_FUNCTION_NAME": "startup",
        "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "512",
        "AWS_LAMBDA_FUNCTION_VERSION": "1",
        "AWS_REGION": "eu-central-1",
        "AWS_ACCESS_KEY_ID": "none",
        "AWS_SECRET_ACCESS_KEY": "none",
        "SLUICE_CONFIG": str(config),
    }
    began = time.perf_counter()
    process = subprocess.Popen([function], env=os.environ | environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        while not api.asked.wait(0.01):
            if process.poll() is not None or time.perf_counter() - began > PATIENCE_S:
                return None
        return (api.at - began) * 1_000
    finally:
        process.kill()
        process.wait()
        api.shutdown()


def measured(function, folder):
    for catalog, text in CATALOGS.items():
        config = folder / f"{catalog}.toml"
        config.write_text(f"[catalog]\n{text}{FORMAT}")
        times = [start(function, config) for _ in range(STARTS)]
        if None not in times:
            return f"{statistics.median(times):.1f} ms to the first request for an event ({STARTS} starts, {min(times):.1f} to {max(times):.1f}, catalog {catalog})"
    sys.exit(f"{function} does not start")


with tempfile.TemporaryDirectory() as folder:
    for function in sys.argv[1:]:
        print(f"{Path(function).parent.name}: {measured(function, Path(folder))}")
