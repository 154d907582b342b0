# Agents that call themselves through `laneway mcp`.
store = "./data"

server { mcp_answer_within = "10m" }

agent "deep" {
  command = ["python3", "chain.py"]
  timeout = "10m"
}
