/* Names of users; see user.h. */
#include "discover/user.h"

#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/util.h"

#define PASSWD             "/etc/passwd"
#define CACHE_ENTRIES      64
#define PASSWD_ENTRIES_MAX 65536

struct cached_user {
	char name[USER_NAME_MAX]; /* empty: no entry */
	uint32_t uid;
};

static void read_name(uint32_t uid, char ret_name[USER_NAME_MAX])
{
	struct passwd entry, *found;
	char buffer[4096];
	FILE *file = fopen(PASSWD, "re");

	snprintf(ret_name, USER_NAME_MAX, "%" PRIu32, uid);
	if (!file)
		return;
	for (unsigned int i = 0; i < PASSWD_ENTRIES_MAX; i++) {
		if (fgetpwent_r(file, &entry, buffer, sizeof(buffer), &found))
			break;
		if (found->pw_uid == uid) {
			snprintf(ret_name, USER_NAME_MAX, "%s", found->pw_name);
			break;
		}
	}
	fclose(file);
}

void user_name(uint32_t uid, char ret_name[USER_NAME_MAX])
{
	static struct cached_user cache[CACHE_ENTRIES];
	static struct timespec cache_mtime;
	struct cached_user *slot = &cache[uid % CACHE_ENTRIES];
	struct stat st = {0};

	/* A failure leaves the time at zero, which is as good a key as any. */
	(void)stat(PASSWD, &st);
	if (memcmp(&st.st_mtim, &cache_mtime, sizeof(cache_mtime)) != 0) {
		memset(cache, 0, sizeof(cache));
		cache_mtime = st.st_mtim;
	}
	if (!slot->name[0] || slot->uid != uid) {
		read_name(uid, slot->name);
		slot->uid = uid;
	}
	memcpy(ret_name, slot->name, USER_NAME_MAX);
}
