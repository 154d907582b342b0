"""Writes `src/laneway/_sync` from `src/laneway/_async`, so that both behave the same.

    python scripts/unasync.py            writes the files
    python scripts/unasync.py --check    fails if the files differ

The script leaves out lines between `# async only` and `# end`, and adds lines that begin with `# sync: `. The files in
`BY_HAND` need threads instead of tasks, so they exist twice.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent / "src" / "laneway"
BY_HAND = {"leases.py", "slots.py"}
WORDS = [
    (r"\bAsync(Transport|Turn|Agent|Lane|Schedule|Session|Slot|Leases|External|Client|HTTPTransport|Carrier|Gathering|NetworkBackend|NetworkStream|ConnectionPool|EventStream)\b", r"\1"),
    (r"\bAsyncGenerator, Generator\b", "Generator"),
    (r"\bAsyncGenerator\[([\w\[\]]+), None\]", r"Generator[\1, None, None]"),
    (r"\bAsyncGenerator\b", "Generator"),
    (r"\basync (def|for|with) ", r"\1 "),
    (r"\bawait ", ""),
    (r"\b__aenter__\b", "__enter__"),
    (r"\b__aexit__\b", "__exit__"),
    (r"\b__aiter__\b", "__iter__"),
    (r"\b__anext__\b", "__next__"),
    (r"\bAnyIOBackend\b", "SyncBackend"),
    (r"\baclose\b", "close"),
    (r"\baclosing\b", "closing"),
    (r"\baread\b", "read"),
    (r"\basyncio\.sleep\b", "time.sleep"),
    (r"\basyncio\.Lock\b", "threading.Lock"),
    (r"^import asyncio$", "import threading"),
    (r"\b_async\b", "_sync"),
]


def translate(text: str, name: str) -> str:
    lines: list[str] = []
    left_out = False
    for line in text.splitlines():
        mark = line.strip()
        if mark == "# async only":
            left_out = True
        elif mark == "# end":
            left_out = False
        elif mark.startswith("# sync:"):
            lines.append(" " * (len(line) - len(line.lstrip())) + mark[len("# sync:") :][1:])
        elif not left_out:
            for word, instead in WORDS:
                line = re.sub(word, instead, line)
            lines.append(line)
    whole = "\n".join(line.rstrip() for line in lines) + "\n"
    if "threading." not in whole.replace("import threading", ""):
        whole = whole.replace("import threading\n", "")
    head, _, rest = whole.partition("\n")
    return f"{head}\n\n# Written by scripts/unasync.py from _async/{name}; not edited by hand.\n{rest}" if rest else whole


def main() -> int:
    stale = []
    for source in sorted((ROOT / "_async").glob("*.py")):
        if source.name in BY_HAND:
            continue
        target = ROOT / "_sync" / source.name
        text = translate(source.read_text(), source.name)
        if "--check" not in sys.argv[1:]:
            target.write_text(text)
        elif not target.exists() or target.read_text() != text:
            stale.append(target)
    for target in stale:
        print(f"{target} differs from its asynchronous source; run scripts/unasync.py", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
