"""Runs MiniStack with what AWS checks of a request and MiniStack does not: the condition
keys dynamodb:LeadingKeys and kms:EncryptionContext:NAME; which alarms a request to
CloudWatch is about where it comes as CBOR, as from Go's SDK; and which stream of a log group
one to its log is about. Without them a policy that names them would either
fail or prove nothing. What a policy means is MiniStack's to decide.

The partition key of a table is taken to be "pk".
"""

import json

import cbor2
from ministack.core import iam_actions
from ministack.app import main

without = iam_actions.request_tag_context
action_without = iam_actions.extract_iam_action
resource_without = iam_actions.extract_resource_arn


def leading_keys(request):
    """The partition keys that a request to DynamoDB names."""
    items = [request[member] for member in ("Key", "Item") if member in request]
    for of_table in request.get("RequestItems", {}).values():
        items += of_table.get("Keys", []) if isinstance(of_table, dict) else []
    return [value for item in items for value in item.get("pk", {}).values()]


def in_cbor(service, path, headers):
    return service == "monitoring" and "/operation/" in path and "cbor" in headers.get("content-type", "")


def extract_iam_action(service, method, path, headers, body, params):
    if in_cbor(service, path, headers):
        return "cloudwatch:" + path.rsplit("/", 1)[1]
    return action_without(service, method, path, headers, body, params)


def extract_resource_arn(service, method, path, headers, body, params, region, account):
    if not in_cbor(service, path, headers):
        resource = resource_without(service, method, path, headers, body, params, region, account)
        if headers.get("x-amz-target", "").endswith((".CreateLogStream", ".PutLogEvents")):
            resource += ":log-stream:" + json.loads(body).get("logStreamName", "")
        return resource
    if "Alarm" not in path.rsplit("/", 1)[1]:
        return "*"  # metrics are no resources
    request = cbor2.loads(body or b"\xa0")
    # A look at alarms needs the right to see all of them, whatever it names. Of several
    # that are to be deleted the first stands for all.
    names = [request.get("AlarmName")] if "AlarmName" in request else request.get("AlarmNames", ["*"])
    name = "*" if path.endswith("/DescribeAlarms") else names[0]
    return f"arn:aws:cloudwatch:{region}:{account}:alarm:{name}"


def request_tag_context(service, action, body, params):
    context = without(service, action, body, params) if service != "monitoring" else {}
    if service == "kms":
        for name, value in json.loads(body or b"{}").get("EncryptionContext", {}).items():
            context["kms:EncryptionContext:" + name] = value
    elif service == "dynamodb":
        if keys := leading_keys(json.loads(body or b"{}")):
            context["dynamodb:LeadingKeys"] = keys
    return context


iam_actions.request_tag_context = request_tag_context
iam_actions.extract_iam_action = extract_iam_action
iam_actions.extract_resource_arn = extract_resource_arn
main()
