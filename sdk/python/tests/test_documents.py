"""Every Python sample of the documentation runs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import WAIT_MAX_S

from laneway import Local

ROOT = Path(__file__).resolve().parents[3]
PAGES = [ROOT / "docs" / "guide" / "sdk.md", ROOT / "sdk" / "python" / "README.md", *sorted((ROOT / "docs" / "guide" / "coming-from").glob("*.md"))]
SAMPLES = [
    pytest.param(sample, id=f"{page.stem}-{number}")
    for page in PAGES
    for number, sample in enumerate(re.findall(r"^```python\n(.*?)^```$", page.read_text(), re.S | re.M), 1)
]


def test_there_are_samples() -> None:
    assert len(SAMPLES) > 10


def test_the_samples_are_typed(tmp_path: Path) -> None:
    for number, sample in enumerate(SAMPLES):
        (tmp_path / f"sample_{number}.py").write_text(str(sample.values[0]))
    environment = {**os.environ, "MYPYPATH": str(ROOT / "sdk" / "python" / "src")}
    checked = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), str(tmp_path)]
    done = subprocess.run(checked, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("sample", SAMPLES)
def test_a_sample_runs_and_prints_something(server: Local, sample: str) -> None:
    environment = {**os.environ, "LANEWAY_URL": server.url}
    done = subprocess.run([sys.executable, "-c", sample], env=environment, capture_output=True, text=True, timeout=WAIT_MAX_S)
    assert done.returncode == 0, done.stderr
    assert done.stdout
