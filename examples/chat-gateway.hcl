# People on several channels talk to one agent: a message to a busy conversation waits, is collected or steers.
listen = "127.0.0.1:7717"
store  = "./laneway-data"

lane "main"      { max_concurrency = 4 }
lane "session:*" { max_queued = 50 }

agent "assistant" {
  command         = ["assistant", "--stream"]
  protocol        = "jsonl"
  max_concurrency = 4
  max_queued      = 100
  wait_timeout    = "5m"
}

messages {
  queue {
    mode        = "collect"
    debounce_ms = 1000
    cap         = 20
    drop        = "summarize"
    by_channel {
      discord = "collect"
      webchat = "steer"
      email   = { mode = "followup", cap = 100, drop = "old" }
    }
  }
}

schedule "digest" {
  cron     = "0 8 * * 1-5"
  timezone = "Europe/Berlin"
  agent    = "assistant"
  message  = "Send everybody the morning digest"
  catch_up = "one"
}
