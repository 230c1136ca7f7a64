from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from report_runs import made_run

from archon.report.write import write_report

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--enable-logging=stderr",
    "--virtual-time-budget=15000",
)


CONTROL = "https://control.invalid/pixel.png"
WATCH = """<script>
const refused = [];
document.addEventListener("securitypolicyviolation", event => refused.push(event.blockedURI));
window.addEventListener("load", () => setTimeout(() => {
  const fetched = performance.getEntriesByType("resource").map(entry => entry.name);
  document.body.setAttribute("data-asked", JSON.stringify([...refused, ...fetched]));
}, 1000));
</script>"""
"""Writes every request that the page made or was refused onto its body."""


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
def test_plots_are_drawn_and_nothing_is_fetched(tmp_path: Path):
    paths = write_report([made_run("one-call", problems=12, n=1), made_run("pipeline", problems=12)], tmp_path / "r")
    page = paths.html.read_text(encoding="utf-8")
    watched = tmp_path / "watched.html"
    # One request of our own shows that the watch sees requests: it has to be the only one.
    page = page.replace("<title>", WATCH + "<title>", 1).replace("<main>", f'<img src="{CONTROL}"><main>', 1)
    watched.write_text(page, encoding="utf-8")
    assert CHROMIUM is not None
    command = [CHROMIUM, *FLAGS, f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom", watched.as_uri()]
    seen = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    asked = re.search(r'<body data-asked="([^"]*)"', seen.stdout)
    assert asked is not None
    assert set(json.loads(html.unescape(asked[1]))) == {CONTROL}

    plots = re.findall(r'id="(plot-\d+)"', page)
    assert len(plots) == 3
    assert seen.stdout.count('class="main-svg"') >= 2 * len(plots)
    # What only a drawn plot has: the curves' paths, bars and points, and the label of the gap.
    assert len(re.findall(r'class="js-line"[^>]* d="M', seen.stdout)) >= 4
    assert len(re.findall(r'<g class="point"><path', seen.stdout)) >= 6
    assert re.search(r"<tspan[^>]*>gap at k = 8", seen.stdout)
    assert 'data-title="Download' in seen.stdout
    assert 'data-title="Share' not in seen.stdout  # plotly's own button set sends the data to a web service
    assert "Uncaught" not in seen.stderr
