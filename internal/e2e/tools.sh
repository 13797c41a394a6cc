#!/usr/bin/env bash
# Installs the real clients that the end-to-end tests drive, each at the version the
# tests were written against, and proves that they run. What is there already is left
# alone, so that this needs the network once only.
#
#   internal/e2e/tools.sh [DIR]
#
# DIR is where they go: DIR/npm/node_modules/.bin. Without it, $HOLDFAST_TEST_TOOLS, else
# a folder of the user's cache. Needs npm. Takes about 750 MB.
set -euo pipefail

claude_code=2.1.332
opencode=1.18.33

dir=${1:-${HOLDFAST_TEST_TOOLS:-${XDG_CACHE_HOME:-$HOME/.cache}/holdfast/test-tools}}
npm=$dir/npm
bin=$npm/node_modules/.bin

# A home of their own keeps the clients away from the user's settings.
home=$(mktemp -d)
trap 'rm -rf "$home"' EXIT

# version prints the first word that the client says of its version; nothing if it fails.
version() {
	local said
	said=$(env -i PATH="$PATH" HOME="$home" "$bin/$1" --version 2>/dev/null </dev/null) || return 0
	echo "${said%% *}"
}

complete() { [[ $(version claude) == "$claude_code" && $(version opencode) == "$opencode" ]]; }

if ! complete; then
	if ! command -v npm >/dev/null; then
		echo "tools.sh: the end-to-end tests drive real clients that come from npm: install Node.js with npm, then run this again" >&2
		exit 1
	fi
	echo "installing Claude Code $claude_code and opencode $opencode into $npm, once" >&2
	mkdir -p "$npm"
	# Its own package.json keeps npm from looking for a project above the folder.
	echo '{"private":true}' >"$npm/package.json"
	rm -f "$npm/package-lock.json"
	(cd "$npm" && npm install --no-audit --no-fund --loglevel=error --save-exact \
		"@anthropic-ai/claude-code@$claude_code" "opencode-ai@$opencode" >&2)
	if ! complete; then
		echo "tools.sh: installed, but claude says '$(version claude)' (want $claude_code) and opencode says '$(version opencode)' (want $opencode): remove $npm and run this again" >&2
		exit 1
	fi
fi
echo "$dir"
