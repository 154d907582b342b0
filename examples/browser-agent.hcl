# An API in front of browsers that an agent drives: one turn per browser at once. Other callers get the time to come back.
listen = "127.0.0.1:7717"
store  = "memory"

lane "global" {
  max_concurrency = 3
  max_queued = 0
}

agent "browser" {
  url             = "http://127.0.0.1:9000/api/chat"
  max_concurrency = 3
  max_queued      = 0
  timeout         = "10m"
  lanes           = []
}

server {
  ready_when_full           = false
  origins                   = ["https://app.example"]
  token_requests_per_minute = 120
  token_connections         = 20
}
