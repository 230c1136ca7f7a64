import asyncio
import json
import logging
import socket

import pytest
from models_chat_server import ChatServer, chat_reply
from models_contract import asking

from archon.errors import (
    AnswerLost,
    AuthError,
    ConfigError,
    ModelRefused,
    ModelUnavailable,
    QuotaExhausted,
    RateLimited,
)
from archon.models import openai_http
from archon.models.cached import key_of
from archon.models.openai_http import OpenAIModel
from archon.models.protocol import Price
from archon.models.retrying import Retrying
from archon.types import Image, Message

KEY = "sk-sentinel-0123456789abcdef"


@pytest.fixture
def key(monkeypatch):
    monkeypatch.setenv("ENDPOINT_KEY", KEY)
    return "ENDPOINT_KEY"


async def test_sends_what_the_request_sets_and_nothing_else(server):
    model = OpenAIModel(server.url + "/", "m", extra_body={"top_k": 20, "temperature": 0.5})
    await model.sample(asking("hi", max_tokens=9))
    await model.sample(
        asking("hi", n=2, temperature=0.0, top_p=0.0, max_tokens=9, stop=("\n",), seed=0, effort="low", sample_index=4)
    )
    await model.close()
    messages = [{"role": "user", "content": "hi"}]
    assert server.bodies == [
        {"model": "m", "messages": messages, "max_tokens": 9, "top_k": 20, "temperature": 0.5},
        {
            "model": "m",
            "messages": messages,
            "max_tokens": 9,
            "n": 2,
            "temperature": 0.0,
            "top_p": 0.0,
            "stop": ["\n"],
            "seed": 0,
            "reasoning_effort": "low",
            "top_k": 20,
        },
    ]


async def test_an_effort_is_sent_as_the_endpoint_wants_it(server):
    thinking = {"chat_template_kwargs": {"enable_thinking": False}}
    model = OpenAIModel(server.url, "m", efforts={"none": thinking})
    await model.sample(asking(effort="none"))
    await model.close()
    assert server.bodies[0]["chat_template_kwargs"] == {"enable_thinking": False}
    assert "reasoning_effort" not in server.bodies[0]


async def test_images_reach_the_endpoint_untouched_and_in_order(server):
    url = "data:image/png;base64,iVBORw0KGgo+/="
    content = ("before", Image(url=url, detail="low"), "after", Image(url="https://e.org/a.png?x=1&y=%20"))
    request = asking()
    request = type(request)(messages=(Message(role="system", content="s"), Message(role="user", content=content)))
    model = OpenAIModel(server.url, "m")
    await model.sample(request)
    await model.close()
    assert server.bodies[0]["messages"] == [
        {"role": "system", "content": "s"},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "before"},
                {"type": "image_url", "image_url": {"url": url, "detail": "low"}},
                {"type": "text", "text": "after"},
                {"type": "image_url", "image_url": {"url": "https://e.org/a.png?x=1&y=%20"}},
            ],
        },
    ]


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (400, '{"error": {"message": "bad", "param": "top_p"}}', ModelRefused),
        (401, "{}", AuthError),
        (402, "pay", QuotaExhausted),
        (403, "{}", AuthError),
        (404, "{}", ModelRefused),
        (408, "", ModelUnavailable),
        (422, '{"detail": [1]}', ModelRefused),
        (429, "", RateLimited),
        (
            429,
            '{"error": {"code": "insufficient_quota", "message": "You exceeded insufficient_quota"}}',
            QuotaExhausted,
        ),
        (500, "<html>", ModelUnavailable),
        (503, "", ModelUnavailable),
        (302, "", ModelRefused),
        (504, "", AnswerLost),
        (524, "", AnswerLost),
        (200, "not json", AnswerLost),
        (200, "[]", AnswerLost),
        (200, "null", AnswerLost),
        (200, '{"choices": []}', AnswerLost),
        (200, '{"choices": [{"index": 0}]}', AnswerLost),
        (200, '{"error": {"code": 429, "message": "slow down"}}', RateLimited),
        (200, '{"error": {"message": "worker died"}}', ModelUnavailable),
    ],
)
async def test_each_answer_becomes_its_own_error(server, status, body, kind):
    server.answer = lambda *_: (status, body, {})
    model = OpenAIModel(server.url, "m")
    with pytest.raises(kind) as caught:
        await model.sample(asking())
    assert type(caught.value) is kind
    assert len(server.bodies) == 1
    await model.close()


async def test_connection_refused_is_unavailable_and_hang_up_and_timeout_may_be_billed(server):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
    nobody = OpenAIModel(url, "m")
    with pytest.raises(ModelUnavailable, match="cannot be reached") as refused:
        await nobody.sample(asking())
    assert type(refused.value) is ModelUnavailable
    server.answer = lambda *_: None
    hung = OpenAIModel(server.url, "m", timeout_s=0.2)
    with pytest.raises(AnswerLost, match="broke off the connection"):
        await hung.sample(asking())
    server.latency_s = 2.0
    with pytest.raises(AnswerLost, match=r"did not answer within 0\.2 s"):
        await hung.sample(asking())
    await nobody.close()
    await hung.close()


async def test_an_unknown_model_is_told_with_what_is_served(server):
    server.answer = lambda *_: (404, '{"error": {"message": "The model `qwen-code` does not exist."}}', {})
    server.served = ["qwen-coder", "llama"]
    model = OpenAIModel(server.url, "qwen-code")
    with pytest.raises(ModelRefused, match="does not serve 'qwen-code': did you mean 'qwen-coder'"):
        await model.sample(asking())
    await model.close()


async def test_a_base_url_without_its_version_is_told(server):
    model = OpenAIModel(server.url.removesuffix("/v1"), "m")
    with pytest.raises(ModelRefused, match="does the base URL end in /v1"):
        await model.sample(asking())
    await model.close()


async def test_max_completion_tokens_is_learnt_once(server):
    def demanding(body, number):
        if "max_tokens" in body:
            return 400, '{"error": {"message": "Unsupported parameter; use \'max_completion_tokens\' instead."}}', {}
        return server.usual(body, number)

    server.answer = demanding
    model = OpenAIModel(server.url, "m")
    (first,) = await model.sample(asking(max_tokens=5))
    (second,) = await model.sample(asking(max_tokens=5))
    assert (first.usage.attempts, second.usage.attempts) == (2, 1)
    assert ["max_tokens" in body for body in server.bodies] == [True, False, False]
    assert server.bodies[-1]["max_completion_tokens"] == 5
    await model.close()


async def test_the_key_is_sent_and_never_said(server, key, caplog, capfd):
    caplog.set_level(logging.DEBUG)
    model = OpenAIModel(server.url, "m", api_key_env=key)
    said = [repr(model), model.identity, repr(key_of(model.identity, asking()))]
    await model.sample(asking())
    assert server.headers[0]["Authorization"] == f"Bearer {KEY}"
    for status in (200, 400, 401, 402, 403, 404, 418, 429, 500):
        server.answer = lambda *_, status=status: (status, f"bad key {KEY} / Bearer {KEY}", {"Retry-After": "1"})
        with pytest.raises(Exception) as caught:  # noqa: PT011
            await model.sample(asking())
        error = caught.value
        while error is not None:
            said += [str(error), repr(error), repr(error.args)]
            error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    server.answer = lambda *_: (200, json.dumps({"error": {"code": 400, "message": f"key {KEY}"}}), {})
    with pytest.raises(ModelRefused) as refused:
        await model.sample(asking())
    said += [str(refused.value), caplog.text, *capfd.readouterr()]
    assert not [text for text in said if KEY in text or "0123456789abcdef" in text]
    await model.close()


async def test_a_key_that_is_not_set_is_an_auth_error_naming_the_variable(server, monkeypatch):
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    model = OpenAIModel(server.url, "m", api_key_env="NO_SUCH_KEY")
    with pytest.raises(AuthError, match="NO_SUCH_KEY"):
        await model.sample(asking())
    assert server.bodies == []


@pytest.mark.parametrize(
    "url",
    ["", "127.0.0.1:8000/v1", "ftp://h/v1", "http://u:secret@h/v1", "http://h/v1?key=secret", "http://h/v1#secret"],
)
def test_a_base_url_that_cannot_be_or_holds_a_secret_is_refused(url):
    with pytest.raises(ConfigError) as caught:
        OpenAIModel(url, "m")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("owned", ["model", "messages", "n", "max_tokens", "stream"])
def test_extra_body_must_not_set_what_each_request_sets(owned):
    with pytest.raises(ConfigError, match=owned):
        OpenAIModel("http://h/v1", "m", extra_body={owned: 1})


def test_identity_tells_apart_what_answers_differently():
    models = [
        OpenAIModel("http://a/v1", "m"),
        OpenAIModel("http://b/v1", "m"),
        OpenAIModel("http://a/v1", "n"),
        OpenAIModel("http://a/v1", "m", extra_body={"top_k": 1}),
        OpenAIModel("http://a/v1", "m", extra_body={"top_k": 2}),
        OpenAIModel("http://a/v1", "m", opens_thinking=True),
        OpenAIModel("http://a/v1", "m", efforts={"low": {"x": 1}}),
    ]
    assert len({model.identity for model in models}) == len(models)
    same = [OpenAIModel(f"http://127.0.0.1:{port}/v1", "m", known_as="local/m") for port in (1, 2)]
    assert same[0].identity == same[1].identity


async def test_choices_that_are_missing_are_completions_with_an_error(server):
    server.answer = lambda *_: chat_reply("one two", "three")
    model = OpenAIModel(server.url, "m")
    completions = await model.sample(asking(n=4, seed=1))
    assert [bool(each.error) for each in completions] == [False, False, True, True]
    assert [each.usage.completion_tokens for each in completions] == [2, 1, 0, 0]
    assert [each.usage.prompt_tokens for each in completions] == [20, 0, 0, 0]
    await model.close()


async def test_a_wait_for_a_connection_is_waiting_and_not_the_critical_path(server):
    server.latency_s = 0.15
    model = OpenAIModel(server.url, "m", connections=1)
    answers = await asyncio.gather(*[model.sample(asking()) for _ in range(3)])
    usages = [completion.usage for (completion,) in answers]
    assert sorted(round(usage.wait_s / 0.15) for usage in usages) == [0, 1, 2]
    assert all(0.14 < usage.critical_s < 0.29 for usage in usages)
    assert len(server.connections) == 1
    await model.close()


async def test_prices_what_the_endpoint_counted_cached_prompt_tokens_at_their_own_price(server):
    server.answer = lambda *_: chat_reply("a", prompt=100, completion=10, prompt_tokens_details={"cached_tokens": 80})
    model = OpenAIModel(server.url, "m", price=Price(prompt_usd=10.0, completion_usd=100.0, cached_prompt_usd=1.0))
    (completion,) = await model.sample(asking())
    assert completion.usage.cost_usd == pytest.approx((20 * 10 + 80 * 1 + 10 * 100) / 1e6)
    await model.close()


def test_idle_connections_are_dropped_before_vllm_closes_them():
    assert openai_http._IDLE_S < 5.0


async def test_an_idle_connection_is_not_used_again_after_its_time(server, monkeypatch):
    monkeypatch.setattr(openai_http, "_IDLE_S", 0.05)
    model = OpenAIModel(server.url, "m")
    for _ in range(2):
        await model.sample(asking())
        await asyncio.sleep(0.2)
    assert len(server.connections) == 2
    await model.close()


async def test_a_connection_is_used_again_within_its_time(server):
    model = OpenAIModel(server.url, "m")
    for _ in range(5):
        await model.sample(asking())
    assert len(server.connections) == 1
    await model.close()


async def test_a_post_that_meets_a_dead_connection_is_no_lost_call(server):
    def hangs_up_on_the_second(body, number):
        return None if number == 1 else server.usual(body, number)

    server.answer = hangs_up_on_the_second
    model = Retrying(OpenAIModel(server.url, "m"), max_retries=1, base_s=0.0)
    await model.sample(asking())
    (completion,) = await model.sample(asking())
    assert (completion.error, completion.usage.attempts) == (None, 2)
    await model.close()


async def test_a_server_with_a_shorter_keep_alive_than_ours_loses_no_call():
    with ChatServer(keepalive_s=0.05) as hasty:
        model = Retrying(OpenAIModel(hasty.url, "m"), max_retries=2, base_s=0.0)
        for pause_s in (0.03, 0.049, 0.051, 0.06, 0.2):
            assert (await model.sample(asking()))[0].error is None
            await asyncio.sleep(pause_s)
        await model.close()
