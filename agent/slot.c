/*
 * The memory that the agent's Java classes write, and the few things they cannot do in Java:
 * tsunagi.agent.Native. A slot is thread-local at one distance from every thread's pointer, which is
 * how the kernel side finds it.
 */
#include <sched.h>
#include <stdatomic.h>
#include <time.h>

#include "agent.h"

#define YIELDS 64
#define NAP_NS 100000

static __thread struct jvm_slot slot __attribute__((tls_model("initial-exec"), aligned(64)));

int64_t slot_distance(void)
{
	return (char *)&slot - (char *)__builtin_thread_pointer();
}

/*
 * Also called again for a thread that has forgotten its slot, as those of the common pool do between
 * two tasks: what it worked for is over.
 */
static jobject JNICALL native_slot(JNIEnv *env, jclass class)
{
	(void)class;

	slot.context = 0;
	slot.receiving = 0;
	slot.magic = JVM_SLOT_MAGIC;
	return (*env)->NewDirectByteBuffer(env, &slot, sizeof(slot));
}

static jobject JNICALL native_control(JNIEnv *env, jclass class)
{
	(void)class;

	return (*env)->NewDirectByteBuffer(env, &agent_control, sizeof(agent_control));
}

static jobject JNICALL native_sockets(JNIEnv *env, jclass class)
{
	(void)class;

	return (*env)->NewDirectByteBuffer(env, sockets, sizeof(sockets));
}

static jlong JNICALL native_classify(JNIEnv *env, jclass class, jint fd)
{
	(void)env;
	(void)class;

	return (jlong)sockets_classify(fd);
}

/* A field of a class of the JDK, looked for when the first object that has it comes along. */
struct field {
	const char *name;
	const char *type;
	_Atomic(jfieldID) id;
	_Atomic(bool) is_missing;
};

static struct field descriptor_fd = {.name = "fd", .type = "I"};
static struct field channel_fd = {.name = "fdVal", .type = "I"};
static struct field async_channel_fd = {.name = "fdVal", .type = "I"};
static struct field socket_fd = {.name = "fd", .type = "Ljava/io/FileDescriptor;"};
static struct field stream_socket = {.name = "impl", .type = "Ljava/net/AbstractPlainSocketImpl;"};
static struct field worker_task = {.name = "firstTask", .type = "Ljava/lang/Runnable;"};
static struct field completion_dep = {.name = "dep",
				      .type = "Ljava/util/concurrent/CompletableFuture;"};
static struct field thread_target = {.name = "target", .type = "Ljava/lang/Runnable;"};
static struct field thread_holder = {.name = "holder", .type = "Ljava/lang/Thread$FieldHolder;"};
static struct field holder_task = {.name = "task", .type = "Ljava/lang/Runnable;"};

static jfieldID field_of(JNIEnv *env, jobject object, struct field *field)
{
	jfieldID id = atomic_load_explicit(&field->id, memory_order_acquire);
	jclass class;

	if (id || atomic_load_explicit(&field->is_missing, memory_order_relaxed))
		return id;

	class = (*env)->GetObjectClass(env, object);
	id = (*env)->GetFieldID(env, class, field->name, field->type);
	(*env)->DeleteLocalRef(env, class);
	if (id) {
		atomic_store_explicit(&field->id, id, memory_order_release);
		return id;
	}

	(*env)->ExceptionClear(env);
	atomic_store_explicit(&field->is_missing, true, memory_order_relaxed);
	return NULL;
}

static jobject field_object(JNIEnv *env, jobject object, struct field *field)
{
	jfieldID id = object ? field_of(env, object, field) : NULL;

	return id ? (*env)->GetObjectField(env, object, id) : NULL;
}

static jint field_int(JNIEnv *env, jobject object, struct field *field)
{
	jfieldID id = object ? field_of(env, object, field) : NULL;

	return id ? (*env)->GetIntField(env, object, id) : -1;
}

/* A thread of this CPU has its turn at once, one of another CPU that is busy in some milliseconds. */
static void JNICALL native_give_way(JNIEnv *env, jclass class, jint n)
{
	(void)env;
	(void)class;
	if (n < YIELDS)
		sched_yield();
	else
		nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
}

static jint JNICALL native_fd(JNIEnv *env, jclass class, jobject descriptor)
{
	(void)class;

	return field_int(env, descriptor, &descriptor_fd);
}

static jint JNICALL native_channel(JNIEnv *env, jclass class, jobject channel)
{
	(void)class;

	return field_int(env, channel, &channel_fd);
}

static jint JNICALL native_async_channel(JNIEnv *env, jclass class, jobject channel)
{
	(void)class;

	return field_int(env, channel, &async_channel_fd);
}

static jint JNICALL native_socket(JNIEnv *env, jclass class, jobject socket)
{
	jobject descriptor = field_object(env, socket, &socket_fd);
	jint fd = field_int(env, descriptor, &descriptor_fd);

	(void)class;

	(*env)->DeleteLocalRef(env, descriptor);
	return fd;
}

/*
 * A library's class may be there more than once, each by a loader of its own; the first is the only one
 * that is remembered.
 */
static jint JNICALL native_unix(JNIEnv *env, jclass class, jobject descriptor)
{
	static _Atomic(jweak) known;
	static _Atomic(jfieldID) known_id;
	jclass of = descriptor ? (*env)->GetObjectClass(env, descriptor) : NULL;
	jfieldID id = atomic_load_explicit(&known_id, memory_order_acquire);
	jweak none = NULL, weak;
	jint fd = -1;

	(void)class;

	if (!of)
		return -1;
	if (!id || !(*env)->IsSameObject(env, of, atomic_load(&known))) {
		id = (*env)->GetFieldID(env, of, "fd", "I");
		if (!id)
			(*env)->ExceptionClear(env);
		weak = id && !atomic_load(&known) ? (*env)->NewWeakGlobalRef(env, of) : NULL;
		if (weak && atomic_compare_exchange_strong(&known, &none, weak))
			atomic_store_explicit(&known_id, id, memory_order_release);
		else if (weak)
			(*env)->DeleteWeakGlobalRef(env, weak);
	}
	if (id)
		fd = (*env)->GetIntField(env, descriptor, id);
	(*env)->DeleteLocalRef(env, of);
	return fd;
}

static jint JNICALL native_stream(JNIEnv *env, jclass class, jobject stream)
{
	jobject socket = field_object(env, stream, &stream_socket);
	jint fd = native_socket(env, class, socket);

	(*env)->DeleteLocalRef(env, socket);
	return fd;
}

static jobject JNICALL native_first_task(JNIEnv *env, jclass class, jobject worker)
{
	(void)class;

	return field_object(env, worker, &worker_task);
}

/* Where the end of a stack was met something else may be in its place. */
static bool is_completion(JNIEnv *env, jobject object)
{
	static _Atomic(jclass) known; /* asked for at each step of each future */
	jclass class = atomic_load_explicit(&known, memory_order_acquire), found;

	if (!class) {
		found = (*env)->FindClass(env,
					  "java/util/concurrent/CompletableFuture$UniCompletion");
		if (!found)
			(*env)->ExceptionClear(env);
		class = found ? (*env)->NewGlobalRef(env, found) : NULL;
		(*env)->DeleteLocalRef(env, found);
		atomic_store_explicit(&known, class, memory_order_release);
	}
	return class && (*env)->IsInstanceOf(env, object, class);
}

/* What it was to complete is forgotten once that is complete. */
static jboolean JNICALL native_is_waiting(JNIEnv *env, jclass class, jobject dependent)
{
	jobject dep = NULL;

	(void)class;

	if (is_completion(env, dependent))
		dep = field_object(env, dependent, &completion_dep);
	(*env)->DeleteLocalRef(env, dep);
	return dep ? JNI_TRUE : JNI_FALSE;
}

/* In the thread itself until JDK 18, later in an object of its own. */
static jobject JNICALL native_target(JNIEnv *env, jclass class, jobject thread)
{
	jobject target = field_object(env, thread, &thread_target), holder;

	(void)class;

	if (target)
		return target;
	holder = field_object(env, thread, &thread_holder);
	target = field_object(env, holder, &holder_task);
	(*env)->DeleteLocalRef(env, holder);
	return target;
}

#define NATIVE(name, type, function)                         \
	{                                                    \
		(char *)name, (char *)type, (void *)function \
	}

const JNINativeMethod agent_natives[] = {
	NATIVE("slot", "()Ljava/nio/ByteBuffer;", native_slot),
	NATIVE("control", "()Ljava/nio/ByteBuffer;", native_control),
	NATIVE("sockets", "()Ljava/nio/ByteBuffer;", native_sockets),
	NATIVE("classify", "(I)J", native_classify),
	NATIVE("giveWay", "(I)V", native_give_way),
	NATIVE("fd", "(Ljava/io/FileDescriptor;)I", native_fd),
	NATIVE("channel", "(Ljava/lang/Object;)I", native_channel),
	NATIVE("asyncChannel", "(Ljava/lang/Object;)I", native_async_channel),
	NATIVE("socket", "(Ljava/lang/Object;)I", native_socket),
	NATIVE("unix", "(Ljava/lang/Object;)I", native_unix),
	NATIVE("stream", "(Ljava/lang/Object;)I", native_stream),
	NATIVE("firstTask", "(Ljava/lang/Object;)Ljava/lang/Object;", native_first_task),
	NATIVE("isWaiting", "(Ljava/lang/Object;)Z", native_is_waiting),
	NATIVE("target", "(Ljava/lang/Thread;)Ljava/lang/Object;", native_target),
};
const size_t agent_n_natives = sizeof(agent_natives) / sizeof(*agent_natives);
