"""The ledger: what each layer of a system took over all problems, and how its replies read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from archon.report.cost import quantile
from archon.report.records import LayerUse, Record
from archon.types import Usage

PARSE_STATUSES = ("ok", "repaired", "failed", "truncated", "call_failed")
"""The order in which parse statuses are shown; others follow by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerRow:
    """One layer over all problems."""

    layer: str
    kind: str
    problems: int
    """Problems it worked on."""
    usage: Usage
    """Summed; `critical_s` is the sum of the layer's own seconds over problems."""
    critical_p50_s: float | None
    critical_p95_s: float | None
    parses: tuple[tuple[str, int], ...]
    """Replies by parse status."""
    not_judged: int
    """Verdicts that judged nothing: a judge cut off, down, or without anything to judge by."""

    @property
    def parse_failures(self) -> int:
        """Return the replies that gave nothing: failed, truncated or call_failed."""
        return sum(count for status, count in self.parses if status not in ("ok", "repaired"))


def ledger(records: Sequence[Record]) -> tuple[LedgerRow, ...]:
    """Return one row per layer, in the order in which the layers first appear."""
    uses: dict[tuple[str, str], list[LayerUse]] = {}
    for record in records:
        for use in record.layers:
            uses.setdefault((use.layer, use.kind), []).append(use)
    return tuple(_row(layer, kind, of_layer) for (layer, kind), of_layer in uses.items())


def _row(layer: str, kind: str, uses: Sequence[LayerUse]) -> LedgerRow:
    seconds = [use.usage.critical_s for use in uses]
    return LedgerRow(
        layer=layer,
        kind=kind,
        problems=len(uses),
        usage=sum((use.usage for use in uses), Usage()),
        critical_p50_s=quantile(seconds, 0.5),
        critical_p95_s=quantile(seconds, 0.95),
        parses=count_parses(uses),
        not_judged=sum(use.not_judged for use in uses),
    )


def count_parses(uses: Sequence[LayerUse]) -> tuple[tuple[str, int], ...]:
    """Return replies by parse status over some layers' work, the known statuses first."""
    counts: Counter[str] = Counter()
    for use in uses:
        counts.update(dict(use.parses))
    known = {status: place for place, status in enumerate(PARSE_STATUSES)}
    order = sorted(counts, key=lambda status: (known.get(status, len(known)), status))
    return tuple((status, counts[status]) for status in order)
