"""Nested parameters of an estimator that is None by default, such as ``classifier__C``."""

from __future__ import annotations

from typing import Any, ClassVar, Self


class DefaultEstimatorMixin:
    """Makes the parameters of a default estimator visible to ``set_params`` and to searches.

    The parameter named by ``_nested`` is an estimator, or None for one of ``_default``. While it is
    None it stays None, and clones have None as well; it is replaced by an estimator only when one
    of its nested parameters is set.
    """

    _nested: ClassVar[str]
    _default: ClassVar[type[Any]]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Get the parameters; with ``deep``, also those of the nested estimator."""
        parameters: dict[str, Any] = super().get_params(deep)  # type: ignore[misc]
        if deep and parameters[self._nested] is None:
            nested = self._default().get_params()
            parameters.update({f"{self._nested}__{name}": nested[name] for name in nested})
        return parameters

    def set_params(self, **parameters: Any) -> Self:
        """Set parameters, also those of the nested estimator."""
        if any(name.startswith(f"{self._nested}__") for name in parameters):
            given = parameters.get(self._nested, getattr(self, self._nested))
            parameters[self._nested] = self._default() if given is None else given
        super().set_params(**parameters)  # type: ignore[misc]
        return self
