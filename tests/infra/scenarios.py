"""Ways to deploy the template: the two stages, and each kind of Kafka, of signing in and of catalog."""

from support import parameters

ARN = "arn:aws:{}:eu-central-1:111122223333:{}"
SECRET = {"KafkaSecretArn": ARN.format("secretsmanager", "secret:AmazonMSK_sluice"), "KafkaSecretKmsKeyArn": ARN.format("kms", "key/kafka")}
ERROR_TOPIC = {"ErrorTopic": "sluice.errors", "FunctionSubnetIds": "subnet-0a", "FunctionSecurityGroupIds": "sg-0a"}
SELF_MANAGED = {
    "KafkaSource": "self-managed",
    "MskClusterArn": "",
    "KafkaBootstrapServers": "broker1:9096,broker2:9096",
    "KafkaSubnetId1": "subnet-0a",
    "KafkaSubnetId2": "subnet-0b",
    "KafkaSecurityGroupId": "sg-0a",
}
ALL = {
    "dev": ("dev", {}),
    "prod": ("prod", {}),
    "prod with an encrypted warehouse": ("prod", {"WarehouseKmsKeyArn": ARN.format("kms", "key/lake")}),
    "prod with an error topic": (
        "prod",
        {**ERROR_TOPIC, "ErrorTopicMskClusterArn": ARN.format("kafka", "cluster/errors/11111111-2222-3333-4444-555555555555-3")},
    ),
    "dev with an error topic by a secret": (
        "dev",
        {**ERROR_TOPIC, "ErrorTopicSecretArn": SECRET["KafkaSecretArn"], "ErrorTopicSecretKmsKeyArn": SECRET["KafkaSecretKmsKeyArn"]},
    ),
    "dev with a configuration in a bucket": ("dev", {"ConfigurationBucket": "my-artefacts", "ConfigurationKey": "sluice/dev.toml"}),
    "msk, scram": ("dev", {**SECRET, "KafkaAuthentication": "scram-512"}),
    "msk, mtls": ("dev", {"KafkaSecretArn": SECRET["KafkaSecretArn"], "KafkaAuthentication": "mtls"}),
    "own, plain": ("dev", {**SELF_MANAGED, **SECRET, "KafkaAuthentication": "plain"}),
    "own, scram-256, own authority": (
        "prod",
        {**SELF_MANAGED, **SECRET, "KafkaAuthentication": "scram-256", "KafkaRootCaSecretArn": ARN.format("secretsmanager", "secret:ca")},
    ),
    "own, scram-512": ("dev", {**SELF_MANAGED, **SECRET, "KafkaAuthentication": "scram-512"}),
    "own, mtls": ("dev", {**SELF_MANAGED, **SECRET, "KafkaAuthentication": "mtls"}),
    "own, none, no vpc": ("dev", {"KafkaSource": "self-managed", "MskClusterArn": "", "KafkaBootstrapServers": "b:9092", "KafkaAuthentication": "none"}),
    "s3tables": ("dev", {"Catalog": "s3tables", "WarehouseBucket": "", "TableBucketArn": ARN.format("s3tables", "bucket/lake"), "GlueResourceArns": ""}),
    "rest, in a vpc": ("dev", {"Catalog": "rest", "GlueResourceArns": "", "FunctionSubnetIds": "subnet-0a,subnet-0b", "FunctionSecurityGroupIds": "sg-0a"}),
    "hive, in a vpc": (
        "prod",
        {"Catalog": "hive", "GlueResourceArns": "", "FunctionSubnetIds": "subnet-0a", "FunctionSecurityGroupIds": "sg-0a"},
    ),
    "from a timestamp": ("prod", {"StartingPosition": "AT_TIMESTAMP", "StartingPositionTimestamp": "1772360130"}),
}


def values(scenario):
    stage, more = ALL[scenario]
    return {**parameters(stage), **more}
