"""Cancels and messages reach workers and slot holders at once. With these leases the next heartbeat is due in minutes."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from conftest import run

from laneway import AsyncClient, Client, LeaseLost, Local, Refusal, TaskRun, Worker, events

LEASE_MS = 600_000


async def announce(task: TaskRun, seen: asyncio.Event) -> None:
    """Says that the turn takes steering, until the test has seen it: progress is not kept for later watchers."""
    while not seen.is_set():
        task.progress("takes steering")
        await asyncio.sleep(0.005)


def test_a_running_attempt_hears_of_a_cancel(server: Local) -> None:
    async def test(client: AsyncClient) -> None:
        worker = Worker(client, lanes=["external"], lease_ms=LEASE_MS, poll=0.1)
        begun: asyncio.Queue[str] = asyncio.Queue()
        stopped: asyncio.Queue[str] = asyncio.Queue()

        @worker.handler("endless")
        async def endless(task: TaskRun) -> None:
            await begun.put(task.id)
            try:
                await asyncio.Event().wait()
            finally:
                await stopped.put(task.id)

        running = asyncio.ensure_future(worker.run())
        for _ in range(2):
            task = await client.submit("endless")
            assert await begun.get() == task.id
            await client.cancel(task.id)
            assert await stopped.get() == task.id
            assert (await client.wait(task.id)).status == "cancelled"
        worker.drain()
        await running

    run(server.url, test)


def test_a_new_turn_starts_after_the_interrupted_one_has_stopped(server: Local) -> None:
    async def test(client: AsyncClient) -> None:
        worker = Worker(client, lanes=["agent:outside"], lease_ms=LEASE_MS, concurrency=4, poll=0.1)
        history: asyncio.Queue[str] = asyncio.Queue()

        @worker.handler("agent:outside")
        async def turn(task: TaskRun) -> str:
            text: str = task.payload["text"]
            await history.put(f"starts {text}")
            try:
                if text == "one":
                    await asyncio.Event().wait()
            finally:
                await history.put(f"ends {text}")
            return text

        running = asyncio.ensure_future(worker.run())
        session = client.session("pushed")
        await session.send("one", agent="outside", debounce_ms=0)
        assert await history.get() == "starts one"
        await session.send("two", agent="outside", mode="interrupt")
        assert [await history.get() for _ in range(3)] == ["ends one", "starts two", "ends two"]
        worker.drain()
        await running

    run(server.url, test)


def test_a_running_turn_hears_a_message(server: Local) -> None:
    async def test(client: AsyncClient) -> None:
        worker = Worker(client, lanes=["agent:outside"], lease_ms=LEASE_MS, poll=0.1)
        seen = asyncio.Event()

        @worker.handler("agent:outside", steering=True)
        async def turn(task: TaskRun) -> Any:
            await announce(task, seen)
            heard: list[str] = []
            while not heard:
                await asyncio.sleep(0.005)
                heard = [message.text for message in task.steered()]
            return heard

        running = asyncio.ensure_future(worker.run())
        session = client.session("steered-at-once")
        first = await session.send("one", agent="outside", mode="steer")
        assert first.task_id is not None
        async for told in client.task_events(first.task_id):
            if isinstance(told, events.Progress):
                break
        seen.set()
        second = await session.send("two", agent="outside", mode="steer")
        view = await client.wait(first.task_id)
        assert (second.outcome, view.result) == ("steered", ["two"])
        worker.drain()
        await running

    run(server.url, test)


def test_a_message_that_a_running_turn_has_taken_cannot_be_withdrawn(server: Local) -> None:
    async def test(client: AsyncClient) -> None:
        worker = Worker(client, lanes=["agent:outside"], lease_ms=LEASE_MS, poll=0.1)
        seen, over = asyncio.Event(), asyncio.Event()

        @worker.handler("agent:outside", steering=True)
        async def turn(task: TaskRun) -> None:
            await announce(task, seen)
            while not over.is_set():
                task.steered()
                await asyncio.sleep(0.005)

        running = asyncio.ensure_future(worker.run())
        session = client.session("taken-at-once")
        first = await session.send("one", agent="outside", mode="steer")
        assert first.task_id is not None
        async for told in client.task_events(first.task_id):
            if isinstance(told, events.Progress):
                break
        seen.set()
        heard = await session.events()
        second = await session.send("two", agent="outside", mode="steer")
        async for told in heard:
            if isinstance(told, events.Steered):
                break
        with pytest.raises(Refusal):
            await session.withdraw(second.id)
        assert (await session.receipt(second.id)).status == "steered"
        over.set()
        worker.drain()
        await running

    run(server.url, test)


def test_the_holder_of_a_slot_hears_of_a_cancel(server: Local) -> None:
    async def test(client: AsyncClient) -> None:
        with pytest.raises(LeaseLost):
            async with client.slot(["pushed"], lease_ms=LEASE_MS) as slot:
                await client.cancel(slot.id)
                await asyncio.Event().wait()
        # It has confirmed, so the lane is free.
        async with client.slot(["pushed"], wait_ms=0):
            pass

    run(server.url, test)


def test_a_thread_that_holds_a_slot_hears_of_a_cancel(client: Client) -> None:
    with pytest.raises(LeaseLost):
        with client.slot(["pushed-sync"], lease_ms=LEASE_MS) as slot:
            client.cancel(slot.id)
            while True:
                slot.check()
                time.sleep(0.005)
    with client.slot(["pushed-sync"], wait_ms=0):
        pass
