"""Where compiled kernels are kept: read-only file systems, damaged files, changed sources."""

import ast
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import xtrellis
from xtrellis.kernels import _jit, compile_seconds, on_compile

PACKAGE = Path(xtrellis.__file__).parent

# Everything mounted in this namespace becomes read-only, but for the folder $WRITABLE, if any.
READ_ONLY = r"""
if [ -n "$WRITABLE" ]; then mount --bind "$WRITABLE" "$WRITABLE"; fi
for mounted in $(awk '{print $2}' /proc/self/mounts); do
    if [ "$mounted" != "$WRITABLE" ]; then mount -o remount,bind,ro "$mounted"; fi
done 2>/dev/null
if touch / 2>/dev/null; then exit 77; fi
exec "$@"
"""

ONE_KERNEL = """
import numpy as np
from xtrellis.kernels import compile_seconds, costs
out = np.empty(3, np.float32)
costs.exponential(np.arange(-1, 2, dtype=np.float32), out)
assert abs(out - [2.3504, 0, -2.3504]).max() < 1e-3
print("compiled" if compile_seconds() else "cached")
"""

FIT = """
import numpy as np
from xtrellis import TrellisClassifier
from xtrellis.kernels import compile_seconds
X, y = np.eye(6).repeat(3, axis=0), np.arange(6).repeat(3)
clf = TrellisClassifier(random_state=0).fit(X, y)
assert clf.score(X, y) == 1.0
clf.predict_top_k(X, 2)
print("compiled" if compile_seconds() else "cached")
"""


def run(script, package, read_only=False, writable="", **environment):
    """Run a script in a new process; returns its standard output and error, in lines."""
    command = [sys.executable, "-W", "always", "-c", script]
    if read_only:
        command = ["unshare", "-m", "sh", "-c", READ_ONLY, "sh", *command]
    kept = {key: value for key, value in os.environ.items() if not key.startswith("NUMBA_")}
    env = kept | {"PYTHONPATH": str(package.parent), "WRITABLE": str(writable)} | environment
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    if done.returncode == 77:
        pytest.skip("file systems cannot be mounted read-only here")
    assert done.returncode == 0, done.stderr
    return done.stdout.split(), done.stderr.splitlines()


@pytest.fixture
def mounts():
    """Skip where a namespace of mounts is not permitted."""
    if shutil.which("unshare") is None:
        pytest.skip("needs unshare")
    if subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode:
        pytest.skip("mounting is not permitted here")


@pytest.fixture
def package(tmp_path):
    """A copy of the package without compiled kernels."""
    ignored = shutil.ignore_patterns("__pycache__", "bundled")
    return Path(shutil.copytree(PACKAGE, tmp_path / "xtrellis", ignore=ignored))


# ---------------------------------------------------------------------- read-only file systems


@pytest.mark.usefixtures("mounts")
def test_kernels_compiled_before_are_used_on_a_read_only_file_system():
    run(FIT, PACKAGE)
    printed, errors = run(FIT, PACKAGE, read_only=True)
    assert printed == ["cached"]
    assert "kernels" not in "".join(errors)  # joblib says that it has no semaphores


@pytest.mark.usefixtures("mounts")
def test_without_any_folder_kernels_are_compiled_and_one_line_says_so(package):
    printed, errors = run(ONE_KERNEL, package, read_only=True)
    assert printed == ["compiled"]
    notes = [line for line in errors if "NUMBA_CACHE_DIR" in line]
    assert len(notes) == 1
    assert "compiling kernels, as in every process" in notes[0]


@pytest.mark.usefixtures("mounts")
@pytest.mark.parametrize("variable", ["TMPDIR", "XDG_CACHE_HOME", "NUMBA_CACHE_DIR"])
def test_a_read_only_package_keeps_kernels_elsewhere(package, tmp_path, variable):
    writable = tmp_path / "writable"
    writable.mkdir()
    settings = {"read_only": True, "writable": writable, variable: str(writable)}
    assert run(ONE_KERNEL, package, **settings) == (["compiled"], [])
    assert run(ONE_KERNEL, package, **settings) == (["cached"], [])
    assert not list(package.rglob("*.nbi"))


# ---------------------------------------------------------------------- the folder


def test_numba_cache_dir_comes_first(package, tmp_path):
    assert run(ONE_KERNEL, package, NUMBA_CACHE_DIR=str(tmp_path / "own")) == (["compiled"], [])
    assert list((tmp_path / "own").rglob("*.nbi"))
    assert not list(package.rglob("*.nbi"))
    assert run(ONE_KERNEL, package) == (["compiled"], [])
    assert run(ONE_KERNEL, package) == (["cached"], [])
    assert list(package.rglob("*.nbi"))


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such permissions")
def test_a_temporary_folder_that_others_can_write_to_is_refused(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    folder = _jit._private_folder()
    assert folder is not None
    assert folder.stat().st_mode & 0o777 == 0o700
    folder.chmod(0o770)
    assert _jit._private_folder() is None
    folder.rmdir()
    (tmp_path / "elsewhere").mkdir()
    folder.symlink_to(tmp_path / "elsewhere")
    assert _jit._private_folder() is None
    folder.unlink()
    folder.write_text("")
    assert _jit._private_folder() is None


# ---------------------------------------------------------------------- files in it


def test_a_damaged_cache_costs_compiling_once_more(package):
    run(ONE_KERNEL, package)
    for suffix, damage in (
        ("nbi", lambda path: path.write_bytes(path.read_bytes()[:20])),
        ("nbi", lambda path: path.write_bytes(b"x" * 99)),
        ("nbc", lambda path: path.write_bytes(path.read_bytes()[:20])),
        ("nbc", lambda path: path.unlink()),
    ):
        damaged = list(package.rglob(f"*.{suffix}"))
        for path in damaged:
            damage(path)
        assert damaged
        assert run(ONE_KERNEL, package) == (["compiled"], [])
    assert run(ONE_KERNEL, package) == (["cached"], [])


def test_a_change_of_another_kernel_module_is_noticed(package):
    run(ONE_KERNEL, package)
    with open(package / "kernels" / "decode.py", "a") as file:
        file.write("# changed\n")
    assert run(ONE_KERNEL, package) == (["compiled"], [])


# ---------------------------------------------------------------------- being told


def test_callbacks_are_called_once_and_only_if_something_is_compiled(package):
    script = "from xtrellis.kernels import on_compile\non_compile(print)\n" + ONE_KERNEL
    words = ["compiling", "kernels,", "once", "on", "this", "machine", "True"]  # True: kept
    assert run(script, package) == ([*words, "compiled"], [])
    assert run(script, package) == (["cached"], [])


def test_a_callback_can_be_removed(package):
    script = "from xtrellis.kernels import on_compile\non_compile(print)()\n" + ONE_KERNEL
    assert run(script, package) == (["compiled"], [])
    before = compile_seconds()
    on_compile(pytest.fail)()
    assert compile_seconds() == before


def test_all_kernels_are_made_by_the_one_decorator():
    for path in (PACKAGE / "kernels").glob("*.py"):
        if path.name not in ("_jit.py", "_prefetch.py"):  # which ask the compiler itself
            imported = re.findall(r"^(?:from|import) (\w+)", path.read_text(), re.MULTILINE)
            assert "numba" not in imported, path


def test_no_kernel_hashes():
    """Compiled code that hashes refers to symbols that Numba adds only before it compiles."""
    tables = ast.Dict | ast.Set | ast.DictComp | ast.SetComp
    for path in (PACKAGE / "kernels").glob("[!_]*.py"):
        functions = [n for n in ast.parse(path.read_text()).body if isinstance(n, ast.FunctionDef)]
        for node in (each for f in functions for part in f.body for each in ast.walk(part)):
            called = getattr(getattr(node, "func", None), "id", "")
            assert not isinstance(node, tables), path
            assert called not in ("hash", "dict", "set"), path
