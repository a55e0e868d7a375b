/* SPDX-License-Identifier: MIT */
/* ibvx_describe: what ibvdev-info prints of the library. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/error.h"
#include "core/core.h"
#include "core/lifecycle.h"

struct describe_text {
	FILE *f;
	char *text;
	size_t size;
};

static void describe_host(FILE *f)
{
	struct utsname u;
	char thp[80] = "unknown";
	FILE *in = fopen("/sys/kernel/mm/transparent_hugepage/enabled", "re");

	if (in) {
		if (fgets(thp, sizeof(thp), in))
			thp[strcspn(thp, "\n")] = '\0';
		fclose(in);
	}
	fprintf(f, "library:     ibvdev %s, wire protocol %u\n", IBVX_VERSION, WIRE_VERSION);
	if (uname(&u) == 0)
		fprintf(f, "kernel:      %s %s %s, %ld processors online\n", u.sysname, u.release, u.machine,
			sysconf(_SC_NPROCESSORS_ONLN));
	fprintf(f, "pages:       %ld bytes, transparent huge pages: %s\n", sysconf(_SC_PAGESIZE), thp);
}

static void describe_transports(FILE *f, const struct settings *s)
{
	fprintf(f, "transports:\n");
	for (int i = 0; transport_all[i]; i++) {
		char more[2048] = "";
		int rc = transport_all[i]->describe(s, more, sizeof(more));

		if (rc < 0)
			fprintf(f, "  %-10s unavailable: %s\n", transport_all[i]->name, error_text());
		else
			fprintf(f, "  %-10s available\n", transport_all[i]->name);
		for (char *line = strtok(more, "\n"); line; line = strtok(NULL, "\n"))
			fprintf(f, "  %s\n", line);
	}
	for (int i = 0; transport_absent[i].name; i++)
		fprintf(f, "  %-10s unavailable: %s\n", transport_absent[i].name, transport_absent[i].why);
}

static void describe_range(FILE *f, const struct setting_info *i)
{
	switch (i->kind) {
	case SETTING_KIND_INT:
	case SETTING_KIND_BYTES:
		fprintf(f, "%s%lld..%lld%s%s", i->accepts_auto ? "auto, " : "", (long long)i->min, (long long)i->max, i->unit[0] ? " " : "",
			i->unit);
		return;
	case SETTING_KIND_BOOL: fprintf(f, "on, off"); return;
	case SETTING_KIND_CHOICE:
		for (int c = 0; i->choices[c]; c++)
			fprintf(f, "%s%s", c ? ", " : "", i->choices[c]);
		return;
	case SETTING_KIND_TEXT: fprintf(f, "text"); return;
	}
}

static void describe_settings(FILE *f, const struct settings *s)
{
	fprintf(f, "settings (environment IBVDEV_<NAME>, system property ibvdev.<name>, conf file line \"#ibvdev <name>=...\"):\n");
	for (int id = 0; id < SETTING_COUNT; id++) {
		const struct setting_info *i = setting_info((enum setting)id);

		fprintf(f, "  %-18s = %-12s  default %s; ", i->name, settings_text(s, (enum setting)id),
			i->fallback[0] ? i->fallback : "(empty)");
		describe_range(f, i);
		fprintf(f, "; set by: %s\n  %21s%s\n", settings_origin(s, (enum setting)id), "", i->help);
	}
}

/* The conf file's settings, as bootstrap_open would apply them. */
static int describe_conf(struct settings *s, const struct ibvx_config *cfg, FILE *f)
{
	struct bootstrap_config bc = {.rank = 0, .conf = cfg->conf, .settings = s};
	struct bootstrap *b = NULL;
	int size = 0, rc;

	if (!cfg->conf || strcmp(cfg->conf, "auto") == 0)
		return 0;
	rc = bootstrap_open(&b, &bc, &size);
	bootstrap_close(b);
	if (rc == 0)
		fprintf(f, "conf:        %s (%d ranks)\n", cfg->conf, size);
	return rc;
}

int ibvx_describe(const struct ibvx_config *cfg, char **out)
{
	struct describe_text t = {0};
	struct settings *s;
	int rc = life_settings(&s, cfg);

	*out = NULL;
	if (rc < 0)
		return rc;
	t.f = open_memstream(&t.text, &t.size);
	if (!t.f) {
		settings_free(s);
		return error_set(-ENOMEM, "no memory for a description");
	}
	describe_host(t.f);
	rc = describe_conf(s, cfg, t.f);
	if (rc == 0)
		rc = core_check_transports(s);
	if (rc == 0) {
		describe_transports(t.f, s);
		describe_settings(t.f, s);
	}
	fclose(t.f);
	settings_free(s);
	if (rc < 0) {
		free(t.text);
		return rc;
	}
	*out = t.text;
	return 0;
}
