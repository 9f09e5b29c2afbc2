"""Settings all tests share, a small model for tests of the classifier, and a full disk."""

import signal
import subprocess

import pytest
from hypothesis import settings

from samples import topics
from xtrellis import TrellisClassifier

# Deterministic, and no deadline: the first example may compile a kernel.
settings.register_profile("xtrellis", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("xtrellis")

# A shell starts background jobs with Ctrl-C ignored, and so would be all that tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def data():
    """Rows and their classes."""
    return topics()


@pytest.fixture(scope="session")
def fitted(data):
    """A narrow trellis for these rows; tests must not change it."""
    return TrellisClassifier(5, random_state=0).fit(*data)


@pytest.fixture
def full_disk(tmp_path):
    """Folder on a disk of 64 kB; skips the test where none can be mounted."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", folder]
    try:
        done = subprocess.run(mount, capture_output=True, check=False)
    except FileNotFoundError:
        pytest.skip("there is no mount command here")
    if done.returncode:
        pytest.skip("mounting is not allowed here")
    yield folder
    subprocess.run(["umount", folder], check=True)
