"""Model files taken apart and put together again, for tests that alter them."""

import io
import json

from xtrellis.model.model_file import ENTRY, checksum, read_file, write_file


def take_apart(path):
    """Arrays and facts of a file."""
    with open(path, "rb") as file:
        arrays, metadata = read_file(file)
    return arrays, json.loads(metadata[ENTRY])


def put_together(path, arrays, facts, sign=True):
    """File of these arrays and facts, with the right checksum unless told otherwise."""
    if sign:
        facts = {**facts, "checksum": checksum(arrays, facts)}
    content = io.BytesIO()
    write_file(content, arrays, facts)
    path.write_bytes(content.getvalue())
