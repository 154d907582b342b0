"""Generated files are current."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from pathlib import Path

from laneway import Local
from laneway.errors import BY_CODE

ROOT = Path(__file__).resolve().parent.parent


def test_the_types_are_those_of_the_server(server: Local, tmp_path: Path) -> None:
    document = tmp_path / "openapi.json"
    with urllib.request.urlopen(f"{server.url}/openapi.json") as answer:
        document.write_bytes(answer.read())
    subprocess.run([sys.executable, ROOT / "scripts" / "generate.py", document, "--check"], check=True)


def test_there_is_an_exception_for_each_code_of_the_server(server: Local) -> None:
    with urllib.request.urlopen(f"{server.url}/openapi.json") as answer:
        codes = json.load(answer)["components"]["schemas"]["Code"]["enum"]
    assert set(codes) == set(BY_CODE)


def test_the_synchronous_half_matches_the_asynchronous_half() -> None:
    subprocess.run([sys.executable, ROOT / "scripts" / "unasync.py", "--check"], check=True)


def test_types_are_strict_in_the_package_its_tests_and_its_examples() -> None:
    checked = ["src/laneway", "tests", "examples", "scripts"]
    subprocess.run([sys.executable, "-m", "mypy", "--strict", *checked], cwd=ROOT, check=True)


def test_types_are_strict_with_pyright() -> None:
    subprocess.run([sys.executable, "-m", "pyright", "--pythonpath", sys.executable], cwd=ROOT, check=True)
