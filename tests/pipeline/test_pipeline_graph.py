import networkx as nx

from archon.layers import Critic, Fuser, Generator, Ranker, Verifier
from archon.pipeline.graph import drawn

G = Generator(model="local/a")


def graph(pipe):
    return pipe.compiled().graph


def test_a_sequence_is_a_path():
    it = graph(G >> Critic() >> Fuser())
    assert list(it.edges) == [("generator", "critic"), ("critic", "fuser")]
    assert [it.nodes[node]["kind"] for node in it] == ["generator", "critic", "fuser"]
    assert it.nodes["critic"]["layer"].model == "local/a"


def test_branches_share_what_comes_before_and_after():
    it = graph(G >> ((Critic() >> Fuser()) | Fuser()) >> Ranker())
    assert set(it.edges) == {
        ("generator", "critic"),
        ("critic", "fuser"),
        ("generator", "fuser-2"),
        ("fuser", "ranker"),
        ("fuser-2", "ranker"),
    }


def test_a_loop_leaves_the_graph_acyclic_and_names_its_way_back():
    it = graph(((G | G) >> Verifier()).refine() >> Fuser())
    assert nx.is_directed_acyclic_graph(it)
    assert it.nodes["verifier"]["loop"] == ("generator", "generator-2")
    assert "loop" not in it.nodes["fuser"]


def test_a_loop_in_a_loop_keeps_both_ways_back():
    it = graph((G >> (Fuser() >> Verifier()).refine()).refine())
    assert it.nodes["verifier"]["loop"] == ("fuser", "generator")


def test_the_drawing():
    assert drawn(graph((G >> (Fuser(label='the "best"') | Fuser()) >> Verifier()).refine())) == (
        "flowchart LR\n"
        '    n0["generator"]\n'
        '    n1["the #quot;best#quot;"]\n'
        '    n2["fuser"]\n'
        '    n3["verifier"]\n'
        "    n0 --> n1\n"
        "    n0 --> n2\n"
        "    n1 --> n3\n"
        "    n2 --> n3\n"
        "    n3 -. not verified .-> n0"
    )
