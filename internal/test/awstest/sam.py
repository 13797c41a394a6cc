"""Runs the SAM CLI where S3 is at an address of a stand-in's: `sam delete` looks for the
templates of nested stacks at AWS's own addresses only, and fails where they are elsewhere.
"""

from samcli.cli.main import cli
from samcli.lib.package import packageable_resources

without = packageable_resources.parse_s3_url


def parse_s3_url(url, **properties):
    scheme, _, rest = str(url).partition("://")
    if scheme == "http":
        url = "https://s3.invalid/" + rest.partition("/")[2]
    return without(url, **properties)


packageable_resources.parse_s3_url = parse_s3_url
cli(prog_name="sam")
