"""moto's server, with what a commit needs and it lacks: Glue's UpdateTable compares VersionId and swaps in one step, and SkipArchive keeps no old version; S3
Tables compares its version token and swaps in one step.

Usage as moto_server: moto_server.py -H 127.0.0.1 -p PORT. Without this the stock server overwrites whatever another writer has committed.
"""

import json
import threading

from moto.core.exceptions import JsonRESTError
from moto.core.responses import EmptyResult
from moto.glue import responses
from moto.s3tables import models as s3tables
from moto.s3tables import responses as s3tables_responses
from moto.server import main

LOCK = threading.RLock()


def update_table(self):
    wanted = self.parameters
    table_input, version = wanted["TableInput"], wanted.get("VersionId")
    with LOCK:
        table = self.glue_backend.get_table(wanted["DatabaseName"], table_input["Name"])
        current = str(table._current_version)
        if version is not None and str(version) != current:
            raise JsonRESTError("ConcurrentModificationException", "Update table failed due to concurrent modifications.")
        self.glue_backend.update_table(wanted["DatabaseName"], table_input["Name"], table_input)
        if wanted.get("SkipArchive"):
            table.versions.pop(current, None)
    return EmptyResult()


responses.GlueResponse.update_table = update_table
unlocked = s3tables.Table.update_metadata_location


def update_metadata_location(self, metadata_location, version_token):
    with LOCK:
        unlocked(self, metadata_location, version_token)


s3tables.Table.update_metadata_location = update_metadata_location
answered = s3tables_responses.S3TablesResponse.update_table_metadata_location


def update_table_metadata_location(self):
    # The service answers with a list of namespaces, as its own clients insist.
    status, headers, text = answered(self)
    answer = json.loads(text)
    answer["namespace"] = [answer["namespace"]]
    return status, headers, json.dumps(answer)


s3tables_responses.S3TablesResponse.update_table_metadata_location = update_table_metadata_location

if __name__ == "__main__":
    main()
