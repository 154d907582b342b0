"""Workers and polled external tasks."""

from __future__ import annotations

import asyncio
import gc
import threading
import uuid
from typing import Any

import pytest
from conftest import Restarting, run

from laneway import AsyncClient, AttemptFailed, Client, DoNotRetry, Local, NotClaimable, TaskRun, Worker, errors, events
from laneway.types import ClaimedTask, HeartbeatAnswer, TurnMessageView


async def ended(client: AsyncClient, *tasks: str) -> list[str]:
    return [(await client.wait(task)).status for task in tasks]


def test_a_worker_runs_several_tasks_at_once_up_to_its_limit(server: Local) -> None:
    async def test(client: AsyncClient) -> None:
        worker = Worker(client, lanes=["external"], concurrency=2, poll=0.1)
        inside = most = 0
        met = asyncio.Event()

        @worker.handler("count")
        async def count(task: TaskRun) -> Any:
            nonlocal inside, most
            inside += 1
            most = max(most, inside)
            if inside == 2:
                met.set()
            # The first two attempts wait for each other, which shows that they run at once.
            await met.wait()
            await asyncio.sleep(0.005)
            inside -= 1
            return {"twice": task.payload["n"] * 2}

        @worker.handler("thread")
        def thread(task: TaskRun) -> str:
            return threading.current_thread().name

        running = asyncio.ensure_future(worker.run())
        accepted = [await client.submit("count", {"n": n}) for n in range(6)]
        results = [(await client.wait(task.id)).result for task in accepted]
        assert results == [{"twice": n * 2} for n in range(6)]
        assert most == 2
        in_thread = await client.wait((await client.submit("thread")).id)
        assert in_thread.result != threading.current_thread().name
        worker.drain()
        await running

    run(server.url, test)


def test_a_failure_keeps_what_it_produced(server: Local) -> None:
    async def test(client: AsyncClient) -> None:
        worker = Worker(client, lanes=["external"], poll=0.1)
        output = {"stdout": "no rule to make target", "exit_code": 2}

        @worker.handler("make")
        async def make(task: TaskRun) -> None:
            raise AttemptFailed("exit code 2", output)

        running = asyncio.ensure_future(worker.run())
        ended = await client.wait((await client.submit("make")).id)
        assert (ended.status, ended.error, ended.result) == ("failed", "exit code 2", output)
        worker.drain()
        await running
        polled = (await client.submit("poll")).id
        done = await client.complete_external_task(polled, False, output, error="exit code 2")
        assert (done.status, done.error, done.result) == ("failed", "exit code 2", output)

    run(server.url, test)


def test_a_report_that_the_server_refuses_ends_the_attempt(server: Local) -> None:
    async def test(client: AsyncClient) -> None:
        too_long = "x" * (5 * 1024 * 1024)
        worker = Worker(client, lanes=["external"], poll=0.1)

        @worker.handler("long")
        async def long(task: TaskRun) -> str:
            return too_long

        running = asyncio.ensure_future(worker.run())
        ended = await client.wait((await client.submit("long")).id)
        assert ended.status == "failed" and "its report was refused" in str(ended.error)
        worker.drain()
        await running
        polled = (await client.submit("poll")).id
        with pytest.raises(errors.Invalid):
            await client.complete_external_task(polled, True, error="a success has no error")
        view = await client.task(polled)
        assert view.status == "failed" and "its report was refused" in str(view.error)

    run(server.url, test)


def test_what_a_handler_asks_for_is_a_child_of_its_task(server: Local) -> None:
    async def test(client: AsyncClient) -> None:
        worker = Worker(client, lanes=["external"], concurrency=2, poll=0.1)
        kinds = [f"of-loop-{uuid.uuid4()}", f"of-thread-{uuid.uuid4()}"]

        @worker.handler(kinds[0])
        async def of_loop(task: TaskRun) -> Any:
            later = await client.submit("never", lanes=["of-child"])
            # The task holds the only slot of `one`, and lends it to its children.
            async with client.slot(["one"], wait_ms=0) as slot:
                held = (await client.task(slot.id)).parent
            answer = await client.agent("echo").chat("hello", session=f"of-{task.id}")
            asked = (await client.task(answer.execution.id)).parent
            batch = await client.batch(f"of-{task.id}", [{"tool": "read", "payload": 1}], group=f"of-{task.id}")
            calls = [call async for call in client.tasks(group=f"of-{task.id}")]
            later_parent = (await client.task(later.id)).parent
            return [held, asked, later_parent, calls[0].parent, batch.results[0].success]

        @worker.handler(kinds[1])
        def of_thread(task: TaskRun) -> Any:
            with server.client() as other, other.slot(["one"], wait_ms=0) as slot:
                return [other.task(slot.id).parent]

        running = asyncio.ensure_future(worker.run())
        for kind in kinds:
            task = (await client.submit(kind, lanes=["external", "one"])).id
            parents = (await client.wait(task)).result
            assert parents[:4] == [task] * len(parents[:4]) and parents[4:] in ([], [True])
        assert [task.status async for task in client.tasks(lane="of-child")] == ["queued"], "it outlives its parent"
        await client.cancel_waiting(lane="of-child")
        worker.drain()
        await running

    run(server.url, test)


def test_failures_are_retried_unless_the_handler_says_not_to(server: Local) -> None:
    async def test(client: AsyncClient) -> None:
        worker = Worker(client, lanes=["again"], poll=0.1)
        attempts: list[int] = []

        @worker.handler("flaky")
        async def flaky(task: TaskRun) -> str:
            attempts.append(task.attempt)
            if task.attempt == 1:
                raise RuntimeError("not yet")
            return "done"

        @worker.handler("hopeless")
        async def hopeless(task: TaskRun) -> None:
            attempts.append(task.attempt)
            raise DoNotRetry("never")

        running = asyncio.ensure_future(worker.run())
        first = await client.wait((await client.submit("flaky", lanes=["again"])).id)
        assert (first.status, first.result, attempts) == ("completed", "done", [1, 2])
        attempts.clear()
        second = await client.wait((await client.submit("hopeless", lanes=["again"])).id)
        assert (second.status, second.error, attempts) == ("failed", "never", [1])
        letters = [letter for letter in await client.dead_letters() if letter.kind == "hopeless"]
        assert [letter.error for letter in letters] == ["never"]
        assert await client.dead_letters(lane="again", kind="hopeless") == letters
        assert await client.dead_letters(session="unknown") == []
        assert (await client.discard(letters[0].id)).count == 1
        worker.drain()
        await running

    run(server.url, test)


def test_progress_is_published_and_a_cancelled_task_stops(server: Local) -> None:
    async def test(client: AsyncClient) -> None:
        worker = Worker(client, lease_ms=3000, poll=0.1)
        stopped = asyncio.Event()

        @worker.handler("long")
        async def long(task: TaskRun) -> None:
            try:
                # Repeat it, because only clients that watch at that moment get the progress.
                while True:
                    task.progress({"percent": 40})
                    await asyncio.sleep(0.05)
            finally:
                assert task.is_cancelled
                stopped.set()

        running = asyncio.ensure_future(worker.run())
        task = await client.submit("long")
        told: Any = None
        async for event in client.task_events(task.id):
            if isinstance(event, events.Progress) and told is None:
                told = event.progress
                assert (await client.cancel(task.id)).status == "cancelling"
        await stopped.wait()
        assert told == {"percent": 40}
        assert await ended(client, task.id) == ["cancelled"]
        worker.drain()
        await running

    run(server.url, test)


def test_draining_finishes_running_attempts_and_claims_no_further_tasks(server: Local) -> None:
    async def test(client: AsyncClient) -> None:
        worker = Worker(client, poll=0.1)
        started, may_end = asyncio.Event(), asyncio.Event()

        @worker.handler("held")
        async def held(task: TaskRun) -> str:
            started.set()
            await may_end.wait()
            return "finished"

        running = asyncio.ensure_future(worker.run())
        first = await client.submit("held")
        await started.wait()
        worker.drain()
        second = await client.submit("held")
        may_end.set()
        await running
        assert (await client.task(first.id)).result == "finished"
        assert (await client.task(second.id)).status == "queued"
        await client.cancel(second.id)

    run(server.url, test)


def test_an_external_agent_can_be_steered(server: Local) -> None:
    async def test(client: AsyncClient) -> None:
        worker = Worker(client, lanes=["agent:outside"], lease_ms=3000, poll=0.1)

        @worker.handler("agent:outside", steering=True)
        async def turn(task: TaskRun) -> Any:
            while True:
                task.progress("listening")
                said = task.steered()
                if said:
                    return [[one.text, one.sender, one.sender_name, one.message_id] for one in said]
                await asyncio.sleep(0.05)

        running = asyncio.ensure_future(worker.run())
        session = client.session(f"steer-{uuid.uuid4().hex[:6]}")
        first = await session.send("begin", agent="outside", mode="steer")
        assert first.task_id is not None
        # The heartbeat with the progress also says that the turn takes steering.
        async for event in client.task_events(first.task_id):
            if isinstance(event, events.Progress):
                break
        ann: dict[str, Any] = {"sender": "u1", "sender_name": "Ann", "message_id": "m-2"}
        second = await session.send("rather this", agent="outside", mode="steer", **ann)
        view = await client.wait(first.task_id)
        assert (second.outcome, view.result) == ("steered", [["rather this", "u1", "Ann", "m-2"]])
        worker.drain()
        await running

    run(server.url, test)


def test_a_repeated_offer_is_taken_once_and_confirmed_until_the_server_answers() -> None:
    task = ClaimedTask(attempt=1, fence=7, id="t", kind="k", lane="l", lease_until="2030-01-01T00:00:00Z", payload=None)
    run_of_it = TaskRun(task, True, lambda: None)
    offer = [TurnMessageView(id="a", text="left"), TurnMessageView(id="b", text="right")]

    def answer(*said: TurnMessageView) -> HeartbeatAnswer:
        return HeartbeatAnswer(False, "2030-01-01T00:00:00Z", [one.text for one in said], list(said))

    assert run_of_it._say() == {"takes_steering": True, "steered": []}
    run_of_it._hear(answer(*offer))
    run_of_it._say()
    run_of_it._hear(answer(*offer))
    assert run_of_it.steered() == offer
    # The answer to this heartbeat is lost, so the next one confirms both messages again.
    assert run_of_it._say()["steered"] == ["a", "b"]
    assert run_of_it._say()["steered"] == ["a", "b"]
    run_of_it._hear(answer(TurnMessageView(id="c", text="back")))
    assert run_of_it._say()["steered"] == []
    assert [one.text for one in run_of_it.steered()] == ["back"]
    assert run_of_it._unnamed() == {"steered": ["c"]}
    run_of_it._hear(answer(TurnMessageView(id="c", text="back")))
    assert run_of_it.steered() == []


def test_watchers_get_the_output_of_a_handler_that_runs_all_kinds(server: Local) -> None:
    async def test(client: AsyncClient) -> None:
        worker = Worker(client, lanes=["agent:outside", "external"], poll=0.1)

        @worker.handler("known")
        async def known(_: TaskRun) -> str:
            return "its own"

        @worker.handler("*")
        async def other(task: TaskRun) -> str:
            for word in ("hello ", "there"):
                task.delta(word)
            task.progress(1)
            task.usage({"output_tokens": 2})
            return task.kind

        running = asyncio.ensure_future(worker.run())
        told = [event async for event in client.agent("outside").chat("hi", session=f"delta-{uuid.uuid4().hex[:6]}")]
        assert "".join(event.text for event in told if isinstance(event, events.Delta)) == "hello there"
        assert [event.progress for event in told if isinstance(event, events.Progress)] == [1]
        assert [event.usage for event in told if isinstance(event, events.Usage)] == [{"output_tokens": 2}]
        # Output that no heartbeat has sent yet comes before the end.
        assert [event.result for event in told if isinstance(event, events.Completed)] == ["agent:outside"]
        assert (await client.wait((await client.submit("known")).id)).result == "its own"
        worker.drain()
        await running

    run(server.url, test)


def test_output_of_a_heartbeat_without_an_answer_goes_out_again() -> None:
    task = ClaimedTask(attempt=1, fence=7, id="t", kind="k", lane="l", lease_until="2030-01-01T00:00:00Z", payload=None)
    run_of_it = TaskRun(task, False, lambda: None)
    run_of_it.delta("a")
    run_of_it.progress(1)
    assert run_of_it._say() == {"delta": "a", "progress": 1}
    run_of_it.delta("b")
    run_of_it.progress(2)
    assert run_of_it._say() == {"delta": "ab", "progress": 2}
    run_of_it._hear(HeartbeatAnswer(False, task.lease_until, []))
    assert (run_of_it._say(), run_of_it._has_output()) == ({}, False)


def test_a_heartbeat_that_is_overtaken_by_the_report_warns_of_nothing(
    server: Local, caplog: pytest.LogCaptureFixture
) -> None:
    async def test(client: AsyncClient) -> None:
        worker = Worker(client, lanes=["external"], poll=0.1)
        refused = asyncio.Event()

        @worker.handler("brief")
        async def brief(_: TaskRun) -> str:
            return "done"

        sign, report = client.leases.sign, worker._report

        async def late(task: str, body: Any) -> Any:
            await client.wait(task)
            try:
                return await sign(task, body)
            finally:
                refused.set()

        async def and_wait(task: ClaimedTask, clock: Any, outcome: Any) -> None:
            client.leases.wake(task.id)
            await report(task, clock, outcome)
            await refused.wait()
            await asyncio.sleep(0)

        client.leases.sign, worker._report = late, and_wait  # type: ignore[method-assign]
        running = asyncio.ensure_future(worker.run())
        task = await client.submit("brief")
        assert (await client.wait(task.id)).result == "done"
        await refused.wait()
        worker.drain()
        await running

    with caplog.at_level("INFO", "laneway.worker"):
        run(server.url, test)
    assert [record.getMessage() for record in caplog.records if record.levelname != "INFO"] == []


def test_a_worker_survives_a_kill_of_the_server(restarting: Restarting) -> None:
    async def test(client: AsyncClient) -> None:
        worker = Worker(client, concurrency=4, lease_ms=2000, poll=0.1)
        seen: list[int] = []
        first, may_end = asyncio.Event(), asyncio.Event()

        @worker.handler("step")
        async def step(task: TaskRun) -> int:
            seen.append(task.payload)
            if task.payload == 0:
                first.set()
                await may_end.wait()
            return int(task.payload)

        accepted = [await client.submit("step", 0, idempotency_key="step-0")]
        running = asyncio.ensure_future(worker.run())
        await first.wait()
        restarting.kill()
        # The client submits while the server is away, and the server accepts when it is back.
        asking = asyncio.ensure_future(client.submit("step", 1, idempotency_key="step-1"))
        restarting.start()
        accepted.append(await asking)
        may_end.set()
        views = [await client.wait(task.id) for task in accepted]
        assert [(view.status, view.result) for view in views] == [("completed", 0), ("completed", 1)]
        worker.drain()
        await running

    run(restarting.url, test)


def test_accepted_tasks_survive_a_kill(restarting: Restarting) -> None:
    with Client(restarting.url) as client:
        accepted = [client.submit("later", {"n": n}, lanes=["external"]) for n in range(20)]
        assert {task.durability for task in accepted} == {"disk"}
        restarting.kill()
        restarting.start()
        pending = client.pending_external_tasks(lane="external")
        assert [task.id for task in pending] == [task.id for task in accepted]
        assert [task.payload["n"] for task in pending] == list(range(20))


def test_completing_a_polled_task_claims_it(server: Local) -> None:
    session = f"polled-{uuid.uuid4().hex[:6]}"
    with server.client() as client, server.client() as other:
        client.set_lane_handler("execute", "external", session=session, timeout_ms=60_000)
        lane = f"session:{session}/execute"
        tasks = [
            client.submit("tool", {"n": n}, lanes=[lane], wait_timeout_ms=(60_000 if n else 120_000)).id
            for n in range(3)
        ]
        pending = client.pending_external_tasks(session=session)
        assert [task.id for task in pending] == tasks
        assert not pending[1].is_timed_out() and 0 < (pending[1].remaining_ms or 0) <= 60_000
        stats = client.queue_stats(session)
        assert (stats.external_pending, stats.lanes["execute"].handler_mode) == (3, "external")
        assert client.queue_stats().external_pending >= 3
        # The client claims exactly this task; another client can claim the one before it.
        assert client.complete_external_task(tasks[1], True, {"ok": 1}).status == "completed"
        left = client.pending_external_tasks(session=session)
        assert [(task.id, task.claimed) for task in left] == [(tasks[0], False), (tasks[2], False)]
        with pytest.raises(NotClaimable):
            other.complete_external_task(tasks[1], True)
        failed = other.complete_external_task(tasks[0], False, error="no luck", retryable=False)
        assert (failed.status, failed.error) == ("failed", "no luck")
        assert client.complete_external_task(tasks[2], True, "last").result == "last"
        with pytest.raises((NotClaimable, errors.Refusal)):
            client.complete_external_task(tasks[2], True)
        metrics = client.queue_metrics()
        assert sum(numbers.counters.completed for numbers in metrics.lanes.values()) > 0
        client.set_lane_handler("execute", "internal", session=session)


def test_a_worker_warns_of_tasks_that_it_has_no_handler_for(server: Local, caplog: pytest.LogCaptureFixture) -> None:
    async def test(client: AsyncClient) -> None:
        await client.lane("stranger").change(handler="external")
        task = await client.submit("stranger", lanes=["stranger"])
        worker = Worker(client, lanes=["str*er"], poll=0.1)
        worker.handler("known")(lambda task: None)
        running = asyncio.ensure_future(worker.run())
        while not any(line.endswith("no handler for: stranger") for line in caplog.messages):
            await asyncio.sleep(0.005)
        worker.drain()
        await running
        await client.cancel(task.id)

    with caplog.at_level("WARNING", "laneway.worker"):
        run(server.url, test)


def test_a_cancelled_worker_leaves_no_error_of_its_claim_behind(server: Local) -> None:
    async def test(client: AsyncClient) -> list[Any]:
        unseen: list[Any] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: unseen.append(context))

        async def claim(free: int) -> int:
            try:
                await asyncio.Event().wait()
            finally:
                raise errors.Unreachable("the client is closed")

        worker = Worker(client, lanes=["external"], poll=0.1)
        worker.handler("known")(lambda task: None)
        worker._claim = claim  # type: ignore[method-assign]
        running = asyncio.ensure_future(worker.run())
        await asyncio.sleep(0)
        while worker._threads is None:
            await asyncio.sleep(0)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        running.cancel()
        await asyncio.wait({running})
        del worker, running
        gc.collect()
        return unseen

    assert run(server.url, test) == []
