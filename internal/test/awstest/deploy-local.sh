#!/usr/bin/env bash
# Deploys the stack into MiniStack on this machine, says how to use it, and serves until it
# is interrupted; then everything in it is gone. The Function URL there does not stream.
#
#   internal/test/awstest/deploy-local.sh DIR
#
# DIR is where tools.sh installed MiniStack and the SAM CLI. PORT is MiniStack's, 4566 if
# not set.
set -euo pipefail

tools=${1:?usage: deploy-local.sh DIR}/aws
port=${PORT:-4566}
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../../.."

case $(uname -m) in
x86_64) ARCHITECTURE=x86_64 ;;
*) ARCHITECTURE=arm64 ;;
esac
export ARCHITECTURE AWS_ENDPOINT_URL=http://127.0.0.1:$port AWS_REGION=us-east-1 AWS_DEFAULT_REGION=us-east-1
export AWS_ACCESS_KEY_ID=test AWS_SECRET_ACCESS_KEY=test SAM_CLI_TELEMETRY=0
unset AWS_PROFILE AWS_SESSION_TOKEN

if curl --silent --output /dev/null "$AWS_ENDPOINT_URL/"; then
	echo "something answers on port $port already, perhaps another deploy-local: end that one, or choose another port with PORT=4567 make deploy-local" >&2
	exit 1
fi
folder=$(mktemp -d)
BIND_HOST=127.0.0.1 GATEWAY_PORT=$port AUTH=true IOT_MTLS_ENABLED=0 TMPDIR=$folder PYTHONDONTWRITEBYTECODE=1 \
	SERVICES=dynamodb,kms,iam,sts,cloudformation,s3,lambda,logs,cloudwatch,sns,scheduler,events \
	"$tools/ministack/bin/python" "$here/conditions.py" >"$folder/log" 2>&1 &
account=$!
trap 'kill $account 2>/dev/null || true; wait $account 2>/dev/null || true; rm -rf "$folder"' EXIT
for _ in $(seq 100); do
	kill -0 $account 2>/dev/null || { cat "$folder/log" >&2; exit 1; }
	curl --silent --fail --output /dev/null "$AWS_ENDPOINT_URL/_ministack/health" && break
	sleep 0.2
done

as=(--config-file "$PWD/samconfig.toml" --config-env test --parameter-overrides "Architecture=$ARCHITECTURE")
"$tools/sam/bin/sam" build "${as[@]}" --build-dir "$folder/build"
"$tools/sam/bin/sam" deploy "${as[@]}" --template-file "$folder/build/template.yaml"
outputs=$("$tools/sam/bin/sam" list stack-outputs --stack-name holdfast --output json 2>/dev/null)
id=$("$tools/sam/bin/python" -c 'import json, sys; print(*[o["OutputValue"].split("/")[2].split(".")[0] for o in json.load(sys.stdin) if o["OutputKey"] == "GatewayUrl"])' <<<"$outputs")
cat <<TEXT

The stack is deployed, and its poller makes a round each minute. In another terminal:

  export AWS_ENDPOINT_URL=$AWS_ENDPOINT_URL AWS_REGION=us-east-1 AWS_DEFAULT_REGION=us-east-1 AWS_ACCESS_KEY_ID=test AWS_SECRET_ACCESS_KEY=test
TEXT
"$tools/sam/bin/python" "$here/lines.py" "$AWS_ENDPOINT_URL/_aws/lambda-url/$id" <<<"$outputs"
cat <<TEXT

Ctrl-C ends it, and all that is in it is gone.
TEXT
wait $account
