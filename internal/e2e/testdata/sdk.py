"""Checks of the official SDKs for Python: sdk.py CHECK BASE_URL KEY prints what they made of it as JSON."""

import json
import sys

import anthropic
import openai

check, base, key = sys.argv[1:4]
claude = anthropic.Anthropic(base_url=base, api_key=key, max_retries=0)
gpt = openai.OpenAI(base_url=base + "/v1", api_key=key, max_retries=0)


def files():
    """All files, page by page, with other work between the pages."""
    ids = []
    for file in gpt.files.list(limit=3):
        ids.append(file.id)
        if len(ids) % 3 == 0:
            gpt.responses.create(model="gpt-5.5", input=f"hello {len(ids)}")
    return ids


def results():
    """A batch's results, which the SDK reads by their link."""
    claude.messages.batches.create(requests=[])
    return [r.custom_id for r in claude.messages.batches.results("msgbatch_1")]


def stored():
    """A response that is continued by its id, and by reference to one of its items."""
    first = gpt.responses.create(model="gpt-5.5", input="hello")
    item = first.output[0].id
    gpt.responses.create(model="gpt-5.5", input="and then", previous_response_id=first.id)
    gpt.responses.create(
        model="gpt-5.5",
        input=[{"type": "item_reference", "id": item}, {"role": "user", "content": "more"}],
    )
    return [first.id]


def messages():
    """The events of a stream of Messages that is silent for a while."""
    stream = claude.messages.create(
        model="claude-opus-5", max_tokens=100, stream=True, messages=[{"role": "user", "content": "hello"}]
    )
    return [event.type for event in stream]


def responses():
    """The same of Responses."""
    return [event.type for event in gpt.responses.create(model="gpt-5.5", input="hello", stream=True)]


def chat():
    """The same of Chat Completions."""
    stream = gpt.chat.completions.create(
        model="gpt-5.5", stream=True, messages=[{"role": "user", "content": "hello"}]
    )
    return [chunk.object for chunk in stream]


print(json.dumps(globals()[check]()))
