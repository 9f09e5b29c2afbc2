"""Cosines of sparse rows and the centroids of some classes each."""

import numpy as np

from ._jit import kernel


@kernel
def cosines(indptr, indices, data, starts, features, codes, classes, out):
    """Cosine of every row with the centroids of its classes; both lists of features ascend."""
    for i in range(indptr.size - 1):
        length = 0.0
        for p in range(indptr[i], indptr[i + 1]):
            length += np.float64(data[p]) * data[p]
        for c in range(classes.shape[1]):
            p, q = indptr[i], starts[classes[i, c]]
            size, total = 0.0, 0.0
            for e in range(q, starts[classes[i, c] + 1]):
                size += np.float64(codes[e]) * codes[e]
            while p < indptr[i + 1] and q < starts[classes[i, c] + 1]:
                if indices[p] < features[q]:
                    p += 1
                elif indices[p] > features[q]:
                    q += 1
                else:
                    total += data[p] * np.float64(codes[q])
                    p += 1
                    q += 1
            out[i, c] = total / np.sqrt(length * size) if length * size > 0 else 0.0
