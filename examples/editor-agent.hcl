# One person, one machine, one coding agent in an editor: turns one after another, its tools in parallel.
listen = "127.0.0.1:7717"
store  = "./laneway-data"

lane "provider:llm" {
  max_concurrency = 4
  rate_limit {
    per = "minute"
    max = 60
  }
}

agent "coder" {
  command = ["claude", "-p"]
  env     = ["PATH", "HOME", "ANTHROPIC_API_KEY"]
  lanes   = ["main", "provider:llm"]
  timeout = "30m"
}

handler "bash" {
  command = ["sh"]
  cwd = "/tmp"
}
handler "read" { command = ["cat"] }

queue {
  query_max_concurrency   = 8
  execute_max_concurrency = 1
  lane_timeouts {
    query = 30000
    execute = 600000
  }
}
