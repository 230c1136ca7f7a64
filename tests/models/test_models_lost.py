import pytest
from models_contract import scripted

from archon.errors import AnswerLost, ModelRefused, ModelUnavailable, RateLimited
from archon.models.lost import completions_from, one_each, usage_of, without_counts
from archon.models.protocol import FREE, Completion, Price
from archon.types import Usage

PRICE = Price(prompt_usd=1.0, completion_usd=2.0)
CAME = Completion(text="here", model="m", usage=Usage(calls=1, completion_tokens=5))


def account(error):
    return error.attempts, error.wait_s, error.may_be_billed


def test_what_a_request_took_is_on_the_first_of_its_errors():
    error = RateLimited("slow", 7.0).with_spent(attempts=3, wait_s=2.0, may_be_billed=True)
    each = one_each(error, 3)
    assert [account(one) for one in each] == [(3, 2.0, True), (0, 0.0, False), (0, 0.0, False)]
    assert {(type(one), str(one), one.retry_after_s) for one in each} == {(RateLimited, "slow", 7.0)}
    assert one_each(error, 1) == [error]


def test_an_error_among_answers_is_a_lost_completion():
    error = ModelUnavailable("down").with_spent(attempts=3, wait_s=2.0)
    completions = completions_from([CAME, error], scripted(name="inner"))
    assert completions[0] is CAME
    usage = Usage(calls=1, attempts=3, wait_s=2.0)
    assert completions[1] == Completion(text="", model="inner", usage=usage, error="down")


def test_nothing_but_errors_is_the_first_with_what_all_took():
    errors = [ModelRefused("no").with_spent(attempts=2, wait_s=1.0), AnswerLost("gone")]
    with pytest.raises(ModelRefused, match="no") as caught:
        completions_from(errors, scripted())
    assert account(caught.value) == (3, 1.0, True)
    assert account(errors[0]) == (2, 1.0, False)


@pytest.mark.parametrize(("price", "cost_usd"), [(None, None), (PRICE, None), (FREE, 0.0)])
def test_tokens_that_may_be_billed_are_not_known_and_cost_nothing_only_at_a_price_of_nothing(price, cost_usd):
    unknown = without_counts(Usage(calls=2, attempts=1), price)
    assert (unknown.calls, unknown.attempts, unknown.cost_usd) == (2, 1, cost_usd)
    assert (unknown.tokens, unknown.reasoning_tokens, unknown.cached_prompt_tokens) == (None, None, None)
    assert usage_of(AnswerLost("gone"), calls=2, price=price) == unknown
    assert usage_of(ModelUnavailable("down"), calls=2, price=price) == Usage(calls=2, attempts=1)
