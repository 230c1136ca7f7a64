import gzip
import json
from collections import Counter

import pytest
from config_doubles import CODE, MATHS, TEXT, planned_and_run

from archon.config import dump_pipeline, load_archon_json, load_pipeline, pipeline_hash
from archon.errors import ConfigError, OrderError
from archon.layers import Critic, Fuser, Generator, Ranker, UnitTestEvaluator, UnitTestGenerator, Verifier
from archon.pipeline import Parallel, Sequence
from archon.tasks.data_folder import data_folder

QWEN = {"model": "Qwen/Qwen2-72B-Instruct", "model_type": "Together_API"}
QWEN_NAME = "litellm/together_ai/Qwen/Qwen2-72B-Instruct"
SYSTEM = "You are a helpful assistant"


def component(kind, **more):
    return {"type": kind, **QWEN, "temperature": 0.7, "max_tokens": 2048, **more}


def config(*layers, **top):
    return {"name": "a", "layers": list(layers), **top}


def one(*layers, **options):
    return load_archon_json(config(*layers), **options).pipeline


def test_components_become_layers_with_their_settings():
    pipeline = one(
        [component("generator", samples=3)],
        [component("critic", samples=1)],
        [component("ranker", top_k=5, use_critiques=True)],
        [component("fuser", samples=2, length_control=True)],
        [component("verifier", samples=1)],
    )
    asking = {"model": QWEN_NAME, "temperature": 0.7, "max_tokens": 2048}
    assert pipeline == Sequence(
        layers=(
            Generator(**asking, n=3, system=SYSTEM),
            Critic(**asking),
            Ranker(**asking, top_k=5, use_critiques=True),
            Fuser(**asking, n=2, length_control=True),
            Verifier(**asking, keep="passed"),
        )
    )
    pipeline.compiled()


def test_a_ranker_shows_critiques_only_when_told_to():
    assert one([component("ranker", top_k=5)]).use_critiques is False


def test_unit_tests():
    pipeline = one(
        [component("unit_test_generator", samples=1, unit_test_cap=5)],
        [component("generator", samples=10)],
        [component("unit_test_evaluator", top_k=1, first_pass=True, remove_unit_tests_from_prompt=True)],
    )
    writer, generator, evaluator = pipeline.layers
    assert isinstance(writer, UnitTestGenerator)
    assert writer.n == 5
    assert generator.show_tests
    assert isinstance(evaluator, UnitTestEvaluator)
    assert evaluator.top_k == 1


def test_a_generator_can_be_spared_the_tests_and_sees_none_that_come_later():
    pipeline = one(
        [component("unit_test_generator")],
        [component("generator", remove_unit_tests_from_prompt=True)],
        [component("unit_test_evaluator")],
    )
    assert not pipeline.layers[1].show_tests
    assert not one([component("generator")], [component("unit_test_generator")]).layers[0].show_tests


@pytest.mark.parametrize(("given", "top_k"), [({"first_k": 3, "top_k": 1}, 3), ({"top_k": 2}, 2), ({}, None)])
def test_how_many_an_evaluator_keeps(given, top_k):
    assert one([component("unit_test_evaluator", **given)]).top_k == top_k


def test_a_verifier_keeps_those_that_pass_or_the_first_of_them():
    assert one([component("verifier")]).keep == "passed"
    assert one([component("verifier", first_k=1)]).keep == "best"
    with pytest.raises(ConfigError, match=r"layers\[0\]\[0\]\.first_k: 2 verified candidates"):
        one([component("verifier", first_k=2)])


def test_no_system_leaves_the_default_system_text_out():
    assert one([component("generator", no_system=True)]).system is None


def test_equal_generators_are_one_with_several_models():
    other = component("generator", samples=2, model="b", model_type="OpenAI_API")
    pipeline = one([component("generator", samples=2), other, other])
    assert pipeline.model == (QWEN_NAME, "litellm/openai/b", "litellm/openai/b")
    assert pipeline.n == 2


def test_unequal_generators_stand_side_by_side():
    pipeline = one([component("generator", samples=2), component("generator", samples=3)])
    assert isinstance(pipeline, Parallel)
    assert [layer.n for layer in pipeline.layers] == [2, 3]


def test_equal_fusers_are_one_with_more_samples_others_stand_side_by_side():
    pipeline = one([component("fuser"), component("fuser", samples=2), component("fuser", model="b")])
    assert [(layer.model, layer.n) for layer in pipeline.layers] == [(QWEN_NAME, 3), ("litellm/together_ai/b", 1)]


@pytest.mark.parametrize(
    ("model_type", "model", "name"),
    [
        ("Anthropic_API", "m", "litellm/anthropic/m"),
        ("Bedrock_API", "m", "litellm/bedrock/m"),
        ("Google_API", "m", "litellm/gemini/m"),
        ("Groq_API", "m", "litellm/groq/m"),
        ("OpenAI_API", "m", "litellm/openai/m"),
        ("tgi", "http://host:8080", "http://host:8080/v1#tgi"),
        ("vLLM", "http://host:8000/v1/", "http://host:8000/v1#vLLM"),
        ("vLLM", "qwen2.5-coder-0.5b", "local/qwen2.5-coder-0.5b"),
    ],
)
def test_model_types(model_type, model, name):
    assert one([component("generator", model=model, model_type=model_type)]).model == name


def test_the_older_forms_of_layers():
    modern = one([component("generator")])
    assert one({"models": [component("generator")]}) == modern
    assert one(component("generator")) == modern
    loaded = load_archon_json(config({"models": [component("generator")], "branches": 1}), lenient=True)
    assert loaded.pipeline == modern
    assert loaded.ignored == ("layers[0].branches",)


def test_a_misspelt_key_names_its_place_and_the_nearest_name():
    layers = [
        [component("generator")],
        [component("critic")],
        [component("fuser"), component("fuser", length_contorl=True)],
    ]
    with pytest.raises(ConfigError) as caught:
        one(*layers)
    assert str(caught.value) == (
        "layers[2][1].length_contorl: unknown key 'length_contorl'; did you mean 'length_control'? valid: "
        "length_control, max_tokens, model, model_type, remove_unit_tests_from_prompt, samples, temperature, type"
    )
    loaded = load_archon_json(config(*layers), lenient=True)
    assert loaded.ignored == ("layers[2][1].length_contorl",)
    assert not loaded.pipeline.layers[2].length_control


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([[component("generator", top_k=1)]], r"layers\[0\]\[0\]\.top_k: 'top_k' has no effect on a generator"),
        (
            [{"models": [component("critic", checkpoint="")]}],
            r"layers\[0\]\.models\[0\]\.checkpoint: 'checkpoint' has no",
        ),
        ([[component("ranker", ranker_batch_size=16)]], r"'ranker_batch_size' has no effect on a ranker"),
        (
            [[component("ranker", top_k="5")]],
            r"layers\[0\]\[0\]\.top_k: '5' does not fit: valid: a whole number or null",
        ),
        ([[component("ranker", top_k=0)]], r"layers\[0\]\[0\]: ranker top_k=0"),
        ([[component("generator", samples=1.5)]], r"samples: 1.5 is not a whole number"),
        ([[component("critic", samples=2)]], r"samples: 2 samples of a critic would not be used: valid: 1"),
        ([[component("rancor")]], r"unknown type 'rancor'; did you mean 'ranker'\?"),
        ([[{"model": "m"}]], r"layers\[0\]\[0\]\.type: 'type' is missing"),
        ([[{"type": "generator", "model_type": "tgi"}]], r"layers\[0\]\[0\]\.model: None is not a model"),
        ([[component("generator", model_type="Togther_API")]], r"did you mean 'Together_API'\?"),
        ([[component("generator", model_type="vLLM")]], r"does not say where it is served"),
        ([[component("ranker", model="llm-blender/PairRM", model_type="")]], r"a scoring model that writes no text"),
        ([[]], r"layers\[0\]: \[\] is not a layer"),
        (["critic"], r"layers\[0\]: 'critic' is not a layer"),
        ([["critic"]], r"layers\[0\]\[0\]: 'critic' is not a mapping"),
        ([], r"layers: \[\] is not a list of layers"),
    ],
)
def test_what_bad_input_gets(given, message):
    with pytest.raises(ConfigError, match=message) as caught:
        one(*given)
    assert "\n" not in str(caught.value)


def test_top_level_keys():
    with pytest.raises(ConfigError, match="layer: unknown key 'layer'; did you mean 'layers'"):
        load_archon_json({"layers": [[component("generator")]], "layer": 1})
    with pytest.raises(ConfigError, match="custom: 'custom' has no effect"):
        load_archon_json(config([component("generator")], custom=True))
    with pytest.raises(ConfigError, match="name: 3 is not a name"):
        load_archon_json({"name": 3, "layers": [[component("generator")]]})


def test_a_searchs_settings_are_not_a_pipeline():
    with pytest.raises(ConfigError, match="'layers' is missing .this looks like a search's settings, not a pipeline"):
        load_pipeline({"search_algorithm_choice": "bayesian_optimization", "init_points": 1})


def test_a_file_is_recognised_by_its_layers(tmp_path):
    path = tmp_path / "c.json"
    path.write_text(json.dumps(config([component("generator")])), encoding="utf-8")
    assert load_pipeline(path) == load_archon_json(path) == load_archon_json(config([component("generator")]))


# The 146 published configurations.


def published():
    folder = data_folder()
    path = None if folder is None else folder / "11_archon_configs.jsonl.gz"
    if path is None or not path.exists():
        return []
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


PUBLISHED = published()
needs_published = pytest.mark.skipif(not PUBLISHED, reason="11_archon_configs.jsonl.gz is not in ARCHON_DATA")


def outcome(row, *, lenient):
    try:
        loaded = load_pipeline(row["config"], lenient=lenient)
    except ConfigError as error:
        return f"refused: {str(error).partition(': ')[2][:60]}", None
    try:
        return "accepted", loaded.pipeline.compiled(loaded.name)
    except OrderError as error:
        return f"order: {error}", None


@needs_published
def test_how_many_published_configurations_load():
    assert len(PUBLISHED) == 146
    pipelines = [row for row in PUBLISHED if "layers" in row["config"]]
    assert len(pipelines) == 145
    strict = Counter(outcome(row, lenient=False)[0].split(":")[0] for row in pipelines)
    assert strict == {"refused": 111, "accepted": 33, "order": 1}
    lenient = Counter(outcome(row, lenient=True)[0] for row in pipelines)
    assert lenient.pop("accepted") == 141
    assert sorted(lenient.elements()) == [
        "order: 'fuser' needs candidates, and no generator comes before it; 'fuser-2' needs candidates, and no "
        "generator comes before it; 'generator', 'fuser', 'fuser-2' stand side by side: a layer holds one kind only",
        "order: 'generator-2' comes after 'generator': generators belong in the first layer",
        "refused: 'llm-blender/PairRM' is a scoring model that writes no text:",
        "refused: 'llm-blender/PairRM' is a scoring model that writes no text:",
    ]


@needs_published
def test_every_published_key_that_is_passed_over_is_listed():
    listed = Counter()
    for row in PUBLISHED:
        if "layers" in row["config"]:
            try:
                ignored = load_pipeline(row["config"], lenient=True).ignored
            except ConfigError:
                continue
            listed.update(place.rpartition(".")[2] for place in ignored)
    written = Counter()
    for row in PUBLISHED:
        for layer in row["config"].get("layers", []):
            parts = layer if isinstance(layer, list) else layer.get("models", [layer])
            if any("PairRM" in part["model"] for part in parts if part["type"] == "ranker"):
                continue
            written.update(key for part in parts for key in part)
    assert listed["length_contorl"] == written["length_contorl"] == 16
    assert listed["checkpoint"] == written["checkpoint"] == 11
    assert set(listed) == {
        "batch_num",
        "branches",
        "checkpoint",
        "fuse_generations_count",
        "length_contorl",
        "ranker_batch_size",
        "ranker_config",
        "top_k",
        "top_k_generations",
    }


@needs_published
async def test_planned_calls_are_made_calls_for_every_accepted_configuration():
    checked = 0
    for row in PUBLISHED:
        said, pipeline = outcome(row, lenient=True)
        if said != "accepted":
            continue
        for problem in (TEXT, MATHS, CODE):
            await check_calls(pipeline, problem, row["path"])
        checked += 1
    assert checked == 141


async def check_calls(pipeline, problem, path):
    plan, trace = await planned_and_run(pipeline, problem, path)
    assert [(span.layer, span.usage.calls) for span in trace.spans] == [(row.layer, row.calls) for row in plan.rows], (
        path
    )
    assert plan.calls == plan.max_calls, path


@needs_published
def test_every_accepted_configuration_goes_through_yaml_and_back(tmp_path):
    path = tmp_path / "p.yaml"
    hashes = {}
    for row in PUBLISHED:
        said, pipeline = outcome(row, lenient=True)
        if said == "accepted":
            path.write_text(dump_pipeline(pipeline, name=pipeline.title), encoding="utf-8")
            again = load_pipeline(path)
            assert (again.name, again.pipeline) == (pipeline.title, pipeline.source)
            assert pipeline_hash(again.pipeline) == pipeline_hash(pipeline)
            hashes.setdefault(pipeline_hash(pipeline), set()).add(again.pipeline.compiled().root)
    assert all(len(same) == 1 for same in hashes.values())
