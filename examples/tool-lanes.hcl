# The tool calls of many agents, in four lanes for each conversation; what changes something is done by workers.
listen = "127.0.0.1:7717"

queue {
  control_max_concurrency  = 2
  query_max_concurrency    = 10
  execute_max_concurrency  = 5
  generate_max_concurrency = 1
  enable_dlq     = true
  dlq_max_size   = 1000
  enable_metrics = true
  enable_alerts  = true
  storage_path   = "./queue_data"
  default_timeout_ms = 60000
  retry_policy {
    strategy = "exponential"
    max_retries = 3
    initial_delay_ms = 100
  }
  rate_limit {
    limit_type = "per_second"
    max_operations = 100
  }
  priority_boost {
    strategy = "standard"
    deadline_ms = 300000
  }
  pressure_threshold = 50
  lane_timeouts {
    query = 30000
    execute = 120000
  }
  lane_handlers  { execute = { mode = "external", timeout_ms = 60000 } }
}

handler "read"      { command = ["cat"] }
handler "web_fetch" { url = "http://127.0.0.1:9100/fetch" }
handler "generate"  { url = "http://127.0.0.1:9200/complete" }
