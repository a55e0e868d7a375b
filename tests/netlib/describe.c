/* SPDX-License-Identifier: MIT */
/* describe ucx|ofi: what ibvdev-info reports of the transport; status 1 and the reason if it cannot be used. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "transport/ofi/ofi.h"
#include "transport/ucx/ucx.h"

int main(int argc, char **argv)
{
	const struct transport_ops *ops = argc == 2 && strcmp(argv[1], "ofi") == 0 ? &transport_ofi_ops : &transport_ucx_ops;
	struct settings *settings = settings_new();
	char out[4096] = "";
	int rc = settings ? ops->describe(settings, out, sizeof(out)) : 1;

	puts(rc < 0 ? error_text() : out);
	settings_free(settings);
	return rc < 0;
}
