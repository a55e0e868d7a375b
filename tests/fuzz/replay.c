/* SPDX-License-Identifier: MIT */
/* Where there is no libFuzzer: every file of the folders that are named, once. */
#include <dirent.h>

#include "fuzz.h"

static int replay(const char *folder, const char *name)
{
	char path[4096];
	uint8_t *bytes;
	size_t size;
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	file = fopen(path, "rb");
	bytes = malloc(1 << 20);
	if (!file || !bytes) {
		fprintf(stderr, "cannot read %s\n", path);
		exit(1);
	}
	size = fread(bytes, 1, 1 << 20, file);
	fclose(file);
	fprintf(stderr, "%s\n", path);
	bytes = realloc(bytes, size ? size : 1);
	LLVMFuzzerTestOneInput(bytes, size);
	free(bytes);
	return 1;
}

int main(int argc, char **argv)
{
	int count = 0;

	for (int i = 1; i < argc; i++) {
		DIR *folder = opendir(argv[i]);
		struct dirent *entry;

		while (folder && (entry = readdir(folder)))
			if (entry->d_name[0] != '.')
				count += replay(argv[i], entry->d_name);
		if (folder)
			closedir(folder);
	}
	fprintf(stderr, "%d inputs\n", count);
	return count ? 0 : 1;
}
