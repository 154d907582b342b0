"""Cancellation, forks, interrupts and other loops: no slot is lost, and no caller waits for a lease to lapse."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
import time
from typing import Optional

import pytest
from conftest import WAIT_MAX_S, run
from proxy import proxy, the_first

from laneway import AsyncClient, Client, LeaseLost, Local, Retry, UnexpectedAnswer, errors, events


# A lease that is longer than the test waits.
LONG_MS = 600_000


async def is_free(client: AsyncClient, lane: str = "one") -> None:
    """Checks that the lane's one slot is free long before a lease would lapse."""
    async with client.slot([lane], wait_ms=60_000):
        pass


def test_a_cancelled_release_still_arrives(server: Local) -> None:
    async def test(client: AsyncClient) -> None:
        slot = client.slot(["one"], lease_ms=LONG_MS)
        await slot.__aenter__()
        leaving = asyncio.ensure_future(slot.__aexit__(None, None, None))
        await asyncio.sleep(0)
        leaving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await leaving
        await is_free(client)

    run(server.url, test)


def test_closing_a_client_waits_for_its_releases(server: Local) -> None:
    async def leave() -> None:
        async with AsyncClient(server.url) as client:
            slot = client.slot(["one"], lease_ms=LONG_MS)
            await slot.__aenter__()
            leaving = asyncio.ensure_future(slot.__aexit__(None, None, None))
            await asyncio.sleep(0)
            leaving.cancel()

    asyncio.run(leave())
    run(server.url, is_free)


@pytest.mark.parametrize("after", [0.0, 0.001, 0.005, 0.02, 0.1])
def test_entering_may_be_cancelled_at_any_moment(server: Local, after: float) -> None:
    async def test(client: AsyncClient) -> None:
        async with client.slot(["one"], lease_ms=LONG_MS):
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(client.slot(["one"], lease_ms=LONG_MS).__aenter__(), after)
        await is_free(client)

    run(server.url, test)


@pytest.mark.parametrize("what", ["502", "lose"])
def test_a_lost_release_is_repeated(server: Local, what: str) -> None:
    with proxy(server.url, the_first(2, what, "POST", "/complete")) as between:

        async def test(client: AsyncClient) -> None:
            async with client.slot(["one"], lease_ms=LONG_MS):
                pass
            async with AsyncClient(server.url) as direct:
                await is_free(direct)

        run(between, test)
    with proxy(server.url, the_first(2, what, "POST", "/complete")) as between:
        with Client(between) as client, Client(server.url) as direct:
            with client.slot(["one"], lease_ms=LONG_MS):
                pass
            with direct.slot(["one"], wait_ms=60_000):
                pass


def test_a_slot_guards_one_block_at_a_time(client: Client, server: Local) -> None:
    slot = client.slot(["main"])
    with slot:
        with pytest.raises(RuntimeError, match="another one"):
            slot.__enter__()
    with slot:
        pass

    async def test(client: AsyncClient) -> None:
        slot = client.slot(["main"])

        async def block() -> None:
            async with slot:
                await asyncio.sleep(0.01)

        ends = await asyncio.gather(*(block() for _ in range(5)), return_exceptions=True)
        assert [type(end) for end in ends].count(RuntimeError) == 4
        assert (await client.lane("main").get()).running == 0

    run(server.url, test)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="before 3.11 a task does not know how often it was cancelled")
def test_cancelling_a_block_that_loses_its_lease_still_cancels_it(server: Local) -> None:
    async def test(client: AsyncClient) -> None:
        async def block() -> None:
            async with client.slot(["one"], lease_ms=300) as slot:
                slot._on_lost("as if by a heartbeat")
                asyncio.current_task().cancel()  # type: ignore[union-attr]
                await asyncio.sleep(30)

        blocked = asyncio.ensure_future(block())
        with pytest.raises(asyncio.CancelledError):
            await blocked
        assert blocked.cancelled()
        await is_free(client)

    run(server.url, test)


def test_a_timeout_around_a_block_is_a_timeout(server: Local) -> None:
    async def test(client: AsyncClient) -> None:
        async def block() -> None:
            async with client.slot(["one"], lease_ms=LONG_MS):
                await asyncio.sleep(WAIT_MAX_S)

        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(block(), 1)
        await is_free(client)

    run(server.url, test)


def test_a_thread_detects_the_end_of_its_lease_by_the_clock(server: Local) -> None:
    with server.client() as client:
        try:
            with pytest.raises(LeaseLost):
                with client.slot(["one"], lease_ms=400) as slot:
                    os.kill(server.pid, signal.SIGSTOP)
                    began = time.monotonic()
                    while not slot.is_lost and time.monotonic() - began < WAIT_MAX_S:
                        time.sleep(0.01)
                    os.kill(server.pid, signal.SIGCONT)
                    slot.check()
        finally:
            os.kill(server.pid, signal.SIGCONT)


def test_one_client_serves_many_loops(server: Local) -> None:
    client = AsyncClient(server.url)

    async def use() -> None:
        async with client.slot(["main"]):
            await client.status()

    for _ in range(3):
        asyncio.run(use())
    failed: list[BaseException] = []

    def in_thread() -> None:
        try:
            asyncio.run(use())
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=in_thread) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []


def test_a_fork_has_its_own_connections_and_leases(client: Client) -> None:
    client.status()
    # Both processes hold their slots longer than one lease.
    with client.slot(["main"], lease_ms=4000):
        until = time.monotonic() + 5
        child = os.fork()
        if child == 0:
            # The child process must not run the rest of the test.
            code = 1
            try:
                with client.slot(["one"], lease_ms=4000) as mine:
                    while time.monotonic() < until:
                        assert client.lane("one").get().running == 1
                        time.sleep(0.02)
                    mine.check()
                code = 0
            finally:
                os._exit(code)
        while time.monotonic() < until:
            assert client.lane("main").get().running == 1
            time.sleep(0.02)
        assert os.waitpid(child, 0)[1] == 0


def test_threads_share_a_client(client: Client) -> None:
    inside = most = 0
    lock = threading.Lock()
    failed: list[BaseException] = []

    def blocks() -> None:
        nonlocal inside, most
        try:
            for _ in range(5):
                with client.slot(["three"]):
                    with lock:
                        inside += 1
                        most = max(most, inside)
                    time.sleep(0.001)
                    with lock:
                        inside -= 1
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=blocks) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (failed, inside) == ([], 0) and 1 <= most <= 3


def test_leaving_the_loop_early_cancels_the_turn(server: Local) -> None:
    async def test(client: AsyncClient) -> None:
        task: Optional[str] = None
        async for event in client.agent("slow").chat("wait", session="left"):
            task = event.task_id
            if isinstance(event, events.Started):
                break
        assert task is not None
        assert (await client.wait(task)).status == "cancelled"

        turn = client.agent("slow").stream("wait", session="left")
        async for event in turn:
            task = event.task_id
            if isinstance(event, events.Started):
                await turn.aclose()
                break
        assert task is not None
        assert (await client.wait(task)).status == "cancelled"

    run(server.url, test)
    with server.client() as client:
        told = client.agent("slow").stream("wait", session="left")
        task = next(event.task_id for event in told if isinstance(event, events.Started))
        told.close()
        assert task is not None and client.wait(task).status == "cancelled"


def test_a_request_that_a_gateway_could_not_deliver_is_repeated_where_that_is_safe(server: Local) -> None:
    with proxy(server.url, the_first(2, "502", "GET", "/status")) as between, Client(between) as client:
        assert client.status().running >= 0
    with proxy(server.url, the_first(1, "502", "POST", "/tasks")) as between, Client(between) as client:
        with pytest.raises(UnexpectedAnswer) as refused:
            client.submit("x", lanes=["external"])
        assert refused.value.status == 502
    with proxy(server.url, the_first(9, "502", "GET", "/status")) as between:
        with Client(between, retry=Retry(limit=0)) as client, pytest.raises(UnexpectedAnswer):
            client.status()


def test_an_answer_of_another_program_is_unexpected() -> None:
    for nonsense in ("localhost:7717", "ftp://host", "http://", ""):
        with pytest.raises(ValueError, match="http://127.0.0.1:7717"):
            Client(nonsense)
    with pytest.raises(errors.Unreachable):
        Client("http://127.0.0.1:9", retry=Retry(limit=0)).status()
