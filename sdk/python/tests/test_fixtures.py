"""The transcripts in `fixtures/`: each call sends exactly the recorded request, and decodes the recorded answer.

The server's own tests make the same requests of a real server.
"""

from __future__ import annotations

import dataclasses
import http.server
import itertools
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Optional
from urllib.parse import parse_qsl, unquote, urlsplit

import pytest

from laneway import Client, Event, Refusal, Retry, Session
from laneway.errors import BY_CODE
from laneway.events import event

FOLDER = Path(__file__).resolve().parents[3] / "fixtures"
Exchange = dict[str, Any]


def filled(text: str) -> Any:
    """A fixture with values for its placeholders."""
    text = text.replace('"<millis>"', "1500").replace('"<seconds>"', "2")
    for name, value in {"<time>": "2026-01-02T03:04:05.678Z", "<hash>": "0" * 64}.items():
        text = text.replace(name, value)
    for number in range(30, 0, -1):
        text = text.replace(f"<id:{number}>", f"01900000-0000-7000-8000-{number:012}")
        text = text.replace(f"<event:{number}>", f"1-{number}")
        text = text.replace(f"<token:{number}>", f"lw_{number}.secret").replace(f"<token-id:{number}>", f"lw_{number}")
    return json.loads(text)


def exchanges() -> list[Any]:
    found = []
    for file in sorted(FOLDER.glob("*.json")):
        for exchange in filled(file.read_text())["exchanges"]:
            # The client has no call for metrics.
            if "families" in exchange["response"] or "frames" in exchange["response"]:
                continue
            found.append(pytest.param(exchange, id=f"{file.stem}: {exchange['name']}"))
    return found


@contextmanager
def answering(*script: Exchange) -> Iterator[tuple[str, list[Exchange]]]:
    """A server that gives prepared answers in order, and records the requests."""
    seen: list[Exchange] = []

    class Answers(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            headers = {name.lower(): value for name, value in self.headers.items()}
            asked = {"method": self.command, "path": self.path, "headers": headers}
            response = script[len(seen)]["response"]
            seen.append({**asked, "body": json.loads(body) if body else None})
            self.send_response(response["status"])
            for name, value in response["headers"].items():
                self.send_header(name, str(value))
            text = "".join(frame(event) for event in response.get("events", [])).encode()
            if "body" in response:
                text = json.dumps(response["body"]).encode()
            self.send_header("content-length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        do_POST = do_PATCH = do_DELETE = do_GET

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", seen
    finally:
        server.shutdown()
        server.server_close()


def frame(event: Exchange) -> str:
    place = f"id: {event['id']}\n" if "id" in event else ""
    return f"event: {event['event']}\ndata: {json.dumps(event['data'])}\n{place}\n"


def client_for(url: str, request: Exchange) -> Client:
    bearer: Optional[str] = request.get("headers", {}).get("authorization")
    return Client(url, token=bearer.removeprefix("Bearer ") if bearer else None, retry=Retry(limit=0))


def call(client: Client, request: Exchange) -> Any:
    """Sends the request with the client's method for it."""
    url = urlsplit(request["path"])
    parts = tuple(unquote(part) for part in url.path.split("/")[1:])
    query = dict(parse_qsl(url.query))
    body: Exchange = request.get("body") or {}
    headers: Exchange = request.get("headers", {})
    match request["method"], *parts:
        case "GET", "api", ("agents" | "lanes" | "sessions" | "workers") as what:
            return list(getattr(client, what)())
        case "GET", "api", "tasks":
            return list(client.tasks(**query))
        case "GET", "api", "dead-letters":
            return client.dead_letters()
        case "GET", "api", "external-tasks":
            return [task.id for task in client.pending_external_tasks()]
        case "GET", "api", "status":
            return client.status()
        case "GET", "api", "tasks", task, "events":
            return list(client.task_events(task, after=headers.get("last-event-id")))
        case "GET", "api", "events":
            return first(request, client.events(**query, after=headers["last-event-id"]))
        case "GET", "api", "sessions", key, "events":
            return first(request, client.session(key).events(after=headers["last-event-id"]))
        case "GET", "api", "tasks", task, "explain":
            return client.explain(task)
        case "GET", "api", "tasks", task:
            return client.task(task)
        case "GET", "api", "groups", group:
            return client.group(group)
        case "POST", "api", "tasks":
            return client.submit(**body, **keyed(headers))
        case "POST", "api", "tasks", "cancel":
            return client.cancel_waiting(**body)
        case "POST", "api", "tasks", "batch":
            return client.batch(body["session"], body["calls"])
        case "PATCH", "api", "tasks", task:
            return client.prioritise(task, body["priority"])
        case "DELETE", "api", "tasks", task:
            return client.cancel(task)
        case "POST", "api", "dead-letters", letter, "redrive":
            return client.redrive(letter)
        case "DELETE", "api", "dead-letters":
            return client.discard(**query)
        case _, "api", "agents", agent, *rest:
            return call_agent(client, agent, rest, body, headers)
        case method, "api", "lanes", lane, *rest:
            of_lane = client.lane(lane)
            return of_lane.change(**body) if method == "PATCH" else getattr(of_lane, rest[0] if rest else "get")()
        case method, "api", "sessions", key, *rest:
            session = client.session(key)
            if rest[:1] == ["messages"]:
                return call_message(session, method, rest[1:], body)
            if rest == ["steer"]:
                return session.steer(**body)
            return session.change(body) if method == "PATCH" else getattr(session, rest[0] if rest else "get")()  # type: ignore[arg-type]
    # Heartbeats of workers and routes of operators have no method of their own.
    assert parts[1:2] in {("schedules",), ("tokens",), ("audit",), ("claim",), ("slots",), ("config",), ("history",)} or parts[-1] in {
        "heartbeat", "complete", "healthz", "readyz"
    }, f"no method for {request}"
    return client.request(request["method"], url.path, body=request.get("body"), query=query or None)


def first(request: Exchange, events: Iterator[Event]) -> list[Event]:
    """The first events of an endless stream."""
    return list(itertools.islice(events, request["take"]))


def call_message(session: Session, method: str, rest: list[str], body: Exchange) -> Any:
    match method, *rest:
        case "POST",:
            return session.send(**body)
        case "GET", message:
            return session.receipt(message)
        case "DELETE", message:
            return session.withdraw(message)
        case "POST", message, "move":
            return session.move(message, **body)
        case "POST", message, "send-now":
            return session.send_now(message)
    raise AssertionError(f"no method for {method} {rest}")


def keyed(headers: Exchange) -> Exchange:
    names = {"idempotency-key": "idempotency_key", "x-source-agent": "source_agent", "x-laneway-parent": "parent"}
    return {names[name]: value for name, value in headers.items() if name in names}


def call_agent(client: Client, name: str, rest: list[str], body: Exchange, headers: Exchange) -> Any:
    agent = client.agent(name)
    how = {**body, **keyed(headers)}
    if rest == ["task"]:
        return agent.task(**how)
    if rest != ["chat"]:
        return getattr(agent, rest[-1] if rest else "get")()
    if "accept" in headers:
        return list(agent.stream(**how))
    return agent.submit(**how) if "prefer" in headers else agent.chat(**how)


def url_of(request: Exchange) -> str:
    return urlsplit(str(request["path"])).path


def plain(value: Any) -> Any:
    """A typed value as JSON, without missing fields."""
    if isinstance(value, Event):
        return {"event": value.name, "data": plain(dict(value.data)), "id": value.event_id}
    if dataclasses.is_dataclass(value):
        return plain({field.name.removesuffix("_"): getattr(value, field.name) for field in dataclasses.fields(value)})
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items() if item is not None}
    return [plain(item) for item in value] if isinstance(value, list) else value


def same_request(asked: Exchange, wanted: Exchange) -> None:
    assert asked["method"] == wanted["method"]
    one, other = urlsplit(asked["path"]), urlsplit(wanted["path"])
    assert (unquote(one.path), sorted(parse_qsl(one.query))) == (unquote(other.path), sorted(parse_qsl(other.query)))
    assert plain(asked["body"] or {}) == plain(wanted.get("body") or {})
    for name, value in wanted.get("headers", {}).items():
        assert asked["headers"].get(name) == value, name


@pytest.mark.parametrize("exchange", exchanges())
def test_a_call_sends_the_request_and_decodes_the_answer_of_the_fixture(exchange: Exchange) -> None:
    request, response = exchange["request"], exchange["response"]
    with answering(exchange) as (url, seen), client_for(url, request) as client:
        if response["status"] >= 400:
            with pytest.raises(Refusal) as refused:
                call(client, request)
            assert type(refused.value) is BY_CODE[response["body"]["code"]]
            told = plain(refused.value.problem)
            assert told == {key: value for key, value in plain(response["body"]).items() if key in told}
            assert refused.value.retry_after == (1.5 if "retry_after_ms" in response["body"] else None)
        else:
            value = call(client, request)
            wanted = response.get("events", response.get("body"))
            if value is None:
                wanted = None
            if isinstance(value, int):
                wanted = wanted["cancelled"]
            elif isinstance(value, list) and "items" in wanted:
                wanted = wanted["items"]
                if url_of(request) == "/api/external-tasks":
                    wanted = [task["id"] for task in wanted]
            agrees(plain(value), plain(wanted))
    assert len(seen) == 1
    same_request(seen[0], request)


def agrees(value: Any, wanted: Any) -> None:
    """The value has every recorded field. A type may have further fields with defaults."""
    if isinstance(wanted, dict):
        for key, item in wanted.items():
            assert key in value, key
            agrees(value[key], item)
    elif isinstance(wanted, list):
        assert len(value) == len(wanted)
        for one, other in zip(value, wanted):
            agrees(one, other)
    else:
        assert value == wanted


def test_events_of_a_socket_are_those_of_streams() -> None:
    names = set[str]()
    for exchange in filled((FOLDER / "socket.json").read_text())["exchanges"]:
        for frame in exchange["response"]["frames"]:
            told = event(frame["event"], json.dumps(frame["data"]), frame.get("id"))
            assert type(told) is not Event, frame["event"]
            assert plain(told) == {"event": frame["event"], "data": plain(frame["data"]), "id": frame.get("id")}
            names.add(told.name)
    assert {"accepted", "completed", "done", "message", "error"} <= names


def test_a_slot_needs_only_two_requests() -> None:
    script = filled((FOLDER / "slots.json").read_text())["exchanges"]
    with answering(*script) as (url, seen), Client(url) as client:
        taken = script[0]["request"]["body"]
        with client.slot(taken["lanes"], session=taken["session"], wait_ms=taken["wait_ms"], lease_ms=60_000) as slot:
            assert (slot.id, slot.fence) == (script[0]["response"]["body"]["id"], script[0]["response"]["body"]["fence"])
    assert len(seen) == 2
    del seen[0]["body"]["lease_ms"], seen[0]["body"]["worker"]
    for asked, exchange in zip(seen, script):
        same_request(asked, exchange["request"])
