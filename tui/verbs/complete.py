"""`rgt complete`: what makes a shell complete verbs, options and the names of boxes and runs."""

from __future__ import annotations

import argparse

from tui.fleet.first_look import names_only
from tui.fleet.paths import paths
from tui.model.failure import Exit, Failure

_BASH = r"""_rgt() {
  local word=${COMP_WORDS[COMP_CWORD]} words
  if [ "$COMP_CWORD" -eq 1 ]; then words='@VERBS@'
  elif [ "${word#-}" != "$word" ]; then
    words=$(rgt "${COMP_WORDS[1]}" --help 2>/dev/null | grep -oE -e '--[a-z][a-z0-9-]*' | sort -u)
  else words=$(rgt complete --names 2>/dev/null)
  fi
  COMPREPLY=($(compgen -W "$words" -- "$word"))
}
complete -o default -F _rgt rgt
"""
_ZSH = "autoload -U +X bashcompinit && bashcompinit\n" + _BASH
_FISH = r"""complete -c rgt -n __fish_use_subcommand -f -a '@VERBS@'
complete -c rgt -n 'not __fish_use_subcommand' -a '(rgt complete --names 2>/dev/null)'
complete -c rgt -n 'not __fish_use_subcommand; and string match -q -- "-*" (commandline -ct)' \
  -a '(rgt (commandline -opc)[2] --help 2>/dev/null | string match -ra -- "--[a-z][a-z0-9-]*")'
"""
_SCRIPTS = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}
_WHERE = """
  ~/.bashrc    eval "$(rgt complete bash)"
  ~/.zshrc     eval "$(rgt complete zsh)", below compinit
  config.fish  rgt complete fish | source"""


def register(sub: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb to the command line."""
    parser = sub.add_parser(
        "complete",
        help="print what makes a shell complete rgt",
        description=_WHERE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("shell", nargs="?", choices=_SCRIPTS, metavar="SHELL", help=", ".join(_SCRIPTS))
    parser.add_argument("--names", action="store_true", help="the names of boxes and runs, one a line")
    parser.set_defaults(run=_complete)


def _complete(args: argparse.Namespace) -> int:
    """Print a script, or the names that it asks for."""
    if args.names:
        look = names_only(paths().fleet_file)
        for name in dict.fromkeys(name for name, _ in (*look.instances, *look.runs)):
            print(name)
        return Exit.FINE
    if args.shell is None:
        do = f"rgt complete {'|'.join(_SCRIPTS)}; `rgt complete --help` tells where it goes."
        raise Failure("Which shell?", do=do, exit=Exit.USAGE, code="usage")
    print(_SCRIPTS[args.shell].replace("@VERBS@", " ".join(args.verbs)), end="")
    return Exit.FINE
