"""An agent that calls itself over MCP without any library, and answers with the length of the chain."""

import json
import subprocess
import sys
from pathlib import Path

message = sys.stdin.read()
bridge = subprocess.Popen(
    [Path("program").read_text(), "mcp", "--token", Path("token").read_text()],
    stdin=subprocess.PIPE,
    stdout=subprocess.PIPE,
)


def ask(number, method, params):
    line = json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
    bridge.stdin.write(line.encode() + b"\n")
    bridge.stdin.flush()
    return json.loads(bridge.stdout.readline())["result"]


client = {"name": "chain", "version": "1"}
ask(1, "initialize", {"protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": client})
bridge.stdin.write(b'{"jsonrpc": "2.0", "method": "notifications/initialized"}\n')
# A turn of its own session would wait for itself. Other tasks run until the chain is too long.
arguments = {"agent_name": "deep", "message": message + "x", "parallel": message.startswith("p")}
answer = ask(2, "tools/call", {"name": "chat_with_agent", "arguments": arguments})
bridge.stdin.close()
bridge.wait()
if answer.get("isError"):
    print(f"{answer['structuredContent']['code']} after {len(message)}", end="")
else:
    print(answer["content"][0]["text"], end="")
