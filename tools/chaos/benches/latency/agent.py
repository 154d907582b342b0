"""A program that answers turns over the `jsonl` protocol: `agent.py PORT`."""

import json
import signal
import socket
import sys
from typing import Any

PORT = int(sys.argv[1])
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)


def say(text: str) -> None:
    udp.sendto(text.encode(), ("127.0.0.1", PORT))


text = ""


def stop(*_: Any) -> None:
    say(f"stops {text}")
    sys.exit(0)


signal.signal(signal.SIGTERM, stop)
for line in sys.stdin:
    message = json.loads(line)
    if message["type"] == "steer":
        say(f"takes {message['text']}")
    else:
        text = message["message"]
        say(f"begins {text}")
