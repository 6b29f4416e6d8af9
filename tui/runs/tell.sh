#!/bin/sh
# Tells of a run's end from the box. Usage: sh tell.sh VARIABLE text|slack|feishu|dingtalk
# VARIABLE names the environment variable that holds the address.
# The address goes by stdin, for arguments are seen by everybody on the box.
set -u
url=$(printenv "$1") && [ -n "$url" ] || exit 3
said=$(sed -n 's/^reason //p' "$RGT_END")
code=$(sed -n 's/^status //p' "$RGT_END")
text="rgt: ${RGT_RUN##*/} $said, status $code, attempt $RGT_ATTEMPT on $(uname -n)"
text=$(printf %s "$text" | tr -cd 'A-Za-z0-9 :,._+=-')
kind='Content-Type: application/json'
case $2 in
slack) body="{\"text\":\"$text\"}" ;;
feishu) body="{\"msg_type\":\"text\",\"content\":{\"text\":\"$text\"}}" ;;
dingtalk) body="{\"msgtype\":\"text\",\"text\":{\"content\":\"$text\"}}" ;;
*) body=$text kind='Content-Type: text/plain' ;;
esac
if command -v curl >/dev/null 2>&1; then
  printf 'url = "%s"\n' "$url" | curl -fsS -m 40 -K - -H "$kind" --data-raw "$body"
else
  printf '%s\n' "$url" | wget -q -T 40 -O - --header="$kind" --post-data="$body" -i -
fi
