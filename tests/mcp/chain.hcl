# Agents that ask themselves, through `laneway mcp`.
store = "./data"

agent "deep" { command = ["python3", "chain.py"]  timeout = "1m" }
