# The parameters of ../sam/template.yaml, under the same names; a test compares names, defaults and choices.

variable "stage" {
  description = "Which folder of infra/pipeline holds the sluice.toml of this deployment."
  type        = string
}

variable "architecture" {
  description = "That of the package which make package built."
  type        = string
  default     = "x86_64"

  validation {
    condition     = contains(["x86_64", "arm64"], var.architecture)
    error_message = "One of x86_64, arm64."
  }
}

variable "memory_size" {
  description = "Memory of the function in MB; the CPU share grows with it."
  type        = number
  default     = 512
}

variable "timeout_seconds" {
  description = "Longest run of a batch. Must be well above commit.reserve_ms; Kafka mappings allow 14 minutes."
  type        = number
  default     = 300
}

variable "reserved_concurrency" {
  description = "Most batches at once; 0 leaves it to the account. Overlapping batches are safe."
  type        = number
  default     = 0
}

variable "log_filter" {
  description = "SLUICE_LOG, what the function logs."
  type        = string
  default     = "info"
}

variable "log_retention_days" {
  type    = number
  default = 30

  validation {
    condition     = contains([1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653], var.log_retention_days)
    error_message = "One of 1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653."
  }
}

variable "kms_key_arn" {
  description = "Key for logs, failed batches, alarms and the environment; empty for keys that AWS owns. Its policy must let CloudWatch Logs and CloudWatch use it."
  type        = string
  default     = ""
}

variable "kafka_source" {
  type = string

  validation {
    condition     = contains(["msk", "self-managed"], var.kafka_source)
    error_message = "One of msk, self-managed."
  }
}

variable "kafka_authentication" {
  description = "How the mapping signs in. msk - iam, scram-512, mtls. self-managed - scram-512, scram-256, plain, mtls, none."
  type        = string

  validation {
    condition     = contains(["iam", "scram-512", "scram-256", "plain", "mtls", "none"], var.kafka_authentication)
    error_message = "One of iam, scram-512, scram-256, plain, mtls, none."
  }
}

variable "kafka_topic" {
  description = "The topic. A mapping reads one; for more, deploy the stack once per topic with the same source.id."
  type        = string
}

variable "consumer_group_id" {
  description = "Pinned, so that a mapping that is made anew goes on where the old one stopped. Its offsets win over StartingPosition."
  type        = string
}

variable "starting_position" {
  description = "Where a new consumer group starts. LATEST may miss records while the mapping is being made."
  type        = string
  default     = "TRIM_HORIZON"

  validation {
    condition     = contains(["TRIM_HORIZON", "LATEST", "AT_TIMESTAMP"], var.starting_position)
    error_message = "One of TRIM_HORIZON, LATEST, AT_TIMESTAMP."
  }
}

variable "starting_position_timestamp" {
  description = "Seconds since 1970, for AT_TIMESTAMP."
  type        = number
  default     = 0
}

variable "msk_cluster_arn" {
  description = "msk - the cluster's ARN, arn:aws:kafka:REGION:ACCOUNT:cluster/NAME/UUID."
  type        = string
  default     = ""
}

variable "kafka_bootstrap_servers" {
  description = "self-managed - up to ten host:port."
  type        = list(string)
  default     = []
}

variable "kafka_secret_arn" {
  description = "Secret with username and password (scram, plain) or certificate and key (mtls). For MSK SCRAM its name starts with AmazonMSK_."
  type        = string
  default     = ""
}

variable "kafka_secret_kms_key_arn" {
  description = "The customer-managed key of that secret; MSK SCRAM demands one."
  type        = string
  default     = ""
}

variable "kafka_root_ca_secret_arn" {
  description = "self-managed - secret with the certificate of a private authority."
  type        = string
  default     = ""
}

variable "kafka_subnet_id1" {
  description = "self-managed in a VPC - a subnet from which the brokers are reached."
  type        = string
  default     = ""
}

variable "kafka_subnet_id2" {
  type    = string
  default = ""
}

variable "kafka_subnet_id3" {
  type    = string
  default = ""
}

variable "kafka_security_group_id" {
  description = "self-managed in a VPC - the security group of the pollers."
  type        = string
  default     = ""
}

variable "error_topic" {
  description = "errors.topic of sluice.toml, when it has one. The function produces to it itself, so it must reach the brokers (function_subnet_ids)."
  type        = string
  default     = ""
}

variable "error_topic_msk_cluster_arn" {
  description = "The cluster of that topic, where errors.security is msk-iam."
  type        = string
  default     = ""
}

variable "error_topic_secret_arn" {
  description = "The secret that errors.security names, where it names one."
  type        = string
  default     = ""
}

variable "error_topic_secret_kms_key_arn" {
  description = "The customer-managed key of that secret."
  type        = string
  default     = ""
}

variable "batch_size" {
  description = "Most records of a batch. A batch also ends at 6 MB and when the window is over."
  type        = number
  default     = 10000
}

variable "maximum_batching_window_seconds" {
  description = "How long records are gathered. Longer is cheaper (fewer commits, larger files) and later."
  type        = number
  default     = 60
}

variable "minimum_pollers" {
  description = "0 for on-demand mode. 1 and more for provisioned mode, which is billed by the hour and has bounded retries and the bucket of failed batches."
  type        = number
  default     = 0
}

variable "maximum_pollers" {
  description = "For provisioned mode; more than the topic has partitions is of no use."
  type        = number
  default     = 4
}

variable "maximum_retry_attempts" {
  description = "For provisioned mode; afterwards the batch goes to the bucket of failed batches. Never infinite - Lambda would make 10 of that."
  type        = number
  default     = 10000
}

variable "failed_batch_retention_days" {
  description = "After so many days a failed batch is deleted for good."
  type        = number
  default     = 365
}

variable "catalog" {
  description = "catalog.type of sluice.toml; decides what the role may do."
  type        = string
  default     = "glue"

  validation {
    condition     = contains(["glue", "hive", "s3tables", "rest", "sql"], var.catalog)
    error_message = "One of glue, hive, s3tables, rest, sql."
  }
}

variable "configuration_bucket" {
  description = "Bucket of the configuration, in this region; empty for the layer with infra/pipeline. It is read when a function's environment starts."
  type        = string
  default     = ""
}

variable "configuration_key" {
  description = "Its key in that bucket."
  type        = string
  default     = ""
}

variable "warehouse_bucket" {
  description = "Bucket of the tables; not for s3tables, nor where a REST catalog hands out credentials."
  type        = string
  default     = ""
}

variable "warehouse_prefix" {
  description = "Prefix of the tables in that bucket, with a slash at its end; empty for the whole bucket."
  type        = string
  default     = ""
}

variable "warehouse_kms_key_arn" {
  description = "Key of the tables' files, with SSE-KMS."
  type        = string
  default     = ""
}

variable "glue_resource_arns" {
  description = "glue - what may be written, as ARNs - the catalog, and of each database (that of the error table included) database/NAME and table/NAME/*."
  type        = list(string)
  default     = []
}

variable "table_bucket_arn" {
  description = "s3tables - the table bucket."
  type        = string
  default     = ""
}

variable "catalog_token_secret_arn" {
  description = "rest with auth = bearer - secret that holds the token."
  type        = string
  default     = ""
}

variable "catalog_credential_secret_arn" {
  description = "rest with auth = oauth2 - secret that holds id:secret."
  type        = string
  default     = ""
}

variable "function_subnet_ids" {
  description = "Subnets of the function, for a catalog that is in a VPC (hive, rest, sql); they need a way to S3."
  type        = list(string)
  default     = []
}

variable "function_security_group_ids" {
  type    = list(string)
  default = []
}

variable "maintenance" {
  description = "none - another engine compacts the tables. With s3tables there is none, because the service does it."
  type        = string
  default     = "scheduled"

  validation {
    condition     = contains(["scheduled", "none"], var.maintenance)
    error_message = "One of scheduled, none."
  }
}
