# A coding agent: changes two files in the folder it runs in, and may take its worker with it in between.
deaths=$1
job=${PWD##*/}
job=${job%%.*}
. "${0%/*}/die.sh"
cat >/dev/null
echo "first of $job" >first.txt
die code
echo "second of $job" >second.txt
