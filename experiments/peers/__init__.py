"""The one runner of other systems: those of the paper and today's alternatives, measured alike.

:data:`PEERS` lists them. :func:`run_peer` measures one of them in a process of its own, in an
environment of its own if it needs packages, with one thread. The row of a system that cannot be
installed, fails or takes too long says so.

The data is a folder with ``train.npz`` and ``test.npz`` (sparse matrices), ``labels.npz`` with
``y_train`` and ``y_test`` (integers from 0) and, if the set has texts, ``train.txt`` and
``test.txt`` with one text per line.

    python -m peers SET [NAME ...]      (in the folder experiments)

takes such a folder, or a set that :func:`sets.load_set` knows.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .environments import InstallError, environment_python, last_error

PAPER = "the paper's system"
TODAY = "today's alternative"
OURS = "ours"

# One thread each for BLAS, OpenMP, Numba and Rayon (omikuji): systems are compared, not cores.
ONE_THREAD = {
    f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL", "NUMBA", "RAYON")
}


@dataclass(frozen=True)
class Peer:
    """A system: its name in tables, its role, where its code is, and what it needs."""

    title: str
    stands_for: str
    settings: str
    system: str  # module:Class
    environment: str = ""  # shared by peers of one package; empty: the caller's own
    requirements: tuple[str, ...] = ()
    alone: tuple[str, ...] = ()  # installed without their own requirements


_SCIPY = ("numpy", "scipy")
_VOWPAL = ("vowpal", ("vowpalwabbit==9.11.9", *_SCIPY))
_NAPKIN = ("napkinxc", ("napkinxc==0.7.2", *_SCIPY))
# PECOS requires torch and more, five gigabytes, for its neural models only.
_PECOS = ("pecos", ("numpy<2", "scipy<1.14", "scikit-learn"), ("libpecos==1.2.8",))
_OMIKUJI = ("omikuji", ("omikuji==0.5.2", *_SCIPY))
_FASTTEXT = ("fasttext", ("fasttext-numpy2-wheel==0.9.2", *_SCIPY))

# fmt: off
PEERS: dict[str, Peer] = {
    "xtrellis": Peer("xtrellis", OURS, "all defaults", "peers.trellises:Default"),
    "pruned": Peer("xtrellis, pruned", OURS, "all defaults, half a point may be lost",
                   "peers.trellises:Pruned"),
    "ensemble": Peer("xtrellis, 3 trellises", OURS, "all defaults, mean of three seeds",
                     "peers.trellises:Ensemble"),
    "ensemble_pruned": Peer("xtrellis, 3, pruned", OURS,
                            "mean of three seeds, half a point may be lost",
                            "peers.trellises:PrunedEnsemble"),
    "wltls": Peer("W-LTLS", PAPER, "b = 10", "peers.trellises:WLTLS"),
    "ltls": Peer("LTLS", PAPER, "as published", "peers.trellises:LTLS"),
    "ovr": Peer("OVR", PAPER, "one-vs-rest AROW", "peers.trellises:OneVsRest"),
    "lomtree": Peer("LOMTree", PAPER, "Vowpal Wabbit's log_multi, 10 passes",
                    "peers.vowpal:LOMTree", *_VOWPAL),
    "fastxml": Peer("FastXML", PAPER, "written here, 25 trees", "peers.sparse_systems:FastXML"),
    "dismec": Peer("DiSMEC", PAPER, "C = 1, weights under 0.01 removed",
                   "peers.sparse_systems:DiSMEC"),
    "pd_sparse": Peer("PD-Sparse", PAPER, "written here, λ = 0.1, C = 1",
                      "peers.sparse_systems:PDSparse"),
    "ppd_sparse": Peer("PPDSparse", PAPER, "written here, λ = 0.1, C = 1",
                       "peers.sparse_systems:PPDSparse"),
    "napkinxc": Peer("napkinXC PLT", TODAY, "defaults", "peers.napkin:PLT", *_NAPKIN),
    "pecos": Peer("PECOS XR-Linear", TODAY, "defaults", "peers.xr_linear:XRLinear", *_PECOS),
    "pecos_tuned": Peer("PECOS, C chosen", TODAY, "the best of three C on held-out rows",
                        "peers.xr_linear:TunedXRLinear", *_PECOS),
    "bonsai_tuned": Peer("Bonsai, C chosen", TODAY, "the best of three C on held-out rows",
                         "peers.omikuji_trees:TunedBonsai", *_OMIKUJI),
    "parabel": Peer("omikuji Parabel", TODAY, "defaults, 3 trees",
                    "peers.omikuji_trees:Parabel", *_OMIKUJI),
    "bonsai": Peer("omikuji Bonsai", TODAY, "3 trees", "peers.omikuji_trees:Bonsai", *_OMIKUJI),
    "fasttext": Peer("fastText", TODAY, "words and pairs of words",
                     "peers.fast_text:FastText", *_FASTTEXT),
    "output_code": Peer("OutputCodeClassifier", TODAY, "10 log2 K random bits of LinearSVC",
                        "peers.sklearn_systems:OutputCode"),
    "sgd": Peer("SGDClassifier", TODAY, "one-vs-rest hinge, 5 passes",
                "peers.sklearn_systems:SGD"),
}
# fmt: on


def run_peer(
    name: str, data_folder: Path, cache: Path, seed: int = 0, timeout: float | None = None
) -> dict[str, Any]:
    """Row of a peer: its figures, or ``{"failed": reason in one line}``.

    Parameters
    ----------
    name : str
        Key of :data:`PEERS`.
    data_folder : Path
        Folder with the data; the docstring of this module has its layout.
    cache : Path
        Folder for environments.
    seed : int, default=0
        Seed of training.
    timeout : float or None, default=None
        Seconds after which the peer is stopped, not counting the installation.
    """
    peer = PEERS[name]
    try:
        python = Path(sys.executable)
        if peer.requirements:
            python = environment_python(peer.environment, peer.requirements, cache, peer.alone)
    except InstallError as error:
        return {"failed": str(error)}
    with tempfile.TemporaryDirectory(prefix="peer-") as work:
        script = Path(__file__).with_name("measure.py")
        data = Path(data_folder).resolve()
        command = [str(python), str(script), peer.system, str(data), work, str(seed)]
        return _row_of(command, timeout)


def _row_of(command: list[str], timeout: float | None) -> dict[str, Any]:
    """What a child prints; it is killed, with its children, if it is late or we are interrupted."""
    child = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **ONE_THREAD},
        start_new_session=True,
    )
    _RUNNING.add(child)
    try:
        printed, errors = child.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        return {"failed": f"stopped after {timeout:.0f} s"}
    finally:
        _end(child)
        _RUNNING.discard(child)
    if child.returncode:
        return {"failed": last_error(errors) if errors else f"exit code {child.returncode}"}
    row: dict[str, Any] = json.loads(printed)
    return row


_RUNNING: set[subprocess.Popen[str]] = set()


def stop_peers() -> None:
    """Kill the peers that run in other threads; their rows say that they failed."""
    for child in list(_RUNNING):
        _kill(child)


def _end(child: subprocess.Popen[str]) -> None:
    """Kill a child that is still running, and its own children, which share its process group."""
    if child.poll() is None:
        _kill(child)
        child.communicate()


def _kill(child: subprocess.Popen[str]) -> None:
    if hasattr(os, "killpg"):
        os.killpg(child.pid, signal.SIGKILL)
    else:
        child.kill()
