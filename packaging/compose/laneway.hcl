lane "main" { max_concurrency = 8 }

agent "echo" { echo = true }
agent "builder" { external = true }
