"""Identities of boxes: recorded whole, bound to the name, never lost silently."""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import threading
from pathlib import Path

import pytest

from tests.real import need
from tui.box.host_key import HostKeyCheck, algorithms
from tui.box.known_hosts import KnownKeys, known_keys
from tui.box.trust import FIRST_USE, FLEET_FILE, KNOWN_HOSTS, OPERATOR, Pin, TrustStore, fingerprint_of
from tui.model.failure import Failure
from tui.model.instance import LinkState

A = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f"
B = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIB8eHRwbGhkYFxYVFBMSERAPDg0MCwoJCAcGBQQDAgEA"


@pytest.fixture
def store(tmp_path: Path) -> TrustStore:
    return TrustStore(tmp_path / "trust", tmp_path / "receipts")


@pytest.mark.real
def test_fingerprints_are_those_of_ssh_keygen(tmp_path: Path) -> None:
    keygen = need("ssh-keygen")["ssh-keygen"]
    for kind in ("ed25519", "ecdsa"):
        key = tmp_path / kind
        subprocess.run([keygen, "-q", "-t", kind, "-N", "", "-f", str(key)], check=True)
        listed = subprocess.run(
            [keygen, "-lf", f"{key}.pub"], capture_output=True, text=True, check=True
        ).stdout
        assert fingerprint_of(Path(f"{key}.pub").read_text()) == listed.split()[1]


@pytest.mark.parametrize("text", ("", "ssh-ed25519", "ssh-ed25519 !!!", "ssh-rsa " + A.split()[1]))
def test_what_is_no_key_has_no_fingerprint(text: str) -> None:
    with pytest.raises(ValueError, match="key"):
        fingerprint_of(text)


def test_a_key_is_recorded_with_a_receipt(store: TrustStore, tmp_path: Path) -> None:
    assert store.pinned("a/../b 1") is None
    pin = store.record("a/../b 1", A + " comment", FIRST_USE, 1000.5, endpoint="root@h:22", note="n")
    assert store.pinned("a/../b 1") == pin
    assert TrustStore(tmp_path / "trust", tmp_path / "receipts").pinned("a/../b 1") == pin
    (receipt,) = (tmp_path / "receipts").iterdir()
    assert json.loads(receipt.read_text()) == {
        "kind": "host key accepted",
        "name": "a/../b 1",
        "fingerprint": fingerprint_of(A),
        "key_type": "ssh-ed25519",
        "endpoint": "root@h:22",
        "when": 1000.5,
        "how": FIRST_USE,
        "note": "n",
    }
    (record,) = (tmp_path / "trust").iterdir()
    assert record.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("damage", ("", "{", "[]", '{"name": "box"}', None))
def test_a_damaged_record_is_not_a_first_meeting(store: TrustStore, damage: str | None) -> None:
    store.record("box", A, FIRST_USE, 1.0)
    path = store.directory / "box.json"
    path.write_text(path.read_text().replace("ssh-ed25519 ", "ssh-rsa ") if damage is None else damage)
    with pytest.raises(Failure, match="damaged"):
        store.pinned("box")


def test_a_pipe_in_place_of_a_record_is_damage_and_is_never_waited_for(store: TrustStore) -> None:
    store.directory.mkdir()
    os.mkfifo(store.directory / "box.json")
    with pytest.raises(Failure, match="no regular file"):
        store.pinned("box")


def test_nothing_is_trusted_that_could_not_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    store = TrustStore(tmp_path / "trust", tmp_path / "file" / "receipts")
    with pytest.raises(Failure, match="not trusted"):
        store.record("box", A, FIRST_USE, 1.0)
    assert store.pinned("box") is None


def test_renaming_keeps_the_identity_and_forgetting_drops_it(store: TrustStore) -> None:
    store.record("old", A, OPERATOR, 1.0)
    store.record("other", B, OPERATOR, 1.0)
    store.rename("old", "new")
    pin = store.pinned("new")
    assert pin is not None
    assert (pin.public_key, pin.how, store.pinned("old")) == (A, OPERATOR, None)
    with pytest.raises(Failure, match="already"):
        store.rename("new", "other")
    assert store.forget("new")
    assert not store.forget("new")
    assert store.pinned("new") is None


def test_only_an_offered_key_can_be_accepted(store: TrustStore) -> None:
    store.record("box", A, FIRST_USE, 1.0)
    with pytest.raises(Failure, match="has not shown"):
        store.accept("box", fingerprint_of(B), 2.0)
    store.offer("box", B, "root@h:22")
    with pytest.raises(Failure, match="has not shown"):
        store.accept("box", fingerprint_of(A), 2.0)
    assert store.accept("box", fingerprint_of(B), 2.0).how == OPERATOR
    pin = store.pinned("box")
    assert pin is not None
    assert pin.public_key == B


def pin_of(key: str, how: str = FIRST_USE) -> Pin:
    return Pin("box", key, fingerprint_of(key), how, "", 0.0)


def check(pin: Pin | None = None, wanted: str | None = None, known: KnownKeys | None = None) -> HostKeyCheck:
    return HostKeyCheck("box", "root@h:22", pin=pin, wanted=wanted, known=known or KnownKeys())


def test_the_first_meeting() -> None:
    fresh = check()
    assert fresh.accepts(A)
    assert (fresh.how, fresh.note) == (FIRST_USE, "")
    listed = check(known=KnownKeys(frozenset({fingerprint_of(A)})))
    assert listed.accepts(A)
    assert listed.how == KNOWN_HOSTS
    other = check(known=KnownKeys(frozenset({fingerprint_of(B)})))
    assert other.accepts(A)  # addresses are reused by other boxes: known_hosts alone proves no change
    assert other.how == FIRST_USE
    assert fingerprint_of(B) in other.note


def test_a_revoked_key_is_never_trusted() -> None:
    revoked = check(known=KnownKeys(revoked=frozenset({fingerprint_of(A)})))
    assert not revoked.accepts(A)
    assert revoked.failure is not None
    assert revoked.failure.state is LinkState.IDENTITY


def test_a_changed_key_stops_with_both_fingerprints() -> None:
    changed = check(pin=pin_of(A))
    assert changed.pinned_key == A
    assert not changed.accepts(B)
    failure = changed.failure
    assert failure is not None
    assert (failure.state, failure.retry) == (LinkState.IDENTITY, False)
    assert (failure.offered, failure.pinned) == (fingerprint_of(B), fingerprint_of(A))
    assert fingerprint_of(A) in failure.line
    assert fingerprint_of(B) in failure.line
    assert failure.do


def test_the_fleet_file_wins_over_the_record_but_not_over_the_operator() -> None:
    assert check(wanted=fingerprint_of(A)).accepts(A)
    assert not check(wanted=fingerprint_of(A)).accepts(B)
    edited = check(pin=pin_of(A), wanted=fingerprint_of(B))
    assert edited.pinned_key is None
    assert edited.accepts(B)
    assert edited.how == FLEET_FILE
    compared = check(pin=pin_of(A, OPERATOR), wanted=fingerprint_of(B))
    assert compared.pinned_key == A
    assert not compared.accepts(B)


def test_all_key_types_are_offered_and_the_pinned_one_first() -> None:
    assert algorithms(["ssh-rsa"])[0] == "rsa-sha2-512"
    assert set(algorithms(["ssh-rsa"])) == set(algorithms()) == set(algorithms(["ecdsa-sha2-nistp384", "?"]))
    assert algorithms(["ecdsa-sha2-nistp384"])[0].startswith("ecdsa")


def test_the_check_is_synchronous() -> None:
    """T6: asyncssh does not await it, and a coroutine is true: any key would be accepted."""
    from tui.box.client import BoxClient

    assert not inspect.iscoroutinefunction(BoxClient.validate_host_public_key)
    assert not inspect.iscoroutinefunction(HostKeyCheck.accepts)


@pytest.mark.real
def test_known_hosts_are_read_as_ssh_reads_them(tmp_path: Path) -> None:
    keygen = need("ssh-keygen")["ssh-keygen"]
    hashed = tmp_path / "hashed"
    hashed.write_text(f"[h.example]:2222 {A}\n")
    subprocess.run([keygen, "-q", "-H", "-f", str(hashed)], check=True, capture_output=True)
    plain = tmp_path / "plain"
    plain.write_text(f"# comment\nbroken\n@revoked * {B}\n|1|bad|hash {A}\n*.example ssh-ed25519 xx\n")
    found = known_keys([tmp_path / "missing", hashed, plain], "h.example", 2222)
    assert found.fingerprints == {fingerprint_of(A)}
    assert found.revoked == {fingerprint_of(B)}
    assert found.types == ("ssh-ed25519",)
    assert known_keys([hashed], "h.example", 22).fingerprints == frozenset()


def test_two_that_meet_a_box_in_one_moment_both_record_it(tmp_path: Path) -> None:
    trust = TrustStore(tmp_path / "trust", tmp_path / "receipts")
    failed: list[Exception] = []

    def meet() -> None:
        try:
            for _ in range(40):
                trust.record("box", A, FIRST_USE, 1.0)
        except Exception as fault:
            failed.append(fault)

    threads = [threading.Thread(target=meet) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert failed == []
    assert trust.pinned("box") is not None
    assert [path.name for path in (tmp_path / "trust").iterdir()] == ["box.json"]
