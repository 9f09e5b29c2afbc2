"""Files that are whole or not there."""

import errno
import os

import pytest

from xtrellis.model.atomic import replacing, write_elsewhere


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


def test_the_umask_is_never_touched(tmp_path, monkeypatch):
    """It is the process's: two threads that change and restore it may leave it changed."""
    monkeypatch.setattr(os, "umask", None)
    with replacing(tmp_path / "new") as beside:
        beside.write_text("new")
    assert (tmp_path / "new").read_text() == "new"


@pytest.mark.parametrize("mode", [0o600, 0o444, 0o660])
def test_a_file_in_the_making_is_no_more_open_than_its_target(tmp_path, mode):
    target = tmp_path / "target"
    target.write_text("old")
    target.chmod(mode)
    with replacing(target) as beside:
        assert beside.stat().st_mode & 0o777 & ~(mode | 0o600) == 0
        beside.write_text("new")
    assert target.stat().st_mode & 0o777 == mode


@pytest.mark.parametrize("name", ["a" * 255, "\u00e9" * 127, "b" * 100 + "." + "c" * 154])
def test_names_may_be_as_long_as_the_system_allows(tmp_path, name):
    for text in ("old", "new"):
        with replacing(tmp_path / name) as beside:
            beside.write_text(text)
        assert (tmp_path / name).read_text() == text
    assert len(list(tmp_path.iterdir())) == 1


def test_full_disk_leaves_the_old_file_and_nothing_else(full_disk):
    target = full_disk / "target"
    target.write_text("old")
    with pytest.raises(OSError, match="No space left") as error, replacing(target) as beside:
        beside.write_bytes(bytes(100_000))
    assert error.value.errno == errno.ENOSPC
    assert error.value.filename == str(target)
    assert target.read_text() == "old"
    assert list(full_disk.iterdir()) == [target]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full here")
def test_full_device_is_named():
    with pytest.raises(OSError, match="No space left") as error, replacing("/dev/full") as beside:
        beside.write_text("new")
    assert error.value.filename == "/dev/full"


def test_other_errors_are_passed_on_as_they_are(tmp_path):
    other = OSError(errno.ENOSPC, "No space left on device", "elsewhere")
    for error in (other, BrokenPipeError(errno.EPIPE, "Broken pipe")):
        with pytest.raises(OSError) as raised, replacing(tmp_path / "target"):
            raise error
        assert raised.value is error


def test_what_found_no_room_is_written_elsewhere(full_disk, tmp_path):
    def write(path):
        with replacing(path) as beside:
            beside.write_bytes(bytes(100_000))

    (tmp_path / "a.b").write_text("another file")
    spare = write_elsewhere(write, full_disk / "a.b", [full_disk, tmp_path])
    assert spare == tmp_path / "a-1.b"
    assert spare.stat().st_size == 100_000
    assert list(full_disk.iterdir()) == []


def test_no_room_anywhere(monkeypatch, tmp_path):
    def write(path):
        raise OSError(errno.ENOSPC, "No space left on device")

    assert write_elsewhere(write, tmp_path / "a.b") is None
