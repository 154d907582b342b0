"""The trace that a request belongs to (W3C trace context)."""

from __future__ import annotations

import re
import secrets
from contextvars import ContextVar
from typing import Optional

traceparent: ContextVar[Optional[str]] = ContextVar("laneway_traceparent", default=None)
"""The current trace. A worker sets it for each of its tasks. Set it yourself to join your own trace."""

_SHAPE = re.compile(r"^[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-([0-9a-f]{2})$")


def next_traceparent() -> str:
    """A new span in the current trace, or in a new one."""
    going_on = _SHAPE.match(traceparent.get() or "")
    trace, flags = going_on.groups() if going_on else (secrets.token_hex(16), "01")
    return f"00-{trace}-{secrets.token_hex(8)}-{flags}"
