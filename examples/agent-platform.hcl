# Many agents of many people on one server: one turn of an agent at a time, three may wait, agents ask each other.
listen = "127.0.0.1:7717"
store  = "./laneway-data"

lane "global"       { max_concurrency = 20 }
lane "main"         { max_concurrency = 8 }
lane "subagent"     { max_concurrency = 12 }
lane "agent:*" {
  max_queued = 3
  wait_timeout = "2m"
  timeout = "10m"
}
lane "provider:llm" {
  max_concurrency = 8
  rate_limit {
    per = "minute"
    max = 300
  }
}

agent "planner" {
  url = "http://planner.internal:8000/chat"
  lanes = ["main", "provider:llm"]
}
agent "coder" {
  url = "http://coder.internal:8000/chat"
  lanes = ["main", "provider:llm"]
  timeout = "2h"
}
agent "reviewer" { url = "http://reviewer.internal:8000/chat" }
agent "builder" {
  external = true
  timeout = "1h"
}

schedule "standup" {
  cron     = "0 9 * * 1-5"
  timezone = "Europe/Berlin"
  agent    = "planner"
  message  = "Post the standup"
}

server {
  hosts         = ["lanes.example"]
  url           = "https://lanes.example"
  token_waiting = 100
  drain_grace   = "60s"
}
