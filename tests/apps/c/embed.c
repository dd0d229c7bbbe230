/*
 * A program that makes a JVM of its own, as launchers of applications do: embed LIBJVM QUIT
 * CLASSPATH MAIN ARGUMENT... Its name is not java. QUIT: what it does with SIGQUIT once the JVM is there:
 * "leave" it to the JVM, or "take" it, and say so when it comes.
 */
#include <dlfcn.h>
#include <jni.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef jint create_fn(JavaVM **, void **, void *);

static void say(int number)
{
	static const char text[] = "SIGQUIT came\n";

	(void)number;
	if (write(STDOUT_FILENO, text, sizeof(text) - 1) < 0)
		_exit(1);
}

static JNIEnv *make_jvm(const char *library, const char *classpath)
{
	void *handle = dlopen(library, RTLD_NOW | RTLD_GLOBAL);
	create_fn *create = handle ? (create_fn *)dlsym(handle, "JNI_CreateJavaVM") : NULL;
	char classes[4096];
	JavaVMOption options[] = {{.optionString = classes},
				  {.optionString = "-Dsun.net.httpserver.nodelay=true"}};
	JavaVMInitArgs arguments = {.version = JNI_VERSION_1_8, .nOptions = 2, .options = options};
	JavaVM *jvm;
	void *env;

	snprintf(classes, sizeof(classes), "-Djava.class.path=%s", classpath);
	return create && create(&jvm, &env, &arguments) == JNI_OK ? env : NULL;
}

int main(int n, char **words)
{
	jclass main_class, string;
	jobjectArray arguments;
	jmethodID method;
	JNIEnv *env;

	if (n < 5)
		return 2;
	env = make_jvm(words[1], words[3]);
	if (!env)
		return 1;
	if (!strcmp(words[2], "take"))
		signal(SIGQUIT, say);
	main_class = (*env)->FindClass(env, words[4]);
	string = (*env)->FindClass(env, "java/lang/String");
	arguments = (*env)->NewObjectArray(env, n - 5, string, NULL);
	method = (*env)->GetStaticMethodID(env, main_class, "main", "([Ljava/lang/String;)V");
	for (int i = 5; i < n; i++)
		(*env)->SetObjectArrayElement(env, arguments, i - 5,
					      (*env)->NewStringUTF(env, words[i]));
	(*env)->CallStaticVoidMethod(env, main_class, method, arguments);
	for (;;)
		pause();
}
