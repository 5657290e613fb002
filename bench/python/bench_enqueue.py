"""Fills RQ's queue, or with --check makes sure that every job has finished.

python3 -m bench_enqueue [--check] REDIS_URL JOBS
"""
import sys

from redis import Redis
from rq import Queue

from bench_tasks import trivial


def main(arguments):
    check = arguments[0] == "--check"
    url, jobs = arguments[-2], int(arguments[-1])
    queue = Queue("bench", connection=Redis.from_url(url))
    if check:
        finished = queue.finished_job_registry.count
        sys.exit(0 if finished == jobs else f"rq finished {finished} of {jobs} jobs")
    queue.enqueue_many([Queue.prepare_data(trivial, (n,)) for n in range(jobs)])


main(sys.argv[1:])
