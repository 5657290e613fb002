# examples/handlers/score.py: a warm handler. It starts once, loads what is expensive, and serves many jobs.

import re

from oracle_worker import TerminalError, job, run

WORDS = {"good": 1, "great": 1, "love": 1, "bad": -1, "awful": -1, "hate": -1}  # think of a model on a GPU


@job("score_text")
def score_text(ctx, input):
    words = re.findall(r"\w+", input["text"].lower())
    if not words:
        raise TerminalError("there is no word in the text")  # another attempt would end the same way
    hits = []
    for n, word in enumerate(words):
        ctx.check()  # raises when the job was cancelled or ran too long
        ctx.progress(n / len(words))
        if word in WORDS:
            hits.append(WORDS[word])
    ctx.log.info("scored", words=len(words), hits=len(hits))
    return {"score": sum(hits) / max(1, len(hits))}


run()
