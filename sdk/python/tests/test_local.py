"""A local server."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from laneway import Laneway, LocalFailed

STARTS_ONE = """
import sys, time
from laneway import Laneway
queue = Laneway.local()
print(queue.pid, queue._home, flush=True)
time.sleep(60)
"""
INTERRUPTED = """
import signal, time
from laneway import Laneway
# Tests in the background ignore SIGINT, and their child processes inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
with Laneway.local() as queue, queue.client() as client:
    try:
        with client.slot(["main"]):
            print("inside", flush=True)
            time.sleep(60)
    except KeyboardInterrupt:
        print("running", client.lane("main").get().running, flush=True)
"""


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_the_server_ends_with_the_program_however_the_program_ends(how: signal.Signals) -> None:
    program = subprocess.Popen([sys.executable, "-c", STARTS_ONE], stdout=subprocess.PIPE, text=True)
    assert program.stdout is not None
    pid, home = program.stdout.readline().split()
    assert is_alive(int(pid)) and Path(home).exists()
    program.send_signal(how)
    program.wait()
    until = time.monotonic() + 30
    while (is_alive(int(pid)) or Path(home).exists()) and time.monotonic() < until:
        time.sleep(0.02)
    assert not is_alive(int(pid)) and not Path(home).exists()


def test_an_interrupted_program_keeps_its_server_until_it_ends() -> None:
    program = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert program.stdout is not None and program.stdout.readline() == "inside\n"
    # Send the signal to the whole process group, as a terminal does.
    os.killpg(program.pid, signal.SIGINT)
    assert program.stdout.readline() == "running 0\n"
    assert program.wait(30) == 0


def test_the_watcher_of_a_server_ends_with_it() -> None:
    with Laneway.local() as queue:
        os.kill(queue.pid, signal.SIGKILL)
        # A watcher that is left could end another process with the same id.
        assert queue._watcher.wait(30) == 0


def test_a_file_store_keeps_accepted_tasks(tmp_path: Path) -> None:
    config = {"lane": {"later": {"handler": "external"}}}
    with Laneway.local(tmp_path / "data", config=config) as queue, queue.client() as client:
        task = client.submit("x", {"n": 1}, lanes=["later"])
    with Laneway.local(tmp_path / "data", config=config) as queue, queue.client() as client:
        assert client.task(task.id).payload == {"n": 1}


def test_errors_have_their_reason(tmp_path: Path) -> None:
    with pytest.raises(LocalFailed, match="did not start"):
        Laneway.local(binary=str(tmp_path / "nothing"))
    with pytest.raises(LocalFailed, match="max_concurrency"):
        Laneway.local(config={"lane": {"main": {"max_concurency": 3}}})
    with Laneway.local() as queue, pytest.raises(LocalFailed, match="in use"):
        Laneway.local(listen=queue.url.removeprefix("http://"))
