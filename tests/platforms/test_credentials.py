"""Keys: found where the vendors' tools keep them, in their order; never shown, never written in clear."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tui.model.account import AccountSpec
from tui.model.failure import Failure
from tui.model.instance import Instance
from tui.platforms import vault, vendors
from tui.platforms.control import ControlPlane
from tui.platforms.credentials import PLACES, Credential, Finder, Missing, keep
from tui.platforms.vault import Keyring, _in_clear

KEY = "sk-0123456789-abcdef"


class Memory:
    """A keyring in memory."""

    def __init__(self, **kept: str) -> None:
        self.kept = dict(kept)
        self.asked: list[str] = []

    def read(self, name: str) -> str | None:
        self.asked.append(name)
        return self.kept.get(name)

    def write(self, name: str, secret: str) -> None:
        self.kept[name] = secret


def jwt(audience: str) -> str:
    claims = base64.urlsafe_b64encode(json.dumps({"aud": audience}).encode()).decode().rstrip("=")
    return f"eyJhbGciOiJIUzI1NiJ9.{claims}.c2lnbmF0dXJl"


FILES = [
    ("runpod", ".runpod/config.toml", f'apikey = "{KEY}"\napiurl = "https://x"\n'),
    ("runpod", ".runpod/config.toml", f'APIKEY = "{KEY}"\n'),
    ("runpod", ".runpod/config.toml", f'[default]\napi_key = "{KEY}"\n'),
    ("runpod", ".runpod.yaml", f"apiKey: {KEY}\napiUrl: https://x\n"),
    ("vastai", ".config/vastai/vast_api_key", f"{KEY}\n"),
    ("vastai", ".vast_api_key", KEY),
    ("lambda", ".lambda_cloud/lambda_keys", f"api_key = {KEY}\n"),
    ("paperspace", ".paperspace/credentials.toml", f'version = 1\n[keys]\nteam1 = "{KEY}"\n'),
    ("paperspace", ".paperspace/config.json", json.dumps({"apiKey": KEY})),
    ("autodl", ".config/autodl-cli/config.json", json.dumps({"token": KEY})),
    ("autodl", ".autodl-cli/config.toml", f'token = "{KEY}"\n'),
]


def put(home: Path, name: str, text: str, mode: int = 0o600) -> Path:
    path = home / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
    return path


@pytest.mark.parametrize(("platform", "name", "text"), FILES)
def test_a_key_is_found_where_the_vendors_tool_keeps_it(
    tmp_path: Path, platform: str, name: str, text: str
) -> None:
    put(tmp_path, name, text)
    found = Finder({}, tmp_path).find(platform)
    assert isinstance(found, Credential)
    assert found.secret.reveal() == KEY
    assert name.rpartition("/")[2] in found.source
    assert found.warnings == ()


@pytest.mark.parametrize(("platform", "name", "text"), FILES)
def test_a_file_that_others_may_read_is_used_and_warned_of(
    tmp_path: Path, platform: str, name: str, text: str
) -> None:
    put(tmp_path, name, text, 0o644)
    found = Finder({}, tmp_path).find(platform)
    assert isinstance(found, Credential)
    (warning,) = found.warnings
    assert "chmod 600" in warning.do
    assert KEY not in warning.line


@pytest.mark.parametrize("platform", PLACES)
def test_the_environment_wins_over_files_and_those_over_the_keyring(tmp_path: Path, platform: str) -> None:
    variable = PLACES[platform].variables[0]
    vault = Memory(**{platform: "from-the-keyring"})
    for _, name, text in [one for one in FILES if one[0] == platform]:
        put(tmp_path, name, text)
    both = Finder({variable: "from-the-environment"}, tmp_path, vault).find(platform)
    file = Finder({}, tmp_path, vault).find(platform)
    assert isinstance(both, Credential)
    assert isinstance(file, Credential)
    assert both.secret.reveal() == "from-the-environment"
    assert file.secret.reveal() == KEY
    assert vault.asked == []
    (tmp_path / "empty").mkdir()
    last = Finder({}, tmp_path / "empty", vault).find(platform)
    assert isinstance(last, Credential)
    assert (last.secret.reveal(), last.source) == ("from-the-keyring", "the keyring")


def test_xdg_config_home_is_honoured(tmp_path: Path) -> None:
    put(tmp_path, "elsewhere/vastai/vast_api_key", KEY)
    found = Finder({"XDG_CONFIG_HOME": str(tmp_path / "elsewhere")}, tmp_path / "home").find("vastai")
    assert isinstance(found, Credential)


def test_of_two_teams_the_current_one_is_taken_and_without_one_none(tmp_path: Path) -> None:
    put(tmp_path, ".paperspace/credentials.toml", f'[keys]\na = "aaaa-aaaa-aaaa"\nb = "{KEY}"\n')
    assert isinstance(Finder({}, tmp_path).find("paperspace"), Missing)
    put(tmp_path, ".paperspace/config.toml", 'team = "b"\n')
    found = Finder({}, tmp_path).find("paperspace")
    assert isinstance(found, Credential)
    assert found.secret.reveal() == KEY


def test_a_browsers_login_is_no_developer_token(tmp_path: Path) -> None:
    """Some tools keep AutoDL's web login under the developer token's variable."""
    assert isinstance(Finder({"AUTODL_TOKEN": jwt("web")}, tmp_path).find("autodl"), Missing)
    found = Finder({"AUTODL_TOKEN": jwt("develop_api")}, tmp_path).find("autodl")
    assert isinstance(found, Credential)
    put(tmp_path, ".config/autodl-cli/config.json", json.dumps({"token": jwt("web")}))
    missing = Finder({}, tmp_path).find("autodl")
    assert isinstance(missing, Missing)
    assert "browser's login" in missing.warnings[0].what


@pytest.mark.parametrize("text", ["", "not toml [", "apikey = 3", 'apikey = ""', "\x00\x01", "[" * 50_000])
def test_a_file_without_a_key_is_passed_over(tmp_path: Path, text: str) -> None:
    put(tmp_path, ".runpod/config.toml", text)
    missing = Finder({}, tmp_path).find("runpod")
    assert isinstance(missing, Missing)
    assert missing.warnings


def test_a_pipe_or_a_folder_in_place_of_the_file_holds_nothing_up(tmp_path: Path) -> None:
    (tmp_path / ".runpod").mkdir()
    os.mkfifo(tmp_path / ".runpod/config.toml")
    (tmp_path / ".vast_api_key").mkdir()
    assert isinstance(Finder({}, tmp_path).find("runpod"), Missing)
    assert isinstance(Finder({}, tmp_path).find("vastai"), Missing)


def test_an_account_with_a_variable_of_its_own_looks_nowhere_else(tmp_path: Path) -> None:
    put(tmp_path, ".vast_api_key", KEY)
    finder = Finder({"VAST_API_KEY": KEY}, tmp_path, Memory(work=KEY))
    missing = finder.find("vastai", name="work", variable="VAST_WORK")
    assert isinstance(missing, Missing)
    assert "VAST_WORK" in missing.why


def test_nothing_shows_a_key(tmp_path: Path) -> None:
    found = Finder({"RUNPOD_API_KEY": KEY}, tmp_path).find("runpod")
    assert KEY not in repr(found)
    assert KEY not in f"{found}"


# --- keeping ------------------------------------------------------------------------------------------------


def test_a_typed_key_is_kept_in_the_keyring_and_found_there(tmp_path: Path) -> None:
    vault = Memory()
    keep("runpod", f"  {KEY}\n", vault, name="work")
    assert vault.kept == {"work": KEY}
    found = Finder({}, tmp_path, vault).find("runpod", name="work")
    assert isinstance(found, Credential)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("typed", ["", "short", "two words of it", "ключключключ", "a\nb" * 5])
def test_what_is_no_key_is_refused_and_not_kept(typed: str) -> None:
    vault = Memory()
    with pytest.raises(Failure) as caught:
        keep("runpod", typed, vault)
    assert vault.kept == {}
    assert not typed or typed not in caught.value.line


def test_a_web_login_is_not_kept_as_a_token() -> None:
    with pytest.raises(Failure, match="browser"):
        keep("autodl", jwt("web"), Memory())


def test_a_keyring_that_writes_in_clear_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    import keyring

    class PlaintextKeyring:
        pass

    written: list[Any] = []
    monkeypatch.setattr(keyring, "get_keyring", PlaintextKeyring)
    monkeypatch.setattr(keyring, "set_password", lambda *words: written.append(words))
    with pytest.raises(Failure, match="clear text") as caught:
        Keyring().write("runpod", KEY)
    assert written == []
    assert KEY not in caught.value.line
    assert _in_clear(SimpleNamespace(backends=[PlaintextKeyring()]))
    assert not _in_clear(SimpleNamespace(backends=[]))


def test_a_broken_keyring_is_a_missing_key_and_not_a_crash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import keyring
    from keyring.errors import NoKeyringError

    def broken(*words: str) -> str:
        raise NoKeyringError

    monkeypatch.setattr(keyring, "get_password", broken)
    assert isinstance(Finder({}, tmp_path, Keyring()).find("runpod"), Missing)


HANGS = """
import sys, time
from keyring.backend import KeyringBackend
class Keyring(KeyringBackend):
    priority = 1
    def get_password(self, service, name):
        sys.stdout.write("asked\\n"); sys.stdout.flush()
        time.sleep(600)
    def set_password(self, service, name, secret):
        time.sleep(600)
"""

ASKS = """
from pathlib import Path
from tui.platforms import configured, credentials, vault
from tui.model.failure import Failure
from tui.model.instance import Instance
vault.READ_S = vault.WRITE_S = 0.3
home = Path("/nowhere")
found = configured.configured((), [Instance("a", "runpod", None)], environ={}, home=home)
print([spec.name for spec in found])
print(credentials.Finder({}, home, vault.Keyring()).find("runpod").why)
try:
    credentials.keep("runpod", "sk-0123456789-abcdef", vault.Keyring())
except Failure as failure:
    print(failure.code)
"""


def test_a_keyring_that_never_answers_holds_nothing_up_and_is_asked_once(tmp_path: Path) -> None:
    (tmp_path / "hangs.py").write_text(HANGS)
    root = Path(vendors.__file__).parents[2]
    environ = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "PYTHONPATH": f"{tmp_path}:{root}",
        "PYTHON_KEYRING_BACKEND": "hangs.Keyring",
    }
    done = subprocess.run([sys.executable, "-c", ASKS], env=environ, capture_output=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, b"")
    rows = done.stdout.decode().splitlines()
    assert rows.count("asked") == 1
    told = [row for row in rows if row != "asked"]
    assert told[0] == "['runpod']"  # it is asked for, so that why it can't be is shown
    assert told[1].startswith("has no key that can be had: The keyring still does not answer.")
    assert told[1].endswith("environment variable: RUNPOD_API_KEY")
    assert told[2] == "keyring-silent"


def test_a_keyring_that_was_unlocked_meanwhile_is_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import keyring

    unlocked = threading.Event()

    def locked(*words: str) -> str:
        unlocked.wait(30)
        return KEY

    monkeypatch.setattr(keyring, "get_password", locked)
    monkeypatch.setattr(vault, "READ_S", 0.05)
    missing = Finder({}, tmp_path, Keyring()).find("runpod")
    assert isinstance(missing, Missing)
    assert missing.silent
    unlocked.set()
    for thread in list(vault._stuck):
        thread.join(30)
    monkeypatch.setattr(vault, "READ_S", 30.0)
    assert isinstance(Finder({}, tmp_path, Keyring()).find("runpod"), Credential)


# --- which account a machine is asked of --------------------------------------------------------------------


def box(platform: str = "runpod", **values: Any) -> Instance:
    return Instance("b", platform, None, **({"instance_id": "x1"} | values))


def test_a_machine_is_asked_of_its_account(tmp_path: Path) -> None:
    finder = Finder({"RUNPOD_API_KEY": KEY, "WORK_KEY": "work-key-work-key"}, tmp_path)
    work = AccountSpec("work", "runpod", key_env="WORK_KEY")
    home = AccountSpec("home", "runpod", key_env="RUNPOD_API_KEY")
    of_work = vendors.control(box(asked_as="work"), (work, home), finder)
    of_home = vendors.control(box(asked_as="home"), (work, home), finder)
    assert not isinstance(of_work, str)
    assert not isinstance(of_home, str)
    assert repr(of_work) != repr(of_home)
    doubt = vendors.control(box(), (work, home), finder)
    assert isinstance(doubt, str)
    assert "work, home" in doubt


@pytest.mark.parametrize(
    ("instance", "word"),
    [
        (box("ssh"), "can't ask"),
        (box(instance_id=None), "instance_id"),
        (box("autodl", instance_id="abc123-def456"), "ordinary instance"),
        (box("lambda"), "no key"),
    ],
)
def test_why_nobody_can_be_asked_is_said(tmp_path: Path, instance: Instance, word: str) -> None:
    said = vendors.control(instance, (), Finder({"AUTODL_TOKEN": KEY}, tmp_path))
    assert isinstance(said, str)
    assert word in said


def test_a_pro_instance_of_autodl_can_be_asked_about(tmp_path: Path) -> None:
    found: ControlPlane | str = vendors.control(
        box("autodl", instance_id="pro-ab12"), (), Finder({"AUTODL_TOKEN": KEY}, tmp_path)
    )
    assert not isinstance(found, str)


def test_a_key_that_was_found_goes_to_no_other_host(tmp_path: Path) -> None:
    spec = AccountSpec("x", "runpod", url="https://api.runpod.io.evil.example")
    missing = vendors.account(spec, Finder({"RUNPOD_API_KEY": KEY}, tmp_path))
    assert isinstance(missing, Missing)
    assert "key_env" in missing.why
