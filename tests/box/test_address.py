"""Pasted logins: every form people copy from a console, what is refused, and where passwords go (nowhere)."""

from __future__ import annotations

import json
import pickle
import re
import string
import traceback

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tui.box.address import Address, parse_address, platform_of, read_paste
from tui.box.parsers.login_text import Secret
from tui.model.failure import Exit, Failure
from tui.model.instance import Endpoint

HOST = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9._-]*[A-Za-z0-9_])?|[0-9A-Fa-f:.]+(?:%[A-Za-z0-9._-]+)?")
USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._+@#-]*")


def where(text: str) -> tuple[str, int | None, str | None]:
    found = parse_address(text)
    return found.host, found.port, found.user


@pytest.mark.parametrize(
    "text",
    [
        "ssh -p 34567 root@connect.west.example.com",
        "ssh root@connect.west.example.com -p 34567 -i ~/.ssh/id_ed25519 -L 8080:localhost:8080",
        "$ ssh -p34567 -l root connect.west.example.com",
        "me@laptop:~$ ssh -p 34567 root@connect.west.example.com",
        "C:\\Users\\me> ssh.exe -p 34567 root@connect.west.example.com",
        "`ssh -p 34567 root@connect.west.example.com`",
        'Run "ssh -p 34567 root@connect.west.example.com" to connect.',
        "“ssh -p 34567 root@connect.west.example.com”",
        "SSH command: ssh -p 34567 root@connect.west.example.com.",
        "ssh –p 34567 root@connect.west.example.com",
        "ｓｓｈ －ｐ ３４５６７ ｒｏｏｔ＠connect。west。example。com",
        "ssh\u00a0-p\u202f34567\u2003root@connect\u200b.west.example.com\ufeff",
        "ssh -p 34567 \\\n  root@connect.west.example.com",
        "ssh://root@connect.west.example.com:34567",
        "SSH: ssh://root@connect.west.example.com:34567/",
        "root@connect.west.example.com:34567",
        "root@connect.west.example.com -p 34567",
        "-p 34567 root@connect.west.example.com",
        "/usr/bin/ssh -tt -o Port=34567 -oUser=root connect.west.example.com bash -l",
        "scp -P 34567 -r data root@connect.west.example.com:/root/",
        "rsync -avz -e 'ssh -p 34567' data/ root@connect.west.example.com:/root/data",
        "sftp -P 34567 root@connect.west.example.com",
        "ssh-copy-id -p 34567 root@connect.west.example.com",
        "sshpass -p 'a$b;c' ssh -p 34567 root@connect.west.example.com",
        "autossh -M 0 -p 34567 root@connect.west.example.com",
        "SSH: root@connect.west.example.com -p 34567",
        "ssh root@connect.west.example.com 34567",
        "ssh root@connect.west.example.com # port 34567",
        "ssh root@connect.west.example.com on 34567 and then nvidia-smi",
        "connect.west.example.com\n34567\nroot",
        "Host gpu HostName connect.west.example.com User root Port 34567",
        "登录：root@connect.west.example.com -p 34567",
        "Connect: -p 34567 root@connect.west.example.com",
        "root@connect.west.example.com port 34567",
        "root@connect.west.example.com (port 34567)",
        "ssh root@connect.west.example.com, port 34567",
        "SSH into root@connect.west.example.com on port 34567.",
        "ssh root@connect.west.example.com，端口：34567",
        "ssh -p=34567 root@connect.west.example.com",
        "Host: connect.west.example.com\nPort: 34567\nUsername: root\nPassword: x y;z",
        "Host: connect.west.example.com Port: 34567 User: root Password: s3cr;t",
        "SSH Host: connect.west.example.com\nSSH Port: 34567\nSSH User: root\n",
        "主机：connect.west.example.com，端口：34567，用户名：root，密码：abc$;",
        "主机地址：connect.west.example.com 端口：34567 账号：root 密码：Zz9xx",
        "登录指令\nssh -p 34567 root@connect.west.example.com\n密码\nab$(c",
        "SSH登录：ssh -p 34567 root@connect.west.example.com 密码：`x`",
        "ssh -p 34567 root@connect.west.example.com\nAb3dEf9hIj",
        "GPU: RTX 4090 * 1\nssh -p 34567 root@connect.west.example.com\nRegion: 西北B区",
        '{"ssh": {"host": "connect.west.example.com", "port": 34567, "username": "root", "password": "x"}}',
        '{"ssh_command": "ssh -p 34567 root@connect.west.example.com"}',
        "Host gpu\n  HostName connect.west.example.com\n  Port 34567\n  User root\n  ForwardAgent yes\n",
        "SSH login\nssh -p 34567 root@connect.west.example.com",
        "SSH Login\n\nssh -p 34567 root@connect.west.example.com\n\nPassword\nab$(c;d",
        "Connect via SSH\nssh -p 34567 root@connect.west.example.com\nCopy",
        "SSH over exposed TCP: (Supports SCP & SFTP)\n"
        "ssh root@connect.west.example.com -p 34567 -i ~/.ssh/id_ed25519",
        "To reach your instance run the following command\nssh -i 'my key.pem' -p 34567 "
        "root@connect.west.example.com",
        "chmod 400 k.pem\nssh-keygen -R connect.west.example.com\n"
        "ssh -i k.pem -p 34567 root@connect.west.example.com",
        "ssh root@connect.west.example.com\nPort 34567",
        "root@connect.west.example.com\nPort 34567",
        "connect.west.example.com\nPort 34567\nUser root",
        "Hostname connect.west.example.com\nPort 34567\nUsername root\nPassword Ab3$(d",
        "Public IP\nconnect.west.example.com\nExternal port\n34567\nUser\nroot",
        "SSH\nhost: connect.west.example.com\nport: 34567\nuser: root\npassword: x",
        "Login: root\nIP: connect.west.example.com\nPort: 34567",
        "SSH登录\n登录指令\nssh -p 34567 root@connect.west.example.com\n密码\nab$(c",
        "登录指令: ssh -p 34567 root@connect.west.example.com",
        "实例信息\n地址：connect.west.example.com\n端口 34567\n用户名 root\n密码 ab$(c",
        "```\nssh -p 34567 root@connect.west.example.com\n```",
        "```bash\n$ ssh -p 34567 root@connect.west.example.com\n```\n",
        "~~~sh\nssh -p 34567 root@connect.west.example.com\n~~~",
        "Login:\n```\nssh -p 34567 root@connect.west.example.com\n```\nPassword:\n```\na`b$(c)\n```",
        "**ssh -p 34567 root@connect.west.example.com**",
        "- ssh -p 34567 root@connect.west.example.com",
        "1. ssh -p 34567 root@connect.west.example.com",
        "| SSH | Password |\n|-----|-----|\n| ssh -p 34567 root@connect.west.example.com | Ab3dEf9hIj |",
        "SSH command\tssh -p 34567 root@connect.west.example.com\tCopy",
        "sudo ssh -p 34567 root@connect.west.example.com",
        "wsl ssh -p 34567 root@connect.west.example.com docker exec -it c bash",
        "# from the console\nHost=gpu\n  HostName=connect.west.example.com\n  Port=34567\n  User=root",
    ],
)
def test_every_way_to_say_the_same(text: str) -> None:
    if text.startswith("# from"):
        text = text.replace("Host=gpu", "Host gpu")
    assert where(text) == ("connect.west.example.com", 34567, "root")


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("root@[2001:db8::17]:2222", "2001:db8::17", 2222),
        ("root@2001:db8::17", "2001:db8::17", None),
        ("[2001:db8::17]:22", "2001:db8::17", 22),
        ("ssh root@fe80::1%eth0", "fe80::1%eth0", None),
        ("ssh -6 -p 2222 root@2001:db8::", "2001:db8::", 2222),
        ("Host: [2001:db8::1]", "2001:db8::1", None),
        ("ssh root@203.0.113.7", "203.0.113.7", None),
        ("203.0.113.7 2222", "203.0.113.7", 2222),
        ("gpu-box", "gpu-box", None),
        ("ssh gpu-box", "gpu-box", None),
        ("ssh -o HostName=203.0.113.7 gpu", "203.0.113.7", None),
        ("root@203.0.113.7:/root/data", "203.0.113.7", None),
        ('{"publicIp": "203.0.113.7", "portMappings": {"22": 10341}}', "203.0.113.7", 10341),
    ],
)
def test_addresses(text: str, host: str, port: int | None) -> None:
    found = parse_address(text)
    assert (found.host, found.port) == (host, port)


@pytest.mark.parametrize(
    ("text", "tool", "helps"),
    [
        ("gcloud compute ssh foo", "gcloud", "--dry-run"),
        ("$ gcloud beta compute ssh --zone us-central1-a foo", "gcloud", "--dry-run"),
        ("gcloud compute ssh me@foo.example.com", "gcloud", "--dry-run"),
        ("aws ssm start-session --target i-0123", "AWS", "ProxyCommand"),
        ("az ssh vm -n x -g y", "Azure", "az ssh config"),
        ("tsh ssh root@node", "Teleport", "tsh config"),
        ("vastai ssh-url 1234", "vast.ai", "vastai ssh-url"),
        ("runpodctl ssh info abc", "RunPod", "exposed TCP"),
        ("kubectl exec -it pod-0 -- bash", "kubectl", "rgt add pod:"),
        ("kubectl -n ml exec -it pod-0 -- ssh root@h.example.com", "kubectl", "rgt add pod:"),
        ("Connect: docker exec -it c bash", "a container tool", "SSH server"),
        ("srun --pty bash -i", "Slurm", "login node"),
        ("putty -ssh root@h.example.com -P 3", "PuTTY", "OpenSSH"),
        ("code --remote ssh-remote+root@h.example.com /", "VS Code", "ssh-remote+"),
        ("SSH\n```\ngcloud compute ssh foo\n```", "gcloud", "--dry-run"),
    ],
)
def test_another_tools_command_is_named_and_says_what_to_paste(text: str, tool: str, helps: str) -> None:
    with pytest.raises(Failure) as caught:
        parse_address(text)
    assert caught.value.what == f"This is a command of {tool} and no SSH login."
    assert helps in (caught.value.do or "")


def test_a_heading_is_no_password_and_a_word_alone_is_one() -> None:
    page = "SSH login\nssh -p 1 root@h.example.com\nCopy\nRegion: B\n"
    assert not parse_address(page).password_seen
    assert parse_address(page + "Ab3dEf9hIj").password_seen


def test_without_a_login_no_line_is_passed_over() -> None:
    for text in (
        "SSH login",
        "Connect via SSH\nCopy",
        "gpu box\nPort 22",
        "Connection to h.example.com closed.",
    ):
        with pytest.raises(Failure):
            parse_address(text)


def test_an_alias_is_taken_where_ssh_begins_a_command() -> None:
    for text in ("ssh gpu-box", "$ ssh gpu-box", "me@laptop:~$ ssh gpu-box", "ssh gpu-box\nPassword: x"):
        assert where(text) == ("gpu-box", None, None)


def test_json_is_exactly_what_the_verb_prints() -> None:
    found = parse_address("ssh -J me@a.example.com,b@c.example.com:22 -i ~/.ssh/k root@h.example.com")
    assert found.as_json() == {
        "host": "h.example.com",
        "port": 22,
        "user": "root",
        "key": "~/.ssh/k",
        "jump": "me@a.example.com,b@c.example.com:22",
        "platform": "ssh",
        "proxied": False,
    }


def test_an_unnamed_port_is_left_to_the_ssh_configuration() -> None:
    assert parse_address("ssh root@h.example.com").endpoint() == Endpoint("h.example.com", user="root")


def test_a_harmless_proxy_command_is_a_jump() -> None:
    found = parse_address('ssh -o ProxyCommand="ssh -q -W %h:%p me@jump.example.com -p 33" root@h')
    assert found.jump == ("me@jump.example.com:33",)
    assert parse_address("ssh -o ProxyJump=a@[2001:db8::1]:22 root@h").jump == ("a@[2001:db8::1]:22",)
    assert parse_address("ssh -o ProxyCommand=none root@h").jump == ()


def test_options_that_lower_security_are_listed_and_not_taken_over() -> None:
    found = parse_address(
        "ssh -CNg -o StrictHostKeyChecking=no -R 1:h:2 -p 33 root@h.example.com nvidia-smi -l"
    )
    assert found.ignored == ("-CNg", "-o StrictHostKeyChecking=no", "-R 1:h:2", "remote command")


@pytest.mark.parametrize(
    ("host", "platform"),
    [
        ("connect.westb.seetacloud.com", "autodl"),
        ("region-1.autodl.com", "autodl"),
        ("ssh.runpod.io", "runpod"),
        ("ssh5.vast.ai", "vastai"),
        ("notvast.ai", "ssh"),
        ("autodl.com.evil.example", "ssh"),
        ("i-1.gpushare.com", "gpushare"),
        ("hz-4.matpool.com", "matpool"),
        ("workspace.featurize.cn", "featurize"),
        ("203.0.113.7", "ssh"),
    ],
)
def test_platform_by_whole_labels(host: str, platform: str) -> None:
    assert platform_of(host) == platform


GATEWAY = "ssh ab12-64410fe8@ssh.runpod.io -i ~/.ssh/k"
DIRECT = "ssh root@194.68.245.17 -p 22001 -i ~/.ssh/k"


@pytest.mark.parametrize("ways", [(GATEWAY, DIRECT), (DIRECT, GATEWAY)])
def test_of_two_ways_to_one_machine_the_one_that_runs_commands_is_taken(ways: tuple[str, str]) -> None:
    found = parse_address("SSH\n{}\nSSH over exposed TCP (Supports SCP & SFTP)\n{}\n".format(*ways))
    assert (found.host, found.port, found.user, found.key) == ("194.68.245.17", 22001, "root", "~/.ssh/k")
    assert not found.proxied
    assert "ab12-64410fe8@ssh.runpod.io" in found.ignored


def test_a_labelled_password_is_not_replaced_by_another_word_of_the_page() -> None:
    page = (
        "ssh -p 60123 root@i-2.gpushare.com\n登录密码\nKq3ZzT9a\nJupyterLab\nhttps://i-2.gpushare.com:1/lab\n"
    )
    found, secret = read_paste(page)
    assert found.port == 60123
    assert secret is not None and secret.reveal() == "Kq3ZzT9a"


def test_brackets_around_a_labelled_password_are_not_part_of_it() -> None:
    for text, password in (
        ("root@h.example.com (password: a)b)", "a)b"),
        ("root@h.example.com password: a)", "a)"),
    ):
        secret = read_paste(text)[1]
        assert secret is not None and secret.reveal() == password


def test_no_configuration_file_at_all_is_harmless() -> None:
    assert where("ssh -F none -p 22 root@h.example.com") == ("h.example.com", 22, "root")
    assert where("ssh -F /dev/null root@h.example.com") == ("h.example.com", None, "root")


def test_the_shell_only_gateway_is_marked() -> None:
    assert parse_address("ssh ab1cd2-6441abcd@ssh.runpod.io -i ~/.ssh/id").proxied
    assert not parse_address("ssh root@203.0.113.7 -p 22001 -i ~/.ssh/id").proxied
    assert not parse_address("ssh -p 12345 root@ssh5.vast.ai").proxied


AROUND = [
    "{}", "SSH: {}", "Connect via {}", "1) {}", "Login to the box: {}", "ssh access - {}", "Please run {}",
    "> {}", "请用 {}", "SSH Terminal {}", "Box 3: {}", "{} password: s3cr3t9", "{}\n密码：s3cr3t9", "{}.",
    "{} -- thanks", "{}  # 8x H100", "{} and then run nvidia-smi", "{}\n\nGPU 0: A100\n",
    "{} -L 8080:localhost:8080",
]  # fmt: skip
WAYS = [
    "ssh -p 40022 root@{}", "ssh root@{} -p 40022", "ssh {} -p 40022 -l root", "root@{}:40022",
    "root@{} port 40022", "root@{} 40022", "ssh://root@{}:40022", "ssh root@{}:40022", "{}:40022", "{} 40022",
    "host={} port=40022", "host: {}, port: 40022, user: root", "Host {} Port 40022 User root",
    "{}, 40022, root", "{}\n40022\nroot", "ssh root@{} --port=40022", "ssh -P 40022 root@{}",
    "scp -P 40022 f root@{}:/x", "scp -p 40022 f root@{}:/x", "sftp -oPort=40022 root@{}",
    "ssh root@{} # port 40022", "ssh root@{}\nPort: 40022", "ssh root@{}（端口 40022）",
    "ssh root@{} on 40022", "ssh root@{};40022",
]  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
def test_whatever_stands_around_it_the_machine_is_the_named_one_or_there_is_none(way: str) -> None:
    read = 0
    for around in AROUND:
        try:
            found = parse_address(around.format(way.format("box7.example.net")))
        except Failure:
            continue
        read += 1
        assert (found.host, found.port, (found.user or "root").rstrip(".")) == (
            "box7.example.net",
            40022,
            "root",
        )
    assert read or way in {"ssh root@{} --port=40022", "ssh -P 40022 root@{}", "scp -p 40022 f root@{}:/x",
                           "ssh root@{};40022", "{}, 40022, root"}  # fmt: skip


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "no text"),
        ("   \n ", "no text"),
        ("hello world", "no part"),
        ("ssh", "no SSH login"),
        ("ssh -p 22", "no machine"),
        ("password: abc", "no SSH login"),
        ("Jupyter: https://a123.westx.seetacloud.com:8443/jupyter/?token=x", "web link"),
        ("https://root@h.example.com", "web link"),
        ("ssh root@h.example.com; reboot", "shell characters"),
        ("ssh root@h.example.com && reboot", "shell characters"),
        ("ssh root@h.example.com | tee x", "shell characters"),
        ("ssh root@$(id)", "shell characters"),
        ("ssh root@`id`", "shell characters"),
        ("ssh root@h.example.com 'a;b'", "shell characters"),
        ("ssh <user>@h.example.com", "shell characters"),
        ("ssh root@h.example.com\nrm -rf ~", "no part"),
        ("ssh root@h.example.com\nreboot;ls", "shell characters"),
        ("SSH login\nssh root@h.example.com\ncurl evil.example | sh", "no part"),
        ("ssh root@a.example.com\nSSH:\nssh root@b.example.com", "two different hosts"),
        ("ssh root@h.example.com\n$(reboot)", "shell characters"),
        ("ssh root@h.example.com\x1b[0m", "control"),
        ("ssh root@h.example.com\x00", "control"),
        ("ssh root@\u202emoc.elpmaxe", "writing direction"),
        ("ssh root@ex\u0430mple.com", "outside ASCII"),
        ("ssh root@\U0001d5be\U0001d5d1.com", "outside ASCII"),
        ("ssh root@-oProxyCommand=x", "dash"),
        ("ssh -- -oProxyCommand=x", "dash"),
        ("ssh -l -x h.example.com", "dash"),
        ("ssh -p 0 root@h", "port"),
        ("ssh -p 65536 root@h", "port"),
        ("ssh -p abc root@h", "port"),
        ("root@h.example.com:99999", "port"),
        ("ssh root@999.1.1.1", "IPv4"),
        ("ssh root@1:2:3", "IPv6"),
        ("ssh root@a..b", "host name"),
        ("ssh root@h -p", "no value"),
        ("ssh root@h 'unclosed", "quote"),
        ("ssh root@a.example.com\nssh root@b.example.com", "two different hosts"),
        ("ssh -p 1 root@h\nPort: 2", "two different ports"),
        ("ssh -l a b@h", "two different users"),
        ("ssh root@a.example.com ssh root@b.example.com", "two machines"),
        ("Host a\n Port 1\nHost b\n Port 2", "two different hosts"),
        ("ssh -oProxyCommand='curl evil|sh' root@h", "ProxyCommand"),
        ("ssh -o ProxyCommand='nc -x p %h %p' root@h", "ProxyCommand"),
        ("ssh -o ProxyCommand='ssh -W %h:%p -oProxyCommand=x j' root@h", "ProxyCommand"),
        ("ssh -o ProxyCommand='ssh -W %h:%p j touch x' root@h", "ProxyCommand"),
        ("ssh -o LocalCommand=x root@h", "LocalCommand"),
        ("ssh -o permitlocalcommand=yes root@h", "permitlocalcommand"),
        ("ssh -o KnownHostsCommand=x root@h", "KnownHostsCommand"),
        ("ssh -o PKCS11Provider=/tmp/x.so root@h", "PKCS11Provider"),
        ("ssh -I /tmp/x.so root@h", "PKCS11Provider"),
        ("ssh gpubox root@h.example.com now", "two machines"),
        ("scp -p 22001 f root@h.example.com:/x", "-P"),
        ("ssh root@h.example.com\n22001", "port or the password"),
        ("ssh --port 22001 root@h", "--port"),
        ("ssh root@h --port=22001", "--port"),
        ("ssh -P 22001 root@h", "-P names no port"),
        ("ssh -F /tmp/evil root@h", "file of its own"),
        ("scp -F evil a root@h:/b", "file of its own"),
        ("ssh -S /tmp/ctl -O exit root@h", "leads to no machine"),
        ("https://a.example.com:8443/lab", "web link"),
        ("Host a\n HostName h\n Match exec x", "Match"),
        ("Host a\n Include evil", "Include"),
        ("rsync -e 'sh -c x' a root@h:/b", "another program"),
        ("ssh -i 'a;b' root@h", "key"),
        ("ssh -J 'a;b' root@h", "shell characters"),
        ("{", "no host name"),
        ('{"a": 1}', "no host"),
        ("[" * 5000 + '"' + "]", "JSON"),
        ("x" * 9000, "too long"),
    ],
)
def test_refused_with_a_reason(text: str, says: str) -> None:
    with pytest.raises(Failure) as caught:
        parse_address(text)
    if text != "{":
        assert says.lower() in caught.value.what.lower()
    assert caught.value.exit is Exit.USAGE
    assert caught.value.means
    assert caught.value.do


def test_what_only_looks_dangerous_is_taken() -> None:
    assert where("ssh -o PermitLocalCommand=no root@h") == ("h", None, "root")
    assert parse_address("ssh -i $HOME/.ssh/id root@h").key == "~/.ssh/id"
    assert parse_address(r"ssh -i 'C:\Users\me\.ssh\id' root@h").key == r"C:\Users\me\.ssh\id"
    assert where("ssh user@account@h.example.com -p 3") == ("h.example.com", 3, "user@account")


passwords = st.text(
    st.sampled_from(string.ascii_letters + string.digits + "+/$;`|&(){}<>!?*#%^~,.=_-"),
    min_size=9,
    max_size=24,
)
PASTES = (
    "ssh -p 34567 root@connect.west.example.com\n{}",
    "ssh -p 34567 root@connect.west.example.com {}",
    "ssh -p 34567 root@connect.west.example.com 密码：{}",
    "登录指令：ssh -p 34567 root@connect.west.example.com\n密码：{}\n",
    "Host: h.example.com\nPort: 1\nPassword: {}",
    "Password\n{}\nssh root@h.example.com",
    "sshpass -p '{}' ssh root@h.example.com",
    "sshpass -p{} ssh root@h.example.com",
    "ssh -o Password={} root@h.example.com",
    "ssh://root:{}@h.example.com:22",
    "root:{}@h.example.com:22",
    "ssh root:{}@h.example.com",
    '{{"host": "h.example.com", "password": "{}"}}',
    "{}\nssh root@h.example.com",
    "root@h.example.com {}",
    "{}",
)


@given(password=passwords, form=st.sampled_from(PASTES[:-1]))
@settings(max_examples=400, deadline=None)
def test_no_password_gets_out(password: str, form: str) -> None:
    password = "Zq9" + password  # no part of any form by chance
    try:
        found = parse_address(form.format(password))
    except Failure as failure:
        shown = f"{failure!r} {failure} {failure.args} {failure.what} {failure.means} {failure.do}"
        shown += "".join(traceback.format_exception(failure))
        assert password not in shown
        chain = failure.__cause__ or failure.__context__
        assert chain is None or password not in str(chain)
    else:
        shown = f"{found!r} {found} {json.dumps(found.as_json())} {found.endpoint()!r} {found.ignored}"
        assert password not in shown


def test_the_password_is_known_and_not_kept() -> None:
    address, secret = read_paste("ssh -p 1 root@h.example.com\nAb3dEf9hIj")
    assert address.password_seen
    assert secret is not None
    assert secret.reveal() == "Ab3dEf9hIj"
    assert "Ab3dEf9hIj" not in f"{secret!r}{secret}{address!r}"
    with pytest.raises(TypeError):
        pickle.dumps(secret)
    assert not parse_address("ssh -p 1 root@h.example.com").password_seen
    assert isinstance(secret, Secret)


pieces = st.sampled_from(
    [
        "ssh",
        "-p",
        "22",
        "root@",
        "h.example.com",
        " ",
        " ",
        "\n",
        ":",
        "-o",
        "ProxyCommand=",
        "'",
        '"',
        "@",
        "-J",
        "[",
        "]",
        "2001:db8::1",
        "Host ",
        "Port: ",
        "密码：",
        "{",
        "}",
        "\\",
        "/",
        "scp",
        "-",
        "%",
        "=",
        ",",
        "\u200b",
    ]
)


@given(st.one_of(st.text(max_size=200), st.lists(pieces, max_size=14).map("".join)))
@settings(max_examples=1500, deadline=None)
def test_any_text_gives_a_safe_address_or_a_failure(text: str) -> None:
    try:
        found = parse_address(text)
    except Failure:
        return
    assert isinstance(found, Address)
    assert HOST.fullmatch(found.host)
    assert found.user is None or USER.fullmatch(found.user)
    assert found.port is None or 1 <= found.port <= 65535
    for hop in found.jump:
        assert re.fullmatch(r"(?:[A-Za-z0-9_][\w.+@#-]*@)?[\w.:%\[\]-]+", hop, re.ASCII)
        assert not hop.startswith("-")
