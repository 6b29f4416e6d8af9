# Children with a deadline. No child is ever waited for without one, and none that hangs is started twice.
#
# A child says who it is (k), gives its answers (a NAME STATUS BYTES, then that many bytes) and says that it
# is through (z); s and d stand for children that were not started. Those that share a pipe write at most 4096 bytes at a time, which POSIX keeps in one piece.

# put NAME STATUS TEXT: one answer, in one write.
put() { printf '%s' "a $1 $2 ${#3}$nl$3$nl"; }

# take COMMAND...: o and r, what it prints and its exit status, up to 256 KiB ("cut" when there was more).
take() {
  o=$({ "$@" 2>&1; printf '@%s' "$?"; } | head -c 262144)
  r=${o##*@}
  case $r in '' | *[!0-9]*) r=cut ;; *) o=${o%@*} ;; esac
}

# say NAME COMMAND...: the answer is what the command prints, shortened to fit one write.
say() {
  name=$1; shift
  o=$("$@" 2>&1); r=$?
  [ ${#o} -le 3500 ] || { o=$(printf '%s' "$o" | head -c 3500); r=cut; }
  put "$name" "$r" "$o"
}

# big NAME COMMAND...: the same for a child that has a pipe of its own.
big() { name=$1; shift; take "$@"; put "$name" "$r" "$o"; }

# kid KEY FUNCTION ARGS...: the body of one child.
kid() {
  myself
  printf '%s' "k$N $1 $P $S$nl"
  "$2" "$@"
  printf '%s' "z$N $1$nl"
}

# may KEY: whether a child may be started for it. While two are stuck, no mount or folder is asked that did not
# answer beside them.
may() {
  case $nl$strays in
    *" $1$nl"*) printf '%s' "s$N $1$nl"; return 1 ;;
    *"$nl"*"$nl"?*"$nl")
      case $1,$proven in [mrk]*,*" $1 "*) ;; [mrk][0-9]*) printf '%s' "d$N $1$nl"; return 1 ;; esac ;;
  esac
  return 0
}

# upto SECONDS: copy stdin to stdout; not 0 when the input had not ended by then. Without timeout(1) it is the
# end of the input that ends the clock. By KILL alone: a young child may still have its parent's traps.
upto() {
  case $limiter in '') ;; *) $limiter "$1" cat; return ;; esac
  {
    sleep "$1" 7<&- >/dev/null & clock=$!
    { cat <&7 7<&-; kill -9 $clock; } & copier=$!
    wait $clock || { wait $copier; return 0; }
    all=" $copier "; family
    kill -9 $all; wait $copier
    return 1
  } 7<&0
}

# crew COMMAND...: its own pid, and then the children that COMMAND starts. It waits for them, since the first
# process of a container may be one that does not collect the dead.
crew() { myself; printf '%s\n' "$P"; "$@"; wait; }

# lane KEY FUNCTION: one child, as a crew of its own.
lane() { if may "$1"; then kid "$1" "$2" & fi; }

# lanes ENTRIES...: the small children of all entries on one pipe and each lane in $todo on its own, at the same
# time. The lanes' answers are picked up in turn, so a slow one takes nothing from the others. Of a crew that is
# late only the shell that waits is ended; the child stays, and is not started again while it does.
lanes() {
  case $todo in
    '') crew kids "$@" | { read -r boss; upto 3 || { kill -9 "$boss"; false; }; } ;;
    *)
      next=${todo%% *}; todo=${todo#* }
      crew lane "${next%:*}" "${next#*:}" | {
        read -r boss
        (lanes "$@"); late=$?
        now; left=$((began + 5 - NOW)); [ $left -ge 1 ] || left=1
        upto $left || { kill -9 "$boss"; late=1; }
        [ $late = 0 ]
      } ;;
  esac
}

# batch ENTRIES...: everything slow that this tick asks for, into $acc; whoever did not come back is remembered.
batch() {
  sweep
  now; began=$NOW
  if acc=$(exec </dev/null; lanes "$@"); then return; fi
  proven=' '; IFS=$nl
  for x in $acc; do
    IFS=$ifs
    case $x in "k$N "*) ;; *) continue ;; esac
    set -- $x
    case $nl$acc$nl in
      *"${nl}z$N $2$nl"*) proven="$proven$2 " ;;
      *) strays="$strays$3 $4 $2$nl" ;;
    esac
  done
  IFS=$ifs
}

# sweep: forget the stuck children that have ended.
sweep() {
  case $strays in '') return ;; esac
  old=$strays; strays=; IFS=$nl
  for stray in $old; do
    IFS=$ifs; set -- $stray
    if still "$1" "$2"; then strays="$strays$stray$nl"; fi
  done
  IFS=$ifs
}

# reap: end the stuck children and all they started, as far as the kernel lets go of them.
reap() {
  sweep
  case $strays in '') return ;; esac
  all=' '; IFS=$nl
  for x in $strays; do all="$all${x%% *} "; done
  IFS=$ifs
  for x in 1 2 3 4; do family; done
  kill -9 $all
}
