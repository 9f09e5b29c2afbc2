"""PECOS and omikuji on the data of a file; run by bench_train.py in an environment of their own."""

import json
import os
import sys
import tempfile
import time

import numpy as np
from scipy import sparse


def load(file):
    with np.load(file) as f:
        width = tuple(f["shape"])[1]
        X, T = (
            sparse.csr_matrix(
                (f[p + "data"], f[p + "indices"], f[p + "indptr"]), shape=(len(f[p + "y"]), width)
            )
            for p in ("", "t_")
        )
        return X, f["y"], T, f["t_y"]


def best_of_three(train):
    times = []
    for _ in range(3):
        start = time.perf_counter()
        model = train()
        times.append(time.perf_counter() - start)
    return min(times), model


def pecos(X, y, T, t_y):
    from pecos.xmc import Indexer, LabelEmbeddingFactory
    from pecos.xmc.xlinear.model import XLinearModel

    Y = sparse.csr_matrix((np.ones(len(y), np.float32), (np.arange(len(y)), y)))

    def train():
        labels = LabelEmbeddingFactory.create(Y, X, method="pifa")
        return XLinearModel.train(X, Y, C=Indexer.gen(labels, threads=1), threads=1)

    seconds, model = best_of_three(train)
    found = np.asarray(model.predict(T, only_topk=1).argmax(axis=1)).ravel()
    return seconds, float(np.mean(found == t_y))


def omikuji(X, y, T, t_y):
    import omikuji as package

    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "train.txt")
        with open(file, "w") as f:
            f.write(f"{X.shape[0]} {X.shape[1]} {int(y.max()) + 1}\n")
            for label, row in zip(y, X):
                words = (f"{k}:{v:.6g}" for k, v in zip(row.indices, row.data))
                f.write(f"{label} {' '.join(words)}\n")

        def train():
            settings = package.Model.default_hyper_param()
            settings.n_trees = 1
            return package.Model.train_on_data(file, settings, n_threads=1)

        seconds, model = best_of_three(train)
    right = 0
    for label, row in zip(t_y, T):
        found = model.predict(list(zip(row.indices.tolist(), row.data.tolist())), top_k=1)
        right += bool(found) and found[0][0] == label
    return seconds, right / len(t_y)


def main():
    data = load(sys.argv[1])
    results = {}
    for name, run in {"PECOS XR-Linear": pecos, "omikuji, 1 tree, reads a file": omikuji}.items():
        try:
            results[name] = run(*data)
        except Exception as error:  # a peer that fails has a row that says so
            results[name] = f"{type(error).__name__}: {error}"
    print(json.dumps(results))


if __name__ == "__main__":
    main()
