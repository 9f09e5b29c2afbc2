"""Probabilities of the best paths, calibrated without a sum over all of them.

With the costs ``c_1 <= ... <= c_5`` of a row's five best paths,

    p_i = e_i / (sum_j e_j + R e_5),    e_i = exp(-((c_i - c_1) / T)^q),

where R says how much all other paths weigh, in units of the fifth; at most their number. The power
q is near 1. A smaller one makes rows with a clear best path less certain, and rows without one more
so. T, R and q are those under which the true paths of held-out rows are most likely. What the five
leave is divided among the other paths in proportion to their products of softmaxes, which sum to
one over all paths by themselves; but none is given more than the fifth has. So the probabilities of
a few classes need the margins of a few vertices, and those of all K sum to one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .._arrays import Float32Array, Float64Array
from .._checks import check_positive

N_BEST = 5
N_JUDGED = 20  # best paths whose probabilities a log loss looks at
_PRIOR = 5.0  # rows that speak for T = 1 and R = 10, so that few rows cannot mislead,
_PRIOR_OF_POWER = 20.0  # and for q = 1
_LOWEST_POWER, _HIGHEST_POWER = 0.25, 4.0
_LOWEST_LOGS, _HIGHEST_LOGS = (-6, -6, np.log(0.4)), (12, 12, np.log(2.5))  # of T, R and q
_FIRST_STEP = 0.2  # of the search for these logarithms
_LEAST = 1e-12
_TABLE = 2**14  # probabilities that are levelled off at once


@dataclass(frozen=True)
class BestPaths:
    """How costs of best paths become probabilities.

    Parameters
    ----------
    temperature : float, default=1.0
        T: above 1 the best path is less certain.
    rest : float, default=10.0
        R: what all paths beyond the five best weigh, in units of the fifth.
    power : float, default=1.0
        q: of what a path costs above the best one.

    Examples
    --------
    >>> import numpy as np
    >>> found, left = BestPaths(rest=1.0).probabilities(np.log([[1, 2, 4, 4, 4]]))
    >>> found.round(2), left.round(2)
    (array([[0.4, 0.2, 0.1, 0.1, 0.1]]), array([0.1]))
    """

    temperature: float = 1.0
    rest: float = 10.0
    power: float = 1.0

    def __post_init__(self) -> None:
        check_positive(temperature=self.temperature, rest=self.rest)
        if not _LOWEST_POWER <= self.power <= _HIGHEST_POWER:
            raise ValueError(
                f"power must be from {_LOWEST_POWER} to {_HIGHEST_POWER}, got {self.power!r}"
            )

    def log_weights(self, costs: Float64Array) -> Float64Array:
        """``log e_i`` of paths, given the costs of a row's best ones in order."""
        above = (costs - costs[:, :1]) / self.temperature
        return -above if self.power == 1 else -(above**self.power)

    def probabilities(
        self, costs: Float64Array, n_others: float = np.inf
    ) -> tuple[Float64Array, Float64Array]:
        """Probabilities of the best paths, and what they leave to all others, so many paths."""
        weights = np.exp(self.log_weights(costs))
        rest = min(self.rest, n_others) * weights[:, -1]
        total = weights.sum(axis=1) + rest
        return weights / total[:, np.newaxis], rest / total

    def logs(
        self, costs: Float64Array, n_others: float = np.inf
    ) -> tuple[Float64Array, Float64Array]:
        """Logarithms of the same, finite even where a probability is too small for a number."""
        logs = self.log_weights(costs)
        with np.errstate(divide="ignore"):  # if there are no others
            rest = np.log(min(self.rest, n_others)) + logs[:, -1]
        total = np.logaddexp(np.logaddexp.reduce(logs, axis=1), rest)
        return logs - total[:, np.newaxis], rest - total

    def log_scores(self, costs: Float64Array, n_paths: int) -> Float64Array:
        """Log-probabilities of the five best paths, carried on by the costs of those behind them.

        That of a path depends on no path behind it, so it is the same however many are listed.
        """
        n_best = min(N_BEST, n_paths)
        found, _ = self.probabilities(costs[:, :n_best], n_paths - n_best)
        best = np.log(found[:, :1])
        return best + self.log_weights(costs)

    def log_probabilities(
        self, costs: Float64Array, logs: Float64Array, n_paths: int
    ) -> Float64Array:
        """Log-probabilities of a row's k best paths, k >= 5 or all: see the top of this module.

        ``logs`` are those of their products of softmaxes.
        """
        n_best = min(N_BEST, n_paths)
        with np.errstate(divide="ignore"):
            best, left = self.logs(costs[:, :n_best], n_paths - n_best)
            if logs.shape[1] == n_best:
                return best
            # Logs may be so large that a sum with them is one of them: the largest is taken off.
            top = logs[:, n_best:].max(axis=1)
            others = logs[:, n_best:] - top[:, np.newaxis]
            mass = np.logaddexp.reduce(others, axis=1)
            if logs.shape[1] < n_paths:
                beyond = np.log(np.maximum(1 - np.exp(logs[:, :n_best]).sum(1), 0))
                mass = np.maximum(mass, beyond - top)
            others += (left - mass)[:, np.newaxis]
            highest = best[:, -1:]
            unlisted = np.exp(left - best[:, -1]) - np.exp(others - highest).sum(axis=1)
            room = np.maximum(n_paths - logs.shape[1] - np.maximum(unlisted, 0), 0)
            level_off(others, best[:, -1], room)
            return np.concatenate([best, others], axis=1)

    def complete(
        self, table: Float64Array, best: npt.NDArray[np.int64], costs: Float64Array
    ) -> None:
        """Turn logs of products of softmaxes of all classes into log-probabilities, in place.

        ``best`` are the five best classes, and ``costs`` theirs; the others share what these leave.
        """
        named, left = self.logs(costs, table.shape[1] - best.shape[1])
        np.put_along_axis(table, best, -np.inf, axis=1)
        with np.errstate(divide="ignore"):
            top = table.max(axis=1, keepdims=True)  # taken off as above
            table -= np.where(np.isfinite(top), top, 0)
            others = np.logaddexp.reduce(table, axis=1)
            table += (left - np.where(np.isfinite(others), others, 0))[:, np.newaxis]
            level_off(table, named[:, -1])
        np.put_along_axis(table, best, named, axis=1)


def level_off(
    log_p: Float64Array, highest: Float64Array, room_beyond: Float64Array | None = None
) -> None:
    """Cut log-probabilities at the highest allowed in each row; others take what is cut off.

    Each takes in proportion to its room below the highest; those of -inf have none, and paths that
    are not listed have ``room_beyond``, in units of the highest.
    """
    above = np.flatnonzero((log_p > highest[:, np.newaxis]).any(axis=1))
    n_rows = max(1, _TABLE // log_p.shape[1])
    for start in range(0, len(above), n_rows):
        i = above[start : start + n_rows]
        top = highest[i, np.newaxis]
        p = np.exp(log_p[i] - top)  # in units of the highest, which may be next to nothing
        room = np.where(np.isfinite(log_p[i]), np.maximum(1 - p, 0), 0)
        cut_off = np.maximum(p - 1, 0).sum(axis=1)
        total = room.sum(axis=1) + (0.0 if room_beyond is None else room_beyond[i])
        share = np.minimum(1.0, cut_off / np.maximum(total, _LEAST))
        log_p[i] = np.log(np.minimum(p, 1) + room * share[:, np.newaxis]) + top


def fit_best_paths(
    costs: Float64Array, rank: npt.NDArray[np.int64], sample_weight: Float32Array, n_paths: int
) -> BestPaths:
    """Calibration under which the true paths are most likely.

    ``rank`` is the place of the true path among a row's five best, -1 if it is not there.
    """
    from scipy.optimize import minimize

    n_others = n_paths - costs.shape[1]
    share = sample_weight / sample_weight.sum()
    start = np.log([BestPaths.temperature, BestPaths.rest, BestPaths.power])
    prior = np.array([_PRIOR, _PRIOR, _PRIOR_OF_POWER]) / len(costs)

    def loss(logs: npt.NDArray[np.float64]) -> float:
        found, left = _from_logs(logs).probabilities(costs, n_others)
        own = np.where(rank >= 0, found[np.arange(len(rank)), np.maximum(rank, 0)], left)
        missed = -np.log(np.maximum(own, _LEAST))
        return float(share @ missed + prior[: len(logs)] @ (logs - start[: len(logs)]) ** 2)

    def least(begin: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        steps = np.vstack([np.zeros(len(begin)), _FIRST_STEP * np.eye(len(begin))])
        options = {"xatol": 0.01, "fatol": 1e-6, "initial_simplex": begin + steps}
        return np.asarray(minimize(loss, begin, method="Nelder-Mead", options=options).x)

    # First without the power: from afar, the search for all three stops too early.
    return _from_logs(least(np.append(least(start[:2]), 0.0)))


def _from_logs(logs: npt.NDArray[np.float64]) -> BestPaths:
    """Calibration with these logarithms of T, R and, if there is a third, q."""
    values = np.exp(np.clip(logs, _LOWEST_LOGS[: len(logs)], _HIGHEST_LOGS[: len(logs)]))
    return BestPaths(*values.tolist())


def losses_in_bits(log_p: Float64Array, hits: npt.NDArray[np.bool_], n_paths: int) -> Float64Array:
    """-log2 p(true path) of each row; paths beyond the listed ones share what those leave.

    ``hits`` says which of the listed paths is the true one, if any.
    """
    n_others = max(n_paths - log_p.shape[1], 1)
    left = np.maximum(1 - np.exp(log_p).sum(axis=1), _LEAST) / n_others
    own = np.where(hits.any(axis=1), np.where(hits, log_p, 0).sum(axis=1), np.log(left))
    return np.asarray(-own / np.log(2))
