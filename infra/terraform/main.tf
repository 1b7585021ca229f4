# The same stack as ../sam, for those who deploy by Terraform: the template is the only description of it, and this module is what `sam package` and
# `sam deploy` do. So there is one list of permissions, one mapping and one set of alarms, and Kafka's properties do not have to wait for the provider.

terraform {
  required_version = ">= 1.5"
  required_providers {
    aws     = { source = "hashicorp/aws", version = ">= 5.0" }
    archive = { source = "hashicorp/archive", version = ">= 2.4" }
  }
}

variable "name" {
  description = "Name of the stack, and prefix of what is in it."
  type        = string
}

variable "package" {
  description = "The ingest function, as make package made it; the others are beside it."
  type        = string
  default     = null
}

variable "configuration" {
  description = "A folder that holds <stage>/sluice.toml; ../pipeline by default."
  type        = string
  default     = null
}

variable "tags" {
  description = "Tags of everything."
  type        = map(string)
  default     = {}
}

locals {
  package       = coalesce(var.package, "${path.module}/../../target/package/ingest.zip")
  configuration = coalesce(var.configuration, "${path.module}/../pipeline")
  observability = "${path.module}/../sam/observability.yaml"
  maintenance   = toset(["compact", "rewrite-manifests", "expire-snapshots", "remove-orphans"])
  bucket        = aws_s3_bucket.artefacts

  # What `sam package` does: local paths become objects. A new content is a new key, so that CloudFormation sees it.
  template = replace(replace(replace(
    replace(
      replace(
        file("${path.module}/../sam/template.yaml"),
        "CodeUri: ../../target/package/ingest.zip",
        "CodeUri: s3://${local.bucket.id}/${aws_s3_object.package.key}",
      ),
      "ContentUri: ../pipeline/",
      "ContentUri: s3://${local.bucket.id}/${aws_s3_object.configuration.key}",
    ),
    "Location: observability.yaml",
    "Location: https://${local.bucket.bucket_regional_domain_name}/${aws_s3_object.observability.key}",
    ),
    "Location: maintenance.yaml",
    "Location: https://${local.bucket.bucket_regional_domain_name}/${aws_s3_object.maintenance_template.key}",
    ),
    "CodeUri: ../../target/package/redrive.zip",
    "CodeUri: s3://${local.bucket.id}/${aws_s3_object.redrive.key}",
  )
  maintenance_template = join("\n", [
    for line in split("\n", file("${path.module}/../sam/maintenance.yaml")) : (
      strcontains(line, "CodeUri: ../../target/package/")
      ? "      CodeUri: s3://${local.bucket.id}/${aws_s3_object.maintenance[trimsuffix(basename(line), ".zip")].key}"
      : line
    )
  ])
}

resource "aws_s3_bucket" "artefacts" {
  bucket_prefix = "${var.name}-"
  tags          = var.tags
}

resource "aws_s3_bucket_public_access_block" "artefacts" {
  bucket                  = aws_s3_bucket.artefacts.id
  block_public_acls       = true
  block_public_policy     = true
  ignore_public_acls      = true
  restrict_public_buckets = true
}

data "archive_file" "configuration" {
  type        = "zip"
  source_dir  = local.configuration
  output_path = "${path.root}/.terraform/${var.name}-configuration.zip"
}

resource "aws_s3_object" "package" {
  bucket = aws_s3_bucket.artefacts.id
  key    = "ingest-${filemd5(local.package)}.zip"
  source = local.package
}

resource "aws_s3_object" "redrive" {
  bucket = aws_s3_bucket.artefacts.id
  key    = "redrive-${filemd5("${dirname(local.package)}/redrive.zip")}.zip"
  source = "${dirname(local.package)}/redrive.zip"
}

resource "aws_s3_object" "maintenance" {
  for_each = local.maintenance
  bucket   = aws_s3_bucket.artefacts.id
  key      = "${each.key}-${filemd5("${dirname(local.package)}/${each.key}.zip")}.zip"
  source   = "${dirname(local.package)}/${each.key}.zip"
}

resource "aws_s3_object" "maintenance_template" {
  bucket  = aws_s3_bucket.artefacts.id
  key     = "maintenance-${md5(local.maintenance_template)}.yaml"
  content = local.maintenance_template
}

resource "aws_s3_object" "configuration" {
  bucket = aws_s3_bucket.artefacts.id
  key    = "configuration-${data.archive_file.configuration.output_md5}.zip"
  source = data.archive_file.configuration.output_path
}

resource "aws_s3_object" "observability" {
  bucket = aws_s3_bucket.artefacts.id
  key    = "observability-${filemd5(local.observability)}.yaml"
  source = local.observability
}

resource "aws_cloudformation_stack" "pipeline" {
  name          = var.name
  capabilities  = ["CAPABILITY_IAM", "CAPABILITY_AUTO_EXPAND"]
  template_body = local.template
  tags          = var.tags

  parameters = {
    Stage                        = var.stage
    Architecture                 = var.architecture
    MemorySize                   = tostring(var.memory_size)
    TimeoutSeconds               = tostring(var.timeout_seconds)
    ReservedConcurrency          = tostring(var.reserved_concurrency)
    LogFilter                    = var.log_filter
    LogRetentionDays             = tostring(var.log_retention_days)
    KmsKeyArn                    = var.kms_key_arn
    KafkaSource                  = var.kafka_source
    KafkaAuthentication          = var.kafka_authentication
    KafkaTopic                   = var.kafka_topic
    ConsumerGroupId              = var.consumer_group_id
    StartingPosition             = var.starting_position
    StartingPositionTimestamp    = tostring(var.starting_position_timestamp)
    MskClusterArn                = var.msk_cluster_arn
    KafkaBootstrapServers        = join(",", var.kafka_bootstrap_servers)
    KafkaSecretArn               = var.kafka_secret_arn
    KafkaSecretKmsKeyArn         = var.kafka_secret_kms_key_arn
    KafkaRootCaSecretArn         = var.kafka_root_ca_secret_arn
    KafkaSubnetId1               = var.kafka_subnet_id1
    KafkaSubnetId2               = var.kafka_subnet_id2
    KafkaSubnetId3               = var.kafka_subnet_id3
    KafkaSecurityGroupId         = var.kafka_security_group_id
    ErrorTopic                   = var.error_topic
    ErrorTopicMskClusterArn      = var.error_topic_msk_cluster_arn
    ErrorTopicSecretArn          = var.error_topic_secret_arn
    ErrorTopicSecretKmsKeyArn    = var.error_topic_secret_kms_key_arn
    BatchSize                    = tostring(var.batch_size)
    MaximumBatchingWindowSeconds = tostring(var.maximum_batching_window_seconds)
    MinimumPollers               = tostring(var.minimum_pollers)
    MaximumPollers               = tostring(var.maximum_pollers)
    MaximumRetryAttempts         = tostring(var.maximum_retry_attempts)
    FailedBatchRetentionDays     = tostring(var.failed_batch_retention_days)
    Catalog                      = var.catalog
    ConfigurationBucket          = var.configuration_bucket
    ConfigurationKey             = var.configuration_key
    WarehouseBucket              = var.warehouse_bucket
    WarehousePrefix              = var.warehouse_prefix
    WarehouseKmsKeyArn           = var.warehouse_kms_key_arn
    GlueResourceArns             = join(",", var.glue_resource_arns)
    TableBucketArn               = var.table_bucket_arn
    CatalogTokenSecretArn        = var.catalog_token_secret_arn
    CatalogCredentialSecretArn   = var.catalog_credential_secret_arn
    FunctionSubnetIds            = join(",", var.function_subnet_ids)
    Maintenance                  = var.maintenance
    FunctionSecurityGroupIds     = join(",", var.function_security_group_ids)
  }
}

output "outputs" {
  description = "The outputs of the stack: FunctionName, EventSourceMappingId, LogGroup, FailedBatches, AlarmTopicArn."
  value       = aws_cloudformation_stack.pipeline.outputs
}
