"""The doctor names what is wrong and what to change, and claims nothing it could not see."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tui.cli import main
from tui.fleet.paths import Paths
from tui.verbs.doctor import Check, clock_check, examine, key_checks, ssh_checks, terminal_checks, tmux_checks


def answers(**given: str | None):  # type: ignore[no-untyped-def]
    """A stand-in for starting programs: answers by the program's name, None when it is not there."""

    def run(*command: str) -> str | None:
        return given.get(command[0].replace("-", "_"))

    return run


def by_name(checks: list[Check]) -> dict[str, Check]:
    return {c.name: c for c in checks}


def test_a_dumb_terminal_is_told() -> None:
    found = by_name(list(terminal_checks({"TERM": "dumb"})))
    assert found["colours"].state == "change"
    assert "TERM=" in found["colours"].do


def test_missing_tmux_and_ssh_are_told() -> None:
    assert next(tmux_checks({}, answers())).state == "change"
    assert next(ssh_checks({}, answers())).state == "change"


def test_tmux_options_that_bite() -> None:
    def run(*command: str) -> str | None:
        return {"-V": "tmux 3.3a", "escape-time": "500", "set-clipboard": "off"}.get(command[-1])

    found = by_name(list(tmux_checks({"TMUX": "x"}, run)))
    assert found["tmux escape-time"].state == "change"
    assert found["tmux set-clipboard"].state == "change"
    assert found["tmux default-terminal"].state == "unknown"  # tmux did not say: nothing is claimed


def test_a_full_agent_and_a_dead_agent() -> None:
    six = " | ".join(f"256 SHA256:{n} a (ED25519)" for n in range(6))
    environment = {"SSH_AUTH_SOCK": "/x"}
    full = by_name(list(ssh_checks(environment, answers(ssh="OpenSSH hostname x", ssh_add=six))))
    assert full["ssh agent"].state == "change"
    dead = answers(ssh="OpenSSH hostname x", ssh_add="Could not open a connection to your agent.")
    assert by_name(list(ssh_checks(environment, dead)))["ssh agent"].state == "change"


def test_a_broken_ssh_config_is_quoted() -> None:
    broken = answers(ssh="/home/u/.ssh/config line 3: Bad configuration option: foo")
    assert "line 3" in by_name(list(ssh_checks({}, broken)))["ssh config"].found


def test_a_key_others_can_read(tmp_path: Path) -> None:
    key = tmp_path / "id_ed25519"
    key.write_text("x")
    key.chmod(0o644)
    (found,) = key_checks(tmp_path)
    assert (found.state, "chmod 600" in found.do) == ("change", True)
    key.chmod(0o600)
    assert next(key_checks(tmp_path)).state == "ok"


@pytest.mark.parametrize(
    ("answer", "state"), [("yes", "ok"), ("no", "change"), (None, "unknown"), ("?", "unknown")]
)
def test_the_clock_is_only_called_right_when_something_says_so(answer: str | None, state: str) -> None:
    assert clock_check(answers(timedatectl=answer)).state == state


def test_problems_of_the_fleet_file_come_with_their_line(tmp_path: Path) -> None:
    where = Paths(tmp_path / "config", tmp_path / "state")
    where.config.mkdir()
    where.fleet_file.write_text('[instances.a]\nplatform = "ssh"\nhost = "-oProxyCommand=x"\n')
    found = by_name(list(examine({"HOME": str(tmp_path)}, where, answers())))
    assert "fleet.toml:3" in found["fleet file"].found


def test_json_and_plain(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("RGT_HOME", str(tmp_path))
    code = main(["doctor", "--json"])
    checks = json.loads(capsys.readouterr().out)
    assert {"name", "state", "found", "do"} == set(checks[0])
    assert code == (1 if any(c["state"] == "change" for c in checks) else 0)
    main(["doctor", "--plain"])
    assert all(line.count("\t") == 3 for line in capsys.readouterr().out.splitlines())
