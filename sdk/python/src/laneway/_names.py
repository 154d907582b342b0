"""Addresses of servers, and names of session lanes."""

from __future__ import annotations

import unicodedata
from typing import Sequence, Union
from urllib.parse import urlsplit


def addresses(urls: Union[str, Sequence[str]]) -> list[str]:
    """The addresses of servers: one, several with commas between them, or a list."""
    each = urls.split(",") if isinstance(urls, str) else urls
    found = [_address(url.strip()) for url in each]
    if not found:
        raise ValueError("a client needs the address of a server, as in http://127.0.0.1:7717")
    return found


def _address(url: str) -> str:
    """The address of a server, without a trailing slash."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("the address of a server begins with http:// or https:// and a host, as in http://127.0.0.1:7717")
    return url.rstrip("/")


def session_lane(key: str) -> str:
    """The lane of a session: its key, with special characters of lane names percent-encoded."""
    last = len(key) - 1
    parts = ["session:"]
    for place, char in enumerate(key):
        at_the_end = place in (0, last)
        if char in "%/*" or unicodedata.category(char) == "Cc" or (at_the_end and char.isspace()):
            parts.extend(f"%{byte:02X}" for byte in char.encode())
        else:
            parts.append(char)
    return "".join(parts)
