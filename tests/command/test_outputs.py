"""Outputs never replace inputs, and a trained model finds a place when the disk is full."""

import errno
import io
import os
import subprocess
import sys

import numpy as np
import pytest

from terminal import run
from xtrellis import TrellisClassifier, load_model
from xtrellis.command import outputs
from xtrellis.command.outputs import (
    check_output,
    check_picture,
    check_plain_labels,
    check_stdout,
    label_that_breaks_lines,
    output_lines,
    print_facts,
    save_model,
    writing,
)
from xtrellis.data import write_shards


@pytest.fixture
def rows(tmp_path):
    path = tmp_path / "rows.tsv"
    path.write_text("a\tb\n")
    return path


# ---------------------------------------------------------------------- inputs are never replaced


def names(rows):
    """Other names of a file."""
    folder = rows.parent
    (folder / "soft").symlink_to(rows)
    (folder / "hard").hardlink_to(rows)
    (folder / "sub").mkdir()
    return [rows, folder / "soft", folder / "hard", folder / "sub" / ".." / rows.name]


def test_an_input_is_recognised_under_any_name(rows):
    for output in names(rows):
        for source in (rows, rows.parent / "soft", rows.parent / "hard"):
            with pytest.raises(ValueError, match=r"is the same file as .*; name another file"):
                check_output(output, None, rows.parent / "another", source)
    check_output(rows.parent / "another", rows)
    check_output(rows, rows.parent / "another")


def test_the_parts_of_a_folder_of_rows_are_inputs(tmp_path):
    folder = tmp_path / "rows"
    write_shards(io.BytesIO(b"a\tred wine\nb\tgreen tea\n"), folder)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert before.keys() == {"rows.json", "000000.rows", "features.xtrellis"}
    for name in before:
        with pytest.raises(ValueError, match=rf"{name}: this is the same file as .*{name}; name"):
            check_output(folder / name, None, folder)
        _, err = run("train", folder, folder / name, code=1)
        assert "is the same file as" in err
    check_output(folder / "model", folder)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_standard_input_is_an_input(rows, monkeypatch):
    from pathlib import Path

    with open(rows) as file:
        monkeypatch.setattr(sys, "stdin", file)
        with pytest.raises(ValueError, match="is the same file as standard input"):
            check_output(rows, Path("-"))
    code = (
        "from pathlib import Path; from xtrellis.command.outputs import check_output\n"
        f"check_output(Path({str(rows)!r}), Path('/dev/stdin'))"
    )
    with open(rows) as file:
        done = subprocess.run([sys.executable, "-c", code], stdin=file, capture_output=True)
    assert b"is the same file as /dev/stdin" in done.stderr


def test_standard_output_is_not_appended_to_an_input(rows, monkeypatch):
    with open(rows, "a") as file:
        monkeypatch.setattr(sys, "stdout", file)
        with pytest.raises(ValueError, match="standard output is the same file as"):
            check_stdout(rows)
        check_stdout(rows.parent / "another")
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    check_stdout(rows)


def test_devices_are_not_files_to_keep_apart():
    from pathlib import Path

    check_output(Path("/dev/null"), Path("/dev/null"))


def test_places_that_cannot_be_written(rows, tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no such folder to write to"):
        check_output(tmp_path / "no folder" / "model")
    with pytest.raises(IsADirectoryError, match="this is a folder; name a file"):
        check_output(tmp_path)
    with pytest.raises(OSError, match="this name is too long"):
        check_output(tmp_path / ("a" * 256))
    check_output(tmp_path / ("a" * 255))


def test_pictures_have_a_kind(tmp_path):
    for path in (None, tmp_path / "curve", tmp_path / "curve.PNG", tmp_path / "curve.svg"):
        check_picture(path)
    with pytest.raises(ValueError, match=r"curve\.xls: cannot draw a \.xls file; use \.png"):
        check_picture(tmp_path / "curve.xls")


# ---------------------------------------------------------------------- a full disk


class Full:
    """An estimator whose files fit only into some folders."""

    def __init__(self, *folders):
        self.folders = folders

    def save(self, path):
        if path.parent not in self.folders:
            path.write_text("half a mod")
            raise OSError(errno.ENOSPC, "No space left on device")
        return path.write_text("a model")


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """Target, temporary and home folder."""
    found = [tmp_path / name for name in ("target", "temporary", "home")]
    for folder in found:
        folder.mkdir()
    monkeypatch.setattr(outputs.tempfile, "gettempdir", lambda: str(found[1]))
    monkeypatch.setattr(outputs.Path, "home", lambda: found[2])
    monkeypatch.chdir(found[0])
    return found


@pytest.mark.parametrize("place", [1, 2])
def test_a_model_goes_where_there_is_room(folders, place):
    target = folders[0] / "model.xtrellis"
    with pytest.raises(ValueError) as caught:
        save_model(Full(folders[place]), target)
    reason, _, rescued = str(caught.value).partition("; the model is in ")
    assert reason == f"{target}: No space left on device"
    assert rescued.startswith(f"{folders[place]}/model-")
    assert rescued.endswith(".xtrellis")
    assert [path.read_text() for path in folders[place].iterdir()] == ["a model"]
    others = [path for folder in folders if folder != folders[place] for path in folder.iterdir()]
    assert others in ([], [target]), "no half-written file is left by us"


def test_a_long_name_is_shortened_where_there_is_room(folders):
    with pytest.raises(ValueError, match="; the model is in "):
        save_model(Full(folders[1]), folders[0] / ("a" * 200 + "." + "b" * 50))
    assert [path.read_text() for path in folders[1].iterdir()] == ["a model"]


def test_no_room_anywhere(folders):
    with pytest.raises(ValueError, match=r"there is no room in the temporary .*; free some space"):
        save_model(Full(), folders[0] / "model")
    assert not any([*folders[1].iterdir(), *folders[2].iterdir()])


def test_other_errors_are_not_hidden(tmp_path):
    class Broken:
        def save(self, path):
            raise ValueError("this loss cannot be saved")

    with pytest.raises(ValueError, match=r"^this loss cannot be saved$"):
        save_model(Broken(), tmp_path / "model")


LIMITED = """
import resource, sys, tempfile
from pathlib import Path
from xtrellis.command import outputs
from xtrellis import load_model
model = load_model(sys.argv[1])
room = Path(sys.argv[2])
first = outputs._save_in
def save_in(estimator, folder, like):
    if folder == room:
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
    return first(estimator, folder, like)
outputs._save_in = save_in
tempfile.tempdir = sys.argv[2]
resource.setrlimit(resource.RLIMIT_FSIZE, (256, resource.RLIM_INFINITY))
try:
    outputs.save_model(model, Path(sys.argv[3]))
except ValueError as error:
    print(error)
"""


def test_a_real_model_on_a_disk_that_is_really_full(tmp_path):
    """The kernel refuses to write more than 256 bytes, except in one folder."""
    X = np.eye(20)
    model = TrellisClassifier(random_state=0).fit(X, range(20))
    model.save(tmp_path / "model")
    (tmp_path / "room").mkdir()
    (tmp_path / "full").mkdir()
    paths = [tmp_path / "model", tmp_path / "room", tmp_path / "full" / "new"]
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, *map(str, paths)], capture_output=True, text=True
    )
    assert done.stderr == ""
    reason, _, rescued = done.stdout.strip().partition("; the model is in ")
    assert reason == f"{paths[2]}: {os.strerror(errno.EFBIG)}"
    np.testing.assert_array_equal(load_model(rescued).predict(X), model.predict(X))
    assert list((tmp_path / "full").iterdir()) == []


def test_a_full_disk_is_reported_by_the_name_of_the_file(tmp_path):
    def write():
        with writing(tmp_path / "out"):
            raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(OSError, match="No space") as caught:
        write()
    assert caught.value.filename == str(tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


# ---------------------------------------------------------------------- lines


def test_lines_appear_in_a_file_when_it_is_complete(tmp_path):
    with output_lines(tmp_path / "out") as write:
        write("one\n")
        assert not (tmp_path / "out").exists()
    assert (tmp_path / "out").read_text() == "one\n"


def test_labels_that_break_lines(tmp_path):
    assert label_that_breaks_lines(["a", "b c", 3, "é"]) is None
    for label in ("a\tb", "a\nb", "a\rb"):
        assert label_that_breaks_lines(["a", label]) == label
        with pytest.raises(ValueError, match=r"contains a tab or a newline, .*; pass --json"):
            check_plain_labels(tmp_path / "model", np.array(["a", label]))
    check_plain_labels(tmp_path / "model", np.arange(3))


def test_facts_as_a_table(capsys):
    print_facts({"n_rows": 1_000, "accuracy": 0.5, "name": "x"}, as_json=False)
    assert capsys.readouterr().out == "n rows    1,000\naccuracy  0.5000\nname      x\n"


@pytest.mark.skipif(os.name == "nt", reason="closes a descriptor by the shell")
def test_a_closed_standard_output_is_one_line(rows):
    command = f"'{sys.executable}' -m xtrellis predict model '{rows}' >&-"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == (
        "error: standard output is closed; name a file to write, or leave it open\n"
    )
