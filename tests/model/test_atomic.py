"""Files that are whole or not there."""

import os

import pytest

from xtrellis.model.atomic import replacing


def test_target_is_replaced_only_at_the_end(tmp_path):
    target = tmp_path / "target"
    target.write_text("old")
    with replacing(target) as beside:
        beside.write_text("new")
        assert target.read_text() == "old"
    assert target.read_text() == "new"
    assert list(tmp_path.iterdir()) == [target]


def test_failure_leaves_the_old_file(tmp_path):
    target = tmp_path / "target"
    target.write_text("old")
    with pytest.raises(KeyboardInterrupt):  # noqa: PT012, SIM117
        with replacing(target) as beside:
            beside.write_text("new")
            raise KeyboardInterrupt
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_pipes_are_written_to_not_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with replacing(tmp_path / "pipe") as beside:
        assert beside == tmp_path / "pipe"
    assert not (tmp_path / "pipe").is_file()


def test_errors_name_the_file_that_was_asked_for(tmp_path):
    with pytest.raises(FileNotFoundError) as error, replacing(tmp_path / "none" / "file"):
        pass
    assert error.value.filename == str(tmp_path / "none" / "file")


def test_new_files_have_the_usual_permissions(tmp_path):
    before = os.umask(0o027)
    try:
        with replacing(tmp_path / "new") as beside:
            beside.write_text("new")
    finally:
        os.umask(before)
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o640
