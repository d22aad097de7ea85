#!/usr/bin/env python3
"""Writes `concord_agent/types.py` from the JSON Schemas; with --check it only says whether that is up to date."""

from __future__ import annotations

import argparse
import json
import keyword
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
SCHEMAS = HERE.parent.parent / "proto-schemas"
TARGET = HERE / "src" / "concord_agent" / "types.py"

Schema = dict[str, Any]
SCALARS = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}

#: Longest list of values on one line.
LITERAL_MAX = 100

HEADER = '''"""What is said, by message type. Generated from proto-schemas/ by clients/python/generate.py; do not edit."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict

'''


def annotation(schema: Schema | bool) -> str:
    """The type of what a schema accepts."""
    if schema is True or schema is False or not schema:
        return "Any"
    if "$ref" in schema:
        return str(schema["$ref"]).rsplit("/", 1)[-1]
    if "const" in schema:
        return literal([schema["const"]])
    if "enum" in schema:
        return literal(schema["enum"])
    for union in ("oneOf", "anyOf"):
        if union in schema:
            if all("const" in option for option in schema[union]):
                return literal([option["const"] for option in schema[union]])
            return either([annotation(option) for option in schema[union]])
    kind = schema.get("type")
    if isinstance(kind, list):
        return either([annotation({**schema, "type": one}) for one in kind])
    if kind == "array":
        return f"list[{annotation(schema.get('items', True))}]"
    if kind == "object":
        values = schema.get("additionalProperties", True)
        return f"dict[str, {annotation(values)}]"
    return SCALARS.get(str(kind), "Any")


def literal(values: list[Any]) -> str:
    """One of these values."""
    listed = [json.dumps(value) if isinstance(value, str) else repr(value) for value in values]
    line = f"Literal[{', '.join(listed)}]"
    return line if len(line) <= LITERAL_MAX else "Literal[\n" + "".join(f"    {value},\n" for value in listed) + "]"


def either(options: list[str]) -> str:
    """One of several types, each once."""
    unique = list(dict.fromkeys(options))
    return "Any" if "Any" in unique else " | ".join(unique)


def sentence(schema: Schema) -> str:
    """The first sentence of a description."""
    text = " ".join(str(schema.get("description", "")).split())
    return text.split(". ")[0].rstrip(".").replace('"', "'").replace("\\", "/")


def definition(name: str, schema: Schema) -> str:
    """A class for an object with properties, an alias for everything else."""
    properties: dict[str, Schema] = schema.get("properties", {})
    if not properties:
        return f"{name} = {annotation(schema)}\n"
    required = set(schema.get("required", []))
    fields = {
        field: annotation(of) if field in required else f"NotRequired[{annotation(of)}]"
        for field, of in properties.items()
    }
    if any(keyword.iskeyword(field) or not field.isidentifier() for field in fields):
        listed = "".join(f"    {field!r}: {of!r},\n" for field, of in sorted(fields.items()))
        return f"{name} = TypedDict({name!r}, {{\n{listed}}})\n"
    lines = [f"class {name}(TypedDict):", f'    """{sentence(schema) or name}."""', ""]
    lines += [f"    {field}: {of}" for field, of in sorted(fields.items())]
    return "\n".join(lines) + "\n"


def needed(schema: Any, definitions: dict[str, Schema], found: dict[str, Schema]) -> None:
    """Adds the definitions that a schema refers to, those first that others need."""
    if isinstance(schema, dict):
        reference = schema.get("$ref")
        if isinstance(reference, str):
            name = reference.rsplit("/", 1)[-1]
            if name not in found and name in definitions:
                needed(definitions[name], definitions, found)
                found[name] = definitions[name]
        for value in schema.values():
            needed(value, definitions, found)
    elif isinstance(schema, list):
        for value in schema:
            needed(value, definitions, found)


def module() -> str:
    """The module's text."""
    found: dict[str, Schema] = {}
    payloads: dict[str, str] = {}
    notifications: dict[str, str] = {}
    for path in sorted(SCHEMAS.glob("*.schema.json")):
        document: Schema = json.loads(path.read_text("utf-8"))
        kind = document.get("properties", {}).get("message_type", {}).get("const")
        if kind is None:
            continue
        payload = document["properties"]["payload"]
        event = payload.get("properties", {}).get("event", {}).get("const")
        if event is not None:
            notifications[event] = annotation(payload["properties"]["data"])
        else:
            payloads[kind] = annotation(payload) if "$ref" in payload else "dict[str, Any]"
        before = dict(found)
        needed([payload, document["properties"]["priority"]], document["$defs"], found)
        for name, schema in document["$defs"].items():
            if name in before and before[name] != schema:
                raise SystemExit(f"{path.name}: {name} is not what another document says it is")
    parts = [definition(name, schema) for name, schema in found.items()]
    parts.append(f"MessageType = {literal(list(payloads))}\n")
    parts.append("#: The payload's type by message type.\n" + table("PAYLOADS", payloads))
    parts.append("#: The type of the data of Concord's notifications, by event.\n" + table("NOTIFICATIONS", notifications))
    return HEADER + "".join(apart(parts))


def table(name: str, types: dict[str, str]) -> str:
    """A dictionary of the names of types."""
    lines = [f"    {json.dumps(key)}: {json.dumps(kind)}," for key, kind in types.items()]
    return f"{name}: dict[str, str] = {{\n" + "\n".join(lines) + "\n}\n"


def apart(parts: list[str]) -> list[str]:
    """The parts with as many blank lines between them as formatters want."""
    classes = [part.startswith("class ") for part in parts]
    following = [*classes[1:], False]
    gaps = ["\n\n" if here or after else "" for here, after in zip(classes, following, strict=True)]
    return [part + gap for part, gap in zip(parts, [*gaps[:-1], ""], strict=True)]


def main() -> int:
    """Writes the module, or checks it."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--check", action="store_true", help="write nothing; fail when the file is out of date")
    text = module()
    if arguments.parse_args().check:
        if TARGET.is_file() and TARGET.read_text("utf-8") == text:
            return 0
        print(f"{TARGET.relative_to(HERE.parent.parent)} is out of date; run scripts/generate", file=sys.stderr)
        return 1
    TARGET.write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
