import dataclasses
import hashlib
import json
import string

import pytest
from config_layers import Shorten, outer
from hypothesis import given, settings
from hypothesis import strategies as st

from archon.config import dump_pipeline, load_pipeline, pipeline_hash
from archon.config.document import parse_document
from archon.config.pipeline_file import read_pipeline
from archon.config.reading import settings_of
from archon.errors import ConfigError
from archon.layers import Critic, Fuser, Generator, Ranker, Revise, UnitTestEvaluator, UnitTestGenerator, Verifier
from archon.pipeline import Parallel, Refine, Sequence, layer
from archon.sandbox.fake import ScriptedSandbox
from archon.testing import ScriptedModel

M = "local/a"


def same(one, other):
    return pipeline_hash(one) == pipeline_hash(other)


def test_a_known_hash():
    # Runs are kept under this hash: when it changes without a reason, finished work is done again.
    pipe = Generator(model=M, n=8) >> Verifier(unit_tests=8)
    settings = [
        {each.name: getattr(leaf, each.name) for each in dataclasses.fields(leaf)} | {"layer": leaf.kind, "model": M}
        for leaf in pipe.leaves
    ]
    for each in settings:
        for left_out in ("label", "seed", "sandbox"):
            each.pop(left_out, None)
    content = {"form": 1, "pipeline": {"sequence": settings}}
    written = json.dumps(content, sort_keys=True, separators=(",", ":"))
    assert pipeline_hash(pipe) == hashlib.sha256(written.encode()).hexdigest()
    assert pipeline_hash(pipe) == pipeline_hash(
        load_pipeline({"pipeline": [{"generator": {"model": M, "n": 8}}, {"verifier": {"unit_tests": 8}}]}).pipeline
    )


def test_a_setting_that_was_added_later_leaves_known_hashes_alone():
    pipe = Generator(model=M, n=8) >> UnitTestGenerator() >> UnitTestEvaluator()
    assert pipeline_hash(pipe) == "7cac4662e59eb680745e9b342b5217547850aa7b598c12407f8df1dd29a24016"
    dropping = Generator(model=M, n=8) >> UnitTestGenerator() >> UnitTestEvaluator(drop_undiscriminating=True)
    assert not same(pipe, dropping)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Generator(model=M), Generator(model=M, n=1, temperature=0.7)),
        (Generator(model=M, temperature=1), Generator(model=M, temperature=1.0)),
        (Generator(model=M), Generator(model=M, label="mine", seed=3)),
        (Generator(model=M) >> Fuser(), Generator(model=M) >> Fuser(model=M)),
        (Generator(model=M) >> Fuser(), (Generator(model=M) >> Fuser()).compiled("named")),
        (Generator(model=M) >> Verifier(), Generator(model=M) >> Verifier(sandbox=ScriptedSandbox([]))),
        (Generator(model=M), Sequence(layers=(Generator(model=M),))),
        (
            Sequence(layers=(Sequence(layers=(Generator(model=M), Critic())), Fuser())),
            Generator(model=M) >> Critic() >> Fuser(),
        ),
        (
            Parallel(layers=(Parallel(layers=(Generator(model=M), Generator(model=M))), Generator(model=M))),
            Generator(model=M) | Generator(model=M) | Generator(model=M),
        ),
    ],
)
def test_what_means_the_same_has_the_same_hash(one, other):
    assert same(one, other)


VARIANTS = [
    Generator(model=M),
    Generator(model="local/b"),
    Generator(model=M, n=2),
    Generator(model=M, temperature=(0.7, 0.7)),
    Generator(model=M, temperature=None),
    Generator(model=M, system="x"),
    Generator(model=(M, M)),
    Generator(model=M) >> Fuser(),
    Generator(model=M) >> Fuser(model="local/b"),
    Generator(model=M) | Generator(model=M),
    Generator(model=M) >> Fuser() >> Ranker(),
    Generator(model=M) >> Ranker() >> Fuser(),
    (Generator(model=M) >> Fuser()).refine(),
    (Generator(model=M) >> Fuser()).refine(max_rounds=3),
    Generator(model=M) >> Fuser().refine(),
    Generator(model=M) >> Shorten(),
    Generator(model=M) >> Shorten(to=11),
    Generator(model=M) >> outer(),
]


def test_what_differs_has_another_hash():
    assert len({pipeline_hash(variant) for variant in VARIANTS}) == len(VARIANTS)


def test_every_setting_of_every_layer_counts():
    changed = {
        bool: lambda v: not v,
        int: lambda v: v + 1,
        float: lambda v: v / 2 + 0.1,
        type(None): lambda v: 1,
        str: str,
    }
    options = {
        "method": "pairwise",
        "scores": "bradley_terry",
        "on_reject": "abstain",
        "keep": "best",
        "effort": "low",
        "system": "s",
    }
    for cls in (Critic, Fuser, Generator, Ranker, Revise, UnitTestEvaluator, UnitTestGenerator, Verifier):
        base = cls(model=M)
        for name in settings_of(cls):
            if name == "label":
                continue
            value = getattr(base, name)
            other = "local/b" if name == "model" else options.get(name, changed[type(value)](value))
            assert not same(base, cls(**{"model": M, name: other})), (cls, name)


def test_a_files_own_names_count_by_what_they_stand_for():
    pipe, other = Generator(model="small"), Generator(model="tiny")
    at = {"url": "http://h:1/v1", "model": "m"}
    assert pipeline_hash(pipe, models={"small": at}) == pipeline_hash(other, models={"tiny": {**at, "timeout_s": 3}})
    assert pipeline_hash(pipe, models={"small": at}) != pipeline_hash(pipe, models={"small": {**at, "model": "n"}})
    assert pipeline_hash(pipe, models={"small": M}) == pipeline_hash(Generator(model=M))
    assert pipeline_hash(pipe) != pipeline_hash(other)


def test_objects_count_by_their_identity_and_functions_by_their_name():
    assert same(Generator(model=ScriptedModel(())), Generator(model=ScriptedModel(())))
    assert not same(Generator(model=ScriptedModel(())), Generator(model=ScriptedModel((), name="b")))

    @layer
    async def one(trace):
        return trace

    @layer
    async def two(trace):
        return trace

    assert not same(Generator(model=M) >> one, Generator(model=M) >> two)


# Any valid composition goes through YAML and back.

labels = st.none() | st.text(string.ascii_letters + " -_é漢", min_size=1, max_size=8)
names = st.sampled_from(
    ["local/a", "http://127.0.0.1:8000/v1#q:1", "litellm/openai/gpt-4o-mini", "local/no", "local/1e3"]
)
efforts = st.sampled_from([None, "none", "low", "medium", "high"])
temperatures = st.none() | st.floats(0, 2)
shared = {"label": labels, "max_tokens": st.integers(1, 9999), "effort": efforts}
asking = {**shared, "model": st.none() | names, "temperature": temperatures}
spreads = st.tuples(st.floats(0, 1), st.floats(1, 2))
texts = st.none() | st.text(st.characters(codec="utf-8"), max_size=20)
many = st.none() | st.integers(1, 20)


def optional(cls, **fields):
    return st.fixed_dictionaries({}, optional=fields).map(lambda given: cls(**given))


generators = optional(
    Generator,
    **shared,
    model=st.none() | names | st.lists(names, min_size=1, max_size=3).map(tuple),
    n=st.integers(1, 99),
    temperature=temperatures | spreads,
    top_p=st.none() | st.floats(0, 1),
    show_tests=st.booleans(),
    system=texts,
)
leaves = st.one_of(
    generators,
    optional(Critic, **asking),
    optional(Fuser, **asking, n=st.integers(1, 9), top_k=many, keep_inputs=st.booleans(), length_control=st.booleans()),
    optional(
        Ranker,
        **asking,
        top_k=many,
        method=st.sampled_from(["listwise", "pairwise", "majority"]),
        scores=st.sampled_from(["copeland", "bradley_terry"]),
        use_tests=st.booleans(),
    ),
    optional(Revise, **asking, rounds=st.integers(1, 5), window=st.integers(1, 5), keep_inputs=st.booleans()),
    optional(UnitTestGenerator, **asking, n=st.integers(1, 100), use_examples=st.booleans()),
    optional(
        UnitTestEvaluator,
        **asking,
        top_k=many,
        pass_share=st.floats(0, 1),
        agreement=st.sampled_from([True, False, "dual"]),
        drop_undiscriminating=st.booleans(),
        per_call_s=st.floats(0.01, 600),
    ),
    optional(Verifier, **asking, unit_tests=st.integers(0, 100), keep=st.sampled_from(["all", "passed", "best"])),
    st.integers(1, 99).map(lambda to: Shorten(to=to)),
)


def composed(inner):
    several = st.lists(inner, min_size=1, max_size=3).map(tuple)
    return st.one_of(
        several.map(lambda layers: Sequence(layers=layers)),
        several.map(lambda layers: Parallel(layers=layers)),
        st.tuples(inner, st.integers(1, 5)).map(lambda given: Refine(body=given[0], max_rounds=given[1])),
        st.tuples(inner, inner).map(lambda given: given[0] >> given[1]),
        st.tuples(inner, inner).map(lambda given: given[0] | given[1]),
    )


@settings(max_examples=150, deadline=None)
@given(pipe=st.recursive(leaves, composed, max_leaves=8), name=st.text(string.printable, max_size=12))
def test_any_pipeline_goes_through_yaml_and_back(pipe, name):
    text = dump_pipeline(pipe, name=name)
    try:
        loaded = read_pipeline(parse_document(text))
    except ConfigError as error:
        assert "is not a name" in str(error)
        assert not name.strip() or not name.isprintable()
        return
    assert loaded.name == name
    assert loaded.pipeline == pipe
    assert pipeline_hash(loaded.pipeline) == pipeline_hash(pipe)
    assert dump_pipeline(loaded.pipeline, name=name) == text


def plain_value(value):
    return [plain_value(each) for each in value] if isinstance(value, tuple) else value


@settings(max_examples=100, deadline=None)
@given(leaf=leaves.filter(lambda leaf: leaf.kind != "shorten"), left_out=st.sets(st.integers(0, 20)))
def test_a_default_may_be_written_or_left_out(leaf, left_out):
    default, given = type(leaf)(), {}
    for index, name in enumerate(settings_of(type(leaf))):
        if index not in left_out or getattr(leaf, name) != getattr(default, name):
            given[name] = plain_value(getattr(leaf, name))
    loaded = load_pipeline({"pipeline": [{leaf.kind: given}]}).pipeline
    assert loaded == leaf
    assert same(loaded, leaf)


@settings(max_examples=200, deadline=None)
@given(text=st.text(st.sampled_from("generator: [](){}-,'\"&*!|>\n\t #%@`pipeline0refine"), max_size=60))
def test_no_text_gets_anything_but_a_config_error(text):
    try:
        read_pipeline(parse_document("pipeline: " + text))
    except ConfigError as error:
        assert "\n" not in str(error)


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=10,
)
items = st.recursive(
    st.sampled_from(["generator", "critic", "parallel", "sequence", "refine"]) | plain,
    lambda inner: (
        st.dictionaries(st.sampled_from(["generator", "parallel", "sequence", "refine", "fuser"]), inner, max_size=2)
        | st.lists(inner, max_size=3)
        | st.fixed_dictionaries(
            {}, optional={"model": inner, "n": inner, "body": inner, "temperature": inner, "effort": inner}
        )
    ),
)


@settings(max_examples=150, deadline=None)
@given(
    mapping=st.fixed_dictionaries(
        {"pipeline": st.lists(items, max_size=3)},
        optional={
            "refine": plain,
            "budget": plain,
            "models": plain,
            "name": plain,
            "layers": st.lists(items, max_size=2),
        },
    )
)
def test_no_data_gets_anything_but_a_config_error(mapping):
    try:
        load_pipeline(mapping)
    except ConfigError:
        return
