/* Executors known by their shape, and their names: see executors.h. */
#include <jvmti.h>
#include <stdatomic.h>
#include <string.h>

#include "agent.h"
#include "executors.h"

#define DRAINS "tsunagi/agent/Drains"
#define OBJECT "(Ljava/lang/Object;)V"

/* Methods that take a job, and anything besides. */
#define TAKES "(Ljava/lang/Runnable;"

#define ACCEPTS(name)                                               \
	{                                                           \
		.method = name, .descriptor = TAKES "*", .entry = { \
			{"handed", OBJECT, "a1", NULL, DRAINS}      \
		}                                                   \
	}

/* Guava's futures, also where they are part of another library: what waits for one is of who added it. */
#define LISTENER TAKES "Ljava/util/concurrent/Executor;)V"
#define LISTENS(name)                                                         \
	{                                                                     \
		.method = name, .descriptor = LISTENER, .entry = {            \
			{"queued", OBJECT, "a1", NULL, "tsunagi/agent/Tasks"} \
		}                                                             \
	}

/* The first that fits counts. */
static const struct class_hook hooks[] = {
	{
		.method = "executeListener", /* static, and private */
		.descriptor = LISTENER,
		.entry = {{"listening", OBJECT, "a0", NULL, DRAINS}},
		.exit = {"ran", "()V", NULL, NULL, DRAINS},
		.is_finally = true,
	},
	LISTENS("addListener"),
	LISTENS("add"),
	ACCEPTS("execute*"),
	ACCEPTS("submit*"),
	ACCEPTS("schedule*"),
	ACCEPTS("start*"), /* an asynchronous request's work */
};

const struct hook_class executors_hooks = {
	.name = "an executor", .hooks = hooks, .n_hooks = sizeof(hooks) / sizeof(*hooks)};

const struct class_site executors_site = {
	.method = "run",
	.descriptor = "()V",
	.before = {"calling", OBJECT, NULL, NULL, DRAINS},
	.before_in_loop = {"running", OBJECT, NULL, NULL, DRAINS},
	.after = {"ran", "()V", NULL, NULL, DRAINS},
	.enter = {"enter", "()V", NULL, NULL, DRAINS},
	.enter_loop = {"enterLoop", "()V", NULL, NULL, DRAINS},
	.leave = {"leave", "()V", NULL, NULL, DRAINS},
	.caught = {"caught", "()V", NULL, NULL, DRAINS},
};

/* --- who runs what was handed to others: see executors.h */

static const struct class_reference run = {"java/lang/Runnable", "run", "()V"};

const struct hook_class executors_relays = {.name = "a relay"};

const struct class_site executors_relays_site = {
	.method = "run",
	.descriptor = "()V",
	.before = {"passing", OBJECT, NULL, NULL, DRAINS},
	.before_in_loop = {"passing", OBJECT, NULL, NULL, DRAINS},
	.after = {"ran", "()V", NULL, NULL, DRAINS},
	.enter = {"enter", "()V", NULL, NULL, DRAINS},
	.leave = {"passed", "()V", NULL, NULL, DRAINS},
	.caught = {"caught", "()V", NULL, NULL, DRAINS},
};

/* --- the executors' names */

/* Their names, by a hash that no two of a process's classes have in common; 0 is free. */
#define KNOWN_MAX 4096
#define TRIES_MAX 16

static _Atomic(uint64_t) known[KNOWN_MAX];

#define HASH_SEED 14695981039346656037ULL

static uint64_t hash_next(uint64_t hash, char c)
{
	return (hash ^ (uint8_t)c) * 1099511628211ULL; /* FNV-1a */
}

static bool is_known(uint64_t hash)
{
	for (size_t i = 0; i < TRIES_MAX; i++) {
		uint64_t found = atomic_load(&known[(hash + i) % KNOWN_MAX]);

		if (!found || found == hash)
			return found;
	}
	return false;
}

/* Threads load classes at once. */
static void executors_add(const char *name, size_t length)
{
	uint64_t hash = HASH_SEED;

	for (size_t i = 0; i < length; i++)
		hash = hash_next(hash, name[i]);
	for (size_t i = 0; i < TRIES_MAX; i++) {
		uint64_t found = 0;

		if (atomic_compare_exchange_strong(&known[(hash + i) % KNOWN_MAX], &found, hash) ||
		    found == hash)
			return;
	}
	__atomic_add_fetch(&agent_control.hooks_failed, 1, __ATOMIC_RELAXED);
}

bool executors_is_inside(const char *name, size_t length)
{
	uint64_t hash = HASH_SEED;

	for (size_t i = 0; i < length; i++) {
		if (name[i] == '$' && i && is_known(hash))
			return true;
		hash = hash_next(hash, name[i]);
	}
	return false;
}

/* Packages that have tables (hooks_*.c), which know more of their executors. */
static bool is_in_table(const char *name)
{
	static const char *const packages[] = {"io/netty/", "kotlinx/coroutines/"};

	for (size_t i = 0; i < sizeof(packages) / sizeof(*packages); i++)
		if (!strncmp(name, packages[i], strlen(packages[i])))
			return true;
	return false;
}

bool executors_find(const char *name, const uint8_t *bytes, size_t size)
{
	const struct class_rewrite rewrite = {
		.bytes = bytes,
		.size = size,
		.hooks = hooks,
		.n_hooks = executors_hooks.n_hooks,
	};
	const struct class_constants constants = class_constants(bytes, size);
	size_t length = strlen(name);

	if (is_in_table(name))
		return false;
	if (class_mentions(&constants, TAKES) && class_declares(&rewrite)) {
		executors_add(name, length);
		return true;
	}
	return executors_is_inside(name, length);
}

bool executors_is_relay(const char *name, const uint8_t *bytes, size_t size)
{
	const struct class_constants constants = class_constants(bytes, size);

	return !is_in_table(name) && class_calls(&constants, &run);
}

/* --- classes that were loaded earlier */

/* As the rewriter has it: "x*" is what begins so. */
static bool is_like(const char *text, const char *wanted)
{
	size_t length = strlen(wanted);

	return wanted[length - 1] == '*' ? !strncmp(text, wanted, length - 1)
					 : !strcmp(text, wanted);
}

static bool is_hooked(const char *name, const char *descriptor)
{
	for (size_t i = 0; i < executors_hooks.n_hooks; i++)
		if (is_like(name, hooks[i].method) && is_like(descriptor, hooks[i].descriptor))
			return true;
	return false;
}

/* As class_declares() has it: with code, and not static. Of interfaces none as a rule. */
#define ACC_OTHER (0x0008 | 0x0100 | 0x0400) /* JVMS 4.6: static, native, abstract */

static bool method_is_hooked(jvmtiEnv *jvmti, jmethodID method)
{
	char *name = NULL, *descriptor = NULL;
	jint modifiers = 0;
	bool is = false;

	if ((*jvmti)->GetMethodModifiers(jvmti, method, &modifiers) || modifiers & ACC_OTHER)
		return false;
	if ((*jvmti)->GetMethodName(jvmti, method, &name, &descriptor, NULL))
		return false;
	is = is_hooked(name, descriptor);
	(*jvmti)->Deallocate(jvmti, (unsigned char *)name);
	(*jvmti)->Deallocate(jvmti, (unsigned char *)descriptor);
	return is;
}

static bool class_has_hooked(jvmtiEnv *jvmti, jclass class)
{
	jmethodID *methods = NULL;
	bool has = false;
	jint n = 0;

	if ((*jvmti)->GetClassMethods(jvmti, class, &n, &methods))
		return false;
	for (jint i = 0; i < n && !has; i++)
		has = method_is_hooked(jvmti, methods[i]);
	(*jvmti)->Deallocate(jvmti, (unsigned char *)methods);
	return has;
}

/* What a class's constants tell: whether it may be an executor, and whether it runs jobs. */
struct shape {
	bool may_take, runs;
};

/* By its type, which it has from the beginning. */
static bool class_is(const struct executors_class *loaded, const char *type)
{
	JNIEnv *env = loaded->env;
	jclass wanted = (*env)->FindClass(env, type);
	bool is = wanted && (*env)->IsAssignableFrom(env, loaded->class, wanted);

	(*env)->DeleteLocalRef(env, wanted);
	return is;
}

/* One that is not prepared yet tells nothing of itself but its type. */
static bool class_tells(const struct executors_class *loaded)
{
	jint status = 0;

	(*loaded->jvmti)->GetClassStatus(loaded->jvmti, loaded->class, &status);
	return status & JVMTI_CLASS_STATUS_PREPARED;
}

/* To be given back by Deallocate(). */
static jvmtiError class_get_constants(const struct executors_class *loaded,
				      struct class_constants *ret)
{
	jvmtiEnv *jvmti = loaded->jvmti;
	unsigned char *bytes = NULL;
	jint n = 0, size = 0;
	jvmtiError e = (*jvmti)->GetConstantPool(jvmti, loaded->class, &n, &size, &bytes);

	if (!e)
		*ret = (struct class_constants){bytes, (size_t)size, (uint32_t)n};
	return e;
}

/*
 * Asking for a class's methods makes the JVM keep a number for each: so only where it may be an executor. A
 * JVM that does not show constants does not tell.
 */
static struct shape class_shape(const struct executors_class *loaded)
{
	struct class_constants constants;
	jvmtiError e = class_get_constants(loaded, &constants);
	struct shape shape;

	if (e) {
		shape.may_take = e == JVMTI_ERROR_MUST_POSSESS_CAPABILITY;
		shape.runs = shape.may_take && class_is(loaded, run.owner);
		return shape;
	}
	shape.may_take = class_mentions(&constants, TAKES);
	shape.runs = class_calls(&constants, &run);
	(*loaded->jvmti)->Deallocate(loaded->jvmti, (unsigned char *)constants.bytes);
	return shape;
}

bool executors_find_loaded(const struct executors_class *loaded)
{
	struct shape shape;
	bool is;

	if (is_in_table(loaded->name))
		return false;
	if (class_tells(loaded)) {
		shape = class_shape(loaded);
		is = shape.may_take && class_has_hooked(loaded->jvmti, loaded->class);
	} else {
		shape.runs = class_is(loaded, run.owner);
		is = class_is(loaded, "java/util/concurrent/Executor");
	}
	if (is)
		executors_add(loaded->name, loaded->length);
	return is || shape.runs;
}

bool executors_may_run(const struct executors_class *loaded)
{
	struct class_constants constants;
	jvmtiError e = class_tells(loaded) ? class_get_constants(loaded, &constants)
					   : JVMTI_ERROR_MUST_POSSESS_CAPABILITY;
	bool may;

	if (e)
		return e == JVMTI_ERROR_MUST_POSSESS_CAPABILITY;
	may = class_mentions(&constants, run.method) && class_mentions(&constants, run.descriptor);
	(*loaded->jvmti)->Deallocate(loaded->jvmti, (unsigned char *)constants.bytes);
	return may;
}
