"""Workers with unusual handlers or an unusual environment."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any, Optional

import pytest
from conftest import WAIT_MAX_S, run
from proxy import proxy, the_first

from laneway import AsyncClient, Local, TaskRun, Worker


def test_a_result_that_is_not_json_fails_the_task_and_not_the_worker(server: Local) -> None:
    async def test(client: AsyncClient) -> None:
        worker = Worker(client, poll=0.1)

        @worker.handler("unsayable")
        async def unsayable(task: TaskRun) -> Any:
            return {"a set": {1, 2}}

        @worker.handler("half-said")
        async def half_said(task: TaskRun) -> Any:
            with pytest.raises(TypeError):
                task.progress({1, 2})
            return "told at once"

        running = asyncio.ensure_future(worker.run())
        first = await client.wait((await client.submit("unsayable")).id)
        assert first.status == "failed" and "JSON" in str(first.error)
        assert (await client.wait((await client.submit("half-said")).id)).result == "told at once"
        worker.drain()
        await running

    run(server.url, test)


def test_a_worker_has_one_thread_per_attempt(server: Local) -> None:
    async def test(client: AsyncClient) -> None:
        await client.lane("wide").change(max_concurrency=40, handler="external")
        worker = Worker(client, lanes=["wide"], concurrency=40, poll=0.1)
        met = threading.Barrier(40, timeout=WAIT_MAX_S)

        @worker.handler("meet")
        def meet(task: TaskRun) -> bool:
            return met.wait() >= 0

        running = asyncio.ensure_future(worker.run())
        tasks = [await client.submit("meet", lanes=["wide"]) for _ in range(40)]
        assert all([(await client.wait(task.id)).result for task in tasks])
        worker.drain()
        await running

    run(server.url, test)


def test_a_stopping_thread_holds_its_slot_until_it_has_stopped(server: Local) -> None:
    async def test(client: AsyncClient) -> None:
        worker = Worker(client, lease_ms=3000, poll=0.1)
        told, may_end = threading.Event(), threading.Event()

        @worker.handler("stubborn")
        def stubborn(task: TaskRun) -> None:
            while not task.is_cancelled:
                threading.Event().wait(0.01)
            told.set()
            may_end.wait(WAIT_MAX_S)

        running = asyncio.ensure_future(worker.run())
        task = await client.submit("stubborn")
        async for event in client.task_events(task.id):
            if event.name == "started":
                break
        await client.cancel(task.id)
        assert await asyncio.to_thread(told.wait, WAIT_MAX_S)
        assert (await client.task(task.id)).ended_at is None
        may_end.set()
        assert (await client.wait(task.id)).status == "cancelled"
        worker.drain()
        await running

    run(server.url, test)


def test_a_cancelled_worker_claims_no_further_tasks_and_cancels_its_handlers(server: Local) -> None:
    async def test(client: AsyncClient) -> None:
        worker, after = Worker(client, concurrency=2, poll=0.1), Worker(client, poll=0.1)
        started, stopped = asyncio.Event(), asyncio.Event()

        @worker.handler("endless")
        async def endless(task: TaskRun) -> None:
            started.set()
            try:
                await asyncio.sleep(WAIT_MAX_S)
            finally:
                stopped.set()

        @worker.handler("late")
        async def early(task: TaskRun) -> str:
            return "the worker that was cancelled"

        @after.handler("late")
        async def late(task: TaskRun) -> str:
            return "the one that runs"

        running = asyncio.ensure_future(worker.run())
        task = await client.submit("endless")
        await started.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        await stopped.wait()
        then = asyncio.ensure_future(after.run())
        assert (await client.wait((await client.submit("late")).id)).result == "the one that runs"
        after.drain()
        await then
        await client.cancel(task.id)

    run(server.url, test)


def test_a_worker_survives_a_gateway_that_cannot_reach_the_server(server: Local) -> None:
    with proxy(server.url, the_first(2, "502", "POST", "/claim")) as between:

        async def test(client: AsyncClient) -> None:
            worker = Worker(client, poll=0.1)

            @worker.handler("after-all")
            async def after_all(task: TaskRun) -> str:
                worker.drain()
                return "done"

            async with AsyncClient(server.url) as direct:
                task = await direct.submit("after-all")
                await worker.run()
                assert (await direct.wait(task.id)).result == "done"

        run(between, test)


def test_a_draining_worker_runs_the_tasks_of_an_open_claim(server: Local) -> None:
    asked = threading.Event()

    def listen(method: str, path: str) -> None:
        if path.endswith("/claim"):
            asked.set()

    with proxy(server.url, listen) as between:

        async def test(client: AsyncClient) -> None:
            worker = Worker(client, lanes=["parting"])

            @worker.handler("parting")
            async def parting(task: TaskRun) -> str:
                return "done at the last moment"

            async with AsyncClient(server.url) as direct:
                await direct.lane("parting").change(handler="external")
                running = asyncio.ensure_future(worker.run())
                await asyncio.to_thread(asked.wait)
                worker.drain()
                task = await direct.submit("parting", lanes=["parting"])
                await running
                view = await direct.task(task.id)
                assert (view.status, view.result, view.attempts) == ("completed", "done at the last moment", 1)

        run(between, test)


def test_a_worker_pauses_between_claims_that_return_at_once(server: Local) -> None:
    asked: list[float] = []

    def listen(method: str, path: str) -> Optional[str]:
        if not path.endswith("/claim"):
            return None
        asked.append(time.monotonic())
        # A draining server answers like this.
        return '{"tasks": []}'

    with proxy(server.url, listen) as between:

        async def test(client: AsyncClient) -> None:
            worker = Worker(client, poll=10.0)
            worker.handler("nothing")(lambda task: None)
            running = asyncio.ensure_future(worker.run())
            while len(asked) < 4:
                await asyncio.sleep(0.01)
            worker.drain()
            await running

        run(between, test)
    # The first pause is a tenth of a second, and each further one is twice as long.
    assert asked[3] - asked[0] >= 0.7


def test_a_claim_with_a_too_short_or_too_long_wait_is_refused(server: Local) -> None:
    async def test(client: AsyncClient) -> None:
        for poll in (0.0, 61.0, float("nan")):
            with pytest.raises(ValueError, match="0.1 to 60"):
                Worker(client, poll=poll)

    run(server.url, test)
