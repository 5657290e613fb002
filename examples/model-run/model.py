# examples/model-run/model.py: a long computation. Its numbers go into an artifact, the result says where they are.

import random

from oracle_worker import job, run


@job("model_run")
def model_run(ctx, input):
    runs, days, people = input["runs"], input["days"], input["people"]
    chance = random.Random(input["seed"])  # the same input gives the same numbers, in whichever attempt
    infected_per_day = [0] * days
    peaks = []
    for n in range(runs):
        if n % 100 == 0:
            ctx.check()  # raises when the job was cancelled, ran too long or lost its lease
            ctx.progress(n / runs, f"run {n} of {runs}")
        course = epidemic(chance, days, people, input["contacts"], input["recovery"])
        infected_per_day = [total + today for total, today in zip(infected_per_day, course)]
        peaks.append(max(course))
    ctx.progress(1, f"run {runs} of {runs}")

    peaks.sort()
    document = {
        "mean_infected_per_day": [total / runs for total in infected_per_day],
        "peak_quantiles": {str(percent): peaks[(runs - 1) * percent // 100] for percent in (5, 50, 95)},
    }
    reference = ctx.artifact("trajectory.json", document, media_type="application/json")
    return {"result_ref": reference, "median_peak": document["peak_quantiles"]["50"]}


def epidemic(chance, days, people, contacts, recovery):
    """How many are infected on each day, in one draw of a model in which people are well, infected or recovered."""
    well, infected, course = people - 10, 10, []
    for _ in range(days):
        course.append(infected)
        caught = min(well, draw(chance, contacts * infected * well / people))
        recovered = min(infected, draw(chance, recovery * infected))
        well, infected = well - caught, infected + caught - recovered
    return course


def draw(chance, expected):
    """About as many as expected, as chance has it."""
    return max(0, round(chance.gauss(expected, expected**0.5)))


run()
