import pytest
from models_contract import asking, scripted

from archon.errors import AnswerLost, AuthError, ConfigError, ModelRefused, ModelUnavailable
from archon.models.openai_http import OpenAIModel
from archon.models.splitting import Splitting, part_of, refuses_n
from archon.testing import ScriptedModel


async def test_a_declared_most_is_kept_to_and_seeds_go_on():
    backend = scripted()
    completions = await Splitting(backend, max_n=3).sample(asking(n=8, seed=50, sample_index=10))
    assert [(each.n, each.seed, each.sample_index) for each in backend.requests] == [
        (3, 50, 10),
        (3, 53, 13),
        (2, 56, 16),
    ]
    assert [each.text for each in completions] == [f"sample {i}" for i in range(10, 18)]
    assert [each.seed for each in completions] == list(range(50, 58))


async def test_one_failing_choice_of_4_costs_one_extra_call(server):
    def one_short(body, number):
        if number == 0:
            reply = server.usual({**body, "n": 3}, number)
            assert len(reply["choices"]) == 3
            return reply
        return server.usual(body, number)

    server.answer = one_short
    model = Splitting(OpenAIModel(server.url, "m"))
    completions = await model.sample(asking(n=4, seed=0))
    assert [each.text for each in completions] == ["sample 0", "sample 1", "sample 2", "sample 3"]
    assert [(body.get("n", 1), body["seed"]) for body in server.bodies] == [(4, 0), (1, 3)]
    await model.close()


async def test_one_failing_part_of_4_is_one_lost_completion_and_no_other_is_asked_again():
    def third_is_down(_, index):
        return ModelUnavailable("down") if index == 2 else f"sample {index}"

    backend = ScriptedModel(third_is_down)
    completions = await Splitting(backend, max_n=1).sample(asking(n=4))
    assert [each.error for each in completions] == [None, None, "down", None]
    assert completions[2].text == ""
    assert len(backend.requests) == 4


async def test_all_parts_lost_is_the_first_error():
    backend = ScriptedModel(lambda _, index: ModelUnavailable(f"down {index}"))
    with pytest.raises(ModelUnavailable, match="down 0"):
        await Splitting(backend, max_n=1).sample(asking(n=3))


async def test_a_lost_completion_says_what_its_request_took():
    def second_part_is_lost(_, index):
        error = AnswerLost("gone").with_spent(attempts=3, wait_s=2.5, may_be_billed=True)
        return error if index in (2, 3) else f"sample {index}"

    completions = await Splitting(ScriptedModel(second_part_is_lost), max_n=2).sample(asking(n=6))
    usages = [each.usage for each in completions]
    assert [each.error for each in completions] == [None, None, "gone", "gone", None, None]
    assert [(usage.attempts, usage.wait_s) for usage in usages] == [(1, 0), (0, 0), (3, 2.5), (0, 0), (1, 0), (0, 0)]
    assert [usage.completion_tokens for usage in usages] == [2, 2, None, 0, 2, 2]


async def test_all_parts_lost_is_what_all_of_them_took():
    def lost(_, index):
        return ModelUnavailable("down").with_spent(attempts=index + 1, wait_s=0.5, may_be_billed=index == 2)

    with pytest.raises(ModelUnavailable) as caught:
        await Splitting(ScriptedModel(lost), max_n=1).sample(asking(n=3))
    assert (caught.value.attempts, caught.value.wait_s, caught.value.may_be_billed) == (1 + 2 + 3, 1.5, True)


async def test_learns_from_a_refusal_of_n(server):
    def only_one(body, number):
        if body.get("n", 1) > 1:
            return 400, '{"error": {"message": "n must be 1", "param": "n"}}', {}
        return server.usual(body, number)

    server.answer = only_one
    model = Splitting(OpenAIModel(server.url, "m"))
    assert len(await model.sample(asking(n=3))) == 3
    assert len(await model.sample(asking(n=2))) == 2
    assert [body.get("n", 1) for body in server.bodies] == [3, 1, 1, 1, 1, 1]
    await model.close()


async def test_learns_from_one_choice_where_several_were_asked_for(server):
    server.answer = lambda body, number: server.usual({**body, "n": 1}, number)
    model = Splitting(OpenAIModel(server.url, "m"))
    assert [each.text for each in await model.sample(asking(n=3, seed=5))] == ["sample 5", "sample 6", "sample 7"]
    await model.sample(asking(n=2))
    assert [body.get("n", 1) for body in server.bodies] == [3, 1, 1, 1, 1]
    await model.close()


async def test_another_refusal_is_not_taken_for_one_of_n():
    backend = ScriptedModel(lambda *_: ModelRefused("temperature must be below 2"))
    with pytest.raises(ModelRefused, match="temperature"):
        await Splitting(backend).sample(asking(n=4))
    assert len(backend.requests) == 1


@pytest.mark.parametrize(
    ("said", "about_n"),
    [
        ("n must be 1", True),
        ("parameter: n is not supported", True),
        ("`n` is greater than 1", True),
        ("Only n = 1 is supported (parameter 'n')", True),
        ("multiple completions are not supported", True),
        ("the name is not known", False),
        ("temperature must be at most 2", False),
        ("context length is 4096", False),
    ],
)
def test_which_refusals_are_about_n(said, about_n):
    assert refuses_n(ModelRefused(said)) is about_n
    assert not refuses_n(AuthError(said))


def test_a_part_has_its_own_seed_and_index():
    whole = asking(n=5, seed=10, sample_index=2)
    assert part_of(whole, 0, 5) is whole
    part = part_of(whole, 3, 2)
    assert (part.n, part.seed, part.sample_index) == (2, 13, 5)
    assert part_of(asking(n=5), 3, 2).seed is None


def test_a_most_below_1_is_refused():
    with pytest.raises(ConfigError, match="0"):
        Splitting(scripted(), max_n=0)
