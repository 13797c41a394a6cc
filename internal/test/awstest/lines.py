"""Prints what to do after a deployment, each on one line as a shell takes it: `sam deploy`
breaks long outputs where its table ends.

    sam list stack-outputs --stack-name holdfast --output json | lines.py [URL]

URL is where the Function URL is reached, if not at its own name.
"""

import json
import sys

outputs = {each["OutputKey"]: each["OutputValue"] for each in json.load(sys.stdin)}
own = outputs["GatewayUrl"]
url = sys.argv[1] if len(sys.argv) > 1 else own


def line(name):
    return outputs[name].replace(own, url)


print(
    f"""
A client key, which is KEY below:

  {line("ClientKey")}

A new stack has no accounts yet. To add one:

  holdfast account add NAME --provider anthropic --key-env ANTHROPIC_API_KEY --table {outputs["TableName"]}

Claude Code:

  {line("ClaudeCode")}

Codex:

  {line("Codex")}

Grok CLI:

  {line("GrokCLI")}

The gateway is at {url}"""
)
