"""A real server in its own process."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import urllib.request
from pathlib import Path
from typing import Any

import anyio.to_thread

HERE = Path(__file__).parent
PROGRAM = os.environ["LANEWAY_BINARY"]
# How long a test waits. An idle machine needs some milliseconds; only a failure reaches it.
WAIT_MAX_S = 120
SCOPES = {"user": ["read", "submit"], "reader": ["read"], "admin": ["admin"], "agent:coder": ["read", "submit"]}


class Server:
    """`laneway serve` with a configuration of this folder, in its own directory, with a token for each subject. An impatient server
    soon answers a call with its task."""

    def __init__(self, folder: Path, config: str, with_tokens: bool = True, is_impatient: bool = False) -> None:
        self.folder = folder
        for name in [config, "gate.sh", "chain.py"]:
            shutil.copy(HERE / name, folder)
        if is_impatient:
            written = (folder / config).read_text()
            assert '"10m"' in written
            (folder / config).write_text(written.replace('"10m"', '"1s"'))
        self.config = config
        wanted = SCOPES if with_tokens else {}
        self.tokens = {subject: self._token(subject, scopes) for subject, scopes in wanted.items()}
        (folder / "program").write_text(PROGRAM)
        (folder / "token").write_text(self.tokens.get("user", ""))
        self.start()

    def _token(self, subject: str, scopes: list[str]) -> str:
        wanted = [word for scope in scopes for word in ("--scope", scope)]
        made = self.run("token", "create", "--config", self.config, "--subject", subject, *wanted)
        return made.strip()

    def run(self, *arguments: str) -> str:
        done = subprocess.run([PROGRAM, *arguments], cwd=self.folder, check=True, capture_output=True, text=True)
        return done.stdout

    def start(self) -> None:
        listen = getattr(self, "address", "127.0.0.1:0")
        command = [PROGRAM, "serve", "--config", self.config, "--listen", listen, "--log", "error"]
        self.process = subprocess.Popen(command, cwd=self.folder, stdout=subprocess.PIPE, text=True)
        self.address = self.process.stdout.readline().strip().rsplit("http://")[1]
        self.url = f"http://{self.address}"

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()

    def request(self, path: str, body: Any = None, headers: dict[str, str] | None = None, token: str = "admin") -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data=data, headers=headers or {})
        request.add_header("authorization", f"Bearer {self.tokens[token]}")
        request.add_header("content-type", "application/json")
        return urllib.request.urlopen(request, timeout=WAIT_MAX_S)

    def get(self, path: str) -> Any:
        return json.load(self.request(path))

    async def ended(self, task: str) -> str:
        """Waits for the end of a task, and returns its status."""
        return await anyio.to_thread.run_sync(self._hear, task)

    def _hear(self, task: str) -> str:
        ended = ""
        with self.request(f"/api/tasks/{task}/events") as events:
            for line in events:
                if line.startswith(b"event: "):
                    name = line[7:].strip().decode()
                    if name == "done":
                        return ended
                    ended = name
        raise AssertionError("the stream ended before the task")

    def open(self, gate: str) -> None:
        (self.folder / f"{gate}.open").touch()

    def runs(self, gate: str) -> int:
        return len((self.folder / f"{gate}.runs").read_text().splitlines())
