#!/usr/bin/env bash
# with-hms.sh [2.3.10|3.1.3|2.3.10-framed] COMMAND…: runs COMMAND with an empty Hive Metastore of its own on a free loopback port, and stops it
# afterwards. Its address is HMS_2_URI, HMS_3_URI or HMS_FRAMED_URI. 2.3.10 (the default) compares the expected metadata location (HIVE-26882),
# 3.1.3 ignores it. A dead client's lock goes after 10 seconds.
set -euo pipefail
kind=2.3.10
case "${1:-}" in 2.3.10 | 3.1.3 | 2.3.10-framed) kind=$1 && shift ;; esac
case "$kind" in
  2.3.10) variable=HMS_2_URI ;;
  2.3.10-framed) variable=HMS_FRAMED_URI ;;
  3.1.3) variable=HMS_3_URI ;;
esac
here=$(cd "$(dirname "$0")" && pwd)
paths=$("$here/hms/install.sh" "${kind%-framed}")
read -r jars classes <<<"$paths"
data=$(mktemp -d /tmp/sluice-hms.XXXXXX)
pid=
stop() {
  [ -z "$pid" ] || { kill -9 "$pid" && wait "$pid"; } 2>/dev/null || true
  rm -rf "$data"
}
trap stop EXIT
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
property() { echo "<property><name>$1</name><value>$2</value></property>"; }
{
  echo '<configuration>'
  property javax.jdo.option.ConnectionURL "jdbc:derby:memory:hms;create=true"
  property javax.jdo.option.ConnectionDriverName org.apache.derby.jdbc.EmbeddedDriver
  property datanucleus.schema.autoCreateAll true
  property datanucleus.connectionPoolingType none
  property hive.metastore.schema.verification false
  property hive.async.log.enabled false
  property metastore.async.log.enabled false
  property metastore.task.threads.always org.apache.hadoop.hive.metastore.events.EventCleanerTask
  property metastore.expression.proxy org.apache.hadoop.hive.metastore.DefaultPartitionExpressionProxy
  property hive.metastore.warehouse.dir "file://$data/warehouse"
  property metastore.warehouse.dir "file://$data/warehouse"
  property hive.metastore.server.min.threads 4
  property metastore.server.min.threads 4
  property hive.txn.timeout 10s
  property metastore.txn.timeout 10s
  property fs.s3.impl ObjectStoreStub
  property fs.s3a.impl ObjectStoreStub
  [ "$kind" != 2.3.10-framed ] || property hive.metastore.thrift.framed.transport.enabled true
  echo '</configuration>'
} >"$data/hive-site.xml"
cp "$data/hive-site.xml" "$data/metastore-site.xml"
cp "$here"/hms/*.properties "$data"
cd "$data"
LD_PRELOAD=$classes/bind_loopback.so java -Xmx384m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Dderby.stream.error.file=/dev/null \
  -cp ".:$classes:$jars/*" HmsMain -p "$port" >"$data/log" 2>&1 &
pid=$!
cd "$OLDPWD"
for ((tenths = 0; ; tenths++)); do
  if (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then break; fi
  if [ $tenths -gt 1200 ] || ! kill -0 "$pid" 2>/dev/null; then
    echo "the Hive Metastore $kind did not start:" >&2
    tail -n 20 "$data/log" >&2
    exit 1
  fi
  sleep 0.1
done
export "$variable=thrift://127.0.0.1:$port"
status=0
"$@" || status=$?
[ $status = 0 ] || { echo "--- the end of the log of the Hive Metastore $kind" >&2 && tail -n 20 "$data/log" >&2; }
exit $status
