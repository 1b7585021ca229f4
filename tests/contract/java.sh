#!/usr/bin/env bash
# java.sh VERSION: prints the class path of HiveCatalogReader for a Hive Metastore of that version. Iceberg's Java HiveCatalog 1.5.2 comes with the jars of
# 3.1.3; a client of Hive 3 does not understand a metastore of Hive 2, so for that it runs on the jars of 2.3.10.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
paths=$("$here/../services/hms/install.sh" 3.1.3)
read -r jars _ <<<"$paths"
built=$(dirname "$jars")/reader-$(cksum <"$here/HiveCatalogReader.java" | cut -d' ' -f1)
if [ ! -d "$built" ]; then
  rm -rf "$built.new" && mkdir "$built.new"
  javac -nowarn -d "$built.new" -cp "$jars/*" "$here/HiveCatalogReader.java" >&2
  cp "$here/../services/hms/"*.properties "$built.new" && mv "$built.new" "$built"
fi
if [ "$1" = 2.3.10 ]; then
  paths=$("$here/../services/hms/install.sh" 2.3.10)
  read -r older _ <<<"$paths"
  echo "$built:$(echo "$jars"/iceberg-*.jar "$jars"/caffeine-*.jar | tr ' ' ':'):$older/*"
else
  echo "$built:$jars/*"
fi
