# Leaves processes behind: one that heeds TERM, one that does not, and one of its own. Their ids go to the file $1.
cat > /dev/null
sleep 300 &
echo $! >> "$1"
sh -c 'trap "" TERM; sleep 300 & echo $! >> "$1"; echo $$ >> "$1"; while :; do sleep 1; done' sh "$1" &
while [ "$(wc -l < "$1")" -lt 3 ]; do sleep 0.01; done
if [ "$2" = stay ]; then wait; fi
echo '{"ok": true, "result": "good"}'
