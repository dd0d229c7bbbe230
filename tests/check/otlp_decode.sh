#!/bin/sh
# Holds our OTLP encoder, and so proto/otlp.proto, against OpenTelemetry's own messages: what
# export_test_otlp emits is decoded with the Python package opentelemetry-proto and compared.
#
# usage: otlp_decode.sh PATH-OF-export_test_otlp
# The package is taken from the virtual environment in $TSUNAGI_VENV, by default
# /var/cache/tsunagi/venv, which is made when it is not there. Without it: exit status 77.
set -eu

program=$1
venv=${TSUNAGI_VENV:-/var/cache/tsunagi/venv}
here=$(dirname "$0")

skip() {
	echo "skipped: $1"
	exit 77
}

if ! "$venv/bin/python3" -c "import opentelemetry.proto" 2>/dev/null; then
	python=$(command -v /usr/bin/python3 || command -v python3) || skip "no python3"
	"$python" -m venv "$venv" || skip "cannot make a virtual environment in $venv"
	"$venv/bin/pip" install --quiet --disable-pip-version-check opentelemetry-proto ||
		skip "cannot install opentelemetry-proto"
fi
"$program" emit | "$venv/bin/python3" "$here/otlp_decode.py"
