"""Runs MiniStack with condition keys of policies that AWS knows and MiniStack does not:
dynamodb:LeadingKeys and kms:EncryptionContext:NAME. Without them a policy that names them
would either fail or prove nothing. What a condition means is MiniStack's to decide.

The partition key of a table is taken to be "pk".
"""

import json

from ministack.core import iam_actions
from ministack.app import main

without = iam_actions.request_tag_context


def leading_keys(request):
    """The partition keys that a request to DynamoDB names."""
    items = [request[member] for member in ("Key", "Item") if member in request]
    for of_table in request.get("RequestItems", {}).values():
        items += of_table.get("Keys", []) if isinstance(of_table, dict) else []
    return [value for item in items for value in item.get("pk", {}).values()]


def request_tag_context(service, action, body, params):
    context = without(service, action, body, params)
    if service not in ("dynamodb", "kms"):
        return context
    request = json.loads(body or b"{}")
    if service == "kms":
        for name, value in request.get("EncryptionContext", {}).items():
            context["kms:EncryptionContext:" + name] = value
    elif keys := leading_keys(request):
        context["dynamodb:LeadingKeys"] = keys
    return context


iam_actions.request_tag_context = request_tag_context
main()
