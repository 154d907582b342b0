"""A platform whose agents come and go at run time: one turn of an agent at a time, three may wait.

    LANEWAY_URL=http://127.0.0.1:7717 uvicorn agent_platform:app

The routes below `/containers` stand in for the containers of the agents.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Optional

from fastapi import FastAPI, Header, HTTPException, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel

from laneway import AsyncClient, Refusal, errors

lanes = AsyncClient(os.environ.get("LANEWAY_URL", "http://127.0.0.1:7717"))


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncGenerator[None, None]:
    async with lanes:
        yield


app = FastAPI(lifespan=lifespan)


class NewAgent(BaseModel):
    name: str


class Chat(BaseModel):
    message: str
    session: Optional[str] = None


@app.exception_handler(Refusal)
async def refused(_: Request, refusal: Refusal) -> JSONResponse:
    """Passes on what the queue says: the status, the code, the numbers of the lane, and when to come back."""
    problem = refusal.problem
    body: dict[str, Any] = {"error": problem.error, "code": problem.code, "detail": problem.detail}
    if isinstance(refusal, errors.AtCapacity):
        body |= {"queue_length": problem.queue_length, "retry_after": problem.retry_after}
    headers = {"retry-after": str(problem.retry_after)} if problem.retry_after else None
    return JSONResponse(body, problem.status, headers=headers)


@app.post("/api/agents", status_code=201)
async def create(agent: NewAgent, request: Request) -> dict[str, str]:
    containers[agent.name] = Container()
    url = f"{request.base_url}containers/{agent.name}/chat"
    # All replicas know the agent from now on. Its turns need no slot in `main`, so agents do not hinder each other.
    await lanes.agent(agent.name).create(url=url, lanes=[])
    return {"name": agent.name}


@app.delete("/api/agents/{name}", status_code=204)
async def remove(name: str) -> None:
    """Waiting callers get the end; what runs may end."""
    await lanes.agent(name).remove()
    containers.pop(name, None)


@app.post("/api/agents/{name}/chat")
async def chat(name: str, ask: Chat) -> dict[str, Any]:
    options: Any = {} if ask.session is None else {"session": ask.session}
    answer = await lanes.agent(name).chat(ask.message, **options)
    return {"response": answer.response, "queue_status": answer.execution.queue_status}


@app.get("/api/agents/{name}/queue")
async def queue(name: str) -> dict[str, Any]:
    state = await lanes.agent(name).queue()
    waiting = [execution.message for execution in state.queued_executions]
    return {"is_busy": state.is_busy, "queue_length": state.queue_length, "waiting": waiting}


@app.post("/api/agents/{name}/queue/clear")
async def clear(name: str) -> dict[str, int]:
    return {"cleared_count": (await lanes.agent(name).clear()).cleared_count}


@app.post("/api/agents/{name}/queue/release")
async def release(name: str) -> dict[str, bool]:
    """Frees the agent of a turn that hangs. What that turn still does is harmless: its fence is old."""
    return {"was_running": (await lanes.agent(name).release()).was_running}


@dataclass
class Container:
    """What stands in for the container of an agent."""

    fence: int = 0
    may_answer: asyncio.Event = field(default_factory=asyncio.Event)


containers: dict[str, Container] = {}


@app.post("/containers/{name}/chat")
async def turn(name: str, ask: Chat, x_laneway_fence: int = Header()) -> dict[str, str]:
    container = containers[name]
    # A fence only grows, so a turn that has lost its slot cannot come after the next one.
    if x_laneway_fence < container.fence:
        raise HTTPException(409, "a later turn has begun")
    container.fence = x_laneway_fence
    if ask.message == "wait":
        await container.may_answer.wait()
    return {"response": f"{name}: {ask.message}"}


@app.post("/containers/{name}/go-on")
async def go_on(name: str) -> None:
    containers[name].may_answer.set()
