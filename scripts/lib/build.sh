# SPDX-License-Identifier: MIT
# Sourced by scripts/demo and scripts/test.
#
#   build_folder SOURCE FOLDER [meson options]
#
# Configures (anew where it must be) and builds; prints one line, and the whole output if it fails.

build_folder() {
	local source=$1 folder=$2 log
	shift 2
	log=$(mktemp) || return 1
	echo "Building $(basename "$folder") ..."
	if build_configure "$source" "$folder" "$@" >"$log" 2>&1 && ninja -j "$(nproc)" -C "$folder" >>"$log" 2>&1; then
		rm -f "$log"
		return 0
	fi
	cat "$log" >&2
	rm -f "$log"
	echo "The build in $folder failed; its output is above." >&2
	return 1
}

build_configure() {
	local source=$1 folder=$2
	shift 2
	if [ ! -e "$folder/build.ninja" ]; then
		meson setup "$folder" "$source" "$@"
	else
		# Of another Meson or a moved checkout: start over.
		meson setup --reconfigure "$folder" "$source" "$@" || meson setup --wipe "$folder" "$source" "$@"
	fi
}
