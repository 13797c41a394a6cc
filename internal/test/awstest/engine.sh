#!/usr/bin/env bash
# Runs a command with a container engine at hand that has the image in which `sam local`
# runs the functions, and leaves nothing behind. No image registry is asked.
#
#   internal/test/awstest/engine.sh DIR COMMAND [ARGUMENT...]
#
# DIR keeps the image between runs. The command finds DOCKER_HOST, and in
# HOLDFAST_TEST_BRIDGE the address by which containers reach this machine.
#
# An engine that answers is used. Without one, and as root, dockerd is started beside
# whatever there is: socket, data and bridge are its own, it writes no rules of iptables and
# changes no setting of the kernel's, and at the end it is gone with all of them. Debian's
# docker.io is installed for that where dockerd is missing. Containers then reach this
# machine and nothing beyond it. Needs Linux, and Go for the image.
set -euo pipefail

dir=${1:?usage: engine.sh DIR COMMAND [ARGUMENT...]}/aws/image
shift
: "${1:?usage: engine.sh DIR COMMAND [ARGUMENT...]}"
PATH=$PATH:/usr/sbin:/sbin

say() { echo "engine.sh: $*" >&2; }
fail() {
	say "$*"
	exit 1
}

case $(uname -m) in
x86_64) arch=x86_64 ;;
aarch64 | arm64) arch=arm64 ;;
*) fail "SAM has no image for $(uname -m)" ;;
esac
image=public.ecr.aws/lambda/provided:al2023-rapid-$arch
emulator=github.com/aws/aws-lambda-runtime-interface-emulator/cmd/aws-lambda-rie@v0.0.0-20261030222936-bef5c4ba774d

work=$(mktemp -d "${TMPDIR:-/tmp}/holdfast-engine-XXXXXX")
engine= bridge= imported=
clean() {
	set +e
	if [ -n "$engine" ]; then
		docker ps --all --quiet | xargs --no-run-if-empty docker rm --force >/dev/null
		kill "$engine" && wait "$engine"
	elif [ -n "$imported" ]; then
		docker image rm "$image" >/dev/null
	fi
	if [ -n "$bridge" ]; then
		ip link delete "$bridge"
	fi
	rm -rf "$work"
}
trap clean EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# answers reports whether there is an engine, of Linux.
answers() { [ "$(timeout 10 docker version --format '{{.Server.Os}}' 2>/dev/null)" = linux ]; }

install() {
	if [ "$(id -u)" != 0 ]; then
		fail "no container engine answers: start one that you may use (docker version), or run this as root"
	fi
	local tool missing=
	for tool in docker dockerd ip; do
		command -v $tool >/dev/null || missing="$missing $tool"
	done
	if [ -z "$missing" ]; then
		return
	fi
	command -v apt-get >/dev/null || fail "there is no$missing here, and no apt-get to install it with: install docker and iproute2"
	say "installing docker.io and iproute2, for want of$missing"
	local packages=(docker.io iproute2)
	apt-get -qq update >"$work/apt" 2>&1 || fail "apt-get update: $(cat "$work/apt")"
	if apt-cache show docker-cli >/dev/null 2>&1; then # where the client is a package of its own
		packages+=(docker-cli)
	fi
	DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=120 install --yes --no-install-recommends "${packages[@]}" >"$work/apt" 2>&1 ||
		fail "apt-get install ${packages[*]}: $(cat "$work/apt")"
}

# unused prints the first three numbers of a network that this machine knows no way to.
unused() {
	local net n=$(($$ % 250))
	for net in 10.213.$n 10.214.$n 172.29.$n 192.168.$n; do
		if [ -z "$(ip -4 route show root "$net.0/24"; ip -4 route show match "$net.0/24" | grep -v ^default)" ]; then
			echo "$net"
			return
		fi
	done
	fail "every network that a bridge could have is in use here"
}

start() {
	local net
	net=$(unused)
	ip link add name "hf$$" type bridge || fail "the kernel lets no bridge be made (ip link add type bridge): containers are not possible here"
	bridge=hf$$
	ip address add "$net.1/24" dev "$bridge"
	ip link set "$bridge" up
	echo '{}' >"$work/daemon.json" # not the machine's
	export DOCKER_HOST=unix://$work/docker.sock
	# A group of its own, so that an interrupt reaches it after the command; it goes when this
	# script is gone, however it went; and what it mounts is seen by nobody else and goes with
	# it, the control groups too where nobody has mounted them.
	setsid setpriv --pdeathsig TERM unshare --mount sh -c 'mountpoint -q /sys/fs/cgroup || mount -t cgroup2 cgroup2 /sys/fs/cgroup; exec "$@"' sh \
		dockerd --config-file "$work/daemon.json" --host "$DOCKER_HOST" --pidfile "$work/pid" \
		--data-root "$work/data" --exec-root "$work/exec" --bridge "$bridge" --log-level warn \
		--iptables=false --ip6tables=false --ip-forward=false --ip-masq=false >"$work/log" 2>&1 &
	engine=$!
	for _ in $(seq 120); do
		kill -0 "$engine" 2>/dev/null || break
		if answers; then
			return
		fi
		sleep 0.5
	done
	tail -n 20 "$work/log" >&2
	fail "dockerd does not run here; its log is above"
}

# make makes the image as a file, at most once for each recipe, which is this script and
# the certificates. There is nothing in it but the emulator: the functions need no more.
make() {
	local certificates recipe root=$work/root
	for certificates in /etc/ssl/certs/ca-certificates.crt /etc/pki/tls/certs/ca-bundle.crt /etc/ssl/ca-bundle.pem /dev/null; do
		[ ! -e $certificates ] || break
	done
	recipe=$(cat "$0" "$certificates" | sha256sum | cut -c 1-16)
	file=$dir/$recipe.tar
	if [ -e "$file" ]; then
		return
	fi
	say "making the image, once"
	mkdir -p "$dir" "$root"/{etc/ssl/certs,opt,tmp,var/{rapid,runtime,task}}
	GOBIN=$root/var/rapid CGO_ENABLED=0 GOFLAGS=-trimpath go install -ldflags '-s -w' "$emulator"
	echo 'root:x:0:0::/:/none' >"$root/etc/passwd"
	cat "$certificates" >"$root/etc/ssl/certs/ca-certificates.crt"
	chmod 1777 "$root/tmp"
	tar --create --directory "$root" --owner 0 --group 0 --file "$work/image.tar" .
	rm -f "$dir"/*.tar
	mv "$work/image.tar" "$file"
}

if ! answers; then
	install
	start
elif [ -z "${DOCKER_HOST:-}" ]; then # which the SAM CLI does not find by a context
	DOCKER_HOST=$(docker context inspect --format '{{.Endpoints.docker.Host}}')
	export DOCKER_HOST
fi
label=holdfast.engine
there=$(docker image inspect --format "{{index .Config.Labels \"$label\"}}." "$image" 2>/dev/null || true)
case $there in
"" | made.) # none, or one that was left by a run that could not clean
	make
	docker import --change "LABEL $label=made" --change 'WORKDIR /var/task' \
		--change 'ENV LAMBDA_TASK_ROOT=/var/task LAMBDA_RUNTIME_DIR=/var/runtime PATH=/usr/local/bin:/usr/bin:/bin:/opt/bin TZ=:/etc/localtime' \
		"$file" "$image" >/dev/null
	imported=yes
	;;
esac
HOLDFAST_TEST_BRIDGE=$(docker network inspect --format '{{range .IPAM.Config}}{{println .Gateway}}{{end}}' bridge | grep -m 1 -F .)
export HOLDFAST_TEST_BRIDGE
say "$(docker version --format 'engine {{.Server.Version}}'), $image, containers reach this machine by $HOLDFAST_TEST_BRIDGE"
"$@"
