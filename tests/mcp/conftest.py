"""A server for all tests, and every way to connect to it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from serving import Server
from ways import WAYS, Way


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    running = Server(tmp_path_factory.mktemp("mcp"), "laneway.hcl")
    yield running
    running.stop()


@pytest.fixture(scope="session")
def impatient_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    running = Server(tmp_path_factory.mktemp("mcp"), "laneway.hcl", is_impatient=True)
    yield running
    running.stop()


each_way = pytest.fixture(params=range(4), ids=[f"{transport}-{mode}" for transport, mode in WAYS])


@each_way
def way(request: pytest.FixtureRequest, server: Server) -> Way:
    return Way(server, *WAYS[request.param], gate=f"gate-{request.param + 1}")


@each_way
def impatient(request: pytest.FixtureRequest, impatient_server: Server) -> Way:
    return Way(impatient_server, *WAYS[request.param], gate=f"gate-{request.param + 1}")
