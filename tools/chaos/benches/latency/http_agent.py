"""An HTTP service that answers turns: `http_agent.py PORT OWN_PORT`."""

import json
import socket
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PORT = int(sys.argv[1])
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
turns: dict[str, threading.Event] = {}


def say(text: str) -> None:
    udp.sendto(text.encode(), ("127.0.0.1", PORT))


class Agent(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if self.path == "/steer":
            say(f"takes {asked['text']}")
        elif self.path == "/cancel":
            turns[asked["task_id"]].set()
        else:
            self.turn(self.headers["x-laneway-task-id"], asked["message"])
        self.send_response(200)
        self.send_header("content-length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def turn(self, task: str, text: str) -> None:
        stop = turns[task] = threading.Event()
        say(f"begins {text}")
        stop.wait()
        say(f"stops {text}")

    def log_message(self, *_: object) -> None:
        pass


server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2])), Agent)
server.daemon_threads = True
print("ready", flush=True)
server.serve_forever()
