/* SPDX-License-Identifier: MIT */
/* Conf files, ";" strings, the starter's answer, addresses: whatever parses must be usable, all else refused. */
#include "fuzz.h"

#include "base/error.h"
#include "bootstrap/address.h"
#include "bootstrap/conf.h"
#include "bootstrap/starter.h"

#define ROOM 2048

static const char *const files[] = {
	"# comment\n2\n131072\nlocalhost@20000@20001@0@8000\nlocalhost@20002@20003@1@8002\n",
	"3\r\n0\r\n#ibvdev psl=64k\r\na@2000@2001@2\r\n::1@3000@3001@0\r\nc@4000@4001@1\r\n",
	"#temp line\n#Number of Processes\n2\n#Protocol Switch "
	"Limit\n131072\nlocalhost@0@0@0\nlocalhost@1@1@2",
	"1\n1\nh@65535@65535@0@0\n#ibvdev log=info\n#ibvdev\tcma=never\n",
};
static const char *const strings[] = {
	"#Number of Processes;2;#Protocol Switch Limit;131072;#Server Name;localhost;#Server Port;40002",
	"#Server Port;1;#Server Name;::1;x;y;#Number of Processes;65536;",
};
static const char *const answers[] = {
	"#Peer Information;127.0.0.1@25000@25001@0@24500;10.0.0.7@0@0@1@24502;fe80::1%eth0@1@2@2@0",
	"#Peer Information;a@1@1@2@0;b@2@2@1@0;c@3@3@0@0;",
};
static const char *const addresses[] = {"host.example:20000", "[::1]:1", "10.0.0.1:65535"};

static size_t pick(struct fuzz_rng *rng, const char *const *from, size_t count, char *out)
{
	const char *seed = from[fuzz_below(rng, count)];
	size_t len = strlen(seed);

	memcpy(out, seed, len);
	for (size_t i = fuzz_below(rng, 5); i > 0; i--)
		fuzz_damage(rng, (uint8_t *)out, &len, ROOM);
	out[len] = '\0';
	return len;
}
#define PICK(rng, from, out) pick(rng, from, sizeof(from) / sizeof(from[0]), out)

/* A refusal has a text, an acceptance a complete conf. */
static int judge(int err, const struct conf *conf, const char *input)
{
	int bad = 0;

	if (err)
		bad = strcmp(error_text(), "unset") == 0;
	else if (conf->size < 1 || (!conf->hosts && conf->size > 1 && (!conf->starter_host || !conf->starter_port)))
		bad = 1;
	for (int i = 0; !err && conf->hosts && i < conf->size; i++)
		bad |= !conf->hosts[i].host || conf->hosts[i].port < 0 || conf->hosts[i].port > 65535;
	if (!err && conf->hosts)
		bad |= conf->hosts[0].port == 0;
	if (bad)
		fprintf(stderr, "%d (%s) for: %s\n", err, error_text(), input);
	return bad;
}

static int fuzz_file(struct fuzz_rng *rng, char *text)
{
	size_t len = PICK(rng, files, text);
	char *exact = malloc(len ? len : 1); /* so that a read beyond the end is seen */
	struct conf conf = {0};
	int bad;

	if (!exact)
		return 1;
	memcpy(exact, text, len);
	bad = judge(conf_parse_file(&conf, "fuzz", exact, len, 1), &conf, text);
	conf_fini(&conf);
	free(exact);
	return bad;
}

static int fuzz_string(struct fuzz_rng *rng, char *text)
{
	struct conf conf = {0};
	int bad;

	PICK(rng, strings, text);
	bad = judge(conf_parse_string(&conf, text), &conf, text);
	conf_fini(&conf);
	return bad;
}

static int fuzz_answer(struct fuzz_rng *rng, char *text)
{
	struct conf conf = {.size = 3};
	size_t len = PICK(rng, answers, text);
	int bad;

	conf.hosts = calloc(3, sizeof(*conf.hosts));
	if (!conf.hosts)
		return 1;
	bad = judge(starter_parse(text, len, 3, conf.hosts), &conf, text);
	conf_fini(&conf);
	return bad;
}

static int fuzz_address(struct fuzz_rng *rng, char *text)
{
	char *host = NULL;
	int port = 0, bad = 0;

	PICK(rng, addresses, text);
	if (address_split(text, &host, &port) == 0)
		bad = !*host || port < 1 || port > 65535;
	free(host);
	return bad;
}

static int target(struct fuzz_rng *rng)
{
	char text[ROOM + 1];

	error_set(-1, "unset");
	switch (fuzz_below(rng, 4)) {
	case 0: return fuzz_file(rng, text);
	case 1: return fuzz_string(rng, text);
	case 2: return fuzz_answer(rng, text);
	default: return fuzz_address(rng, text);
	}
}

int main(int argc, char **argv)
{
	return fuzz_main(argc, argv, 100000, target);
}
