#!/bin/sh
# Stands before git in PATH: runs the real one, and may kill the worker before or after a command that matters.
deaths=@DEATHS@
. @SUPPORT@/die.sh
command= job= ref=
for each in "$@"; do
  case $each in
    worktree | update-ref | push) command=${command:-$each} ;;
    -d) command=other ;;
  esac
  case $each in
    */workspace/*) job=${each##*/} job=${job%%.*} ;;
    *refs/heads/evolution/job/*) job=${each##*evolution/job/} job=$(printf %.36s "$job") ;;
  esac
done
case $command in
  worktree) point=worktree ;;
  update-ref) point=commit ;;
  push) point=push ;;
  *) exec @GIT@ "$@" ;;
esac
[ $point = commit ] && mkdir -p .git/refs/heads/evolution/job && die lock ".git/refs/heads/evolution/job/$job.lock"
die "$point-before"
@GIT@ "$@"
code=$?
die "$point-after"
exit $code
