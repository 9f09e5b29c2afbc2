"""Train on a Dask cluster: this process holds no rows, and the model is the same.

    python examples/train_on_dask.py

Here the cluster is two processes on this machine; with `Client("scheduler:8786")` it is yours.
"""

from itertools import pairwise

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster

from xtrellis import TrellisClassifier, load_icd10cm
from xtrellis.dask import DaskTrellisClassifier
from xtrellis.text import TextFeatures


def in_partitions(X, y, n_parts):
    """Rows and labels as Dask arrays; yours would be read from files by the workers."""
    cuts = np.linspace(0, X.shape[0], n_parts + 1).astype(int)
    parts = [slice(start, stop) for start, stop in pairwise(cuts)]
    rows = [da.from_array(X[part], asarray=False, chunks=-1) for part in parts]
    labels = [da.from_array(y[part], chunks=-1) for part in parts]
    return da.concatenate(rows), da.concatenate(labels)


def main():
    data = load_icd10cm()
    features = TextFeatures((1, 1), None, None)
    X = features.fit_transform(data.train_texts, 2)
    X_test = features.transform(data.test_texts)
    labels = np.array(data.train_labels)
    some = np.isin(labels, np.unique(labels)[:300])  # classes; all of them take a minute
    X, y = X[some], labels[some]
    settings = {"C": 1.0, "random_state": 0}

    cluster = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0")
    with cluster, Client(cluster) as client:
        rows, classes = in_partitions(X, y, n_parts=4)
        clf = DaskTrellisClassifier(client=client, **settings).fit(rows, classes)
        predicted = clf.predict(rows)  # nothing is computed yet
        print(f"accuracy {np.mean(predicted.compute() == y):.1%} on the training rows")
        model = clf.to_local()

    known = np.isin(data.test_labels, model.classes_)
    accuracy = model.score(X_test[known], np.array(data.test_labels)[known])
    print(f"accuracy {accuracy:.1%} on test rows")
    alone = TrellisClassifier(**settings).fit(X, y)
    same = (alone.weights_.values == model.weights_.values).all()
    print(f"the same weights as on one machine: {'yes' if same else 'no'}")


if __name__ == "__main__":
    main()
