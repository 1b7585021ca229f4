#!/usr/bin/env bash
# install.sh VERSION: puts the jars of a Hive Metastore into $SLUICE_SERVICES_DIR (default target/services) and prints their folder.
# Both come as parts of Python packages: Spark's client library holds all of 2.3.10, bodo's Iceberg connector all of 3.1.3 (and Iceberg Java).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cache=${SLUICE_SERVICES_DIR:-$here/../../../target/services}
mkdir -p "$cache" && cache=$(cd "$cache" && pwd)
missing() { echo "the Hive Metastore $1 cannot be had: $2" >&2; exit 1; }
case "$1" in
  2.3.10) package=pyspark==4.0.5 ;;
  3.1.3) package=bodo-iceberg-connector==2026.10 ;;
  *) missing "$1" "known are 2.3.10 and 3.1.3" ;;
esac
for tool in python3 java javac gcc; do
  command -v "$tool" >/dev/null || missing "$1" "it needs $tool (Debian: apt-get install python3 openjdk-17-jdk-headless gcc)"
done
exec 9>"$cache/hms.lock" && flock 9
jars=$cache/hms-$1/jars
if [ ! -f "$cache/hms-$1/complete" ]; then
  echo "downloading the Hive Metastore $1 ($package)" >&2
  rm -rf "$cache/hms-$1" && mkdir -p "$jars" "$cache/download"
  [ -x "$cache/pip/bin/pip" ] || python3 -m venv "$cache/pip" || missing "$1" "it needs python3-venv"
  "$cache/pip/bin/pip" download --quiet --disable-pip-version-check --no-deps --dest "$cache/download" "$package" >&2 ||
    missing "$1" "$package cannot be downloaded"
  python3 "$here/unpack_jars.py" "$cache/download" "${package%%==*}" "$jars"
  touch "$cache/hms-$1/complete"
fi
stamp=$(cat "$here"/*.java "$here"/*.c | cksum | cut -d' ' -f1)
classes=$cache/hms-$1/classes-$stamp
if [ ! -d "$classes" ]; then
  rm -rf "$cache/hms-$1"/classes-*
  mkdir "$classes.new"
  javac -nowarn -d "$classes.new" -cp "$jars/*" "$here/HmsMain.java" "$here/ObjectStoreStub.java" >&2
  gcc -shared -fPIC -O2 -o "$classes.new/bind_loopback.so" "$here/bind_loopback.c" -ldl
  mv "$classes.new" "$classes"
fi
echo "$jars $classes"
