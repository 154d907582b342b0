"""The official Python client: lists, calls, busy agents, long calls, repeated calls, cancelled calls."""

from __future__ import annotations

import json
import urllib.error

import anyio
import jsonschema
import pytest
from ways import MODERN, READERS, TOOLS, Call, Way, text

pytestmark = pytest.mark.anyio


async def test_tools_are_listed_in_order_with_strict_schemas(way: Way) -> None:
    async with way.client("admin") as client:
        assert client.session.protocol_version == (MODERN if way.mode == MODERN else "2025-11-25")
        tools = (await client.list_tools()).tools
        assert [tool.name for tool in tools] == TOOLS
        for tool in tools:
            assert tool.input_schema["additionalProperties"] is False
            jsonschema.Draft202012Validator.check_schema(tool.input_schema)
            jsonschema.Draft202012Validator.check_schema(tool.output_schema)
            assert tool.annotations.read_only_hint is (tool.name in READERS)
        again = (await client.list_tools()).tools
        assert again == tools


async def test_an_agent_answers_a_call(way: Way) -> None:
    async with way.client() as client:
        result = await client.call_tool("chat_with_agent", {"agent_name": "echo", "message": "hello"})
        assert (result.is_error, text(result)) == (False, "hello")
        assert result.structured_content["response"] == "hello"
        task = result.structured_content["execution"]["id"]
        looked = await client.call_tool("get_task", {"task_id": task})
        assert (looked.structured_content["status"], looked.structured_content["result"]) == ("completed", "hello")
        listed = await client.call_tool("list_agents", {})
        assert "echo" in [agent["name"] for agent in listed.structured_content["items"]]
        explained = await client.call_tool("explain_task", {"task_id": task})
        assert explained.structured_content["status"] == "completed"
        parallel = {"agent_name": "echo", "message": "parallel", "parallel": True, "session": "s"}
        assert text(await client.call_tool("chat_with_agent", parallel)) == "parallel"


async def test_a_failed_task_is_an_error(way: Way) -> None:
    async with way.client() as client:
        result = await client.call_tool("chat_with_agent", {"agent_name": "broken", "message": "x"})
        assert result.is_error and result.structured_content["code"] == "RUN_FAILED"


async def test_a_wrong_call_is_an_error_and_starts_nothing(way: Way) -> None:
    async with way.client("admin") as client:
        cases = [
            ("chat_with_agent", {"agent_name": "echo", "message": "x", "agent": 1}, "expected one of `agent_name`"),
            ("chat_with_agent", {"agent_name": "echo"}, "missing field `message`"),
            ("chat_with_agent", {"agent_name": "echo", "message": 5}, "expected a string"),
            ("chat_with_agent", {"agent_name": "echo", "message": " "}, "message must not be empty"),
            ("chat_with_agent", {"agent_name": "unknown", "message": "x"}, "there is no such agent"),
            ("list_agents", {"limit": 5}, "takes no arguments"),
            ("get_task", {"task_id": "nothing"}, "there is no such task"),
            ("clear_queue", {}, "missing field `agent_name`"),
        ]
        for tool, arguments, expected in cases:
            result = await client.call_tool(tool, arguments)
            assert result.is_error and expected in text(result), (tool, arguments, text(result))
        with pytest.raises(Exception, match="no such tool"):
            await client.call_tool("drop_everything", {})


async def test_a_full_lane_answers_busy_with_the_computed_time(way: Way) -> None:
    async with way.client() as client, anyio.create_task_group() as calls:
        first, second = (Call(client, way.gate, f"busy{way.gate}{number}") for number in (1, 2))
        calls.start_soon(first.run)
        assert await first.status() == "running"
        calls.start_soon(second.run)
        assert await second.status() == "position 1 in line"
        began = anyio.current_time()
        result = await client.call_tool("chat_with_agent", {"agent_name": way.gate, "message": "third"})
        busy = result.structured_content
        assert json.loads(text(result)) == busy
        details = busy.pop("details")
        assert result.is_error
        assert busy == {
            "status": "agent_busy",
            "agent": way.gate,
            "queue_status": "queue_full",
            "retry_after_seconds": details["retry_after"],
            "message": details["detail"],
        }
        assert f"Retry in {details['retry_after']} s." in busy["message"]
        numbers = (details["code"], details["lane"], details["running"], details["queue_length"], details["max_queued"])
        assert numbers == ("AT_CAPACITY", f"agent:{way.gate}", 1, 1, 1)
        with pytest.raises(urllib.error.HTTPError) as refused:
            way.server.request(f"/api/agents/{way.gate}/chat", {"message": "x"})
        # Shortly later, HTTP gives the same refusal.
        assert refused.value.code == 429
        apart = anyio.current_time() - began
        assert abs(int(refused.value.headers["retry-after"]) - details["retry_after"]) <= 2 + apart
        queue = (await client.call_tool("queue_status", {"agent_name": way.gate})).structured_content
        assert (queue["is_busy"], queue["queue_length"]) == (True, 1)
        async with way.client("admin") as admin:
            cleared = await admin.call_tool("clear_queue", {"agent_name": way.gate})
            assert cleared.structured_content["cleared_count"] == 1
            released = await admin.call_tool("release_agent", {"agent_name": way.gate})
            assert released.structured_content["was_running"] is True
    actions = [entry["action"] for entry in way.server.get("/api/audit")["items"]]
    assert "clear_queue" in actions and "force_release" in actions


async def test_a_long_call_is_answered_with_its_task_and_the_same_call_joins_it(impatient: Way) -> None:
    name = f"long{impatient.gate}"
    arguments = {"agent_name": impatient.gate, "message": name}
    async with impatient.client() as client:
        going = (await client.call_tool("chat_with_agent", arguments)).structured_content
        assert (going["status"], going["execution"]["status"]) == ("still_going", "running")
        again = (await client.call_tool("chat_with_agent", arguments)).structured_content
        assert again["task_id"] == going["task_id"]
        impatient.server.open(name)
        assert await impatient.server.ended(going["task_id"]) == "completed"
        found = (await client.call_tool("get_task", {"task_id": going["task_id"]})).structured_content
        assert found["result"] == f"answer of {name}"
        assert impatient.server.runs(name) == 1


async def test_a_repeated_call_joins_the_task_until_it_has_ended(way: Way) -> None:
    name = f"same{way.gate}"
    async with way.client() as client:
        async with anyio.create_task_group() as calls:
            first, second = Call(client, way.gate, name), Call(client, way.gate, name)
            for call in (first, second):
                calls.start_soon(call.run)
                assert await call.status() == "running"
            way.server.open(name)
        assert first.result.structured_content["execution"]["id"] == second.result.structured_content["execution"]["id"]
        assert way.server.runs(name) == 1
        await client.call_tool("chat_with_agent", {"agent_name": way.gate, "message": name})
        assert way.server.runs(name) == 2
        key = {"laneway/idempotency-key": f"key{way.gate}"}
        keyed = [await client.call_tool("chat_with_agent", {"agent_name": way.gate, "message": name}, meta=key) for _ in "ab"]
        assert text(keyed[0]) == text(keyed[1]) and way.server.runs(name) == 3


async def test_a_cancelled_call_cancels_its_task(way: Way) -> None:
    name = f"cancel{way.gate}"
    async with way.client() as client:
        async with anyio.create_task_group() as calls:
            call = Call(client, way.gate, name)
            calls.start_soon(call.run)
            assert await call.status() == "running"
            queue = (await client.call_tool("queue_status", {"agent_name": way.gate})).structured_content
            call.scope.cancel()
        assert await way.server.ended(queue["current_execution"]["id"]) == "cancelled"


async def test_a_client_that_disconnects_gives_its_slot_back(way: Way) -> None:
    name = f"leave{way.gate}"
    async with anyio.create_task_group() as calls:
        async with way.client() as client:
            call = Call(client, way.gate, name)
            calls.start_soon(call.run)
            assert await call.status() == "running"
            queue = (await client.call_tool("queue_status", {"agent_name": way.gate})).structured_content
            call.scope.cancel()
    assert await way.server.ended(queue["current_execution"]["id"]) == "cancelled"


async def test_cancel_task_cancels_only_tasks_of_the_same_token(impatient: Way) -> None:
    name = f"tool{impatient.gate}"
    async with impatient.client() as client, impatient.client("agent:coder") as other:
        going = await client.call_tool("chat_with_agent", {"agent_name": impatient.gate, "message": name})
        task = {"task_id": going.structured_content["task_id"]}
        refused = await other.call_tool("cancel_task", task)
        assert refused.is_error and refused.structured_content["code"] == "FORBIDDEN"
        cancelled = await client.call_tool("cancel_task", task)
        assert cancelled.structured_content["status"] == "cancelling"
        assert await impatient.server.ended(task["task_id"]) == "cancelled"
