"""The fields of a prediction request, validated on arrival, and of its answer."""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, StrictInt, model_validator

MOST_INPUTS = 1_000  # texts or rows per request
MOST_EXPLAINED = 20  # texts or rows per request with explanations, which take milliseconds each
MOST_LABELS = 100
MOST_IN_SETS = 1_000_000  # inputs times classes, as a set may contain every class


class Row(BaseModel):
    """A sparse row: feature numbers, counted as in the training rows, and their values."""

    model_config = ConfigDict(extra="forbid")

    # One error is enough: a body could contain hundreds of thousands.
    indices: list[Annotated[StrictInt, Field(ge=0)]] = Field(fail_fast=True)
    values: list[FiniteFloat] = Field(fail_fast=True)

    @model_validator(mode="after")
    def _as_many(self) -> Self:
        if len(self.indices) != len(self.values):
            raise ValueError(f"{len(self.indices)} indices, but {len(self.values)} values")
        if len(set(self.indices)) != len(self.indices):
            raise ValueError("an index occurs twice")
        return self


class PredictRequest(BaseModel):
    """Texts or rows to classify, and what to return for each."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"texts": ["an apple a day"], "top_k": 3}]},
    )

    text: str | None = Field(None, description="One text.")
    texts: list[str] | None = Field(
        None, description="Several texts.", max_length=MOST_INPUTS, fail_fast=True
    )
    rows: list[Row] | None = Field(
        None, description="Sparse rows.", max_length=MOST_INPUTS, fail_fast=True
    )
    top_k: Annotated[StrictInt, Field(ge=1, le=MOST_LABELS)] = Field(
        5, description="Number of labels per text or row, best first."
    )
    coverage: float | None = Field(
        None,
        gt=0,
        lt=1,
        description="Add sets of labels that contain the true label this often, such as 0.9.",
    )
    explain: bool = Field(
        False, description="Add the words or features that decided, and the path."
    )
    min_probability: float | None = Field(
        None, ge=0, le=1, description="Abstain if the best label is less likely than this."
    )
    otherwise: str | int | None = Field(None, description="The answer given when abstaining.")

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        given = [name for name in ("text", "texts", "rows") if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(
                f"pass one of text, texts and rows; got {' and '.join(given) or 'none'}"
            )
        if self.otherwise is not None and self.min_probability is None:
            raise ValueError("otherwise needs min_probability")
        if self.explain and len(self.inputs) > MOST_EXPLAINED:
            raise ValueError(f"at most {MOST_EXPLAINED} texts or rows can be explained at once")
        return self

    @property
    def inputs(self) -> list[Any]:
        """The texts or rows, whichever the request contains."""
        if self.text is not None:
            return [self.text]
        return list(self.rows or ()) if self.texts is None else self.texts


# ---------------------------------------------------------------------- answers, for /openapi.json


class LabelAnswer(BaseModel):
    """A class and its probability."""

    label: str | int | float | bool
    probability: float


class ResultAnswer(BaseModel):
    """The result for one text or row."""

    answer: str | int | float | bool | None = Field(
        description="The most likely label, or the value of otherwise if abstaining."
    )
    abstained: bool
    labels: list[LabelAnswer] = Field(description="Best first.")
    known_terms: int | None = Field(
        None,
        description="For texts: number of terms that the model knows. If 0, the answer is a guess.",
    )
    set: list[LabelAnswer] | None = Field(
        None, description="Best first, and possibly empty; if coverage is given."
    )
    explanation: dict[str, Any] | None = Field(None, description="If explain is true.")


class PredictAnswer(BaseModel):
    """Results, in the order of the texts or rows."""

    model: str
    results: list[ResultAnswer]


class Refusal(BaseModel):
    """Why a request was refused, in one line."""

    detail: str
