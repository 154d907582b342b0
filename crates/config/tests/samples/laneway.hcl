listen = "127.0.0.1:7717"

lane "global"       { max_concurrency = 10 }
lane "main"         { max_concurrency = 4 }
lane "subagent"     { max_concurrency = 8 }
lane "session:*"    { max_concurrency = 1 }
lane "provider:llm" {
  max_concurrency = 8
  rate_limit {
    per = "minute"
    max = 60
  }
}

agent "coder" {
  command = ["claude", "-p"]
  lanes = ["main", "provider:llm"]
}
agent "browser"  { url = "http://127.0.0.1:9000/api/chat" }
agent "builder"  { external = true }

handler "bash" { command = ["sh", "-c", "…"] }        # how tasks of a kind run here

schedule "standup" {
  cron = "0 9 * * 1-5"
  timezone = "Europe/Berlin"
  agent = "coder"
  message = "Post the standup"
}

messages {
  queue {
    mode = "collect"
    debounce_ms = 1000
    cap = 20
    drop = "summarize"
    by_channel = { discord = "collect" }
  }
}

queue {                              # the tool lanes of every session
  control_max_concurrency = 2
  query_max_concurrency = 10
  execute_max_concurrency = 5
  generate_max_concurrency = 1
  enable_metrics = true
  enable_dlq = true                    # false keeps no dead letters; dlq_max_size = 1000
  enable_alerts = true
  storage_path = "./queue_data"        # the store, if `store` is not given; two different ones are an error
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
