"""Parts of speech: what is known of single cases, and the floor on the gold set."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import gold
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litotes.core.errors import UserError
from litotes.explanation.analyses import parts_of_speech
from litotes.explanation.analyses.parts_of_speech import PARTS_OF_SPEECH, penn_tags, tag

SHORT = {"N": "noun", "P": "pronoun", "V": "verb", ".": "punctuation", "O": "other"}


def letters(text: str) -> str:
    return "".join(
        {part: letter for letter, part in SHORT.items()}[part] for part in tag(text.split())
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("they run every morning", "PVON"),
        ("a run in the park", "ONOON"),
        ("I want to book a table", "PVOVON"),
        ("the book was good", "ONVO"),
        ("she can swim", "PVV"),
        ("open the can please", "VONO"),
        ("this is my phone", "PVPN"),
        ("this phone is mine", "ONVP"),
        ("which phone did you buy ?", "ONVPV."),
        ("a phone which works", "ONPV"),
        ("I know that she left", "PVOPV"),
        ("there is nothing here", "PVPO"),
        ("someone saw us", "PVP"),
    ],
)
def test_words_are_told_apart_by_what_stands_around_them(text: str, expected: str) -> None:
    assert letters(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I don ' t know", "PV.OV"),  # BERT
        ("I don ’ t know", "PV.OV"),
        ("I don 't know", "PVOV"),  # RoBERTa
        ("I don't know", "PVV"),  # cut at blanks
        ("i dont know", "PVV"),
        ("it ' s late", "P.VO"),
        ("Anna ' s phone", "N.ON"),
        ("let ' s go", "V.PV"),
        ("we ' ll see", "P.VV"),
        ("im gonna cry", "PVV"),
        ("Great! I love it.", "OPVP"),
    ],
)
def test_contractions_may_come_in_any_cut(text: str, expected: str) -> None:
    assert letters(text) == expected


def test_punctuation_is_told_by_its_signs() -> None:
    assert set(
        tag(["“", "”", "…", "!!!", "?", ",", ".", "-", "—", "'", "’", "(", ")", "...", "`"])
    ) == {"punctuation"}
    assert set(tag(["😀", "❤️", "5", "20,000", "$", "%", "&", "#", "+", "<3", "100%"])) == {"other"}


@pytest.mark.parametrize(
    "text",
    [
        "https://t.co/Ab3 @someone #lovely a@b.org",
        "https : / / t . co / Ab3",
        "# lovely",
        "@ someone",
        "www . example . org / a-b",
    ],
)
def test_addresses_hashtags_and_mentions_are_other(text: str) -> None:
    assert set(tag(text.split())) == {"other"}


def test_an_address_ends_where_two_words_meet() -> None:
    assert letters("see https : / / t . co / x they left") == "VOOOOOOOOOPV"
    assert letters("see https : / / t . co . They left .") == "VOOOOOOO.PV."
    assert letters("thanks @someone : I love it")[1:] == "O.PVP"


def test_shouting_is_heard_as_speech() -> None:
    assert letters("I HATE this phone") == "PVON"
    assert letters("GIVE IT TO US NOW") == "VPOPO"
    assert letters("he lives in the US") == "PVOON"


def test_there_are_as_many_parts_as_words_and_always_the_same() -> None:
    assert tag([]) == []
    assert tag(["word"] * 700) == tag(["word"] * 700)
    assert len(tag(["word"] * 700)) == 700


@given(
    st.lists(
        st.one_of(
            st.text(max_size=8),
            st.sampled_from(
                ["don", "'", "’", "t", "'s", "#", "@", "https", ":", "/", ".", "US", "😀"]
            ),
        )
    )
)
def test_any_words_have_parts(words: list[str]) -> None:
    parts = tag(words)
    assert len(parts) == len(words)
    assert set(parts) <= set(PARTS_OF_SPEECH)


RIGHT, RIGHT_SMALL = 835, 832  # words; docs/results/effective-attention.md

FLOOR = {"noun": 0.92, "pronoun": 0.96, "verb": 0.94, "punctuation": 1.0, "other": 0.95}


@pytest.mark.parametrize("small", [False, True])
def test_the_gold_set_is_read_well(small: bool) -> None:
    counts = gold.confusion(small=small)
    n_right = sum(n for (wanted, found), n in counts.items() if wanted == found)
    assert counts.total() == 862
    assert n_right == (RIGHT_SMALL if small else RIGHT)
    for part in PARTS_OF_SPEECH:
        wrong = sum(
            n
            for (wanted, found), n in counts.items()
            if wanted != found and part in (wanted, found)
        )
        assert 2 * counts[part, part] / (2 * counts[part, part] + wrong) >= FLOOR[part], part  # F1


def test_tags_are_those_of_the_penn_treebank() -> None:
    """As a field of our own had them, which was compared with CRFsuite's."""
    assert penn_tags(["It", "is", "n't", "the", "best", "phone", "."]) == (
        ["PRP", "VBZ", "RB", "DT", "JJS", "NN", "."]
    )
    assert penn_tags(["blorf"]) == ["NN"]


@pytest.fixture
def unread() -> Iterator[None]:
    """The tagger is not loaded yet, nor kept."""
    parts_of_speech._random_field.cache_clear()
    yield
    parts_of_speech._random_field.cache_clear()


@pytest.mark.usefixtures("unread")
@pytest.mark.parametrize("missing", ["gruut_lang_en", "pycrfsuite"])
def test_without_a_package_a_sentence_says_what_to_install(
    missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        parts_of_speech, "find_spec", lambda name: None if name == missing else find_spec(name)
    )
    assert not parts_of_speech.is_installed()
    with pytest.raises(UserError, match=r"pip install 'litotes\[analysis\]'"):
        tag(["tea"])


@pytest.mark.usefixtures("unread")
def test_other_weights_than_those_measured_are_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "pos").mkdir()
    (tmp_path / "pos" / "model.crf").write_bytes(b"lCRF and more")
    monkeypatch.setattr(
        parts_of_speech,
        "find_spec",
        lambda name: SimpleNamespace(origin=str(tmp_path / "__init__.py")),
    )
    with pytest.raises(UserError, match=r"gruut-lang-en==2\.0\.1"):
        tag(["tea"])
