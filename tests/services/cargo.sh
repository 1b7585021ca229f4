# To be sourced: how cargo is called by the tests that need services. All of them name the same packages and features, so that they share what is compiled (iceberg, parquet,
# librdkafka, the AWS SDKs: minutes each); which tests run is said by --test.
service_packages=(--package sluice-contract --package sluice-kafka --package sluice-kafka-tests --package sluice-stream --package sluice-local
  --features sluice-contract/postgres,sluice-contract/aws,sluice-contract/rest,sluice-contract/hive
  --features sluice-kafka-tests/broker,sluice-kafka-tests/aws,sluice-stream/kafka,sluice-local/kafka,sluice-local/otlp)
