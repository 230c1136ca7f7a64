from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pandas as pd
import pytest
from report_runs import HOSTILE, info, made_run, record, usage

from archon.errors import RunError
from archon.report.content import content_of
from archon.report.export import COLUMNS, frame
from archon.report.html import html, script_json
from archon.report.markdown import markdown
from archon.report.records import LayerUse, Run, Sample
from archon.report.write import write_report


def hostile_run(name: str = HOSTILE) -> Run:
    samples = (Sample(correct=True, answer=name, score=1.0), Sample(correct=False, answer="x", score=0.5))
    layer = LayerUse(layer=name, kind=name, usage=usage(), parses=((name, 1),))
    records = (
        record(name, True, name, task=name, samples=samples, layers=(layer,), notes=(name,), difficulty=1),
        record("b", False, name, task=name, status="error", error=name),
    )
    yaml = f"```\n{name}</pre></script>"
    return Run(info=info(name, name, pipeline_yaml=yaml, machine=name, sandbox=name), records=records)


class Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.urls: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.urls += [value or "" for name, value in attrs if name in ("src", "href", "action", "data", "srcset")]

    def handle_data(self, data):
        self.text.append(data)


def parsed(page: str) -> Page:
    seen = Page()
    seen.feed(page)
    return seen


def test_every_file_is_written_and_says_the_same(tmp_path: Path):
    one, pipeline = made_run("one-call", problems=25, n=1), made_run("pipeline", problems=25)
    paths = write_report([one, pipeline], tmp_path / "new" / "report")
    accuracy = f"{100 * sum(bool(r.correct) for r in pipeline.records) / 25:.1f} %"
    for text in (paths.html.read_text(encoding="utf-8"), paths.markdown.read_text(encoding="utf-8")):
        assert accuracy in text
        assert "McNemar" in text
        assert "truncated 4" in text
        assert "generator: {n: 8}" in text
    assert paths.png.read_bytes().startswith(b"\x89PNG")
    for rows in (pd.read_csv(paths.csv), pd.read_parquet(paths.parquet)):
        assert list(rows.columns) == list(COLUMNS)
        assert len(rows) == 50
        assert rows[rows["system"] == "pipeline"]["correct"].sum() == sum(bool(r.correct) for r in pipeline.records)


def test_the_same_runs_give_the_same_bytes(tmp_path: Path):
    runs = [made_run("one", problems=10, n=1), made_run("two", problems=10)]
    first, second = write_report(runs, tmp_path / "a"), write_report(runs, tmp_path / "b")
    for name in ("html", "markdown", "csv", "png"):
        assert getattr(first, name).read_bytes() == getattr(second, name).read_bytes(), name


def test_hostile_text_stays_text_in_the_page():
    page = html(content_of([hostile_run(), made_run("fine", problems=3)]))
    clean = html(content_of([hostile_run("plain"), made_run("fine", problems=3)]))
    seen = parsed(page)
    assert seen.tags == parsed(clean).tags
    assert '<script>alert("1")</script>' in "".join(seen.text)
    # Every text between tags stays escaped in the source, and nothing can end the plots' script.
    assert "<script>alert" not in page
    assert page.count("</script>") == 2
    plots = page[page.index("const plots = ") : page.index("// The buttons")]
    assert "\\u0026lt;script\\u0026gt;" in plots  # a plot label is HTML to plotly: escaped for it, then for the page


def test_the_page_asks_the_network_for_nothing():
    page = html(content_of([made_run(problems=5)]))
    seen = parsed(page)
    assert seen.tags.count("script") == 2
    assert all(url.startswith(("#", "data:")) for url in seen.urls)
    assert "default-src 'none'" in page
    style = page[page.index("<style>") : page.index("</style>")]
    assert "url(" not in style
    assert "@import" not in style


def test_plotly_is_in_the_page_once():
    page = html(content_of([made_run(problems=5), made_run("other", problems=5)]))
    assert page.count("Copyright 2012-2026, Plotly") + len(re.findall(r"\* plotly\.js v", page)) >= 1
    assert len(re.findall(r"\* plotly\.js v", page)) == 1


def test_script_json_cannot_leave_its_script_and_refuses_nan():
    assert script_json({"a": "</script><!--&"}) == '{"a":"\\u003c/script\\u003e\\u003c!--\\u0026"}'
    with pytest.raises(ValueError, match="JSON compliant"):
        script_json([float("nan")])


def test_hostile_text_stays_text_in_markdown():
    text = markdown(content_of([hostile_run()]))
    outside = re.sub(r"(?ms)^(`{3,})yaml$.*?^\1$", "", text)
    assert "<script>" not in outside
    assert "\x1b" not in outside
    rows = [line for line in outside.splitlines() if line.startswith("|")]
    unescaped = [len(re.findall(r"(?<!\\)\|", row)) for row in rows]
    headers = [row.count("|") for row in rows if row.startswith("|---")]
    assert set(unescaped) <= set(headers)
    assert "\n````yaml\n" in text


def test_data_comes_out_of_the_tables_as_it_went_in(tmp_path: Path):
    paths = write_report([hostile_run()], tmp_path)
    for rows in (pd.read_csv(paths.csv), pd.read_parquet(paths.parquet)):
        assert rows["problem_id"].tolist() == [HOSTILE, "b"]


def test_unknown_and_not_judged_are_missing_in_the_tables_and_named_in_the_page():
    run = Run(info=info(parameters=()), records=(record("a", None, usage=usage(out=None, usd=None)), record("b", True)))
    rows = frame([run])
    assert rows["correct"].isna().tolist() == [True, False]
    assert rows["tokens"].isna().tolist() == [True, False]
    assert rows["cost_usd"].isna().tolist() == [True, False]
    content = content_of([run])
    for text in (html(content), markdown(content)):
        assert "not known" in text
        assert "2 (1 judged)" in text


def test_runs_that_hold_nothing_are_refused(tmp_path: Path):
    with pytest.raises(RunError, match="no runs to report on"):
        write_report([], tmp_path)
    with pytest.raises(RunError, match="'empty' has no records"):
        write_report([Run(info=info("empty"), records=())], tmp_path)


def test_the_same_system_twice_gets_two_names():
    run = made_run("same", problems=4)
    content = content_of([run, run])
    assert [name for name, _ in content.named] == ["same (1)", "same (2)"]
    other = replace(run, info=replace(run.info, task="gsm8k"))
    assert [name for name, _ in content_of([run, other]).named] == ["same on humaneval", "same on gsm8k"]


def test_systems_on_different_problems_are_shown_and_not_compared():
    other = Run(info=info("other"), records=(record("elsewhere", True, "other"),))
    content = content_of([made_run(problems=4), other])
    assert content.compared == ()
    assert "other solves 100.0 %" in content.findings[1]
    assert "Against" not in markdown(content)


def test_a_report_where_nothing_was_judged(tmp_path: Path):
    run = Run(info=info(), records=(record("a", None, samples=(Sample(correct=None),)),))
    paths = write_report([run], tmp_path)
    assert "not judged" in paths.html.read_text(encoding="utf-8")


def test_a_thousand_problems_at_most_are_listed():
    records = tuple(record(f"p{i}", True) for i in range(1005))
    page = html(content_of([Run(info=info(), records=records)]))
    assert "The first 1,000 of 1,005 are shown" in page
    assert "p999<" in page
    assert "p1000<" not in page
