import json
from dataclasses import dataclass, field

import pytest
import yaml
from config_doubles import TEXT
from config_layers import Shorten, outer

from archon.budget import Budget
from archon.config import LoadedPipeline, dump_pipeline, load_pipeline, pipeline_hash
from archon.errors import ConfigError
from archon.layers import Critic, Fuser, Generator, Ranker, Revise, UnitTestGenerator, Verifier
from archon.pipeline import Parallel, Refine, Sequence, layer
from archon.sandbox.protocol import Limits
from archon.testing import ScriptedModel

M = "local/qwen2.5-coder-0.5b"

FULL = """
name: generate-critique-rank-fuse-verify
pipeline:
  - generator: {model: local/qwen2.5-coder-0.5b, n: 8, temperature: [0.2, 0.8]}
  - critic
  - ranker: {top_k: 3}
  - fuser
  - verifier: {model: small, unit_tests: 8}
refine: {until: verified, max_rounds: 2}
budget: {tokens: 100000, usd: 1}
models:
  small: {url: http://127.0.0.1:8000/v1, model: qwen, price: {prompt_usd: 0.1, completion_usd: 0.2}}
"""


@pytest.fixture
def load(tmp_path):
    def load(text, *, lenient=False, name="p.yaml"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return load_pipeline(path, lenient=lenient)

    return load


@pytest.fixture
def refusal(load):
    """Return the one line of error that a text gets, without the folder."""

    def refusal(text, **options):
        with pytest.raises(ConfigError) as caught:
            load(text, **options)
        message = str(caught.value)
        assert "\n" not in message
        return message.rpartition("/p.")[2] if "/p." in message else message

    return refusal


def test_a_whole_file(load):
    assert load(FULL) == LoadedPipeline(
        name="generate-critique-rank-fuse-verify",
        pipeline=(
            Generator(model=M, n=8, temperature=(0.2, 0.8))
            >> Critic()
            >> Ranker(top_k=3)
            >> Fuser()
            >> Verifier(model="small", unit_tests=8)
        ).refine(until="verified", max_rounds=2),
        budget=Budget(tokens=100000, usd=1.0),
        models={
            "small": {
                "url": "http://127.0.0.1:8000/v1",
                "model": "qwen",
                "price": {"prompt_usd": 0.1, "completion_usd": 0.2},
            }
        },
    )


def test_only_the_pipeline_is_needed(load):
    loaded = load("pipeline: [generator]", name="plain.yaml")
    assert loaded == LoadedPipeline(name="plain", pipeline=Generator())


def test_a_mapping_is_read_as_a_file_is(load):
    assert load_pipeline(yaml.safe_load(FULL)) == load(FULL)


def test_json_is_read_as_yaml_is(load):
    assert load(json.dumps(yaml.safe_load(FULL), indent="\t"), name="p.json") == load(FULL)


def test_composites_nest(load):
    text = """
pipeline:
  - parallel:
      - [generator: {model: local/a}, critic]
      - - sequence: [{generator: {model: local/b}}, revise]
        - refine:
            body: [fuser, verifier]
            max_rounds: 3
      - unit_test_generator
  - ranker
"""
    expected = Sequence(
        layers=(
            Parallel(
                layers=(
                    Sequence(layers=(Generator(model="local/a"), Critic())),
                    Sequence(
                        layers=(
                            Sequence(layers=(Generator(model="local/b"), Revise())),
                            Refine(body=Sequence(layers=(Fuser(), Verifier())), max_rounds=3),
                        )
                    ),
                    UnitTestGenerator(),
                )
            ),
            Ranker(),
        )
    )
    assert load(text).pipeline == expected


def test_anchors_and_merge_keys(load):
    text = """
pipeline:
  - generator: &settings {model: local/a, max_tokens: 300}
  - fuser: {<<: *settings, n: 2, max_tokens: 200}
"""
    assert load(text).pipeline.layers[1] == Fuser(model="local/a", n=2, max_tokens=200)


def test_several_models(load):
    names = "[local/a, 'http://h:1/v1#b', litellm/openai/c, own]"
    text = f"{{pipeline: [{{generator: {{model: {names}}}}}], models: {{own: local/d}}}}"
    assert load(text).pipeline.model == ("local/a", "http://h:1/v1#b", "litellm/openai/c", "own")


def test_a_layer_of_the_users_own(load):
    assert load("pipeline: [generator, 'config_layers:Shorten': {to: 3}]").pipeline.layers[1] == Shorten(to=3)
    nested = load("pipeline: [{'config_layers:Shorten': {limits: {wall_s: 1}}}]").pipeline
    assert nested == Shorten(limits=Limits(wall_s=1.0))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "yaml: the file is empty: valid: a mapping with the key 'pipeline'"),
        ("# nothing\n", "yaml: the file is empty: valid: a mapping with the key 'pipeline'"),
        ("- generator\n", "yaml:1: ['generator'] is not a mapping: valid: {name: ..., pipeline: [generator, ...]}"),
        ("generator", "yaml:1: 'generator' is not a mapping: valid: {name: ..., pipeline: [generator, ...]}"),
        ("name: a\nlayer: 1\n", "yaml:1: the key 'pipeline' is missing: there are 'name, layer'"),
        (
            "name: a\npipelines: []\npipeline: [generator]\n",
            "yaml:2: pipelines: unknown key 'pipelines'; did you mean 'pipeline'? "
            "valid: budget, models, name, pipeline, refine",
        ),
        (
            "pipeline:\n  - generator\n  - critic\n  - ranker: {top_kk: 3}\n",
            "yaml:4: pipeline[2].ranker.top_kk: unknown key 'top_kk'; did you mean 'top_k'? valid: effort, label, "
            "max_tokens, method, model, scores, temperature, top_k, use_critiques, use_tests",
        ),
        (
            "pipeline: [rankr]",
            "yaml:1: pipeline[0]: unknown layer 'rankr'; did you mean 'ranker'? valid: critic, fuser, generator, "
            "parallel, ranker, refine, revise, sequence, unit_test_evaluator, unit_test_generator, verifier, or "
            "my_module:MyLayer",
        ),
        ("pipeline: [{generator: {n: two}}]", "yaml:1: pipeline[0].generator.n: 'two' is not a whole number"),
        ("pipeline: [{generator: {n: 2.0}}]", "yaml:1: pipeline[0].generator.n: 2.0 is not a whole number"),
        ("pipeline: [{generator: {n: true}}]", "yaml:1: pipeline[0].generator.n: True is not a whole number"),
        (
            "pipeline: [{generator: {n: 0}}]",
            "yaml:1: pipeline[0].generator: generator n=0: must be a whole number of at least 1",
        ),
        (
            "pipeline: [{generator: {show_tests: 'no'}}]",
            "yaml:1: pipeline[0].generator.show_tests: 'no' is not true or false",
        ),
        (
            "pipeline:\n- generator:\n    temperature:\n    - 0.2\n    - warm\n",
            "yaml:5: pipeline[0].generator.temperature[1]: 'warm' is not a number",
        ),
        (
            "pipeline: [{generator: {temperature: [1, 2, 3]}}]",
            "yaml:1: pipeline[0].generator.temperature: [1, 2, 3] does not fit: valid: a number or a list of 2 times a "
            "number or null",
        ),
        (
            "pipeline: [{generator: {top_p: 1e-1}}]",
            "yaml:1: pipeline[0].generator.top_p: '1e-1' does not fit: valid: a number or null "
            "(YAML reads '1e-1' as text: write 0.1)",
        ),
        (
            "pipeline: [{ranker: {method: pairwize}}]",
            "yaml:1: pipeline[0].ranker.method: 'pairwize' is not known; did you mean 'pairwise'? "
            "valid: listwise, majority, pairwise",
        ),
        ("pipeline: [{verifier: {seed: 3}}]", "yaml:1: pipeline[0].verifier.seed: unknown key 'seed'; "),
        ("pipeline: [{verifier: {sandbox: x}}]", "yaml:1: pipeline[0].verifier.sandbox: unknown key 'sandbox'; valid"),
        (
            "pipeline: [{ranker: 3}]",
            "yaml:1: pipeline[0].ranker: 3 is not a mapping: valid: {ranker: {setting: value}}",
        ),
        ("pipeline: []", "yaml:1: pipeline: an empty list is not a list of layers: valid: [generator, ...]"),
        ("pipeline: generator", "yaml:1: pipeline: 'generator' is not a list of layers: valid: [generator, ...]"),
        ("pipeline: [3]", "yaml:1: pipeline[0]: 3 is not a layer: valid: a layer's name, or a mapping such as"),
        ("pipeline: [null]", "yaml:1: pipeline[0]: None is not a layer"),
        (
            "pipeline:\n- generator:\n  n: 8\n",
            "yaml:2: pipeline[0]: 'generator', 'n' in one item: valid: one layer an item, or 'n' indented further to "
            "be a setting of 'generator'",
        ),
        ("pipeline: [{parallel: [[]]}]", "yaml:1: pipeline[0].parallel[0]: an empty list is not a list of layers"),
        ("pipeline: [{parallel: {a: 1}}]", "yaml:1: pipeline[0].parallel: {'a': 1} is not a list of branches"),
        ("pipeline: [{refine: [generator]}]", "yaml:1: pipeline[0].refine: ['generator'] is not a mapping"),
        ("pipeline: [{refine: {until: verified}}]", "yaml:1: pipeline[0].refine: 'body' is missing: valid: body: ["),
        ("pipeline: [{refine: {}}]", "yaml:1: pipeline[0].refine: 'body' is missing: valid: body: ["),
        ("pipeline: [{refine: {body: null}}]", "yaml:1: pipeline[0].refine.body: None is not a list of layers"),
        (
            "pipeline: [generator]\nrefine: {untill: verified}\n",
            "yaml:2: refine.untill: unknown key 'untill'; did you mean 'until'? valid: max_rounds, until",
        ),
        ("pipeline: [generator]\nrefine: {until: right}\n", "yaml:2: refine: refine until='right': valid: 'verified'"),
        (
            "pipeline: [generator]\nrefine: {max_rounds: 0}\n",
            "yaml:2: refine: refine max_rounds=0: must be a whole number",
        ),
        (
            "pipeline: [generator]\nbudget: {token: 3}\n",
            "yaml:2: budget.token: unknown key 'token'; did you mean 'tokens'?",
        ),
        ("pipeline: [generator]\nbudget: {tokens: -3}\n", "yaml:2: budget: budget tokens=-3: must be a finite number"),
        (
            "pipeline: [generator]\nbudget: {usd: .inf}\n",
            "yaml:2: budget.usd: inf does not fit: valid: a number or null",
        ),
        ("pipeline: [generator]\nname: 2024-01-01\n", "yaml:2: name: datetime.date(2024, 1, 1) is not a name"),
        ("pipeline: [generator]\nname: ''\n", "yaml:2: name: '' is not a name"),
        (
            "pipeline: [generator]\nname: a\nname: b\n",
            "yaml:3: not YAML that can be read: the key 'name' is written twice",
        ),
        (
            "pipeline:\n- ranker: {top_k: 1, top_k: 2}\n",
            "yaml:2: not YAML that can be read: the key 'top_k' is written",
        ),
        (
            "pipeline:\n\t- generator\n",
            "yaml:2: not YAML that can be read: there is a tab in the indentation: use spaces",
        ),
        ("pipeline: [generator\n", "yaml:2: not YAML that can be read: while parsing a flow sequence"),
        ("1: a\n", "yaml:1: not YAML that can be read: the key '1' is not text"),
        ("pipeline: [!!python/object/apply:os.system [x]]", "yaml:1: not YAML that can be read: could not determine a"),
        ("pipeline: [*a]", "yaml:1: not YAML that can be read: found undefined alias 'a'"),
        ("a: 1\n---\nb: 1\n", "yaml:2: not YAML that can be read: expected a single document in the stream"),
        (b"name: \xff\n", "yaml:1: byte 0xff is not UTF-8: save the file as UTF-8"),
        (b"name: a\n\n# caf\xe9\n", "yaml:3: byte 0xe9 is not UTF-8: save the file as UTF-8"),
        ("name: \x00", "yaml: not YAML that can be read: unacceptable character #x0000"),
        ("[" * 3000, "yaml: nested too deeply to be a pipeline"),
        (
            "pipeline: &a [sequence: *a]",
            "yaml:1: pipeline[0].sequence: more than 1000 layers, or layers inside themselves",
        ),
        (
            "pipeline:\n- sequence: &a [generator, generator]\n"
            + "".join(
                f"- sequence: &{b} [{', '.join([f'sequence: *{a}'] * 9)}]\n" for a, b in zip("abc", "bcd", strict=True)
            ),
            "more than 1000 layers, or layers inside themselves",
        ),
        (
            "pipeline:\n- sequence: &a [generator, generator]\n"
            + "".join(
                f"- sequence: &{b} [{', '.join([f'sequence: *{a}'] * 9)}]\n"
                for a, b in zip("abcdef", "bcdefg", strict=True)
            ),
            "anchors make more than 100,000 values of it: too many for a pipeline",
        ),
        (
            "pipeline: ['no_such_module:Layer']",
            "layer 'no_such_module:Layer': cannot import 'no_such_module': ModuleNotFoundError",
        ),
        (
            "pipeline: ['config_layers:NotALayer']",
            "'NotALayer' in 'config_layers' is not a dataclass derived from Leaf",
        ),
        ("pipeline: ['config_layers:Missing']", "'Missing' in 'config_layers' is not a dataclass derived from Leaf"),
        ("pipeline: ['os:system']", "'system' in 'os' is not a dataclass derived from Leaf"),
        (
            "pipeline: [{'config_layers:Shorten': {limits: {walls: 1}}}]",
            "pipeline[0].config_layers:Shorten.limits: walls: unknown key 'walls'; did you mean 'wall_s'?",
        ),
    ],
)
def test_what_bad_input_gets(refusal, text, message):
    assert message in refusal(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file is empty"),
        ("{", "json:1: not JSON: Expecting property name"),
        ('{"name": 1,\n"name": 2}', "json: not JSON: the key 'name' is written twice in one object"),
        ('{"budget": {"usd": NaN}}', "json: not JSON: NaN is not a JSON number"),
        ('{"pipeline": ["critc"]}', "json: pipeline[0]: unknown layer 'critc'; did you mean 'critic'?"),
    ],
)
def test_bad_json(refusal, text, message):
    assert message in refusal(text, name="p.json")


def test_several_errors_are_counted(refusal):
    message = refusal("pipeline: [rankr, {generator: {n: x, m: 1}}]\nnmae: a\n")
    assert message.startswith("yaml:2: nmae: unknown key 'nmae'; did you mean 'name'?")
    assert message.endswith(" (and 3 more)")


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(ConfigError, match="missing.yaml: cannot be read: No such file or directory"):
        load_pipeline(tmp_path / "missing.yaml")
    with pytest.raises(ConfigError, match="cannot be read: Is a directory"):
        load_pipeline(tmp_path)


def test_a_file_that_is_no_pipeline_by_its_size(refusal):
    assert "are too many for a pipeline: valid: up to 1,000,000" in refusal("#" * 1_000_001)


def test_lenient_reading_lists_what_it_passes_over(load):
    text = "nmae: a\npipeline: [generator: {m: 1, n: 2}, ranker: {topk: 3}]\nbudget: {token: 3}\n"
    loaded = load(text, lenient=True)
    assert loaded.pipeline == Generator(n=2) >> Ranker()
    assert loaded.ignored == ("nmae", "pipeline[0].generator.m", "pipeline[1].ranker.topk", "budget.token")


def test_lenient_reading_passes_over_no_wrong_value(refusal):
    assert "'x' is not a whole number" in refusal("pipeline: [{generator: {n: x}}]", lenient=True)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (
            "model: qwen2.5",
            "pipeline[0].generator.model: unknown model 'qwen2.5': valid: local/NAME, http://HOST/v1#MODEL",
        ),
        ("model: smal", "or a key of models:; did you mean 'small'? valid: small"),
        ("model: local/", "model 'local/' names no model: valid: local/NAME"),
        ("model: litellm/openai", "model 'litellm/openai' is cut short: valid: litellm/PROVIDER/MODEL"),
        ("model: http://h/v1", "model 'http://h/v1' is not valid: valid: http://HOST:PORT/v1#MODEL"),
        ("model: 'ftp://h/v1#m'", "is not valid: valid: http://HOST:PORT/v1#MODEL"),
        ("model: 'http://h:99999/v1#m'", "is not valid: valid: http://HOST:PORT/v1#MODEL"),
        ("model: [local/a, b]", "pipeline[0].generator.model[1]: unknown model 'b'"),
        ("model: []", "generator model=(): must name at least one model"),
        ("model: {url: 'http://h/v1', model: m}", "settings of a model stand under models: at the top"),
        ("model: 3", "pipeline[0].generator.model: 3 does not fit: valid: a model or text or a list of"),
    ],
)
def test_models_in_layers(refusal, entry, message):
    assert message in refusal(f"pipeline: [{{generator: {{{entry}}}}}]\nmodels: {{small: local/a}}\n")


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("3", "yaml:2: models.small: 3 is not a model"),
        ("{modle: m}", "models.small: modle: unknown key; did you mean 'model'?"),
        ("{url: 'http://h/v1'}", "models.small: 'model' is missing"),
        ("{url: nowhere, model: m}", "url 'nowhere' is not valid: valid: http://HOST:PORT/v1"),
        ("{model: m}", "models.small: unknown model 'm'"),
        ("small", "models.small: unknown model 'small'"),
        ("{model: local/a, price: {prompt_usd: -1, completion_usd: 0}}", "price.prompt_usd"),
        ("{model: local/a, price: {prompt: 1}}", "price.prompt: unknown key; did you mean 'prompt_usd'?"),
        ("{model: local/a, api_key: sk-1}", "api_key: unknown key; did you mean 'api_key_env'?"),
    ],
)
def test_models_of_the_files_own(refusal, entry, message):
    assert message in refusal(f"pipeline: [generator]\nmodels: {{small: {entry}}}\n")


def test_a_name_of_ones_own_holds_no_slash(refusal):
    assert "'a/b' cannot be a name of your own" in refusal("pipeline: [generator]\nmodels: {a/b: local/a}\n")


# Writing.


def test_what_is_written():
    pipe = Generator(model=M, n=8, temperature=(0.2, 0.8)) >> Critic() >> Ranker(top_k=3, label="first")
    assert dump_pipeline(pipe.refine(max_rounds=3), name="x", budget=Budget(tokens=5)) == (
        "name: x\n"
        "pipeline:\n"
        "- generator:\n"
        f"    model: {M}\n"
        "    n: 8\n"
        "    temperature: [0.2, 0.8]\n"
        "- critic\n"
        "- ranker: {label: first, top_k: 3}\n"
        "refine: {until: verified, max_rounds: 3}\n"
        "budget: {tokens: 5}\n"
    )


def test_a_compiled_pipeline_is_written_as_it_was():
    pipe = Generator(model=M) >> Fuser() >> Fuser()
    assert dump_pipeline(pipe.compiled("x"), name="x") == dump_pipeline(pipe, name="x")


def test_a_pipeline_inside_another_keeps_its_own_models(load):
    inner = (Generator(model="local/b") >> Fuser()).compiled()
    outer = Parallel(layers=(Generator(model="local/a") >> Fuser(), inner)) >> Ranker()
    again = load(dump_pipeline(outer)).pipeline
    assert again.compiled().root == outer.compiled().root
    assert [leaf.model for leaf in again.compiled().leaves] == ["local/a", "local/a", "local/b", "local/b", "local/a"]
    assert pipeline_hash(again) == pipeline_hash(outer) == pipeline_hash(outer.compiled())


@dataclass
class Named(ScriptedModel):
    spec: object = field(default="local/a", kw_only=True)


def test_model_objects_are_written_by_what_they_say(load):
    settings = {"url": "http://h:1/v1", "model": "m"}
    pipe = Generator(
        model=(Named(()), Named((), name="big", spec=settings), Named((), name="big", spec=settings))
    ) >> Fuser(model=Named((), name="big", spec={**settings, "model": "n"}))
    loaded = load(dump_pipeline(pipe))
    assert loaded.pipeline == Generator(model=("local/a", "big", "big")) >> Fuser(model="big-2")
    assert loaded.models == {"big": settings, "big-2": {**settings, "model": "n"}}


def test_what_cannot_be_written():
    with pytest.raises(ConfigError, match="model 'scripted' is a ScriptedModel without a name for files"):
        dump_pipeline(Generator(model=ScriptedModel(())))

    @layer
    async def own(trace):
        return trace

    with pytest.raises(ConfigError, match="'own' cannot be written to a file"):
        dump_pipeline(Generator(model=M) >> own)
    with pytest.raises(
        ConfigError, match="'shorten' cannot be written to a file: put its class at the top of a module"
    ):
        dump_pipeline(Generator(model=M) >> outer())


def test_a_users_own_layer_comes_back(load):
    pipe = Generator(model=M) >> Shorten(to=3, limits=Limits(wall_s=2.5))
    assert load(dump_pipeline(pipe)).pipeline == pipe
    assert "- config_layers:Shorten:\n    to: 3\n    limits: {wall_s: 2.5}\n" in dump_pipeline(pipe)


def test_what_is_loaded_can_be_planned(load):
    plan = load(FULL).pipeline.compiled().plan(TEXT)
    assert [(row.layer, row.calls, row.max_calls) for row in plan.rows] == [
        ("generator", 8, 16),
        ("critic", 1, 2),
        ("ranker", 1, 2),
        ("fuser", 1, 2),
        ("verifier", 2, 3),
    ]
