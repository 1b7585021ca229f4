#!/usr/bin/env bash
# with-kafka.sh COMMAND…: runs COMMAND beside an Apache Kafka of its own (KRaft, one node, no topics) on free loopback ports, and stops it afterwards.
# COMMAND sees the addresses of its listeners: SLUICE_TEST_KAFKA (open), SLUICE_TEST_KAFKA_TLS, SLUICE_TEST_KAFKA_MTLS (wants a client's certificate),
# SLUICE_TEST_KAFKA_SASL and SLUICE_TEST_KAFKA_SASL_TLS (user `sluice` with password `sluice-secret` by PLAIN, SCRAM-SHA-256 and SCRAM-SHA-512; OAUTHBEARER takes
# unsigned tokens); SLUICE_TEST_KAFKA_DIR with ca.pem, client.pem, client.key and client-encrypted.key (passphrase `key-secret`); and SLUICE_TEST_KAFKA_BROKER, a command
# that stops, kills, pauses and starts it (kafka/broker.sh). The jars are fetched once from Maven Central into $SLUICE_SERVICES_DIR (target/services by default).
# Ends with 70 when it cannot be had.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cache=${SLUICE_SERVICES_DIR:-${CARGO_TARGET_DIR:-$here/../../target}/services}/kafka-4.1.1
fail() { echo "the service Kafka cannot be had: $1" >&2; exit 70; }

command -v java >/dev/null || fail "Java 17 or newer is needed (Debian: apt-get install openjdk-17-jdk-headless)"
command -v openssl >/dev/null || fail "openssl is needed, to make certificates (Debian: apt-get install openssl)"
if [ ! -f "$cache/ready" ]; then
  command -v mvn >/dev/null || fail "Maven is needed (Debian: apt-get install maven)"
  mkdir -p "$cache"
  (
    flock 9
    [ -f "$cache/ready" ] && exit 0
    mvn -q -B -f "$here/kafka/pom.xml" org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies \
      -DincludeScope=runtime -DoutputDirectory="$cache/libs" >&2 || fail "Maven could not fetch the jars of tests/services/kafka/pom.xml"
    touch "$cache/ready"
  ) 9>"$cache/lock" || exit 70
fi

work=$(mktemp -d /tmp/sluice-kafka.XXXXXX)
export SLUICE_TEST_KAFKA_DIR=$work SLUICE_TEST_KAFKA_BROKER=$here/kafka/broker.sh KAFKA_JARS=$cache/libs
stop() {
  [ ! -f "$work/pid" ] || "$here/kafka/broker.sh" kill || true
  rm -rf "$work"
}
trap stop EXIT
"$here/kafka/certificates.sh" "$work" || fail "openssl could not make certificates"
cp "$here/kafka/log4j2.properties" "$work"
read -r open tls mtls sasl sasl_tls controller < <(python3 - <<'PYTHON'
import socket

sockets = [socket.socket() for _ in range(6)]
for each in sockets:
    each.bind(("127.0.0.1", 0))
print(*(each.getsockname()[1] for each in sockets))
PYTHON
)
export SLUICE_TEST_KAFKA=127.0.0.1:$open SLUICE_TEST_KAFKA_TLS=127.0.0.1:$tls SLUICE_TEST_KAFKA_MTLS=127.0.0.1:$mtls
export SLUICE_TEST_KAFKA_SASL=127.0.0.1:$sasl SLUICE_TEST_KAFKA_SASL_TLS=127.0.0.1:$sasl_tls

listeners="OPEN://127.0.0.1:$open,TLS://127.0.0.1:$tls,MTLS://127.0.0.1:$mtls,SASL://127.0.0.1:$sasl,SASLTLS://127.0.0.1:$sasl_tls"
{
  cat <<PROPERTIES
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:$controller
listeners=$listeners,CONTROLLER://127.0.0.1:$controller
advertised.listeners=$listeners
controller.listener.names=CONTROLLER
inter.broker.listener.name=OPEN
listener.security.protocol.map=CONTROLLER:PLAINTEXT,OPEN:PLAINTEXT,TLS:SSL,MTLS:SSL,SASL:SASL_PLAINTEXT,SASLTLS:SASL_SSL
log.dirs=$work/data
num.network.threads=1
num.io.threads=2
num.recovery.threads.per.data.dir=1
background.threads=2
auto.create.topics.enable=false
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=1000
ssl.keystore.type=PEM
ssl.keystore.location=$work/server-store.pem
ssl.truststore.type=PEM
ssl.truststore.location=$work/ca.pem
listener.name.mtls.ssl.client.auth=required
sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER
PROPERTIES
  for listener in sasl sasltls; do
    echo "listener.name.$listener.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required user_sluice=\"sluice-secret\";"
    for mechanism in scram-sha-256 scram-sha-512; do
      echo "listener.name.$listener.$mechanism.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;"
    done
    echo "listener.name.$listener.oauthbearer.sasl.jaas.config=org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;"
  done
} >"$work/server.properties"

java -Xmx256m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Dlog4j2.configurationFile="$work/log4j2.properties" -cp "$KAFKA_JARS/*" kafka.tools.StorageTool \
  format --cluster-id c2x1aWNlLXRlc3RzLTEyMw -c "$work/server.properties" --add-scram 'SCRAM-SHA-256=[name=sluice,password=sluice-secret]' \
  --add-scram 'SCRAM-SHA-512=[name=sluice,password=sluice-secret]' >"$work/format.log" 2>&1 || { tail -n 20 "$work/format.log" >&2; fail "its storage cannot be formatted"; }
"$here/kafka/broker.sh" start || fail "it did not start"

status=0
"$@" || status=$?
[ $status = 0 ] || { echo "--- the end of Kafka's log" >&2 && tail -n 20 "$work/log" >&2; }
exit $status
