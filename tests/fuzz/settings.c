/* SPDX-License-Identifier: MIT */
/* Lines name=value: what is accepted is in range and is the same when it is set again from how it is shown. */
#include "fuzz.h"

#include "base/error.h"
#include "base/settings.h"

static void judge(const struct settings *s, struct settings *again, enum setting id)
{
	const struct setting_info *info = setting_info(id);
	int64_t number = settings_int(s, id);
	const char *text = settings_text(s, id);

	if (info->kind == SETTING_KIND_INT || info->kind == SETTING_KIND_BYTES)
		fuzz_check((number >= info->min && number <= info->max) || (number == -1 && info->accepts_auto));
	if (id != SETTING_JOB_SECRET || !*text) {
		fuzz_check(settings_set(again, SETTINGS_CALLER, info->name, text, "again") == 0);
		fuzz_check(settings_int(again, id) == number && strcmp(settings_text(again, id), text) == 0);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_text(data, size), *rest = text, *line;
	struct settings *s = settings_new(), *again = settings_new();
	int layer = SETTINGS_EMBEDDER;

	fuzz_check(s && again);
	while ((line = strsep(&rest, "\n"))) {
		error_set(-1, "unset");
		if (settings_set_pair(s, (enum settings_layer)layer, line, "fuzz") < 0)
			fuzz_check(strcmp(error_text(), "unset") != 0 && *error_text());
		layer = layer == SETTINGS_CALLER ? SETTINGS_EMBEDDER : layer + 1;
	}
	for (int id = 0; id < SETTING_COUNT; id++)
		if (strcmp(settings_origin(s, (enum setting)id), "default") != 0)
			judge(s, again, (enum setting)id);
	settings_free(again);
	settings_free(s);
	free(text);
	return 0;
}
