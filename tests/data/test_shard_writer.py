"""The writer of shards overwrites nothing, and leaves nothing behind when it fails."""

import errno

import numpy as np
import pytest

from xtrellis.data import DataError, open_shards, write_shards
from xtrellis.model import model_file
from xtrellis.model.atomic import UNFINISHED


def test_no_file_is_overwritten(tmp_path):
    """Not even the rows that are converted, if they are called as a part would be."""
    file = tmp_path / "000000.rows"
    file.write_bytes(b"a 1:1\nb 2:1\n")
    with pytest.raises(DataError, match=r"000000\.rows: this would be overwritten; it may be left"):
        write_shards(file, tmp_path)
    assert file.read_bytes() == b"a 1:1\nb 2:1\n"
    with pytest.raises(DataError, match=r"000000\.rows: this is a file; name a folder to write to"):
        write_shards(file, file)


def test_conversions_to_one_folder_do_not_mix(tmp_path):
    def rows():
        yield [[1.0, 2.0]], ["a"]
        write_shards([([[1.0, 2.0]], ["b"])], tmp_path)
        yield [[3.0, 4.0]], ["c"]

    with pytest.raises(DataError, match=r"another conversion writes to this folder; name another"):
        write_shards(rows(), tmp_path, shard_bytes=1_000_000)
    assert open_shards(tmp_path).classes.tolist() == ["b"]
    assert len(open_shards(tmp_path)[0][1]) == 1


def test_a_full_disk_leaves_nothing_behind(tmp_path, monkeypatch):
    """Or the disk would stay full; also what an interrupt would have to remove is forgotten."""
    n_written = 0
    write_file = model_file.write_file

    def full(*arguments):
        nonlocal n_written
        n_written += 1
        if n_written == 3:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write_file(*arguments)

    monkeypatch.setattr(model_file, "write_file", full)
    before = set(UNFINISHED)
    batches = [(np.eye(9), np.arange(9))] * 5
    with pytest.raises(OSError, match="No space left on device"):
        write_shards(batches, tmp_path / "rows", shard_bytes=50)
    assert n_written == 3
    assert not (tmp_path / "rows").exists()
    assert before == UNFINISHED
    monkeypatch.setattr(model_file, "write_file", write_file)
    assert write_shards(batches, tmp_path / "rows", shard_bytes=50).n_rows == 45
    assert before == UNFINISHED
