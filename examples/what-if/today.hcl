lane "global" { max_concurrency = 10 }

lane "main" { max_concurrency = 3 }

lane "tools" {
  max_concurrency = 2
  max_queued      = 200
}

lane "session:*" { max_concurrency = 1 }
