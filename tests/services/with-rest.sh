#!/usr/bin/env bash
# with-rest.sh COMMAND…: runs COMMAND beside Iceberg REST catalogs of its own (Iceberg's REST fixture, see rest/RestMain.java) on a free loopback port, and stops
# them afterwards. COMMAND sees SLUICE_TEST_REST_URI, below which /open0 … /open23 are open and /closed0 … /closed23 want OAuth2 client credentials
# (sluice:secret), and SLUICE_TEST_REST_WAREHOUSE, the folder of their files. The jars are fetched once from Maven Central into $SLUICE_SERVICES_DIR
# (target/services by default). Ends with 70 when it cannot be had.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cache=${SLUICE_SERVICES_DIR:-${CARGO_TARGET_DIR:-$here/../../target}/services}/rest-1.10.1-sqlite
fail() { echo "the service REST catalog (Iceberg's REST fixture) cannot be had: $1" >&2; exit 70; }

command -v javac >/dev/null || fail "a Java development kit, 17 or newer, is needed (Debian: apt-get install openjdk-17-jdk-headless)"
if [ ! -f "$cache/ready" ]; then
  command -v mvn >/dev/null || fail "Maven is needed (Debian: apt-get install maven)"
  mkdir -p "$cache"
  (
    flock 9
    [ -f "$cache/ready" ] && exit 0
    mvn -q -B -f "$here/rest/pom.xml" org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies \
      -DincludeScope=runtime -DoutputDirectory="$cache/libs" >&2 || fail "Maven could not fetch the jars of tests/services/rest/pom.xml"
    touch "$cache/ready"
  ) 9>"$cache/lock" || exit 70
fi

work=$(mktemp -d /tmp/sluice-rest.XXXXXX)
server=
stop() {
  [ -z "$server" ] || { kill "$server" 2>/dev/null || true; wait "$server" 2>/dev/null || true; }
  rm -rf "$work"
}
trap stop EXIT
mkdir "$work/warehouse"
javac -d "$work/classes" -cp "$cache/libs/*" "$here/rest/RestMain.java" || fail "tests/services/rest/RestMain.java does not compile"
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
java -Djava.io.tmpdir="$work" -Xmx384m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -cp "$work/classes:$cache/libs/*" RestMain "$port" "$work/warehouse" >"$work/log" 2>&1 &
server=$!
for _ in $(seq 600); do
  (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null && ready=1 && break
  kill -0 "$server" 2>/dev/null || { tail -n 20 "$work/log" >&2; fail "it ended"; }
  sleep 0.1
done
[ "${ready:-}" = 1 ] || fail "it did not answer within 60 seconds"

export SLUICE_TEST_REST_URI="http://127.0.0.1:$port" SLUICE_TEST_REST_WAREHOUSE="$work/warehouse"
"$@"
