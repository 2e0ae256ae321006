"""Tokens: what a file may say, whom it lets in, and that it lets nobody in where it cannot be trusted."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from tests.server.conftest import GRANTS, TOKENS

import talekeeper as tk
from talekeeper.server import auth
from talekeeper.server.auth import Grant, TokenFile, add_to_file, as_toml, digest, new_token, read_tokens

PLAIN = "tk_" + "x" * 40
HASH = digest(PLAIN)


def write(path: Path, text: str, mode: int = 0o600) -> Path:
    path.write_text(text)
    path.chmod(mode)
    return path


def test_a_file_grants_what_it_says(tokens_file: Path) -> None:
    found = TokenFile(tokens_file)
    assert {name: found.find(token) for name, token in TOKENS.items()} == GRANTS
    assert (found.limits.rate, found.limits.burst, found.limits.body) == (10000.0, 10000, 1_000_000)
    for wrong in ("", "tk_", TOKENS["owner"][:-1], TOKENS["owner"] + "x", HASH):
        assert found.find(wrong) is None


def test_new_tokens_are_written_so_that_they_are_read_as_they_were(tmp_path: Path) -> None:
    path = tmp_path / "tokens.toml"
    made = {}
    for number, grant in enumerate([*GRANTS.values(), Grant('quo"te\\ \n\x7f', "te\tnant", seats=frozenset({"ro'gue", 'b"d'}))]):
        made[number] = (grant, new_token())
        add_to_file(path, *made[number])
    assert path.stat().st_mode & 0o777 == 0o600
    grants, _ = read_tokens(path)
    assert grants == {digest(token): grant for grant, token in made.values()}
    with pytest.raises(tk.InvalidInput, match="already"):
        add_to_file(path, GRANTS["owner"], new_token())
    assert not any(token in path.read_text() for _, token in made.values())
    assert as_toml(*made[0]).startswith("[[token]]\n")


def test_new_tokens_are_long_and_never_the_same() -> None:
    made = {new_token() for _ in range(100)}
    assert len(made) == 100
    assert all(len(token) >= 40 for token in made)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("token = 3", "tokens are written as"),
        ("[[tokens]]", "has no 'tokens'"),
        ("[[token]]\nhash = 'x'", "needs a name"),
        ("[[token]]\nname = 'a'\ntenant = 't'\ndm = true", "either a hash or a token"),
        (f"[[token]]\nname = 'a'\ntenant = 't'\ndm = true\nhash = '{HASH}'\ntoken = '{PLAIN}'", "either a hash or a token"),
        ("[[token]]\nname = 'a'\ntenant = 't'\ndm = true\nhash = 'md5:1'", "sha256: and 64"),
        (f"[[token]]\nname = 'a'\ntenant = 't'\ndm = true\nhash = '{HASH.upper()}'", "sha256: and 64"),
        ("[[token]]\nname = 'a'\ntenant = 't'\ndm = true\ntoken = 'short'", "at least 32"),
        (f"[[token]]\nname = 'a'\ndm = true\nhash = '{HASH}'", "needs a tenant"),
        (f"[[token]]\nname = 'a'\ntenant = 't'\nhash = '{HASH}'", "seats = .* or dm = true"),
        (f"[[token]]\nname = 'a'\ntenant = 't'\ndm = true\nseats = ['x']\nhash = '{HASH}'", "one of the two"),
        (f"[[token]]\nname = 'a'\ntenant = 't'\ndm = 'yes'\nhash = '{HASH}'", "true or false"),
        (f"[[token]]\nname = 'a'\ntenant = 't'\nseats = 'rogue'\nhash = '{HASH}'", "a list of strings"),
        (f"[[token]]\nname = 'a'\ntenant = 't'\nseats = ['']\nhash = '{HASH}'", "is blank"),
        (f"[[token]]\nname = 'a'\ntenant = 't'\nseats = [1]\nhash = '{HASH}'", "a list of strings"),
        (f"[[token]]\nname = 'a'\ntenant = 't'\ndm = true\nadmin = true\nhash = '{HASH}'", "has no 'admin'"),
        (f"[[token]]\nname = 'a'\ntenant = 't'\ndm = true\nhash = '{HASH}'\n" * 2, "two tokens"),
        ("[limits]\nrates = 1", "has no 'rates'"),
        ("[limits]\nrate = 0", "above 0"),
        ("[limits]\nburst = 1.5", "above 0"),
        ("[limits]\nrate = true", "above 0"),
        ("limits = 3", "as a table"),
        ("[[token", "is not TOML"),
    ],
)
def test_a_file_that_cannot_be_understood_says_why(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(tk.InvalidInput, match=message):
        read_tokens(write(tmp_path / "t.toml", text))


def test_plain_tokens_need_a_file_that_only_its_owner_can_read(tmp_path: Path) -> None:
    text = f"[[token]]\nname = 'a'\ntenant = 't'\ndm = true\ntoken = '{PLAIN}'\n"
    assert read_tokens(write(tmp_path / "t.toml", text))[0] == {HASH: Grant("a", "t", dm=True)}
    for mode in (0o640, 0o604, 0o610):
        with pytest.raises(tk.InvalidInput, match="chmod 600"):
            read_tokens(write(tmp_path / "t.toml", text, mode))


def test_no_file_that_others_may_write_to_is_trusted(tmp_path: Path) -> None:
    text = f"[[token]]\nname = 'a'\ntenant = 't'\ndm = true\nhash = '{HASH}'\n"
    assert read_tokens(write(tmp_path / "t.toml", text, 0o644))[0]
    for mode in (0o660, 0o602):
        with pytest.raises(tk.InvalidInput, match="chmod go-w"):
            read_tokens(write(tmp_path / "t.toml", text, mode))


def test_a_file_that_changes_is_read_again_and_a_broken_one_grants_nothing(tokens_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auth, "LOOK_AGAIN", 0.0)
    found, text = TokenFile(tokens_file), tokens_file.read_text()
    assert found.find(TOKENS["rogue"])

    def rewrite(text: str) -> None:
        tokens_file.write_text(text)
        os.utime(tokens_file, ns=(time.time_ns(), time.time_ns()))

    rewrite(text.replace('name = "rogue"', 'name = "rook"'))
    assert found.find(TOKENS["rogue"]) == Grant("rook", "acme", seats=frozenset({"rogue"}), stories=frozenset({"ana.ash-crown"}))
    rewrite(text.replace(digest(TOKENS["rogue"]), HASH))
    assert found.find(TOKENS["rogue"]) is None
    assert found.find(TOKENS["bard"])
    rewrite("[[token")
    assert not found.readable
    assert found.find(TOKENS["owner"]) is None
    tokens_file.unlink()
    assert not found.readable
    write(tokens_file, text)
    assert found.readable
    assert found.find(TOKENS["owner"])


@pytest.mark.parametrize(
    ("grant", "story", "opens"),
    [
        (Grant("a", "t", dm=True), "x.y", True),
        (Grant("a", "t", dm=True, stories=frozenset({"x.y"})), "x.y", True),
        (Grant("a", "t", dm=True, stories=frozenset({"x.y"})), "x.z", False),
        (Grant("a", "t", dm=True, stories=frozenset()), "x.y", False),
        (Grant("a", "t", seats=frozenset({"s"})), "x.y", True),
        (Grant("a", "t"), "x.y", False),
        (Grant("a", "", metrics=True), "x.y", False),
    ],
)
def test_a_grant_opens_the_stories_it_names_and_no_others(grant: Grant, story: str, opens: bool) -> None:
    assert grant.opens(story) is opens
