/* SPDX-License-Identifier: MIT */
/* Conf files, ";" strings, the starter's answer, addresses: whatever parses must be usable, all else refused with a text. */
#include "fuzz.h"

#include "base/error.h"
#include "bootstrap/address.h"
#include "bootstrap/conf.h"
#include "bootstrap/starter.h"

static void judge(int err, const struct conf *conf)
{
	if (err) {
		fuzz_check(strcmp(error_text(), "unset") != 0);
		return;
	}
	fuzz_check(conf->size >= 1);
	fuzz_check(conf->hosts || conf->size == 1 || (conf->starter_host && conf->starter_port));
	for (int i = 0; conf->hosts && i < conf->size; i++)
		fuzz_check(conf->hosts[i].host && conf->hosts[i].port >= 0 && conf->hosts[i].port <= 65535);
	fuzz_check(!conf->hosts || conf->hosts[0].port != 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *bytes = fuzz_copy(data, size), *text = fuzz_text(data, size), *host = NULL;
	struct conf conf = {0};
	int port = 0;

	error_set(-1, "unset");
	judge(conf_parse_file(&conf, "fuzz", bytes, size, 1), &conf);
	conf_fini(&conf);
	conf = (struct conf){0};
	error_set(-1, "unset");
	judge(conf_parse_string(&conf, text), &conf);
	conf_fini(&conf);
	conf = (struct conf){.size = 3, .hosts = calloc(3, sizeof(*conf.hosts))};
	fuzz_check(conf.hosts);
	error_set(-1, "unset");
	judge(starter_parse(bytes, size, 3, conf.hosts), &conf);
	conf_fini(&conf);
	if (address_split(text, &host, &port) == 0)
		fuzz_check(*host && port >= 1 && port <= 65535);
	free(host);
	free(text);
	free(bytes);
	return 0;
}
