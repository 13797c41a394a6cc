#!/usr/bin/env bash
# Installs the two stand-ins for AWS that tests start, each in an environment of its own
# below DIR/aws, unless they are there in these versions. Needs python3 with venv.
#
#   internal/awstest/tools.sh DIR
set -euo pipefail

dir=${1:?usage: tools.sh DIR}/aws
install() { # FOLDER REQUIREMENT
	local at=$dir/$1 requirement=$2
	if [ "$(cat "$at/installed" 2>/dev/null)" = "$requirement" ]; then
		return
	fi
	echo "installing $requirement, once" >&2
	rm -rf "$at"
	python3 -m venv "$at"
	"$at/bin/pip" install --quiet --disable-pip-version-check "$requirement"
	echo "$requirement" >"$at/installed"
}

mkdir -p "$dir"
exec 9>"$dir/lock"
if command -v flock >/dev/null; then
	flock 9 # two runs at once would undo each other's work
fi
install ministack 'ministack[full]==1.5.33'
install moto 'moto[server]==5.2.5'
