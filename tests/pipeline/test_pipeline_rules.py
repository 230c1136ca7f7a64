import pytest
from pipeline_doubles import own

from archon.errors import OrderError
from archon.layers import Critic, Fuser, Generator, Ranker, Revise, UnitTestEvaluator, UnitTestGenerator, Verifier
from archon.pipeline import Parallel

G = Generator(model="local/a")
RANKED = G >> Ranker()

REFUSED = {
    "no generator": (Critic(model="m") >> Fuser(), "'critic' needs candidates, and no generator comes before it"),
    "generator last": (Ranker(model="m") >> G, "'ranker' needs candidates"),
    "tests are no candidates": (
        UnitTestGenerator(model="m") >> UnitTestEvaluator(),
        "'unit_test_evaluator' needs candidates",
    ),
    "generator later": (G >> Fuser() >> G, "'generator-2' comes after 'fuser': generators belong in the first layer"),
    "generator twice": (G >> G, "'generator-2' comes after 'generator': generators belong in the first layer"),
    "two kinds": (G >> (Ranker() | Fuser()), "'ranker', 'fuser' stand side by side: a layer holds one kind only"),
    "generator beside fuser": (G | Fuser(), "'generator', 'fuser' stand side by side"),
    "critiques at the end": (G >> Critic(), "'critic' writes critiques that nothing reads: put a ranker, a fuser or"),
    "critiques for a verifier": (G >> Critic() >> Verifier(), "'critic' writes critiques that nothing reads"),
    "tests at the end": (G >> UnitTestGenerator(), "'unit_test_generator' writes tests that nothing reads"),
    "tests for a judge": (
        G >> UnitTestGenerator() >> Verifier(),
        "'unit_test_generator' writes tests that nothing reads",
    ),
    "no tests": (G >> UnitTestEvaluator(), "'unit_test_evaluator' has no tests to evaluate"),
    "tests afterwards": (
        G >> UnitTestEvaluator() >> UnitTestGenerator() >> Verifier(unit_tests=3),
        "'unit_test_evaluator' has no tests to evaluate: put a unit_test_generator before it",
    ),
    "rankers side by side": (
        G >> (Ranker() | Ranker(top_k=1)),
        "'ranker' and 'ranker-2' pass on the same candidates of 'generator': put them one after the other",
    ),
    "critics side by side": (
        G >> (Critic() | Critic()) >> Fuser(),
        "'critic' and 'critic-2' pass on the same candidates",
    ),
    "verifiers side by side": (
        G >> (Verifier() | Verifier()),
        "'verifier' and 'verifier-2' pass on the same candidates",
    ),
    "a branch beside its own input": (
        G >> ((Critic() >> Ranker()) | Ranker()) >> Fuser(),
        "'ranker' and 'ranker-2' pass on the same candidates of 'generator'",
    ),
    "fusers that keep the same inputs": (
        G >> (Fuser(keep_inputs=True) | Fuser(keep_inputs=True)),
        "'fuser' and 'fuser-2' pass on the same candidates of 'generator'",
    ),
    "tests beside a critic": (
        G >> (UnitTestGenerator() | Critic()) >> UnitTestEvaluator() >> Fuser(),
        "'critic' and 'unit_test_generator' pass on the same candidates",
    ),
}

ACCEPTED = {
    "one generator": G,
    "several generators": G | G,
    "everything": G >> Critic() >> Ranker(top_k=3) >> Fuser() >> Verifier(unit_tests=8),
    "tests first": UnitTestGenerator(model="m") >> G >> UnitTestEvaluator(),
    "tests beside": (UnitTestGenerator(model="m") | G) >> UnitTestEvaluator(),
    "tests shown": UnitTestGenerator(model="m") >> Generator(show_tests=True) >> Fuser(),
    "tests for a verifier": G >> UnitTestGenerator() >> Verifier(unit_tests=3),
    "several fusers": G >> (Fuser() | Fuser(n=2)) >> Fuser(),
    "branches of pipelines": (G >> Critic() >> Ranker()) | (G >> Fuser()),
    "ranked branches": (RANKED | RANKED) >> Ranker(),
    "one branch keeps its inputs": G >> (Fuser(keep_inputs=True) | Fuser()) >> Ranker(),
    "a long and a short branch": G >> ((Critic() >> Fuser()) | Fuser()) >> Ranker(),
    "critic then revision": G >> Critic() >> Revise() >> Verifier(),
    "revision": G >> Revise(rounds=3),
    "functions anywhere": own >> G >> own >> Critic() >> own,
    "critic last in a loop over a fuser": (G >> Critic() >> Fuser()).refine(),
}


@pytest.mark.parametrize("case", REFUSED, ids=str)
def test_an_order_that_is_refused_names_the_layers_and_the_rule(case):
    pipe, message = REFUSED[case]
    with pytest.raises(OrderError) as caught:
        pipe.compiled()
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("case", ACCEPTED, ids=str)
def test_an_order_that_is_accepted(case):
    assert ACCEPTED[case].compiled().compiled() == ACCEPTED[case].compiled()


def test_every_broken_rule_is_named():
    with pytest.raises(OrderError) as caught:
        (Critic(model="m") >> UnitTestGenerator()).compiled()
    assert str(caught.value).count(";") == 2


def test_labels_are_what_messages_show():
    with pytest.raises(OrderError, match="'nitpick' writes critiques that nothing reads"):
        (G >> Critic(label="nitpick")).compiled()


def test_a_wide_and_deep_graph_is_checked_at_once():
    pipe = G
    for _ in range(30):
        pipe = pipe >> Parallel(layers=(Fuser(), Fuser())) >> Ranker()
    pipe.compiled()
