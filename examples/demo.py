"""Trellis graphs, exact decoding, and classifiers of several widths; pictures in demo_output/."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.base import clone

from xtrellis import (
    LTLSClassifier,
    Trellis,
    TrellisClassifier,
    best_paths,
    codewords,
    draw_trellis,
    get_loss,
)

OUTPUT = Path("demo_output")


def show_sizes() -> None:
    print("Edges, one binary learner each, for K classes and slice width b")
    print(f"{'K':>18}" + "".join(f"{f'b = {b}':>10}" for b in (2, 5, 10, 30)))
    for n_classes in (1_000, 100_000, 10_000_000, 10**12):
        counts = [Trellis(n_classes, b).n_edges for b in (2, 5, 10, 30)]
        print(f"{n_classes:>18,}" + "".join(f"{count:>10,}" for count in counts))


def show_decoding() -> None:
    trellis = Trellis(100_000, 10)
    rng = np.random.default_rng(0)
    margins = codewords(trellis, [85_062]) + rng.normal(0, 0.5, (1, trellis.n_edges))
    best_paths(trellis, margins)
    start = time.perf_counter()
    loss = get_loss("exponential")
    totals = [
        loss(codewords(trellis, part) * margins).sum(axis=1)
        for part in np.split(np.arange(trellis.n_classes), 100)
    ]
    middle = time.perf_counter()
    found = best_paths(trellis, margins)[0]
    end = time.perf_counter()
    print(
        f"\nOne of {trellis.n_classes:,} classes by trying every codeword: path "
        f"{np.concatenate(totals).argmin()}, {middle - start:.2f} s;\n"
        f"by the shortest path: path {found}, {(end - middle) * 1e6:.0f} microseconds"
    )


def made_up_texts(n_classes: int = 1_000, n_rows: int = 20_000, n_features: int = 10_000):
    """Bags of words: some of the class, some of its group of ten, some of all."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, n_classes, n_rows)
    own = rng.integers(0, n_features, (n_classes, 10))
    group = rng.integers(0, n_features, (n_classes // 10, 12))
    words = np.concatenate(
        [
            own[labels[:, np.newaxis], rng.integers(0, 10, (n_rows, 1))],
            group[labels[:, np.newaxis] // 10, rng.integers(0, 12, (n_rows, 4))],
            np.minimum(rng.zipf(1.4, (n_rows, 7)), n_features) - 1,
        ],
        axis=1,
    )
    X = sparse.csr_matrix(
        (np.ones(words.size, np.float32), (np.repeat(np.arange(n_rows), 12), words.ravel())),
        (n_rows, n_features),
    )
    idf = np.log(n_rows / (1 + np.bincount(X.indices, minlength=n_features)))
    X = sparse.csr_matrix(X.multiply(idf))
    norms = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)))
    return sparse.csr_matrix(X.multiply(1 / norms), dtype=np.float32), labels


def show_training() -> None:
    X, y = made_up_texts()
    X, y, X_test, y_test = X[:16_000], y[:16_000], X[16_000:], y[16_000:]
    models = {
        "LTLS": LTLSClassifier(random_state=0, n_jobs=-1),
        "W-LTLS of the paper, b = 5": TrellisClassifier.paper(5, random_state=0, n_jobs=-1),
        "W-LTLS of the paper, b = 10": TrellisClassifier.paper(10, random_state=0, n_jobs=-1),
        "ours, b = 5": TrellisClassifier(5, random_state=0, n_jobs=-1),
        "ours, b = 10": TrellisClassifier(10, random_state=0, n_jobs=-1),
        "ours, defaults (b = 32)": TrellisClassifier(random_state=0, n_jobs=-1, verbose=1),
    }
    print("\nCompiling kernels, once on a machine ...", flush=True)
    for model in models.values():
        few = clone(model)
        if few.get_params().get("verbose"):
            few.set_params(verbose=0)
        few.fit(X[:1_000], y[:1_000] % 50).predict(X[:1_000])
    print("Made-up texts, 1,000 classes, 16,000 training rows")
    print(f"{'model':30} {'edges':>6} {'accuracy':>9} {'weights':>9} {'training':>9} {'a row':>8}")
    for name, model in models.items():
        start = time.perf_counter()
        model.fit(X, y)
        middle = time.perf_counter()
        model.predict(X_test[:1])
        begin = time.perf_counter()
        accuracy = model.score(X_test, y_test)
        row = (time.perf_counter() - begin) / len(y_test) * 1e6
        print(
            f"{name:30} {model.trellis_.n_edges:>6,} {accuracy:>9.2%} "
            f"{model.weights_.nbytes / 2**20:>6.1f} MB {middle - start:>7.1f} s {row:>5.1f} us"
        )
    labels, probabilities = model.predict_top_k(X_test[:3], k=3)
    print("\nThree rows, their best classes and probabilities")
    for truth, codes, shares in zip(y_test, labels, probabilities, strict=False):
        found = ", ".join(f"{c} ({p:.0%})" for c, p in zip(codes, shares, strict=True))
        print(f"  class {truth}: {found}")


def draw() -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    OUTPUT.mkdir(exist_ok=True)
    print()
    for n_classes, width, path in ((9, 2, 3), (64, 4, 17), (105, 5, 77)):
        target = OUTPUT / f"trellis_{n_classes}_{width}.png"
        draw_trellis(Trellis(n_classes, width), path).figure.savefig(target, dpi=120)
        print(f"picture: {target}")


if __name__ == "__main__":
    show_sizes()
    show_decoding()
    show_training()
    draw()
