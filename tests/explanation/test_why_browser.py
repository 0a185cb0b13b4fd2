"""The page in a browser: its script runs without a complaint, and an address shows the view it
names.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from base64 import b64encode
from hashlib import sha256
from pathlib import Path

import pytest
from made_explanations import PRUNED, explained, without_null_space

from litotes.encoder.pretrained import Pretrained
from litotes.explanation.page import why_html

CHROMIUM = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
)
QUIET = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
OPTIONS = [*QUIET, "--enable-logging=stderr", "--v=0", "--virtual-time-budget=4000", "--dump-dom"]

pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="no chromium on this machine: the page's script is not tried"
)


def opened(page: str, folder: Path, address: str = "") -> str:
    """The page as it stands after its script has run; a complaint in the console is a failure."""
    file = folder / "why.html"
    file.write_text(page, "utf-8")
    command = [
        str(CHROMIUM),
        *OPTIONS,
        f"--user-data-dir={folder / 'profile'}",
        f"{file.as_uri()}{address}",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert "CONSOLE" not in done.stderr, done.stderr
    return done.stdout


@pytest.mark.slow
def test_opens_without_complaint(tiny: Pretrained, tmp_path: Path) -> None:
    text = "</script><script>document.title = 'broken in'</script> the tea"
    dom = opened(why_html(explained(tiny, text)), tmp_path)
    assert 'data-shown="2/mean"' in dom
    assert "broken in</title>" not in dom
    assert len(re.findall("<button[^>]*data-head", dom)) == 2 * (1 + 4)
    assert "lie in the null space" in dom


@pytest.mark.slow
def test_an_address_shows_its_view(tiny: Pretrained, tmp_path: Path) -> None:
    explanation = explained(tiny, **PRUNED)
    head = explanation.layers[3].heads[-1]
    dom = opened(
        why_html(explanation),
        tmp_path,
        f"#layer=4&head={head + 1}&method=rollout&step=3&query=1&key=2",
    )
    assert f'data-shown="4/{head + 1}"' in dom
    assert 'class="unsigned" id="shaded"' in dom
    n_seen = len(explanation.trace.there(2))
    assert f"layer 3 of 4 sees {n_seen} of {len(explanation.trace.written)} pieces" in dom
    n_gone = sum(left is not None and left < 2 for left in explanation.left_at_layer)
    assert dom.count('class="word gone"') == n_gone > 0
    place = explanation.layers[3].heads.index(head)
    said = re.search(
        r"standard ([\d.e-]+) ± ([\d.e-]+), effective (−?[\d.e-]+) ± ([\d.e-]+)\.", dom
    )
    assert said is not None
    standard, off, effective, off_effective = (
        float(number.replace("−", "-")) for number in said.groups()
    )
    layer = explanation.layers[3]
    # two digits are written
    assert standard == pytest.approx(layer.standard[place, 0, 1].item(), abs=off + 0.05 * standard)
    assert effective == pytest.approx(
        layer.effective[place, 0, 1].item(), abs=off_effective + 0.05 * abs(effective)
    )


@pytest.mark.slow
def test_keys_and_clicks_move_about(tiny: Pretrained, tmp_path: Path) -> None:
    dom = opened(with_script(why_html(explained(tiny, **PRUNED)), MOVES), tmp_path)
    assert 'data-shown="1/mean"' in dom
    assert re.search(r"layer=1&amp;head=mean&amp;step=2&amp;query=2&amp;key=3", dom)
    assert 'class="unsigned" id="shaded"' in dom
    assert "layer 2 of 4 sees" in dom
    assert "by rollout, number" in dom  # what is said of a word in focus


MOVES = """
(async () => {
  const wait = () => new Promise((done) => setTimeout(done, 50));
  const shows = async (view) => { // unpacking a map takes as long as the machine is busy
    while (!new RegExp(view).test(document.documentElement.dataset.shown)) await wait();
  };
  const press = (on, key, more) =>
    on.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, ...more }));
  const map = document.getElementById("standard"), step = document.getElementById("step");
  await shows("/mean$");
  for (const key of ["ArrowDown", "ArrowRight", "ArrowRight", "+", "-"]) press(map, key);
  document.querySelector('input[value="rollout"]').click();
  step.value = 2;
  step.dispatchEvent(new Event("input"));
  document.querySelector('#thumbs [data-layer="2"][data-head="mean"]').click();
  await shows("^2/");
  press(map, "ArrowUp", { shiftKey: true });
  press(document.querySelector("#text .word"), "ArrowRight");
  await shows("^1/");
  document.title = location.hash;
})();
"""


def with_script(page: str, script: str) -> str:
    """The page with another script at its end, which its policy is told about."""
    allowed = f"script-src 'sha256-{b64encode(sha256(script.encode()).digest()).decode()}' "
    return page.replace("script-src ", allowed, 1).replace(
        "</body>", f"<script>{script}</script></body>"
    )


@pytest.mark.slow
def test_a_head_that_is_gone_gives_way_to_the_mean(tiny: Pretrained, tmp_path: Path) -> None:
    explanation = explained(tiny, **PRUNED)
    gone = (set(explanation.layers[0].heads) - set(explanation.layers[3].heads)).pop()
    assert 'data-shown="4/mean"' in opened(
        why_html(explanation), tmp_path, f"#layer=4&head={gone + 1}&method=nonsense"
    )


@pytest.mark.slow
def test_two_maps_that_are_the_same_are_drawn_once(tiny: Pretrained, tmp_path: Path) -> None:
    dom = opened(why_html(without_null_space(explained(tiny))), tmp_path, "#query=1&key=2")
    assert re.search(r'<figure hidden="">.*id="effective"', dom)
    assert "standard and effective attention are the same, so one map is shown" in dom
    assert re.search(r"looks at .*: standard [\d.]+ ± [\d.e-]+\.</p>", dom)
    assert re.search(r'id="thumb-kinds" hidden=""', dom)
