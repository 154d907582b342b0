"""Agents, tasks, sessions and lanes against a real server."""

from __future__ import annotations

import asyncio
import uuid

import pytest
from conftest import CONFIG, run

from laneway import AsyncClient, Client, Laneway, Local, Retry, Unreachable, errors, events


def fresh(word: str) -> str:
    return f"{word}-{uuid.uuid4().hex[:8]}"


def test_an_agent_answers(client: Client) -> None:
    answer = client.agent("upper").chat("hello", session=fresh("ann"))
    assert answer.response == "HELLO"
    assert answer.execution.attempt == 1


def test_awaiting_a_turn_gives_the_answer_and_iterating_gives_its_events(server: Local) -> None:
    async def test(client: AsyncClient) -> None:
        assert (await client.agent("upper").chat("hello", session=fresh("ann"))).response == "HELLO"
        seen = [event async for event in client.agent("upper").chat("hello", session=fresh("ann"))]
        names = [event.name for event in seen]
        assert names[0] == "accepted" and names[-2:] == ["completed", "done"] and "started" in names
        completed = seen[-2]
        assert isinstance(completed, events.Completed) and completed.result == "HELLO"
        accepted = seen[0]
        assert isinstance(accepted, events.Accepted) and accepted.lanes[0] == "agent:upper"

    run(server.url, test)


def test_the_synchronous_stream_has_the_same_events(client: Client) -> None:
    names = [event.name for event in client.agent("upper").stream("hello", session=fresh("ann"))]
    assert names[0] == "accepted" and names[-1] == "done"


def test_a_full_lane_refuses_with_a_retry_time(server: Local) -> None:
    async def test(client: AsyncClient) -> None:
        slow = client.agent("slow")
        turns = [await slow.submit("x") for _ in range(4)]
        with pytest.raises(errors.AtCapacity) as refused:
            await slow.chat("one more")
        assert refused.value.code == "AT_CAPACITY"
        assert refused.value.lane == "agent:slow"
        assert refused.value.problem.queue_length == 3
        assert refused.value.retry_after is not None and refused.value.retry_after > 0
        queue = await slow.queue()
        assert queue.is_busy and queue.queue_length == 3
        assert (await slow.clear()).cleared_count == 3
        await client.cancel(turns[0].execution.id)
        ended = await client.wait(turns[0].execution.id)
        assert ended.status == "cancelled"

    run(server.url, test)


def test_leaving_a_stream_early_cancels_the_turn(server: Local) -> None:
    async def test(client: AsyncClient) -> None:
        task = ""
        stream = client.agent("slow").stream("x", session=fresh("gone"))
        async for event in stream:
            task = event.task_id or task
            if isinstance(event, events.Started):
                break
        await stream.aclose()
        ended = await client.wait(task)
        assert ended.status == "cancelled"

    run(server.url, test)


@pytest.mark.parametrize(
    ("agent", "how", "expected"),
    [
        ("broken", {}, errors.RunFailed),
        ("slow", {"timeout_ms": 50}, errors.RunTimedOut),
        ("missing", {}, errors.NotFound),
        ("upper", {"priority": 77}, errors.Invalid),
    ],
)
def test_each_refusal_has_its_own_exception(
    client: Client, agent: str, how: dict[str, int], expected: type[errors.Refusal]
) -> None:
    with pytest.raises(expected) as refused:
        client.agent(agent).chat("x", session=fresh("s"), **how)  # type: ignore[arg-type]
    assert refused.value.detail and type(refused.value) is errors.BY_CODE[refused.value.code]


def test_the_same_key_is_the_same_task_and_another_body_is_refused(client: Client) -> None:
    key = fresh("key")
    first = client.submit("read", {"n": 1}, lanes=["main"], idempotency_key=key)
    second = client.submit("read", {"n": 1}, lanes=["main"], idempotency_key=key)
    assert first.id == second.id and second.replayed
    with pytest.raises(errors.IdempotencyConflict):
        client.submit("read", {"n": 2}, lanes=["main"], idempotency_key=key)
    assert client.wait(first.id).status == "completed"


def test_a_waiting_task_is_explained_prioritised_and_cancelled(client: Client) -> None:
    lane = fresh("lane")
    client.lane(lane).pause()
    task = client.submit("read", lanes=[lane], group="g-" + lane)
    explained = client.explain(task.id)
    assert [blocker.kind for blocker in explained.blockers][:1] == ["paused"]
    assert client.prioritise(task.id, 7).priority == 7
    assert [found.id for found in client.tasks(lane=lane, status="queued")] == [task.id]
    assert client.cancel(task.id).status == "cancelled_while_queued"
    group = client.group("g-" + lane)
    assert (group.done, group.total) == (1, 1)
    client.lane(lane).resume()


def test_lanes_are_read_changed_paused_and_cleared(client: Client) -> None:
    name = fresh("a/b c")
    lane = client.lane(name)
    assert lane.change(max_concurrency=7, timeout_ms=2000).max_concurrency == 7
    assert lane.get().settings["timeout"] == "2000ms"
    assert lane.pause().paused and not lane.resume().paused
    lane.pause()
    for _ in range(3):
        client.submit("read", lanes=[name])
    assert lane.clear() == 3
    with pytest.raises(errors.Invalid):
        lane.change(max_concurrency=0)
    assert name in {found.lane for found in client.lanes()}


def test_an_agent_is_created_changed_and_removed(client: Client) -> None:
    agent = client.agent("made-in-python")
    made = agent.create(echo=True, max_queued=5)
    assert (made.runner, made.origin, made.max_queued) == ("echo", "api", 5)
    assert agent.chat("hello").response == "hello"
    changed = agent.change(max_concurrency=2)
    assert (changed.max_concurrency, changed.max_queued) == (2, 5)
    assert "made-in-python" in [known.name for known in client.agents()]
    released = client.lane("agent:made-in-python").release()
    assert (released.was_running, released.released) == (False, [])
    agent.remove()
    with pytest.raises(errors.NotFound):
        agent.get()


def test_a_session_collects_messages_while_it_is_busy(server: Local) -> None:
    async def test(client: AsyncClient) -> None:
        session = client.session(fresh("chat/*%"))
        first = await session.send("one", agent="slow")
        assert first.outcome == "started"
        second = await session.send("two", agent="slow")
        third = await session.send("three", agent="slow", message_id="m3", channel="web")
        assert (second.outcome, third.outcome) == ("queued", "queued")
        assert (await session.send("three", agent="slow", message_id="m3", channel="web")).outcome == "duplicate"
        waiting = (await session.get()).messages
        assert [message.text for message in waiting] == ["two", "three"]
        await session.move(third.id, before=second.id)
        assert [message.text for message in (await session.get()).messages] == ["three", "two"]
        await session.withdraw(second.id)
        assert (await session.receipt(second.id)).status == "cancelled"
        assert (await session.change({"mode": "followup"})).settings.mode.value == "followup"
        assert await session.clear() == 1
        await session.interrupt()
        assert first.task_id is not None
        assert (await client.wait(first.task_id)).status == "cancelled"

    run(server.url, test)


def test_a_waiting_message_is_promoted_into_the_running_turn(client: Client, server: Local) -> None:
    session = client.session(fresh("promote"))
    with client.events(session=session.key) as stream:
        first = session.send("one", agent="listener")
        # The turn takes messages before it reports progress.
        assert first.task_id is not None and any(isinstance(event, events.Progress) for event in stream)
    second = session.send("two", agent="listener", mode="followup")
    promoted = session.promote(second.id)
    assert (second.outcome, promoted.outcome, promoted.task_id) == ("queued", "steered", first.task_id)
    assert client.wait(first.task_id).result == "heard"
    assert session.receipt(second.id).status == "steered"

    async def test(client: AsyncClient) -> None:
        session = client.session(fresh("promote"))
        message = await session.send("one", agent="slow")
        later = await session.send("two", agent="slow", mode="followup")
        with pytest.raises(errors.Invalid, match="no running turn takes this message"):
            await session.promote(later.id)
        await session.clear()
        await session.interrupt()
        assert message.task_id is not None
        await client.wait(message.task_id)

    run(server.url, test)


def test_a_schedule_is_created_changed_fired_and_removed(client: Client, server: Local) -> None:
    schedule = client.schedule("nightly")
    made = schedule.create(cron="30 2 * * *", agent="echo", message="Tidy up", user={"id": "ann"}, enabled=False)
    assert (made.name, made.agent, made.timezone, made.enabled, made.next_runs) == ("nightly", "echo", "UTC", False, [])
    changed = schedule.change(enabled=True, timezone="Europe/Berlin")
    assert (changed.enabled, changed.timezone, changed.message, len(changed.next_runs)) == (True, "Europe/Berlin", "Tidy up", 3)
    fired = schedule.run()
    assert (fired.trigger, fired.error) == ("manual", None) and fired.task_id is not None
    assert client.wait(fired.task_id).result == "Tidy up"
    assert [one.task_id for one in schedule.runs()] == [fired.task_id]
    assert [one.name for one in client.schedules()] == ["nightly"]
    last = schedule.get().last_run
    assert last is not None and last.status == "completed"
    with pytest.raises(errors.Invalid):
        schedule.change(cron="31 31 31 2 *")

    async def test(client: AsyncClient) -> None:
        schedule = client.schedule("nightly")
        assert [one.task_id async for one in schedule.runs()] == [fired.task_id]
        await schedule.remove()
        assert [one.name async for one in client.schedules()] == []
        with pytest.raises(errors.NotFound):
            await schedule.get()

    run(server.url, test)


def test_a_tool_batch_has_results_in_the_order_of_its_calls(client: Client) -> None:
    tools = ["read", "read", "bash", "read", "write"]
    answer = client.batch(fresh("batch"), [{"tool": tool, "payload": {"n": n}} for n, tool in enumerate(tools)])
    assert [result.tool for result in answer.results] == tools
    assert all(result.success for result in answer.results)


def test_a_request_carries_the_current_trace(client: Client) -> None:
    from laneway import traceparent

    trace = uuid.uuid4().hex
    set_here = traceparent.set(f"00-{trace}-00f067aa0ba902b7-01")
    try:
        task = client.submit("read", lanes=["main"], run_after_ms=60_000)
    finally:
        traceparent.reset(set_here)
    told = client.task(task.id).traceparent
    assert told is not None and told.split("-")[1] == trace and told.split("-")[2] != "00f067aa0ba902b7"
    client.cancel(task.id)


def test_a_missing_server_is_unreachable(client: Client) -> None:
    from laneway import Retry, Unreachable

    with Client("http://127.0.0.1:9", retry=Retry(limit=0)) as missing, pytest.raises(Unreachable):
        missing.status()


def test_a_stream_of_events_is_open_when_it_is_awaited(server: Local) -> None:
    async def test(client: AsyncClient) -> None:
        name = fresh("heard")
        of_lane = await client.events(lane=name)
        of_session = await client.session(name).events()
        await client.lane(name).pause()
        await client.lane(name).resume()
        await client.session(name).send("hi", agent="upper")
        # It starts with the numbers of the lane.
        names = [(await of_lane.__anext__()).name for _ in range(4)]
        assert names[:2] == ["changed", "paused"] and "resumed" in names
        assert (await of_session.__anext__()).name == "message"
        await of_lane.aclose()
        await of_session.aclose()
        # Without `await`, the first event opens it.
        task = await client.submit("read")
        assert [event.name async for event in client.task_events(task.id)][-1] == "done"

    run(server.url, test)


def test_a_client_closes_its_open_streams(server: Local, caplog: pytest.LogCaptureFixture) -> None:
    async def test(client: AsyncClient) -> None:
        told = await client.events()
        await client.lane(fresh("left")).pause()
        # One stream is read when the client is closed, and one is not.
        assert (await told.__anext__()).name == "paused"
        other = await client.events()
        reading = asyncio.ensure_future(other.__anext__())
        await asyncio.sleep(0)
        await client.close()
        with pytest.raises(StopAsyncIteration):
            await told.__anext__()
        reading.cancel()
        await asyncio.wait({reading})

    run(server.url, test)
    assert [record.getMessage() for record in caplog.records if record.name == "asyncio"] == []


def test_a_synchronous_stream_is_open_when_it_is_returned(client: Client) -> None:
    name = fresh("heard")
    with client.events(lane=name) as told:
        client.lane(name).pause()
        client.lane(name).resume()
        # It starts with the numbers of the lane.
        names = [next(told).name for _ in range(4)]
        assert names[:2] == ["changed", "paused"] and "resumed" in names


MISSING = "http://127.0.0.1:9"


def test_a_client_of_several_replicas_goes_on_with_one_that_is_there(server: Local) -> None:
    never = Retry(limit=0)

    async def test(client: AsyncClient) -> None:
        # No server got this request, so it may be sent elsewhere although it is not safe to repeat.
        task = await client.submit("read", 1)
        assert client.url == server.url
        assert (await client.wait(task.id)).result == 1
        async with client.slot(["three"]) as slot:
            assert slot.fence > 0

    run([MISSING, server.url], test, retry=never)
    with Client(f"{MISSING}, {server.url}", retry=never) as several, several.events(lane="replicas") as told:
        several.lane("replicas").pause()
        assert [next(told).name for _ in range(2)] == ["changed", "paused"]
        several.lane("replicas").resume()
        with several.slot(["three"]):
            pass
    with Client([MISSING, MISSING], retry=never) as alone, pytest.raises(Unreachable) as away:
        alone.status()
    assert not away.value.was_sent
    for wrong in ([], [server.url, "nowhere"], f"{server.url},"):
        with pytest.raises(ValueError, match="address of a server"):
            Client(wrong)


def test_a_client_goes_on_with_the_next_replica_when_its_own_is_killed() -> None:
    with Laneway.local(config=CONFIG) as first, Laneway.local(config=CONFIG) as second:
        with Client([first.url, second.url]) as client:
            assert client.agent("upper").chat("one", session="s").response == "ONE"
            first.close()
            assert client.agent("upper").chat("two", session="s").response == "TWO"
            assert client.url == second.url
