"""Slots: the limit of the lane always holds, and no slot is lost."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest
from conftest import WAIT_MAX_S, Restarting, run

from laneway import AsyncClient, Client, LeaseLost, Local, errors, events
from laneway._lease import LeaseClock, lease_length

GUARDED = Path(__file__).with_name("guarded.py")


def guarded(*words: str) -> "subprocess.Popen[str]":
    return subprocess.Popen([sys.executable, GUARDED, *words], stdout=subprocess.PIPE, text=True)


def test_of_200_blocks_of_4_processes_at_most_3_run_at_once(server: Local, tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.touch()
    processes = [guarded(server.url, "three", "50", str(log)) for _ in range(4)]
    assert [process.wait(WAIT_MAX_S) for process in processes] == [0] * 4
    inside = most = 0
    for mark in log.read_text():
        inside += 1 if mark == "+" else -1
        most = max(most, inside)
    assert log.stat().st_size == 400
    assert (inside, most) == (0, 3)


def test_the_slot_of_a_killed_process_is_free_after_its_lease(client: Client) -> None:
    holder = guarded(client.url, "one", "hold", "6000")
    assert holder.stdout is not None and holder.stdout.readline() == "held\n"
    with pytest.raises(errors.AtCapacity):
        client.slot(["one"], wait_ms=0).__enter__()
    holder.kill()
    holder.wait()
    # The slot is not free at once, because the last heartbeat is at most a third of the lease old.
    with pytest.raises(errors.AtCapacity):
        client.slot(["one"], wait_ms=0).__enter__()
    with client.slot(["one"], wait_ms=60_000):
        pass


def test_a_lease_is_renewed_for_as_long_as_the_block_runs(server: Local) -> None:
    async def test(client: AsyncClient) -> None:
        async with client.slot(["one"], lease_ms=4000):
            with pytest.raises(errors.WaitTimeout):
                async with client.slot(["one"], wait_ms=6000):
                    pass

    run(server.url, test)


def test_a_lost_lease_cancels_the_block(server: Local) -> None:
    async def test(client: AsyncClient) -> None:
        with pytest.raises(LeaseLost):
            async with client.slot(["one"], lease_ms=3000) as slot:
                await client.cancel(slot.id)
                await asyncio.sleep(WAIT_MAX_S)
        # The cancellation ends with the block.
        await asyncio.sleep(0)
        async with client.slot(["one"], wait_ms=60_000):
            pass

    run(server.url, test)


def test_a_block_in_a_thread_can_check_for_a_lost_lease(client: Client) -> None:
    with pytest.raises(LeaseLost):
        with client.slot(["one"], lease_ms=3000) as slot:
            client.cancel(slot.id)
            until = time.monotonic() + WAIT_MAX_S
            while time.monotonic() < until:
                slot.check()
                time.sleep(0.01)
    with client.slot(["one"], wait_ms=60_000) as again:
        assert again.fence > slot.fence and not again.is_lost


def test_a_block_that_raises_gives_its_slot_back_and_raises(server: Local) -> None:
    async def test(client: AsyncClient) -> None:
        with pytest.raises(KeyError):
            async with client.slot(["one"]):
                raise KeyError("mine")
        inside = asyncio.Event()
        block = asyncio.ensure_future(enter(client, inside))
        await inside.wait()
        block.cancel()
        with pytest.raises(asyncio.CancelledError):
            await block
        async with client.slot(["one"], wait_ms=0):
            pass

    async def enter(client: AsyncClient, inside: asyncio.Event) -> None:
        async with client.slot(["one"]):
            inside.set()
            await asyncio.sleep(30)

    run(server.url, test)


def test_a_slot_has_the_id_and_the_label_of_its_caller(client: Client, server: Local) -> None:
    chosen = str(uuid.uuid4())
    with client.slot(["main"], id=chosen, label="Refactor") as slot:
        assert (slot.id, client.task(chosen).label) == (chosen, "Refactor")
        with pytest.raises(errors.Invalid) as taken:
            client.slot(["main"], id=chosen).__enter__()
        assert taken.value.status == 409

    async def test(client: AsyncClient) -> None:
        waiting = str(uuid.uuid4())
        async with client.slot(["labelled"], label="first"):
            second = asyncio.ensure_future(client.slot(["labelled"], id=waiting, label="second").__aenter__())
            async for event in await client.events(lane="labelled"):
                if isinstance(event, events.Changed) and event.waiting == 1:
                    break
            assert [task.label async for task in client.tasks(lane="labelled", status="queued")] == ["second"]
            assert (await client.cancel(waiting)).status == "cancelled_while_queued"
            with pytest.raises(errors.Cancelled):
                await second

    run(server.url, test)


def test_a_session_runs_one_turn_at_a_time(client: Client) -> None:
    with client.slot(["main"], session="alice"):
        with pytest.raises((errors.AtCapacity, errors.WaitTimeout)):
            client.slot(["main"], session="alice", wait_ms=0).__enter__()
        with client.slot(["main"], session="bob", wait_ms=0):
            pass


def test_a_slot_survives_a_kill_and_a_restart_of_the_server(restarting: Restarting) -> None:
    async def test(client: AsyncClient) -> None:
        async with client.slot(["one"]):
            await asyncio.to_thread(restarting.kill)
            await asyncio.to_thread(restarting.start)
            with pytest.raises((errors.AtCapacity, errors.WaitTimeout)):
                await client.slot(["one"], wait_ms=0).__aenter__()
        async with client.slot(["one"], wait_ms=0):
            pass

    run(restarting.url, test)


def test_a_slot_is_lost_when_its_server_is_away_for_longer_than_the_lease(restarting: Restarting) -> None:
    async def test(client: AsyncClient) -> None:
        with pytest.raises(LeaseLost):
            async with client.slot(["one"], lease_ms=300):
                await asyncio.to_thread(restarting.kill)
                await asyncio.sleep(WAIT_MAX_S)
        await asyncio.to_thread(restarting.start)
        async with client.slot(["one"], wait_ms=60_000):
            pass

    run(restarting.url, test)


def test_a_turn_whose_server_is_killed_is_lost(restarting: Restarting) -> None:
    async def test(client: AsyncClient) -> None:
        asked = client.agent("slow").chat("x", session="doomed", idempotency_key="doomed")
        answer = asyncio.ensure_future(asked.answer())
        while (await client.status()).running == 0:
            pass
        await asyncio.to_thread(restarting.kill)
        await asyncio.to_thread(restarting.start)
        with pytest.raises(errors.Lost) as lost:
            await answer
        assert lost.value.problem.phase == "run"

    run(restarting.url, test)


def test_the_length_of_a_lease_follows_the_servers_clock_and_is_never_too_long() -> None:
    date = {"date": "Sun, 15 Nov 2026 12:00:00 GMT"}
    assert lease_length(None, "2026-11-15T12:00:30.500Z", date) == 29.5
    assert lease_length(5000, "2026-11-15T12:00:30.500Z", date) == 5
    now = 100.0
    clock = LeaseClock(30, lambda: now)
    assert clock.next_sign == 10
    now = 115.0
    clock.renewed(110.0)
    assert (clock.left, clock.next_sign) == (25, 5)
