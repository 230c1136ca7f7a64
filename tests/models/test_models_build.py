import pytest
from models_contract import asking

from archon.errors import ConfigError, MissingExtra
from archon.models.build import ModelSpec, build_model, read_spec
from archon.models.cached import Cached
from archon.models.completion_store import CompletionStore
from archon.models.openai_http import OpenAIModel
from archon.models.protocol import FREE, Price
from archon.models.retrying import Retrying
from archon.models.splitting import Splitting
from archon.models.throttled import Limiter, Throttled

URL = "http://127.0.0.1:8000/v1"


def layers_of(model):
    """The wrappers of a stack, outermost first, and its endpoint last."""
    found = [model]
    while hasattr(found[-1], "model") and not isinstance(found[-1].model, str):
        found.append(found[-1].model)
    return found


def test_the_usual_stack(tmp_path):
    assert [type(each) for each in layers_of(build_model(f"{URL}#m"))] == [Splitting, Retrying, Throttled, OpenAIModel]
    stack = layers_of(build_model(f"{URL}#m", cache=tmp_path / "c.sqlite"))
    assert [type(each) for each in stack] == [Cached, Splitting, Retrying, Throttled, OpenAIModel]
    store = CompletionStore(tmp_path / "d.sqlite")
    assert build_model(f"{URL}#m", cache=store).store is store


def test_every_setting_arrives():
    spec = {
        "model": "served-id",
        "url": URL,
        "name": "shown",
        "api_key_env": "SOME_KEY",
        "price": {"prompt_usd": 1, "completion_usd": 2.5, "cached_prompt_usd": 0},
        "max_retries": 0,
        "concurrency": 7,
        "timeout_s": 3,
        "max_n": 2,
        "effort": "low",
        "efforts": {"low": {"thinking": 1}},
        "extra_body": {"top_k": 4},
        "opens_thinking": True,
    }
    splitting, retrying, throttled, endpoint = layers_of(build_model(spec))
    assert (splitting.max_n, retrying.max_retries) == (2, 0)
    assert (throttled.limiter.start, throttled.limiter.most) == (7, 7)
    assert (endpoint.base_url, endpoint.model, endpoint.name) == (URL, "served-id", "shown")
    assert (endpoint.api_key_env, endpoint.timeout_s, endpoint.opens_thinking) == ("SOME_KEY", 3.0, True)
    assert endpoint.price == Price(prompt_usd=1.0, completion_usd=2.5, cached_prompt_usd=0.0)
    assert endpoint.extra_body == {"thinking": 1, "top_k": 4}
    assert endpoint.efforts == {"low": {"thinking": 1}}
    assert set(spec) == set(ModelSpec.__dataclass_fields__), "a setting that this test does not cover"


async def test_a_default_effort_is_sent_and_a_requests_own_wins(server):
    model = build_model({"model": f"{server.url}#m", "effort": "low"})
    await model.sample(asking())
    await model.sample(asking(effort="high"))
    assert [body["reasoning_effort"] for body in server.bodies] == ["low", "high"]
    await model.close()


def test_a_local_model_is_free_and_known_by_its_name_whatever_its_port():
    models = [build_model("local/qwen", base_url_of=lambda _, p=port: f"http://127.0.0.1:{p}/v1") for port in (1, 2)]
    assert models[0].identity == models[1].identity
    assert models[0].price is FREE
    *_, throttled, endpoint = layers_of(build_model("local/qwen", base_url_of=lambda name: f"{URL}#{name}-served"))
    assert endpoint.model == "qwen-served"
    assert throttled.limiter.start == throttled.limiter.most == 256
    # It queues and is slow on a busy machine, and gives up nothing that it has begun.
    assert endpoint.timeout_s == 6 * 3600
    assert layers_of(build_model(f"{URL}#m"))[-1].timeout_s == 600
    assert build_model(f"{URL}#m").price is None


def test_what_the_caller_gives_goes_before_the_description():
    limiter = Limiter(start=1, most=2)
    _, retrying, throttled, _ = layers_of(build_model(f"{URL}#m", max_retries=0, limiter=limiter))
    assert retrying.max_retries == 0
    assert throttled.limiter is limiter


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("", "not empty"),
        ("gpt-4o", "is not a model; valid: 'local/"),
        ("litellm/", "is not a model"),
        ("http://h/v1", "is not a model"),
        ("http://h/v1#", "is not a model"),
        ("local/x", "needs a local server"),
        (None, "is not a model"),
        (["a"], "is not a model"),
        ({}, "'model' is missing"),
        ({"model": "m", "url": "h:8000"}, "base URL"),
        ({"model": "m", "url": URL, "max_retry": 3}, "max_retry: unknown key; did you mean 'max_retries'"),
        ({"model": "m", "url": URL, "max_retries": -1}, "max_retries: -1"),
        ({"model": "m", "url": URL, "max_retries": 1.5}, "max_retries: 1.5"),
        ({"model": "m", "url": URL, "max_retries": True}, "max_retries: True"),
        ({"model": "m", "url": URL, "max_n": 0}, "max_n: 0"),
        ({"model": "m", "url": URL, "concurrency": "8"}, "concurrency: '8'"),
        ({"model": "m", "url": URL, "timeout_s": 0}, "timeout_s: 0"),
        ({"model": "m", "url": URL, "timeout_s": float("nan")}, "timeout_s: nan"),
        ({"model": "m", "url": URL, "effort": "hihg"}, "did you mean 'high'"),
        ({"model": "m", "url": URL, "opens_thinking": "yes"}, "valid: true, false"),
        ({"model": "m", "url": URL, "extra_body": [1]}, "valid: a mapping"),
        ({"model": "m", "url": URL, "extra_body": {"n": 1}}, "'n'"),
        ({"model": "m", "url": URL, "price": 3}, "valid: a mapping"),
        ({"model": "m", "url": URL, "price": {"prompt_usd": 1}}, "'completion_usd' is missing"),
        ({"model": "m", "url": URL, "price": {"prompt_usd": 1, "completion_usd": -1}}, "completion_usd: -1"),
        ({"model": "m", "url": URL, "price": {"prompt": 1}}, "did you mean 'prompt_usd'"),
    ],
)
def test_what_cannot_be_understood_is_refused_at_its_place(spec, says):
    with pytest.raises(ConfigError) as caught:
        build_model(spec, where="models.critic")
    assert says in str(caught.value)


def test_errors_name_their_place():
    with pytest.raises(ConfigError, match=r"^models\.critic\.price\.completion_usd: "):
        read_spec({"model": "m", "price": {"prompt_usd": 1, "completion_usd": "x"}}, where="models.critic")


def test_litellm_is_asked_for_by_its_extra(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match="providers"):
        build_model("litellm/openai/gpt-4o-mini")
    with pytest.raises(ConfigError, match="not for litellm"):
        build_model({"model": "litellm/openai/gpt-4o-mini", "opens_thinking": True})


def test_none_means_left_out():
    assert read_spec({"model": "m", "url": None, "max_n": None}) == read_spec("m")
