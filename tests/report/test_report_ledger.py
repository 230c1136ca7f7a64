from __future__ import annotations

from report_runs import record, usage

from archon.report.ledger import ledger
from archon.report.records import LayerUse


def test_a_ledger_by_hand():
    records = [
        record(
            "a",
            True,
            layers=(
                LayerUse(layer="generator", kind="generator", usage=usage(8, 80, 800, 0.1, 3.0), parses=(("ok", 8),)),
                LayerUse(
                    layer="judge",
                    kind="verifier",
                    usage=usage(2, 20, 20, None, 1.0),
                    parses=(("zzz", 1), ("truncated", 1)),
                    not_judged=1,
                ),
            ),
        ),
        record(
            "b",
            False,
            layers=(
                LayerUse(
                    layer="generator",
                    kind="generator",
                    usage=usage(8, 80, 200, 0.1, 1.0),
                    parses=(("ok", 6), ("call_failed", 2)),
                ),
            ),
        ),
    ]
    generator, judge = ledger(records)
    assert (generator.layer, generator.problems, generator.usage.calls, generator.usage.tokens) == (
        "generator",
        2,
        16,
        1160,
    )
    assert (generator.critical_p50_s, generator.critical_p95_s) == (2.0, 2.9)
    assert generator.parses == (("ok", 14), ("call_failed", 2))
    assert generator.parse_failures == 2
    assert judge.usage.cost_usd is None
    assert judge.not_judged == 1
    assert judge.parses == (("truncated", 1), ("zzz", 1))


def test_no_layers_no_rows():
    assert ledger([record("a", True)]) == ()
