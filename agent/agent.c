/*
 * The agent: loaded by the daemon into a running JVM, whose attach listener calls Agent_OnAttach().
 * Defines the embedded Java classes, rewrites the hooked classes that are loaded, and those that come
 * later. Whatever fails before the first class is rewritten leaves the application as it was;
 * 'agent_control' says how it went, and nothing is printed.
 */
#include <jvmti.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent.h"
#include "classfile.h"
#include "executors.h"
#include "hooks.h"

#define PACKAGE "tsunagi/agent/"
#define FRAME   256 /* local references that are had at a time */

__attribute__((aligned(64))) struct jvm_control agent_control = {
	.magic = JVM_CONTROL_MAGIC,
	.version = JVM_CONTROL_VERSION,
	.state = JVM_AGENT_LOADING,
};

/* What the callbacks need; set before they can come. */
static struct {
	jvmtiEnv *jvmti;
	jclass class; /* java.lang.Class */
	jmethodID for_name;
	jclass context, tasks;
	jmethodID started;
	jmethodID unnamed; /* ClassLoader.getUnnamedModule(); NULL before JDK 9 */
} agent;

static void control_explain(const char *what, const char *which)
{
	if (!agent_control.reason[0])
		snprintf(agent_control.reason, sizeof(agent_control.reason), "%s%s%s", what,
			 which ? ": " : "", which ?: "");
}

static void hook_failed(const char *why, const char *class)
{
	__atomic_add_fetch(&agent_control.hooks_failed, 1, __ATOMIC_RELAXED);
	control_explain(why, class);
}

/*
 * Behind each call of a method: whether it threw, which is forgotten. A JVM that checks native code (-Xcheck:jni)
 * says so, on its standard output, where nobody asks.
 */
static bool call_threw(JNIEnv *env)
{
	bool threw = (*env)->ExceptionCheck(env);

	if (threw)
		(*env)->ExceptionClear(env);
	return threw;
}

/*
 * Functions of JVMTI give a reference to each class that is loaded, and to each module: more than a JVM that checks
 * lets pass without a word, unless it is told before. It takes no more than so many
 * (HotSpot's MaxJNILocalCapacity).
 */
static void locals_announce(JNIEnv *env)
{
	if ((*env)->EnsureLocalCapacity(env, 65536))
		(*env)->ExceptionClear(env);
}

/* --- classes of ours */

/* NULL: there is none, and no exception either. The name has dots. */
static jclass class_find(JNIEnv *env, const char *name, jobject loader)
{
	jstring string = (*env)->NewStringUTF(env, name);
	jclass found = NULL;

	if (string)
		found = (*env)->CallStaticObjectMethod(env, agent.class, agent.for_name, string,
						       JNI_FALSE, loader);
	if (call_threw(env))
		found = NULL;
	(*env)->DeleteLocalRef(env, string);
	return found;
}

/*
 * A loader that keeps to its own packages (OSGi, JBoss Modules) would let the rewritten class fail
 * where it calls us. Asked in the middle of its defining a class, as the JVM itself asks it for that
 * class's superclass.
 */
static bool loader_finds_agent(JNIEnv *env, jobject loader)
{
	jclass found = class_find(env, "tsunagi.agent.Context", loader);
	bool is_ours = found && (*env)->IsSameObject(env, found, agent.context);

	(*env)->DeleteLocalRef(env, found);
	return is_ours;
}

static bool helper_define(JNIEnv *env, const struct hook_helper *helper, jobject loader)
{
	char name[128];
	jclass class;

	class = (*env)->DefineClass(env, helper->name, loader, (const jbyte *)helper->bytes,
				    (jsize)helper->size);
	if (!class) {
		/* Two hooked classes may share it, and threads may load them at once. */
		(*env)->ExceptionClear(env);
		snprintf(name, sizeof(name), "%s", helper->name);
		for (char *c = name; *c; c++)
			if (*c == '/')
				*c = '.';
		class = class_find(env, name, loader);
	}
	(*env)->DeleteLocalRef(env, class);
	return class;
}

/*
 * A library in a module of its own does not read the helpers' one, but for the application loader's,
 * which the JVM sees to where it lets classes be changed (JVMTI, ClassFileLoadHook).
 */
static bool helpers_are_read(JNIEnv *env, const char *name, jobject loader)
{
	jobject module = NULL, helpers;
	const char *end = strrchr(name, '/');
	char package[128];
	bool is_read;

	if (!agent.unnamed || !loader || !end)
		return true;
	snprintf(package, sizeof(package), "%.*s", (int)(end - name), name);
	if ((*agent.jvmti)->GetNamedModule(agent.jvmti, loader, package, &module))
		return false;
	if (!module)
		return true;

	helpers = (*env)->CallObjectMethod(env, loader, agent.unnamed);
	is_read = !call_threw(env) && helpers &&
		  !(*agent.jvmti)->AddModuleReads(agent.jvmti, module, helpers);
	(*env)->DeleteLocalRef(env, helpers);
	(*env)->DeleteLocalRef(env, module);
	return is_read;
}

static bool helpers_define(JNIEnv *env, const struct hook_class *hooked, jobject loader)
{
	if (hooked->helpers[0] && !helpers_are_read(env, hooked->name, loader))
		return false;
	for (size_t i = 0; i < HOOK_HELPERS_MAX && hooked->helpers[i]; i++)
		if (!helper_define(env, hooked->helpers[i], loader))
			return false;
	return true;
}

/* --- callbacks */

/* The calls that are hooked in classes that are known by their shape; NULL: it is in a table. */
static const struct class_site *class_site(const struct hook_class *hooked)
{
	if (hooked == &executors_hooks)
		return &executors_site;
	return hooked == &executors_relays ? &executors_relays_site : NULL;
}

/* Returns the memory that JVMTI takes over, or NULL. */
static unsigned char *class_changed(const struct hook_class *hooked, const uint8_t *bytes,
				    jint size, jint *ret_size)
{
	const struct class_rewrite rewrite = {
		.bytes = bytes,
		.size = (size_t)size,
		.hooks = hooked->hooks,
		.n_hooks = hooked->n_hooks,
		.owner = PACKAGE "Context",
		.site = class_site(hooked),
	};
	unsigned char *memory = NULL;
	uint8_t *changed = NULL;
	size_t changed_size = 0;
	uint32_t found = 0;
	int r;

	r = class_rewrite(&rewrite, &changed, &changed_size, &found);
	if (r < 0)
		hook_failed("Class not understood", hooked->name);
	else if (r == 0 && !rewrite.site)
		hook_failed("Class without what is hooked", hooked->name);
	if (r <= 0)
		return NULL;

	if (!(*agent.jvmti)->Allocate(agent.jvmti, (jlong)changed_size, &memory)) {
		memcpy(memory, changed, changed_size);
		*ret_size = (jint)changed_size;
		__atomic_add_fetch(&agent_control.classes, 1, __ATOMIC_RELAXED);
	}
	free(changed);
	return memory;
}

/* NULL: nothing is hooked in it. */
static const struct hook_class *class_find_hooks(jobject loader, const char *name,
						 const uint8_t *bytes, size_t size)
{
	const struct hook_class *hooked = name ? hooks_find(name, strlen(name)) : NULL;

	if (hooked || !loader || !name || !strncmp(name, PACKAGE, strlen(PACKAGE)))
		return hooked;
	if (executors_find(name, bytes, size))
		return &executors_hooks;
	return executors_is_relay(name, bytes, size) ? &executors_relays : NULL;
}

static void JNICALL on_class(jvmtiEnv *jvmti, JNIEnv *env, jclass redefined, jobject loader,
			     const char *name, jobject domain, jint size,
			     const unsigned char *bytes, jint *ret_size, unsigned char **ret_bytes)
{
	const struct hook_class *hooked = class_find_hooks(loader, name, bytes, (size_t)size);
	unsigned char *changed;

	(void)jvmti;
	(void)redefined;
	(void)domain;

	if (!hooked || (*env)->ExceptionCheck(env))
		return;
	if (loader && !loader_finds_agent(env, loader)) {
		hook_failed("Class loader does not delegate", name);
		return;
	}
	if (!helpers_define(env, hooked, loader)) {
		hook_failed("Helper class refused", name);
		return;
	}

	changed = class_changed(hooked, bytes, size, ret_size);
	if (changed)
		*ret_bytes = changed;
}

/* Whatever was thrown is of no concern to the application, but that the thread is to stop. */
static void exception_drop(JNIEnv *env)
{
	jthrowable thrown = (*env)->ExceptionOccurred(env);
	jclass death;

	(*env)->ExceptionClear(env);
	death = (*env)->FindClass(env, "java/lang/ThreadDeath");
	if (!death)
		(*env)->ExceptionClear(env);
	else if ((*env)->IsInstanceOf(env, thrown, death))
		(*env)->Throw(env, thrown);
	(*env)->DeleteLocalRef(env, death);
	(*env)->DeleteLocalRef(env, thrown);
}

/* In the new thread, before its first method. */
static void JNICALL on_thread(jvmtiEnv *jvmti, JNIEnv *env, jthread thread)
{
	(void)jvmti;

	if (!__atomic_load_n(&agent_control.enabled, __ATOMIC_RELAXED) ||
	    (*env)->ExceptionCheck(env))
		return;
	(*env)->CallStaticVoidMethod(env, agent.tasks, agent.started, thread);
	if ((*env)->ExceptionCheck(env))
		exception_drop(env);
}

/* --- loading */

static bool jvmti_open(JavaVM *vm, bool *ret_has_modules)
{
	jvmtiCapabilities wanted;

	*ret_has_modules = true;
	if ((*vm)->GetEnv(vm, (void **)&agent.jvmti, JVMTI_VERSION_9)) {
		*ret_has_modules = false;
		if ((*vm)->GetEnv(vm, (void **)&agent.jvmti, JVMTI_VERSION_1_2)) {
			control_explain("The JVM has no JVMTI", NULL);
			return false;
		}
	}

	memset(&wanted, 0, sizeof(wanted));
	wanted.can_retransform_classes = 1;
	wanted.can_retransform_any_class = 1;
	if ((*agent.jvmti)->AddCapabilities(agent.jvmti, &wanted)) {
		control_explain("The JVM does not let classes be rewritten", NULL);
		return false;
	}
	/* Without this each class that may be an executor is asked for its methods, at more cost. */
	memset(&wanted, 0, sizeof(wanted));
	wanted.can_get_constant_pool = 1;
	(*agent.jvmti)->AddCapabilities(agent.jvmti, &wanted);
	return true;
}

/* A global reference, or NULL with the reason given. */
static jclass class_keep(JNIEnv *env, const char *name)
{
	jclass local = (*env)->FindClass(env, name), global = NULL;

	if (local)
		global = (*env)->NewGlobalRef(env, local);
	if (!global)
		control_explain("Class not found", name);
	(*env)->DeleteLocalRef(env, local);
	return global;
}

static bool classes_define(JNIEnv *env)
{
	agent.class = class_keep(env, "java/lang/Class");
	if (!agent.class)
		return false;
	agent.for_name = (*env)->GetStaticMethodID(
		env, agent.class, "forName",
		"(Ljava/lang/String;ZLjava/lang/ClassLoader;)Ljava/lang/Class;");
	if (!agent.for_name)
		return false;

	for (size_t i = 0; i < agent_n_classes; i++) {
		const struct agent_class *ours = &agent_classes[i];
		jclass class = (*env)->DefineClass(env, ours->name, NULL,
						   (const jbyte *)ours->bytes, (jsize)ours->size);

		/* The first of them is there already if another build of the agent is. */
		if (!class) {
			control_explain(i ? "The JVM refuses a class"
					  : "Another build of the agent is loaded",
					ours->name);
			return false;
		}
		if (!strcmp(ours->name, PACKAGE "Native") &&
		    (*env)->RegisterNatives(env, class, agent_natives, (jint)agent_n_natives)) {
			control_explain("The JVM refuses native methods", NULL);
			return false;
		}
		(*env)->DeleteLocalRef(env, class);
	}
	return true;
}

/*
 * Modules of the JDK and of the application do not read the boot loader's unnamed module by
 * themselves, where our classes are; and those use a thread-local that the JDK keeps to itself.
 */
static bool modules_open(JNIEnv *env)
{
	jclass object = (*env)->FindClass(env, "java/lang/Object");
	jmethodID get = (*env)->GetMethodID(env, agent.class, "getModule", "()Ljava/lang/Module;");
	jclass loader = (*env)->FindClass(env, "java/lang/ClassLoader");
	jobject base, ours, *modules = NULL;
	bool threw;
	jint n = 0;

	if (!object || !get || !loader)
		return false;
	agent.unnamed =
		(*env)->GetMethodID(env, loader, "getUnnamedModule", "()Ljava/lang/Module;");
	if (!agent.unnamed)
		return false;
	base = (*env)->CallObjectMethod(env, object, get);
	threw = call_threw(env);
	ours = (*env)->CallObjectMethod(env, agent.context, get);
	threw |= call_threw(env);
	if (threw || !base || !ours ||
	    (*agent.jvmti)->AddModuleExports(agent.jvmti, base, "jdk.internal.misc", ours) ||
	    (*agent.jvmti)->GetAllModules(agent.jvmti, &n, &modules)) {
		control_explain("The JVM does not open its modules", NULL);
		return false;
	}

	for (jint i = 0; i < n; i++) {
		(*agent.jvmti)->AddModuleReads(agent.jvmti, modules[i], ours);
		(*env)->DeleteLocalRef(env, modules[i]);
	}
	(*agent.jvmti)->Deallocate(agent.jvmti, (unsigned char *)modules);
	return true;
}

/*
 * All initialisers and the first use happen here and now: later they would happen in the middle of
 * what is hooked.
 */
static bool classes_initialise(JNIEnv *env)
{
	static const char *const methods[] = {"push", "pop", "current"};

	for (size_t i = 0; i < agent_n_classes; i++) {
		jclass class = (*env)->FindClass(env, agent_classes[i].name);

		if (!class)
			return false;
		(*env)->DeleteLocalRef(env, class);
	}

	agent.started =
		(*env)->GetStaticMethodID(env, agent.tasks, "started", "(Ljava/lang/Thread;)V");
	if (!agent.started)
		return false;
	for (size_t i = 0; i < sizeof(methods) / sizeof(*methods); i++) {
		jmethodID method = (*env)->GetStaticMethodID(env, agent.context, methods[i],
							     i == 2 ? "()J" : "()V");

		if (!method)
			return false;
		if (i == 2)
			(*env)->CallStaticLongMethod(env, agent.context, method);
		else
			(*env)->CallStaticVoidMethod(env, agent.context, method);
		if (call_threw(env))
			return false;
	}
	return true;
}

/* Of the boot loader's and of ours none is an executor. 'name' has a type's form: "Ljava/lang/Object;". */
static bool class_may_be_executor(JNIEnv *env, jclass class, const char *type)
{
	jobject loader = NULL;
	bool may;

	if (!strncmp(type + 1, PACKAGE, strlen(PACKAGE)) || hooks_find(type + 1, strlen(type) - 2))
		return false;
	may = !(*agent.jvmti)->GetClassLoader(agent.jvmti, class, &loader) && loader;
	(*env)->DeleteLocalRef(env, loader);
	return may;
}

/*
 * A lambda's class, or another that the JVM knows by no name ("Lapp/Server$$Lambda$5/12345;"): before
 * JDK 9 it lets them be rewritten, and loses them (JDK-8145964).
 */
static bool class_is_hidden(const char *type)
{
	const char *last = strrchr(type, '/');

	return strstr(type, "$$Lambda") || (last && last[1] >= '0' && last[1] <= '9');
}

static bool class_is_wanted(JNIEnv *env, jclass class, const char *type, bool is_for_inner)
{
	const struct executors_class loaded = {agent.jvmti, env, class, type + 1, strlen(type) - 2};

	if (type[0] != 'L' || class_is_hidden(type))
		return false;
	if (!is_for_inner && hooks_find(loaded.name, loaded.length))
		return true;
	/* Few have such a name, and to ask for a loader is dear. */
	if (is_for_inner && !executors_is_inside(loaded.name, loaded.length))
		return false;
	return class_may_be_executor(env, class, type) &&
	       (is_for_inner ? executors_may_run(&loaded) : executors_find_loaded(&loaded));
}

static bool class_is_chosen(JNIEnv *env, jclass class, bool is_for_inner)
{
	jboolean is_modifiable = JNI_FALSE;
	char *type = NULL;

	if ((*agent.jvmti)->GetClassSignature(agent.jvmti, class, &type, NULL))
		return false;
	if (class_is_wanted(env, class, type, is_for_inner))
		(*agent.jvmti)->IsModifiableClass(agent.jvmti, class, &is_modifiable);
	(*agent.jvmti)->Deallocate(agent.jvmti, (unsigned char *)type);
	return is_modifiable;
}

/*
 * Those of 'classes' that are to be rewritten come first afterwards: once all executors are known, the
 * classes inside of them. In frames: among so many references the JVM looks long for a free place.
 */
static jint classes_choose(JNIEnv *env, jclass *classes, jint n)
{
	jint chosen = 0;

	for (int pass = 0; pass < 2; pass++) {
		for (jint i = chosen, in_frame = 0; i < n; i++) {
			jclass class = classes[i];
			bool has_frame = in_frame++ % FRAME || !(*env)->PushLocalFrame(env, FRAME);
			bool is_chosen = has_frame && class_is_chosen(env, class, pass == 1);

			/* It is tried again for the next class. */
			if (!has_frame) {
				(*env)->ExceptionClear(env);
				hook_failed("No memory to look at a class", NULL);
				in_frame--;
			}
			if (has_frame && (in_frame % FRAME == 0 || i + 1 == n))
				(*env)->PopLocalFrame(env, NULL);
			if (!is_chosen)
				continue;
			classes[i] = classes[chosen];
			classes[chosen++] = class;
		}
	}
	return chosen;
}

static bool class_is_prepared(jclass class)
{
	jint status = 0;

	(*agent.jvmti)->GetClassStatus(agent.jvmti, class, &status);
	return status & JVMTI_CLASS_STATUS_PREPARED;
}

/* Returns how many there are; they come first afterwards. */
static jint classes_prepared(jclass *classes, jint n)
{
	jint prepared = 0;

	for (jint i = 0; i < n; i++) {
		jclass class = classes[i];

		if (!class_is_prepared(class))
			continue;
		classes[i] = classes[prepared];
		classes[prepared++] = class;
	}
	return prepared;
}

/*
 * Global references to the first n, local ones to none: the JVM calls us for each while it rewrites them, and counts
 * the references of its caller there. Returns how many there are; of the prepared ones, too.
 */
static jint classes_hold(JNIEnv *env, jclass *classes, jint n, jint all, jint *prepared)
{
	jint held = 0, held_prepared = 0;

	for (jint i = 0; i < all; i++) {
		jclass class = classes[i];

		classes[held] = i < n ? (*env)->NewGlobalRef(env, class) : NULL;
		(*env)->DeleteLocalRef(env, class);
		if (!classes[held]) {
			if (i < n)
				hook_failed("No memory to rewrite a class", NULL);
			continue;
		}
		held++;
		held_prepared += i < *prepared;
	}
	*prepared = held_prepared;
	return held;
}

/* In one go, which is one stop of the JVM; if one of them cannot be, each half of them by itself. */
static void classes_retransform(jclass *classes, jint n)
{
	__u64 before = agent_control.classes;

	if (!n || !(*agent.jvmti)->RetransformClasses(agent.jvmti, n, classes))
		return;
	if (n == 1) {
		hook_failed("The JVM refuses a rewritten class", NULL);
		return;
	}
	/* Counted again by the second attempt. */
	agent_control.classes = before;
	classes_retransform(classes, n / 2);
	classes_retransform(classes + n / 2, n - n / 2);
}

/*
 * The JVM links what it rewrites: a class that nothing has used yet may refer to one that is not there,
 * and all that are rewritten with it stay as they are. So those have a stop of their own.
 */
static bool classes_rewrite(JNIEnv *env)
{
	jclass *classes = NULL;
	jint n = 0, all = 0, prepared;

	if ((*agent.jvmti)->GetLoadedClasses(agent.jvmti, &all, &classes)) {
		control_explain("The JVM does not tell its classes", NULL);
		return false;
	}

	n = classes_choose(env, classes, all);
	prepared = classes_prepared(classes, n);
	n = classes_hold(env, classes, n, all, &prepared);
	classes_retransform(classes, prepared);
	classes_retransform(classes + prepared, n - prepared);
	for (jint i = 0; i < n; i++)
		(*env)->DeleteGlobalRef(env, classes[i]);
	(*agent.jvmti)->Deallocate(agent.jvmti, (unsigned char *)classes);
	return true;
}

static bool hooks_start(JNIEnv *env)
{
	jvmtiEventCallbacks callbacks;

	memset(&callbacks, 0, sizeof(callbacks));
	callbacks.ClassFileLoadHook = on_class;
	callbacks.ThreadStart = on_thread;
	if ((*agent.jvmti)->SetEventCallbacks(agent.jvmti, &callbacks, sizeof(callbacks)) ||
	    (*agent.jvmti)
		    ->SetEventNotificationMode(agent.jvmti, JVMTI_ENABLE,
					       JVMTI_EVENT_CLASS_FILE_LOAD_HOOK, NULL) ||
	    (*agent.jvmti)
		    ->SetEventNotificationMode(agent.jvmti, JVMTI_ENABLE, JVMTI_EVENT_THREAD_START,
					       NULL)) {
		control_explain("The JVM refuses its events", NULL);
		return false;
	}
	return classes_rewrite(env);
}

static bool agent_load(JavaVM *vm, JNIEnv *env)
{
	bool has_modules;

	locals_announce(env);
	if (!jvmti_open(vm, &has_modules) || !classes_define(env))
		return false;
	agent.context = class_keep(env, PACKAGE "Context");
	agent.tasks = class_keep(env, PACKAGE "Tasks");
	return agent.context && agent.tasks && (!has_modules || modules_open(env)) &&
	       classes_initialise(env) && hooks_start(env);
}

static void control_publish(enum jvm_agent_state state, bool is_enabled)
{
	agent_control.enabled = state == JVM_AGENT_READY && is_enabled;
	__atomic_store_n(&agent_control.state, state, __ATOMIC_RELEASE);
}

/*
 * Always "success": a failure is the daemon's to read in 'agent_control', and of no concern to the
 * JVM, which would print it. With the option "off" it waits for a daemon to switch it on: the one that
 * loads it may be gone by then.
 */
JNIEXPORT jint JNICALL Agent_OnAttach(JavaVM *vm, char *options, void *reserved)
{
	static _Atomic(bool) was_loaded;
	JNIEnv *env = NULL;

	(void)reserved;

	if (atomic_exchange(&was_loaded, true))
		return 0;

	memcpy(agent_control.build, agent_build,
	       strnlen(agent_build, sizeof(agent_control.build) - 1));
	agent_control.slot = slot_distance();
	if (!(*vm)->GetEnv(vm, (void **)&env, JNI_VERSION_1_8) && agent_load(vm, env)) {
		sockets_classify_all();
		control_publish(JVM_AGENT_READY, !options || strcmp(options, "off") != 0);
		return 0;
	}

	control_explain("The JVM refuses the agent", NULL);
	if (env && (*env)->ExceptionCheck(env))
		(*env)->ExceptionClear(env);
	if (agent.jvmti)
		(*agent.jvmti)->DisposeEnvironment(agent.jvmti);
	control_publish(JVM_AGENT_FAILED, false);
	return 0;
}
