"""The running task that sends a request."""

from __future__ import annotations

import os
from contextvars import ContextVar
from typing import Sequence

running: ContextVar[tuple[str, str]] = ContextVar(
    "laneway_running", default=(os.environ.get("LANEWAY_URL", ""), os.environ.get("LANEWAY_TASK_ID", ""))
)
"""The server and the id of the running task. A worker sets them for each of its tasks, and the program of an agent has them in
its environment."""


def as_child(urls: Sequence[str]) -> dict[str, str]:
    """The header that makes a request to the server at one of these addresses a child of the running task."""
    server, task = running.get()
    return {"x-laneway-parent": task} if task and server.rstrip("/") in urls else {}
