"""What the generators share: the command line every output carries, and the JSON writer."""

import json
import os
import sys


def generator_command():
    """The command as typed at the repository root, with input files by name, not by place."""
    words = [
        w if w.startswith("-") or not os.path.isfile(w) else os.path.basename(w)
        for w in sys.argv[1:-1]
    ]
    return " ".join(
        ["python3", "scripts/golden/" + os.path.basename(sys.argv[0]), *words, "tests/golden"]
    )


def _holds_objects(value):
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return any(isinstance(item, dict) or _holds_objects(item) for item in items)


def _render(value, depth):
    """What holds objects is spread over lines, the rest stays on one.

    Floats print in the shortest form that reads back to the same f64 (17 digits where needed).
    """
    if depth > 0 and not _holds_objects(value):
        return json.dumps(value, separators=(",", ":"), allow_nan=False)
    pad = " " * depth
    if isinstance(value, dict):
        rows = [f"{pad} {json.dumps(k)}: {_render(v, depth + 1)}" for k, v in value.items()]
        return "{\n" + ",\n".join(rows) + f"\n{pad}}}"
    rows = [f"{pad} {_render(v, depth + 1)}" for v in value]
    return "[\n" + ",\n".join(rows) + f"\n{pad}]"


def write_json(folder, name, document):
    path = os.path.join(folder, name)
    with open(path, "w", encoding="ascii") as out:
        out.write(_render(document, 0) + "\n")
    print(f"{path}: {os.path.getsize(path)} bytes")
