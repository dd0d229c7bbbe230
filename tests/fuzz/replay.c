/*
 * Runs a fuzzer's entry point on every file of the folder or files given: the corpus as a test,
 * with any compiler. Exit status 1 when there was nothing to replay.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay_file(const char *path)
{
	static uint8_t buffer[1 << 20];
	FILE *file = fopen(path, "re");
	size_t n;

	if (!file)
		return 0;
	n = fread(buffer, 1, sizeof(buffer), file);
	fclose(file);
	LLVMFuzzerTestOneInput(buffer, n);
	return 1;
}

int main(int argc, char **argv)
{
	int replayed = 0;

	for (int i = 1; i < argc; i++) {
		struct dirent *entry;
		DIR *dir = opendir(argv[i]);
		char path[4096];

		if (!dir) {
			replayed += replay_file(argv[i]);
			continue;
		}
		while ((entry = readdir(dir))) {
			if (entry->d_name[0] == '.')
				continue;
			snprintf(path, sizeof(path), "%s/%s", argv[i], entry->d_name);
			replayed += replay_file(path);
		}
		closedir(dir);
	}
	printf("%d inputs replayed\n", replayed);
	return replayed ? 0 : 1;
}
