#!/usr/bin/env bash
# Makes a Chromium whose WebGPU runs on Mesa's lavapipe, a driver with shader-f16: see README.md.
#   make.sh TARGET [CHROMIUM]      CHROMIUM: the folder of the program, /usr/lib/chromium on Debian
set -euo pipefail
target=${1:?where to put it}
chromium=${2:-/usr/lib/chromium}
mkdir -p "$target"
cp -r "$chromium/." "$target/"
cc -shared -fPIC -O1 -Wall -Wextra -Werror -o "$target/libvk_swiftshader.so" "$(dirname "$0")/driver.c" -ldl
