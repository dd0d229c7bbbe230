/*
 * A JVMTI agent for tests/agent/rewrite, loaded with the program (-agentpath): every method of every
 * class that is loaded then calls a method that does nothing where it begins, returns and throws, and
 * around the calls of interfaces' methods in it.
 * Workload.rewrite() does that to all that are loaded already, while they work. Its option is the class
 * file of the helper that has that method; says on standard error what it did.
 */
#include <jvmti.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "classfile.h"

#define HELPER "tsunagi/test/Helper"

static jvmtiEnv *jvmti;
static atomic_bool is_ready; /* the helper can be called */
static char *helper_bytes;
static long helper_size;
static atomic_long n_classes, n_methods, n_refused, n_plain, n_failed;

static const struct class_hook hook = {
	.entry = {{.method = "nothing", .descriptor = "()V"}},
	.exit = {.method = "nothing", .descriptor = "()V"},
	.is_finally = true,
};

/* And around each call of an interface's method that takes and returns nothing. */
static const struct class_site site = {
	.descriptor = "()V",
	.before = {.method = "nothing", .descriptor = "(Ljava/lang/Object;)V"},
	.before_in_loop = {.method = "nothing", .descriptor = "(Ljava/lang/Object;)V"},
	.after = {.method = "nothing", .descriptor = "()V"},
	.caught = {.method = "nothing", .descriptor = "()V"},
};

static void JNICALL on_class(jvmtiEnv *env, JNIEnv *jni, jclass redefined, jobject loader,
			     const char *name, jobject domain, jint size,
			     const unsigned char *bytes, jint *ret_size, unsigned char **ret)
{
	const struct class_rewrite rewrite = {
		.bytes = bytes,
		.size = (size_t)size,
		.hooks = &hook,
		.n_hooks = 1,
		.site = &site,
		.owner = HELPER,
		.is_for_all = true,
	};
	uint8_t *made = NULL;
	size_t made_size;
	uint32_t found;
	int n;

	(void)jni, (void)loader, (void)domain, (void)redefined;
	if (!is_ready || !name || !strcmp(name, HELPER))
		return;
	n = class_rewrite(&rewrite, &made, &made_size, &found);
	if (n <= 0) {
		atomic_fetch_add(n < 0 ? &n_refused : &n_plain, 1);
		if (n < 0)
			fprintf(stderr, "REFUSED %s: %d\n", name, n);
		return;
	}
	atomic_fetch_add(&n_methods, n);
	atomic_fetch_add(&n_classes, 1);
	if (!(*env)->Allocate(env, (jlong)made_size, ret)) {
		memcpy(*ret, made, made_size);
		*ret_size = (jint)made_size;
	}
	free(made);
}

/* Modules do not read the boot loader's unnamed one, where the helper is, by themselves. */
static void modules_open(JNIEnv *jni, jclass helper)
{
	jclass class = (*jni)->FindClass(jni, "java/lang/Class");
	jmethodID get = (*jni)->GetMethodID(jni, class, "getModule", "()Ljava/lang/Module;");
	jobject ours, *modules;
	jint n;

	if (!get) { /* JDK 8 */
		(*jni)->ExceptionClear(jni);
		return;
	}
	ours = (*jni)->CallObjectMethod(jni, helper, get);
	if ((*jvmti)->GetAllModules(jvmti, &n, &modules))
		return;
	for (jint i = 0; i < n; i++)
		(*jvmti)->AddModuleReads(jvmti, modules[i], ours);
	(*jvmti)->Deallocate(jvmti, (unsigned char *)modules);
}

static void JNICALL on_start(jvmtiEnv *env, JNIEnv *jni, jthread thread)
{
	jclass helper = (*jni)->DefineClass(jni, HELPER, NULL, (const jbyte *)helper_bytes,
					    (jsize)helper_size);

	(void)env, (void)thread;
	if (!helper)
		abort();
	modules_open(jni, helper);
	(*jni)->CallStaticVoidMethod(jni, helper,
				     (*jni)->GetStaticMethodID(jni, helper, "nothing", "()V"));
	is_ready = true;
}

/* One at a time: an error is of one class. */
JNIEXPORT void JNICALL Java_Workload_rewrite(JNIEnv *jni, jclass class)
{
	jclass *classes;
	jint n;

	(void)jni, (void)class;
	if ((*jvmti)->GetLoadedClasses(jvmti, &n, &classes))
		abort();
	for (jint i = 0; i < n; i++) {
		jboolean is_modifiable = JNI_FALSE;
		char *name = NULL;
		jvmtiError e;

		(*jvmti)->IsModifiableClass(jvmti, classes[i], &is_modifiable);
		(*jvmti)->GetClassSignature(jvmti, classes[i], &name, NULL);
		e = is_modifiable ? (*jvmti)->RetransformClasses(jvmti, 1, &classes[i]) : 0;
		if (e && atomic_fetch_add(&n_failed, 1) < 20)
			fprintf(stderr, "FAILED %s: %d\n", name ?: "?", e);
		(*jvmti)->Deallocate(jvmti, (unsigned char *)name);
	}
	(*jvmti)->Deallocate(jvmti, (unsigned char *)classes);
}

static void JNICALL on_end(jvmtiEnv *env, JNIEnv *jni)
{
	(void)env, (void)jni;
	is_ready = false;
	fprintf(stderr, "REWRITTEN %ld %ld %ld %ld %ld\n", n_classes, n_methods, n_plain, n_refused,
		n_failed);
}

static int helper_read(const char *path)
{
	FILE *file = fopen(path, "rb");

	if (!file)
		return -1;
	fseek(file, 0, SEEK_END);
	helper_size = ftell(file);
	rewind(file);
	helper_bytes = malloc((size_t)helper_size);
	if (!helper_bytes || fread(helper_bytes, (size_t)helper_size, 1, file) != 1)
		helper_size = -1;
	fclose(file);
	return helper_size > 0 ? 0 : -1;
}

JNIEXPORT jint JNICALL Agent_OnLoad(JavaVM *vm, char *options, void *reserved)
{
	const jvmtiCapabilities wanted = {.can_retransform_classes = 1,
					  .can_retransform_any_class = 1};
	const jvmtiEventCallbacks callbacks = {
		.ClassFileLoadHook = on_class, .VMInit = on_start, .VMDeath = on_end};
	static const jvmtiEvent events[] = {JVMTI_EVENT_CLASS_FILE_LOAD_HOOK, JVMTI_EVENT_VM_INIT,
					    JVMTI_EVENT_VM_DEATH};

	(void)reserved;
	if (helper_read(options) < 0)
		return 1;
	if ((*vm)->GetEnv(vm, (void **)&jvmti, JVMTI_VERSION_9) &&
	    (*vm)->GetEnv(vm, (void **)&jvmti, JVMTI_VERSION_1_2))
		return 1;
	if ((*jvmti)->AddCapabilities(jvmti, &wanted) ||
	    (*jvmti)->SetEventCallbacks(jvmti, &callbacks, sizeof(callbacks)))
		return 1;
	for (size_t i = 0; i < sizeof(events) / sizeof(*events); i++)
		if ((*jvmti)->SetEventNotificationMode(jvmti, JVMTI_ENABLE, events[i], NULL))
			return 1;
	return 0;
}
