"""A local server, which starts and ends with the program."""

from __future__ import annotations

import collections
import json
import os
import re
import shutil
import subprocess
import tempfile
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Mapping, Optional, Sequence, Union

from ._async.client import AsyncClient
from ._sync.client import Client
from .errors import LanewayError

# Ends the server when this program has ended without doing so. Its read fails when this program's end of the pipe is gone.
# It succeeds once the server has ended, because its process id may then belong to another process.
_WATCH = 'read -r _ || kill -TERM "$1"; rm -rf -- "$2"'
_LISTENS = re.compile(r"listens on (http://\S+)")


class LocalFailed(LanewayError):
    """The server did not start."""


class Local:
    """A server on a free loopback port. Use it in a `with` or `async with` block, or call `close`."""

    def __init__(self, command: Sequence[str], home: Path, ready_within: float) -> None:
        self._home = home
        self._log = collections.deque[str](maxlen=200)
        # In its own process session, so that Ctrl-C reaches only this program, which needs the server while it ends.
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        try:
            self._watcher = subprocess.Popen(
                ["sh", "-c", _WATCH, "laneway-watch", str(self._process.pid), str(home)],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError:
            self._process.kill()
            self._process.wait()
            raise
        self._told = threading.Event()
        self._lock = threading.Lock()
        self.url = ""
        """The server's address."""
        assert self._process.stdout is not None
        self._reader = threading.Thread(target=self._read, args=(self._process.stdout,), daemon=True)
        self._reader.start()
        try:
            self._wait_until_ready(time.monotonic() + ready_within)
        except BaseException:
            self.close()
            raise

    @property
    def pid(self) -> int:
        """The process."""
        return self._process.pid

    def client(self, **how: Any) -> Client:
        """A client of the server."""
        return Client(self.url, **how)

    def async_client(self, **how: Any) -> AsyncClient:
        """An asynchronous client of the server."""
        return AsyncClient(self.url, **how)

    def close(self, grace: float = 10.0) -> None:
        """Stops the server, and kills it after `grace` seconds."""
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(grace)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._end_watch()
        self._watcher.wait()
        # Programs that the server has started may hold its output open, so wait only a second.
        self._reader.join(1.0)
        shutil.rmtree(self._home, ignore_errors=True)

    def __enter__(self) -> Local:
        return self

    def __exit__(
        self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self.close()

    async def __aenter__(self) -> Local:
        return self

    async def __aexit__(
        self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        import asyncio

        await asyncio.to_thread(self.close)

    def _read(self, lines: IO[str]) -> None:
        for line in lines:
            self._log.append(line)
            found = _LISTENS.search(line)
            if found and not self.url:
                self.url = found.group(1)
                self._told.set()
        self._told.set()
        self._process.wait()
        self._end_watch()

    def _end_watch(self) -> None:
        assert self._watcher.stdin is not None
        with self._lock:
            if self._watcher.stdin.closed:
                return
            try:
                self._watcher.stdin.write(b"done\n")
                self._watcher.stdin.close()
            except OSError:
                # The watcher has already ended.
                pass

    def _wait_until_ready(self, until: float) -> None:
        self._told.wait(max(0.0, until - time.monotonic()))
        while self.url and self._process.poll() is None and time.monotonic() < until:
            try:
                with urllib.request.urlopen(f"{self.url}/readyz", timeout=5):
                    return
            except (urllib.error.URLError, OSError):
                time.sleep(0.02)
        raise LocalFailed("the server did not become ready; its output:\n" + "".join(self._log))


class Laneway:
    """Starts a local server."""

    @staticmethod
    def local(
        store: Union[str, os.PathLike[str]] = "memory",
        *,
        config: Union[Mapping[str, Any], str, os.PathLike[str], None] = None,
        binary: Optional[str] = None,
        listen: str = "127.0.0.1:0",
        ready_within: float = 30.0,
    ) -> Local:
        """Starts the program `laneway` on a free loopback port, and returns when it is ready.

        `store` is `"memory"` or a directory. `config` is a configuration file, or its content:
        `{"lane": {"main": {"max_concurrency": 3}}}`. `binary` is the program. Without it, `LANEWAY_BINARY` names the program, or
        it is on the `PATH`. The server ends with this program, even if this program is killed.
        """
        program = binary or os.environ.get("LANEWAY_BINARY") or shutil.which("laneway")
        if program is None:
            raise LocalFailed("there is no program 'laneway' on the PATH; set binary=… or LANEWAY_BINARY")
        home = Path(tempfile.mkdtemp(prefix="laneway-"))
        if isinstance(config, (str, os.PathLike)):
            file = Path(config)
        else:
            file = home / "laneway.json"
            file.write_text(json.dumps(dict(config or {})))
        command = [program, "serve", "--config", str(file), "--listen", listen, "--store", os.fspath(store)]
        try:
            return Local([*command, "--log", "warn"], home, ready_within)
        except OSError as error:
            shutil.rmtree(home, ignore_errors=True)
            raise LocalFailed(f"{program} did not start: {error}") from error
