# Measures nothing much, and may take its worker with it.
deaths=$1
job=${PWD##*/}
job=${job%%.*}
. "${0%/*}/die.sh"
die evaluate
[ "$(cat first.txt)" = "first of $job" ] && [ "$(cat second.txt)" = "second of $job" ] || exit 1
echo '{"summary": "both are there", "metrics": [{"name": "files", "value": 2}]}'
