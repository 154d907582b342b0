"""The worker in Python: `worker.py URL PORT`."""

import asyncio
import socket
import sys

from laneway import AsyncClient, TaskRun, Worker

URL, PORT = sys.argv[1], int(sys.argv[2])
HEARS_EVERY_S = 0.005
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)


def say(text: str) -> None:
    udp.sendto(text.encode(), ("127.0.0.1", PORT))


async def main() -> None:
    async with AsyncClient(URL) as client:
        worker = Worker(client, lanes=["agent:python"])

        @worker.handler("agent:python", steering=True)
        async def turn(task: TaskRun) -> None:
            text = task.payload["text"]
            say(f"begins {text}")
            try:
                while True:
                    for message in task.steered():
                        say(f"takes {message.text}")
                    await asyncio.sleep(HEARS_EVERY_S)
            finally:
                say(f"stops {text}")

        print("ready", flush=True)
        await worker.run()


asyncio.run(main())
