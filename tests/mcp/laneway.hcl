# The server for tests with real MCP clients. A gate answers when its file exists, and records each attempt.
# It answers late with a task, so that a slow machine does not change results. Some tests use an impatient server instead.
store = "./data"

server { mcp_answer_within = "10m" }

lane "global"   { max_concurrency = 100 }
lane "main"     { max_concurrency = 100 }
lane "subagent" { max_concurrency = 100 }

agent "echo"   { command = ["cat"] }
agent "broken" { command = ["sh", "-c", "exit 3"] }
agent "gate-1" {
  max_queued = 1
  command = ["sh", "gate.sh"]
}
agent "gate-2" {
  max_queued = 1
  command = ["sh", "gate.sh"]
}
agent "gate-3" {
  max_queued = 1
  command = ["sh", "gate.sh"]
}
agent "gate-4" {
  max_queued = 1
  command = ["sh", "gate.sh"]
}
