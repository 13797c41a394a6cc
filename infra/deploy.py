"""Says how this machine deploys: what samconfig.toml holds, and above it what samconfig.local.toml
holds, which is its owner's own file and not in git.

    deploy.py config                writes both as one file, and prints its name
    deploy.py stack                 prints the stack's name
    deploy.py architecture          prints the parameter Architecture that is saved, else that of the
                                    deployed stack; nothing if there is neither
    deploy.py parameters A=B ...    prints the saved parameters with those given put over them
    deploy.py save A=B              keeps a parameter in samconfig.local.toml
    deploy.py begin                 makes samconfig.local.toml, for `sam deploy --guided` to write into

It reads files in the current folder and changes nothing but the files that it says. `architecture`
asks AWS where nothing is saved, by the Python of the SAM CLI, which can.
"""

import json
import os
import re
import shlex
import sys
import tomllib

SHARED, OWN = "samconfig.toml", "samconfig.local.toml"
# SAM reads YAML, of which JSON is a part.
MERGED = os.path.join(".aws-sam", "samconfig.yaml")


def read(name):
    try:
        with open(name, "rb") as file:
            return tomllib.load(file)
    except FileNotFoundError:
        return {}
    except tomllib.TOMLDecodeError as error:
        sys.exit(f"{name} cannot be read: {error}. Mend it, or remove it to answer the questions again")


def over(below, above):
    """The two as one; what both have is above's, but parameters are put together."""
    if isinstance(below, dict) and isinstance(above, dict):
        merged = dict(below)
        for key, value in above.items():
            if key == "parameter_overrides" and key in below:
                merged[key] = text({**parameters(below[key]), **parameters(value)})
            else:
                merged[key] = over(below[key], value) if key in below else value
        return merged
    return above


def parameters(saved):
    """Saved parameters, which SAM writes as a text or as a list of texts, by their names."""
    words = shlex.split(saved) if isinstance(saved, str) else saved
    return dict(word.split("=", 1) for word in words if "=" in word)


def text(values):
    return " ".join(f'{key}="{value}"' for key, value in values.items())


def saved(config):
    deploy = config.get("default", {}).get("deploy", {}).get("parameters", {})
    return parameters(deploy.get("parameter_overrides", []))


def answer(config, name):
    """An answer of the deployment's, else of all commands; None where there is neither."""
    sections = config.get("default", {})
    for section in ("deploy", "global"):
        value = sections.get(section, {}).get("parameters", {}).get(name)
        if value:
            return value
    return None


def stack(config):
    return answer(config, "stack_name") or "holdfast"


def deployed(name, region):
    """The architecture of the deployed stack; empty where there is none, or nobody to ask."""
    try:
        import boto3
        from botocore.exceptions import BotoCoreError, ClientError
    except ImportError:
        return ""
    try:
        found = boto3.client("cloudformation", region_name=region).describe_stacks(StackName=name)["Stacks"][0]
    except (BotoCoreError, ClientError):
        return ""
    return {p["ParameterKey"]: p.get("ParameterValue", "") for p in found.get("Parameters", [])}.get("Architecture", "")


def save(key, value):
    """Keeps a parameter in the owner's own file, which it changes in that place alone."""
    try:
        with open(OWN, encoding="utf-8") as file:
            own = file.read()
    except FileNotFoundError:
        own = "# Your answers. This file is yours: git ignores it.\n[default.deploy.parameters]\n"
    word = f'{key}=\\"{value}\\"'
    if re.search(rf'\b{key}=\\"[^"\\]*\\"', own):
        own = re.sub(rf'\b{key}=\\"[^"\\]*\\"', lambda _: word, own)
    elif re.search(r'(?m)^parameter_overrides *= *"', own):
        own = re.sub(r'(?m)^(parameter_overrides *= *")', lambda found: found[1] + word + " ", own, count=1)
    elif "[default.deploy.parameters]" in own:
        own = own.replace("[default.deploy.parameters]\n", f'[default.deploy.parameters]\nparameter_overrides = "{word}"\n', 1)
    else:
        own += f'\n[default.deploy.parameters]\nparameter_overrides = "{word}"\n'
    with open(OWN, "w", encoding="utf-8") as file:
        file.write(own)


def main(what, *words):
    config = over(read(SHARED), read(OWN))
    if what == "config":
        os.makedirs(os.path.dirname(MERGED), exist_ok=True)
        with open(MERGED, "w", encoding="utf-8") as file:
            json.dump(config, file, indent=2)
        print(MERGED)
    elif what == "stack":
        print(stack(config))
    elif what == "architecture":
        print(saved(config).get("Architecture") or deployed(stack(config), answer(config, "region")))
    elif what == "parameters":
        print("\n".join(f"{key}={value}" for key, value in {**saved(config), **parameters(words)}.items()))
    elif what == "save":
        for key, value in parameters(words).items():
            save(key, value)
    elif what == "begin":
        if not os.path.exists(OWN):
            with open(SHARED, encoding="utf-8") as shared, open(OWN, "w", encoding="utf-8") as own:
                own.write("# Your answers to `sam deploy --guided`. This file is yours: git ignores it.\n" + shared.read())
    else:
        sys.exit(__doc__)


main(*(sys.argv[1:] or ["help"]))
