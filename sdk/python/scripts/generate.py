"""Writes `src/laneway/types.py` from the OpenAPI document of a server.

    python scripts/generate.py openapi.json            writes the file
    python scripts/generate.py openapi.json --check    fails if the file differs

Answers of the server become frozen dataclasses, and requests become TypedDicts.
"""

from __future__ import annotations

import json
import keyword
import sys
from pathlib import Path
from typing import Any

TARGET = Path(__file__).resolve().parent.parent / "src" / "laneway" / "types.py"
HEAD = '''"""What goes over the wire. Written by scripts/generate.py from the server's OpenAPI document; not edited by hand."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, TypedDict, Union

'''
Schema = dict[str, Any]

# Enumerations that a newer server may extend, so a reader must accept unknown words.
OPEN = {"Code"}


class Document:
    def __init__(self, document: Schema) -> None:
        self.schemas: dict[str, Schema] = document["components"]["schemas"]
        self.asked: set[str] = set()
        for item in document["paths"].values():
            for operation in item.values():
                if isinstance(operation, dict) and "responses" in operation:
                    self._reach(operation.get("requestBody", {}), self.asked)
        # A page has its items inline, and they also need their own class.
        pages = {name for name in self.schemas if name.startswith("Page_")}
        self.names = sorted(set(self.schemas) - pages)

    def _reach(self, node: Any, found: set[str]) -> None:
        if isinstance(node, list):
            for part in node:
                self._reach(part, found)
        if not isinstance(node, dict):
            return
        name = node.get("$ref", "").rpartition("/")[2]
        if name and name not in found:
            found.add(name)
            self._reach(self.schemas[name], found)
        for part in node.values():
            self._reach(part, found)

    def merged(self, schema: Schema) -> Schema:
        """Merges the schemas of `allOf` into one."""
        whole: Schema = {**schema, "properties": dict(schema.get("properties", {}))}
        whole["required"] = list(schema.get("required", []))
        for part in schema.get("allOf", []):
            part = self.merged(self.schemas[part["$ref"].rpartition("/")[2]] if "$ref" in part else part)
            whole["properties"].update(part["properties"])
            whole["required"] += part["required"]
            whole.setdefault("additionalProperties", part.get("additionalProperties", False))
        return whole

    def type_of(self, schema: Schema) -> str:
        if "$ref" in schema:
            return str(schema["$ref"].rpartition("/")[2])
        if "oneOf" in schema or "anyOf" in schema:
            parts: list[Schema] = schema.get("oneOf", []) + schema.get("anyOf", [])
            return union([self.type_of(part) for part in parts])
        if "enum" in schema:
            return f"Literal[{', '.join(json.dumps(word) for word in schema['enum'])}]"
        kinds = schema.get("type")
        if isinstance(kinds, list):
            return union([self.type_of({**schema, "type": kind}) for kind in kinds])
        if kinds == "array":
            return f"list[{self.type_of(schema['items'])}]"
        if kinds == "object" and isinstance(schema.get("additionalProperties"), dict):
            return f"dict[str, {self.type_of(schema['additionalProperties'])}]"
        plain = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
        return plain.get(str(kinds), "dict[str, Any]" if kinds == "object" else "Any")

    def text(self) -> str:
        written = [HEAD]
        for name in self.names:
            schema = self.schemas[name]
            if "properties" not in schema and "allOf" not in schema:
                alias = "str" if name in OPEN else self.type_of(schema)
                written.append(f"\n{name} = {alias}\n")
        for name in self.names:
            schema = self.schemas[name]
            if "properties" in schema or "allOf" in schema:
                whole = self.merged(schema)
                written.append(self.request(name, whole) if name in self.asked else self.answer(name, whole))
        return "".join(written)

    def answer(self, name: str, schema: Schema) -> str:
        required = set(schema["required"])
        fields = sorted(schema["properties"].items(), key=lambda field: (field[0] not in required, field[0]))
        lines = [f'\n\n@dataclass(frozen=True)\nclass {name}:\n    """{sentence(schema)}"""\n']
        for key, field in fields:
            kind = self.type_of(field)
            attribute = f"{key}_" if keyword.iskeyword(key) else key
            if key in required:
                lines.append(f"\n    {attribute}: {kind}")
            else:
                lines.append(f"\n    {attribute}: {union([kind, 'None'])} = None")
            lines.append(doc(field))
        if schema.get("additionalProperties"):
            lines.append('\n    more: dict[str, Any] = field(default_factory=dict[str, Any], metadata={"rest": True})')
            lines.append('\n    """All further fields."""')
        return "".join(lines) + "\n"

    def request(self, name: str, schema: Schema) -> str:
        required = set(schema["required"])
        must = {key: field for key, field in schema["properties"].items() if key in required}
        may = {key: field for key, field in schema["properties"].items() if key not in required}
        base = "TypedDict"
        text = ""
        if must and may:
            text += f"\n\nclass _{name}(TypedDict):\n" + self.keys(must)
            base = f"_{name}"
        total = "" if not may else ", total=False"
        text += f'\n\nclass {name}({base}{total}):\n    """{sentence(schema)}"""\n\n' + self.keys(may or must)
        return text

    def keys(self, fields: dict[str, Schema]) -> str:
        return "".join(f"    {key}: {self.type_of(field)}{doc(field)}\n" for key, field in sorted(fields.items()))


def union(parts: list[str]) -> str:
    flat: list[str] = []
    for part in parts:
        inner = part[6:-1].split(", ") if part.startswith("Union[") else [part]
        flat += [one for one in inner if one not in flat]
    if "Any" in flat:
        return "Any"
    flat.sort(key=lambda one: one == "None")
    return flat[0] if len(flat) == 1 else f"Union[{', '.join(flat)}]"


def sentence(schema: Schema) -> str:
    return " ".join(str(schema.get("description", "")).split()).replace("\\", "\\\\") or "Has no description."


def doc(field: Schema) -> str:
    text = field.get("description") or next(
        (part["description"] for part in field.get("oneOf", []) if "description" in part), ""
    )
    return f'\n    """{" ".join(text.split())}"""' if text else ""


def main() -> int:
    text = Document(json.loads(Path(sys.argv[1]).read_text())).text()
    if "--check" not in sys.argv[2:]:
        TARGET.write_text(text)
        return 0
    if TARGET.exists() and TARGET.read_text() == text:
        return 0
    print(f"{TARGET} is not what the server's document says; run scripts/generate.py", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
