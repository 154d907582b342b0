# The server that real MCP clients are tested with. A gate answers when its file is there, and writes down each run.
# It has patience, so that no call is answered with its task only because the machine is slow; a test of that asks for an impatient one.
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
