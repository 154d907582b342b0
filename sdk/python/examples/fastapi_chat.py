"""A chat handler behind a lane: a limited number of turns at once, and one at a time for each user.

    uvicorn fastapi_chat:app            with LANEWAY_URL in the environment
"""

from __future__ import annotations

import asyncio
import math
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from fastapi import FastAPI, HTTPException
from pydantic import BaseModel

from laneway import AsyncClient, errors

lanes = AsyncClient(os.environ.get("LANEWAY_URL", "http://127.0.0.1:7717"))


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncGenerator[None, None]:
    async with lanes:
        yield


app = FastAPI(lifespan=lifespan)


class Chat(BaseModel):
    user: str
    message: str


async def model(message: str) -> str:
    """A stand-in for the call of a model."""
    await asyncio.sleep(0.2)
    return message.upper()


@app.post("/chat")
async def chat(request: Chat) -> dict[str, str]:
    try:
        async with lanes.slot(["main"], session=request.user, wait_ms=20_000):
            return {"answer": await model(request.message)}
    except (errors.AtCapacity, errors.WaitTimeout) as busy:
        wait = math.ceil(busy.retry_after or 5)
        raise HTTPException(429, busy.detail, headers={"retry-after": str(wait)}) from busy
