#!/usr/bin/env bash
# Installs the real clients that the end-to-end tests drive, each at the version the
# tests were written against, and proves that they run. What is there already is left
# alone, so that this needs the network once only.
#
#   internal/e2e/tools.sh [DIR]
#
# DIR is where they go: the agents in DIR/npm, the official SDKs in DIR/sdk. Without it,
# $HOLDFAST_TEST_TOOLS, else a folder of the user's cache. Needs npm, and python3 with venv.
# Takes about 1.6 GB.
set -euo pipefail

claude_code=2.1.332
opencode=1.18.33
codex=0.171.0
grok=1.0.41
# The SDKs of Anthropic and OpenAI, for TypeScript and for Python.
anthropic_ts=1.15.0 openai_ts=7.59.0
anthropic_py=2.15.0 openai_py=3.57.0

dir=${1:-${HOLDFAST_TEST_TOOLS:-${XDG_CACHE_HOME:-$HOME/.cache}/holdfast/test-tools}}
npm=$dir/npm
bin=$npm/node_modules/.bin

# A home of their own keeps the clients away from the user's settings.
home=$(mktemp -d)
trap 'rm -rf "$home"' EXIT

# version prints the first version number in what the client says of itself; nothing if
# it fails.
version() {
	env -i PATH="$PATH" HOME="$home" "$bin/$1" --version 2>/dev/null </dev/null | grep -oEm 1 '[0-9]+(\.[0-9]+)+' | head -n 1 || true
}

# wrong names the clients that are missing or of another version.
wrong() {
	local client
	for client in "claude $claude_code" "opencode $opencode" "codex $codex" "grok $grok"; do
		# shellcheck disable=SC2086
		set -- $client
		[[ $(version "$1") == "$2" ]] || echo "$1 (want $2, it says '$(version "$1")')"
	done
}

if [[ -n $(wrong) ]]; then
	if ! command -v npm >/dev/null; then
		echo "tools.sh: the end-to-end tests drive real clients that come from npm: install Node.js with npm, then run this again" >&2
		exit 1
	fi
	echo "about 1.4 GB are fetched once; removing $dir gives them back" >&2
	echo "installing Claude Code $claude_code, opencode $opencode, Codex $codex and Grok CLI $grok into $npm, once" >&2
	mkdir -p "$npm"
	# Its own package.json keeps npm from looking for a project above the folder.
	echo '{"private":true}' >"$npm/package.json"
	rm -f "$npm/package-lock.json"
	(cd "$npm" && npm install --no-audit --no-fund --loglevel=error --save-exact \
		"@anthropic-ai/claude-code@$claude_code" "opencode-ai@$opencode" \
		"@openai/codex@$codex" "@xai-official/grok@$grok" >&2)
	still=$(wrong)
	if [[ -n $still ]]; then
		echo "tools.sh: installed, but not right: ${still//$'\n'/, }: remove $npm and run this again" >&2
		exit 1
	fi
fi

sdk=$dir/sdk
versions="$anthropic_ts $openai_ts $anthropic_py $openai_py"
if [[ $(cat "$sdk/versions" 2>/dev/null) != "$versions" ]]; then
	echo "installing the SDKs of Anthropic and OpenAI for TypeScript and Python into $sdk, once (about 180 MB)" >&2
	rm -rf "$sdk"
	mkdir -p "$sdk"
	echo '{"private":true}' >"$sdk/package.json"
	(cd "$sdk" && npm install --no-audit --no-fund --loglevel=error --save-exact "@anthropic-ai/sdk@$anthropic_ts" "openai@$openai_ts" >&2)
	python3 -m venv "$sdk/python"
	"$sdk/python/bin/pip" install --quiet --disable-pip-version-check "anthropic==$anthropic_py" "openai==$openai_py" >&2
	echo "$versions" >"$sdk/versions"
fi
echo "$dir"
