"""`talekeeper.toml`: found, read, refused with a reason; and what it makes."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.table.cast.asks import Plain

import talekeeper as tk
from talekeeper.table.cast import Config, Patience, load
from talekeeper.table.cast.config import Voice
from talekeeper.table.cast.hosted import Hosted
from talekeeper.table.cast.local import Local

pytestmark = pytest.mark.usefixtures("here")
FULL = """
[models]
default = "openai:gpt-5-mini"
dm = { model = "openai:big", max_tokens = 300, temperature = 0.9 }
keeper = { model = "local:smollm2", context = 2048, threads = 1 }
pc = "builtin"
summarizer = { model = "local:smollm2", max_tokens = 160 }
base_url = "http://localhost:8080/v1"

[timeouts]
silence = 20
attempts = 3
"""


def test_without_a_file_the_built_in_storyteller_has_every_role() -> None:
    config = load()
    assert config == Config()
    assert all(config.voice(role) is None for role in ("dm", "pc", "keeper", "narrator", "epilogue", "summarizer"))
    assert config.summarizer() is None
    assert config.brain(Plain()).models == {}


def test_the_file_in_the_working_directory_is_found_and_read(here: Path) -> None:
    (here / "talekeeper.toml").write_text(FULL)
    config = load()
    assert config.path == here / "talekeeper.toml"
    url = "http://localhost:8080/v1"
    assert config.voice("dm") == Voice("openai:big", url, None, 300, (("temperature", 0.9),))
    assert config.voice("narrator") == Voice("openai:gpt-5-mini", url)
    assert config.voice("pc") is None
    assert config.patience == Patience(silence=20.0, attempts=3)


def test_another_file_can_be_named(here: Path) -> None:
    (here / "other.toml").write_text('[models]\ndm = "ollama:llama3.2"\n')
    config = load(here / "other.toml")
    assert config.voice("dm") == Voice("ollama:llama3.2")
    assert config.voice("pc") is None


def test_it_makes_a_cast(here: Path, smollm2: Path) -> None:
    (here / "talekeeper.toml").write_text(FULL)
    brain = load().brain(Plain())
    assert set(brain.models) == {"dm", "keeper", "narrator", "epilogue"}
    keeper = brain.models["keeper"]
    assert isinstance(keeper, Local)
    assert (keeper.path, keeper.context, keeper.threads) == (smollm2, 2048, 1)
    dm = brain.models["dm"]
    assert isinstance(dm, Hosted)
    assert dm.settings == {"temperature": 0.9}
    assert brain.models["narrator"] is brain.models["epilogue"]
    assert (brain.lengths["dm"], brain.patience.attempts) == (300, 3)
    assert load().summarizer() is not None


def test_a_model_from_the_command_line_is_for_all_who_are_not_named(here: Path) -> None:
    (here / "talekeeper.toml").write_text(FULL)
    config = load().with_model("ollama:llama3.2")
    assert config.voice("narrator") == Voice("ollama:llama3.2")
    assert config.voice("pc") is None
    dm = config.voice("dm")
    assert dm is not None
    assert dm.model == "openai:big"


def test_what_is_missing_is_said_when_the_cast_is_made(here: Path) -> None:
    (here / "talekeeper.toml").write_text('[models]\ndefault = "openai:gpt-5-mini"\n')
    with pytest.raises(tk.ModelUnavailable, match="set OPENAI_API_KEY"):
        load().brain(Plain())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[models\n", "talekeeper.toml cannot be read: .*line 1"),
        ("[modles]\n", "unknown section 'modles'; did you mean 'models'?"),
        ('[models]\nbard = "local:x"\n', "unknown role or setting 'bard' in \\[models\\]; there are: dm, pc"),
        ('[models]\nkeper = "local:x"\n', "did you mean 'keeper'?"),
        ("[models]\ndm = 5\n", 'dm must be a model such as "openai:gpt-5-mini", or { model'),
        ("[models]\ndm = { max_tokens = 5 }\n", "dm must be a model such as"),
        ('[models]\ndm = ""\n', "dm is blank"),
        ('[models]\ndm = { model = "local:x", max_tokens = 5 }\n', "dm.max_tokens must be at least 16"),
        ('[models]\ndm = { model = "local:x", stop = ["a"] }\n', "dm.stop must be text, a number"),
        ("models = 5\n", r"\[models\] must be a table"),
        ("[timeouts]\nsilence = -1\n", "silence must be a number of seconds"),
        ('[timeouts]\nwhole = "long"\n', "whole must be a number of seconds"),
        ("[timeouts]\nattempts = 0\n", "attempts must be at least 1"),
        ("[timeouts]\nhurry = 1\n", r"unknown setting 'hurry' in \[timeouts\]; there are: silence, whole, attempts, pause"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_the_files_name(here: Path, text: str, message: str) -> None:
    (here / "talekeeper.toml").write_text(text)
    with pytest.raises(tk.InvalidInput, match=f"talekeeper.toml.*{message}" if not message.startswith("talekeeper") else message):
        load()


def test_a_file_that_was_named_must_be_there(here: Path) -> None:
    with pytest.raises(tk.InvalidInput, match="no configuration at '.*nowhere.toml'"):
        load(here / "nowhere.toml")


def test_a_setting_that_a_local_model_does_not_have_is_named(here: Path, smollm2: Path) -> None:
    (here / "talekeeper.toml").write_text('[models]\ndm = { model = "local:smollm2", top_p = 0.5 }\n')
    with pytest.raises(tk.InvalidInput, match="a local model has no setting 'top_p': there are context, threads and temperature"):
        load().brain(Plain())
