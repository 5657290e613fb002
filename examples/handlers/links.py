# examples/handlers/links.py: a one-shot handler. A new process for each attempt: slower, and nothing is left behind.

from html.parser import HTMLParser

from oracle_worker import job, run


class Links(HTMLParser):
    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attributes):
        self.found += [value for name, value in attributes if tag == "a" and name == "href" and value]


@job("extract_links")
async def extract_links(ctx, input):
    parser = Links()
    parser.feed(input["html"])
    print(f"{len(parser.found)} links")  # goes to the attempt's log, not into the answer
    return {"links": parser.found}


run()
