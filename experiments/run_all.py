"""Make all tables and figures, and check every claim of the paper: what ``make paper`` runs.

    python experiments/run_all.py [set ...]

A set is icd10cm or wordnet_hypernym (bundled, the default), a folder with train.svm and test.svm,
or one of the paper's five. Finished trials are kept in experiments/.cache. The pages of the default
sets are written to experiments/results, those of other sets to a folder in experiments/results/own.
"""

from __future__ import annotations

import beyond
import bound
import decoding_losses
import margins
import sparse_models
import trade_off
from output import DEFAULT_SETS, run, title_of, write_page

SCRIPTS = (decoding_losses, trade_off, sparse_models, bound, margins, beyond)


def main(sets: list[str]) -> None:
    """Run every script, then list all claims."""
    claims = [claim for script in SCRIPTS for claim in script.main(sets)]
    command = "make paper"
    if tuple(sets) != DEFAULT_SETS:
        command = f"python experiments/run_all.py {' '.join(sets)}"
    parts = [
        f"Printed by `{command}`. The pages with tables and plots: "
        + ", ".join(
            f"[{script.__name__.replace('_', ' ')}]({script.__name__}.md)" for script in SCRIPTS
        )
        + "."
    ]
    for data in sets:
        own = [claim for claim in claims if claim.data == data]
        held = sum(claim.holds for claim in own)
        parts.append(
            f"## {title_of(data)}: {held} of {len(own)} hold\n\n"
            + "\n".join(f"- {claim}." for claim in own)
        )
    write_page("README", "The paper's claims, checked", parts, [], sets)


if __name__ == "__main__":
    run(main, __doc__ or "")
