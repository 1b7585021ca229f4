#!/usr/bin/env bash
# broker.sh start | stop | kill | pause | resume: what a test does to the broker of with-kafka.sh ($SLUICE_TEST_KAFKA_DIR). Topics and ports stay.
# start waits until the broker answers, at most a minute; stop ends it in order, kill (SIGKILL) without; pause and resume are SIGSTOP and SIGCONT.
set -euo pipefail
cd "$SLUICE_TEST_KAFKA_DIR"
case "$1" in
  start)
    # Not the test's process group or open files: the test may end before the broker does.
    setsid java -Xmx384m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Dlog4j2.configurationFile="$PWD/log4j2.properties" \
      -cp "$KAFKA_JARS/*" kafka.Kafka server.properties >>log 2>&1 </dev/null 9>&- &
    echo $! >pid
    for _ in $(seq 600); do
      (exec 3<>"/dev/tcp/${SLUICE_TEST_KAFKA/:/\/}") 2>/dev/null && exit 0
      kill -0 "$(cat pid)" 2>/dev/null || break
      sleep 0.1
    done
    echo "the broker did not start:" >&2
    tail -n 20 log >&2
    exit 1
    ;;
  stop | kill)
    signal=TERM && [ "$1" = stop ] || signal=KILL
    kill -CONT "$(cat pid)" 2>/dev/null || true
    kill -$signal "$(cat pid)" 2>/dev/null || true
    for _ in $(seq 300); do
      kill -0 "$(cat pid)" 2>/dev/null || exit 0
      sleep 0.1
    done
    echo "the broker did not stop" >&2
    exit 1
    ;;
  pause) kill -STOP "$(cat pid)" ;;
  resume) kill -CONT "$(cat pid)" ;;
  *) echo "broker.sh start | stop | kill | pause | resume" >&2 && exit 2 ;;
esac
