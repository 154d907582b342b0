# Three agents, one slow provider, a schedule.
lane "global"       { max_concurrency = 8 }
lane "main"         { max_concurrency = 4 }
lane "provider:llm" {
  max_concurrency = 2
  max_queued = 12
  rate_limit {
    per = "minute"
    max = 90
  }
}
lane "external" {
  handler = "external"
  max_concurrency = 2
  max_queued = 40
  retry {
    strategy = "fixed"
    max_retries = 1
    fixed_delay = "2s"
  }
}

# Answers at once, word by word.
agent "writer" {
  command         = ["sh", "-c", "read -r asked; for word in You asked: \"$asked\". Here is a draft.; do printf '%s ' \"$word\"; sleep 0.2; done"]
  lanes           = ["main"]
  max_concurrency = 2
  max_queued      = 6
}

# Needs the slow provider, so its tasks wait.
agent "coder" {
  command         = ["sh", "-c", "for step in reading planning editing testing done; do echo \"$step\"; sleep 0.7; done"]
  lanes           = ["main", "provider:llm"]
  max_concurrency = 3
  max_queued      = 8
}

# Workers run its tasks, and some attempts fail.
agent "builder" {
  external        = true
  max_concurrency = 2
  max_queued      = 5
  retry {
    strategy = "fixed"
    max_retries = 1
    fixed_delay = "2s"
  }
}

schedule "standup" {
  cron    = "*/20 * * * * *"
  agent   = "writer"
  message = "Post the standup"
}

server { drain_grace = "1s" }
