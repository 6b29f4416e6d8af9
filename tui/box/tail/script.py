"""What runs on the box while a log is followed: a small file server that never loops by itself.

It does only what it is asked, line by line on stdin, so it costs nothing while nobody asks, holds nothing
back, and ends when its stdin does. Every decision is made on this side, where it can be tested.

A request is ``TOKEN VERB SLOT ...``; the answer is the text part and the data part between three marks that
carry the token, which no log can hold because it is drawn anew for every request:

    \\nTOKEN begin\\n  text  \\nTOKEN data\\n  bytes  \\nTOKEN end\\n

A slot is one log. Its number is the descriptor on which its file is held open, to be read to its end after it
was renamed or removed: a POSIX shell redirects descriptors of one digit, and 0 to 2 are taken. Linux opens
``/dev/fd/3`` anew from its beginning, so ``dd skip=`` counts from there; elsewhere that name only duplicates
the descriptor with its place, and the file is read by its name instead. ``seat`` puts a path into a slot, its
bytes spelled for ``printf %b``; ``drop`` lets its file go.

Measured: ``dd`` and not ``tail -c +N``, which busybox 1.35 serves by reading the whole file; ``ls`` and not
``stat``, whose options differ between GNU, busybox and BSD, while POSIX fixes ``ls -Lidn``.
"""

from __future__ import annotations

FOLLOW = r"""
LC_ALL=C; export LC_ALL
unset TIME_STYLE BLOCK_SIZE BLOCKSIZE LS_BLOCK_SIZE QUOTING_STYLE POSIXLY_CORRECT
able=name; [ "$(uname)" = Linux ] && [ -e /dev/fd/0 ] && able=fd
src=; now=; last=; hold=

take() {
  src=
  if [ ! -e "$1" ]; then word=absent
  elif [ ! -f "$1" ]; then word=special
  elif [ ! -r "$1" ]; then word=denied
  elif { eval "command exec $slot<\"\$1\""; } 2>/dev/null; then
    word=open
    if [ "$hold" = fd ]; then src=/dev/fd/$slot; else src=$1; fi
  else word=absent
  fi
}

look() {
  if [ "$src" = "/dev/fd/$slot" ]; then now=$(ls -Lidn -- "$p" "$src" 2>/dev/null)
  else now=$(ls -Lidn -- "$p" 2>/dev/null; echo @; [ -z "$src" ] || ls -Lidn -- "$src" 2>/dev/null)
  fi
}

while read -r token verb slot a b c d; do
  case $slot in [3-9]) ;; *) exit 2 ;; esac
  printf '\n%s begin\n' "$token" || exit 0
  eval "p=\$p$slot hold=\$hold$slot src=\$src$slot last=\$last$slot"
  dir=${p%/*}; base=${p##*/}
  case $base in ?*.*) stem=$dir/${base%.*}. ;; *) stem=$p ;; esac
  data=
  case $verb in
  seat)
    p=$(printf '%b.' "$b"); p=${p%.}
    case $p in "~/"*) p=$HOME/${p#"~/"} ;; /*) ;; *) p=./$p ;; esac
    hold=$a; [ "$a" != auto ] || hold=$able
    eval "p$slot=\$p hold$slot=\$hold; exec $slot<&-"
    src=; last= ;;
  drop) eval "exec $slot<&-"; src=; last= ;;
  open) take "$p"; look; last=; printf '%s\n%s' "$word" "$now" ;;
  inode)
    f=$(find "${dir:-/}" -maxdepth 1 -type f -inum "$a" 2>/dev/null | head -n 1)
    take "$f"; look; last=; printf '%s\n%s' "$word" "$now" ;;
  read)
    look
    if [ "$a" = quiet ] && [ "$now" = "$last" ]; then printf same
    else printf 'look\n%s' "$now"; data=$src
    fi
    last=$now ;;
  list) ls -Lidnt -- "$p"* "$stem"* ${src:+"$src"} 2>/dev/null | head -n 400 ;;
  esac
  eval "src$slot=\$src last$slot=\$last"
  printf '\n%s data\n' "$token" || exit 0
  [ -z "$data" ] || dd if="$data" bs="$b" skip="$c" count="$d" 2>/dev/null
  printf '\n%s end\n' "$token" || exit 0
done
"""
