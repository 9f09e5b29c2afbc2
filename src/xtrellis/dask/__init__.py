"""Training and prediction on the partitions of Dask collections.

One task on the cluster, the leading one, receives the partitions from the other workers and does
what ``TrellisClassifier.fit`` does; the client never holds a row. The blocks are tasks of their
own, which are sent the rows that they learn from (``learning.cluster``). Predictions are made
partition by partition, where the partitions are.

>>> import dask.array as da
>>> from distributed import Client
>>> from sklearn.datasets import load_digits
>>> from xtrellis.dask import DaskTrellisClassifier
>>> X, y = load_digits(return_X_y=True)
>>> X, y = da.from_array(X / 16, chunks=(500, -1)), da.from_array(y, chunks=500)
>>> with Client(processes=False, dashboard_address=":0") as client:
...     clf = DaskTrellisClassifier(client=client, random_state=0).fit(X, y)
...     clf.score(X, y) > 0.9
True
"""

from .classifier import DaskTrellisClassifier

__all__ = ["DaskTrellisClassifier"]
