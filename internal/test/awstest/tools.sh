#!/usr/bin/env bash
# Installs what stands for AWS in tests, and what deploys there: MiniStack, moto and the SAM
# CLI, each in an environment of its own below DIR/aws, unless they are there in these
# versions. With names, only those. Needs python3 with venv.
#
#   internal/test/awstest/tools.sh DIR [ministack] [moto] [sam]
set -euo pipefail

dir=${1:?usage: tools.sh DIR [NAME...]}/aws
shift
wanted=" ${*:-ministack moto sam} "

install() { # FOLDER REQUIREMENT...
	local at=$dir/$1
	case $wanted in *" $1 "*) ;; *) return ;; esac
	shift
	if [ "$(cat "$at/installed" 2>/dev/null)" = "$*" ]; then
		return
	fi
	echo "installing $*, once" >&2
	rm -rf "$at"
	python3 -m venv "$at"
	"$at/bin/pip" install --quiet --disable-pip-version-check "$@"
	echo "$*" >"$at/installed"
}

mkdir -p "$dir"
exec 9>"$dir/lock"
if command -v flock >/dev/null; then
	flock 9 # two runs at once would undo each other's work
fi
install ministack 'ministack[full]==1.5.33' 'cbor2==6.3.0'
install moto 'moto[server]==5.2.5'
install sam 'aws-sam-cli==1.170.0' 'cfn-lint==1.58.0'
