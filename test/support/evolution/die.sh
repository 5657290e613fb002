# Kills the process that started this one, once for each death that is planned for a job.
die() {
  if [ -e "$deaths/planned/$job.$1" ] && mkdir "$deaths/done/$job.$1" 2>/dev/null; then
    [ "$1" = lock ] && : >"$2"
    kill -9 "$PPID"
  fi
}
