from __future__ import annotations

import pytest
from report_runs import record, usage

from archon.report.cost import cost_of, flops_of, quantile
from archon.report.records import LayerUse
from archon.types import Usage


def test_costs_by_hand():
    records = [
        record("a", True, usage=usage(1, 100, 100, 0.01, 1.0)),
        record("b", False, usage=usage(3, 300, 300, 0.03, 3.0), wall_s=9.0),
        record("c", None, usage=usage(1, 50, 50, 0.02, 2.0), wall_s=11.0),
    ]
    cost = cost_of(records)
    assert (cost.problems, cost.solved) == (3, 1)
    assert cost.tokens.total == 900
    assert cost.tokens.per_problem == 300
    assert cost.tokens.per_solved == 900
    assert cost.usd.per_solved == pytest.approx(0.06)
    assert cost.critical_p50_s == 2.0
    assert cost.wall_p50_s == 10.0


def test_one_unknown_makes_the_total_unknown_and_is_counted():
    records = [record("a", True, usage=usage(usd=None)), record("b", True, usage=usage(out=None))]
    cost = cost_of(records)
    assert (cost.usd.total, cost.usd.per_problem, cost.usd.per_solved, cost.usd.unknown) == (None, None, None, 1)
    assert (cost.tokens.total, cost.tokens.unknown) == (None, 1)
    assert cost.prompt_tokens.total == 200
    assert cost.flops.unknown == 2


def test_nothing_solved_has_no_cost_per_solved():
    cost = cost_of([record("a", False)])
    assert cost.tokens.per_problem == 300
    assert cost.tokens.per_solved is None
    assert cost.tokens.unknown == 0


def test_a_cached_answer_costs_what_it_takes_and_is_not_paid_again():
    cached = Usage(calls=1, prompt_tokens=1, completion_tokens=1, cost_usd=0.5, saved_calls=1, saved_usd=0.5)
    cost = cost_of([record("a", True, usage=cached)])
    assert (cost.usd.total, cost.paid_usd.total) == (0.5, 0.0)


def test_no_records():
    cost = cost_of([])
    assert cost.tokens.per_problem is None
    assert cost.critical_p50_s is None
    assert quantile([], 0.5) is None


def test_flops_count_each_layer_at_its_own_models_weights():
    def use(layer: str, spent: Usage) -> LayerUse:
        return LayerUse(layer=layer, kind=layer, usage=spent)

    layers = (use("generator", usage(8, 100, 500)), use("ranker", usage(0, 0, 0)), use("fuser", usage(1, 300, 100)))
    solved = record("a", True, usage=usage(9, 400, 600), layers=layers)
    weights = (("generator", 10), ("fuser", 30))
    assert flops_of(solved, weights) == 2 * 10 * 600 + 2 * 30 * 400
    # Unknown: a layer's weights, a layer's tokens, and calls that no layer accounts for.
    assert flops_of(solved, weights[:1]) is None
    unknown = (*layers[:2], use("fuser", usage(1, 300, None)))
    assert flops_of(record("a", True, usage=usage(9), layers=unknown), weights) is None
    assert flops_of(record("a", True, usage=usage(9)), weights) is None
    assert cost_of([solved], parameters=weights).flops.total == 2 * 10 * 600 + 2 * 30 * 400
