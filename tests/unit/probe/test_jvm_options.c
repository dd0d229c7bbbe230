/* probe/jvm_options.c and the judging of replies in jvm_attach.c: texts and blocks that a stranger wrote. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "probe/jvm_attach.h"
#include "probe/jvm_options.h"

static struct jvm_options read_text(struct str text)
{
	struct jvm_options options = {0};

	jvm_options_read(text, &options);
	return options;
}

static void test_flags(void **state)
{
	(void)state;
	assert_true(
		read_text(STR("java\0-XX:-EnableDynamicAgentLoading\0-jar\0")).dynamic_load_off);
	assert_true(read_text(STR("-Xmx1g '-XX:-EnableDynamicAgentLoading'")).dynamic_load_off);
	assert_false(read_text(STR("-XX:-EnableDynamicAgentLoadingX")).dynamic_load_off);
	assert_false(read_text(STR("x-XX:-EnableDynamicAgentLoading")).dynamic_load_off);
	assert_false(read_text(STR("-XX:+EnableDynamicAgentLoading")).dynamic_load_off);
	/* The last one counts. */
	assert_false(read_text(STR("-XX:-EnableDynamicAgentLoading -XX:+EnableDynamicAgentLoading"))
			     .dynamic_load_off);
	assert_true(read_text(STR("-Xmx1g -Xrs")).few_signals);
	assert_true(read_text(STR("-XX:+ReduceSignalUsage")).few_signals);
	assert_false(read_text(STR("-Xrsx")).few_signals);
	assert_null(read_text(STR("")).tracer);
}

static void test_archives(void **state)
{
	(void)state;
	assert_string_equal(read_text(STR("-Xmx1g -XX:ArchiveClassesAtExit=a.jsa")).archive,
			    "ArchiveClassesAtExit");
	assert_string_equal(read_text(STR("-XX:AOTCacheOutput=a.aot\0-jar\0")).archive,
			    "AOTCacheOutput");
	assert_string_equal(read_text(STR("-XX:AOTMode=record")).archive, "AOTMode");
	assert_string_equal(read_text(STR("-XX:AOTMode=create")).archive, "AOTMode");
	assert_string_equal(read_text(STR("-XX:+AutoCreateSharedArchive")).archive,
			    "AutoCreateSharedArchive");
	assert_string_equal(read_text(STR("-XX:+RecordDynamicDumpInfo")).archive,
			    "RecordDynamicDumpInfo");
	assert_null(
		read_text(STR("-XX:AOTMode=auto -XX:AOTCache=a.aot -XX:SharedArchiveFile=a.jsa"))
			.archive);
	assert_null(
		read_text(STR("-XX:-AutoCreateSharedArchive -XX:-RecordDynamicDumpInfo")).archive);
}

static void test_tracers(void **state)
{
	static const char datadog[] =
		"java\0-javaagent:/opt/dd-java-agent-1.2.jar=x=y\0-jar\0a.jar";
	struct jvm_options options;

	(void)state;
	options = read_text((struct str){.p = datadog, .n = sizeof(datadog)});
	assert_string_equal(options.tracer, "Datadog");
	options = read_text(STR("-agentpath:/opt/dynatrace/agent/lib64/liboneagentloader.so"));
	assert_string_equal(options.tracer, "Dynatrace");
	options = read_text(STR("-javaagent:opentelemetry-javaagent.jar"));
	assert_string_equal(options.tracer, "OpenTelemetry");

	/* What is no tracer, or only in a folder named like one, or no agent at all. */
	assert_null(read_text(STR("-javaagent:/opt/jmx_prometheus_javaagent.jar")).tracer);
	assert_null(read_text(STR("-agentlib:jdwp=transport=dt_socket")).tracer);
	assert_null(read_text(STR("-javaagent:/opt/dd-java-agent/metrics.jar")).tracer);
	assert_null(read_text(STR("-Dpath=/opt/dd-java-agent.jar")).tracer);
}

/* --- performance data */

struct block {
	uint8_t bytes[512];
	size_t used;
};

static void put(struct block *b, size_t at, uint32_t value, size_t size)
{
	memcpy(b->bytes + at, &value, size);
}

static void block_begin(struct block *b)
{
	static const uint8_t head[] = {0xca, 0xfe, 0xc0, 0xc0, 1, 2, 0, 1};

	memset(b, 0, sizeof(*b));
	memcpy(b->bytes, head, sizeof(head));
	put(b, 24, 32, 4); /* where the entries begin */
	b->used = 32;
}

/* Returns where the entry lies. */
static size_t block_add(struct block *b, const char *name, const char *value)
{
	size_t at = b->used, name_bytes = strlen(name) + 1, value_bytes = strlen(value) + 1;

	put(b, at, (uint32_t)(20 + name_bytes + value_bytes), 4);
	put(b, at + 4, 20, 4);
	put(b, at + 8, (uint32_t)value_bytes, 4);
	b->bytes[at + 12] = 'B';
	put(b, at + 16, (uint32_t)(20 + name_bytes), 4);
	memcpy(b->bytes + at + 20, name, name_bytes);
	memcpy(b->bytes + at + 20 + name_bytes, value, value_bytes);
	b->used += 20 + name_bytes + value_bytes;
	b->bytes[28]++;
	return at;
}

static bool is_found(const struct block *b, const char *name, const char *value)
{
	struct str text = jvm_perfdata_find(b->bytes, b->used, name);

	return value ? str_equal(text, str_from(value)) : !text.p;
}

static void test_perfdata(void **state)
{
	struct block b;
	uint8_t before;

	(void)state;
	block_begin(&b);
	assert_true(is_found(&b, "sun.rt.jvmCapabilities", NULL));
	block_add(&b, "java.rt.vmArgs", "-Xmx1g -Xrs");
	block_add(&b, "sun.rt.jvmCapabilities", "1000");
	assert_true(is_found(&b, "sun.rt.jvmCapabilities", "1000"));
	assert_true(is_found(&b, "java.rt.vmArgs", "-Xmx1g -Xrs"));
	assert_true(is_found(&b, "java.rt.vmArg", NULL));
	assert_true(is_found(&b, "java.rt.vmArgsX", NULL));

	/* Not all of it is there, or it is not ready yet, of the other byte order, another format. */
	assert_null(jvm_perfdata_find(b.bytes, b.used - 1, "sun.rt.jvmCapabilities").p);
	assert_null(jvm_perfdata_find(b.bytes, 31, "java.rt.vmArgs").p);
	for (size_t at = 0; at < 8; at++) {
		if (at == 6)
			continue; /* the minor version */
		before = b.bytes[at];
		b.bytes[at] = 0;
		assert_true(is_found(&b, "java.rt.vmArgs", NULL));
		b.bytes[at] = before;
	}
	assert_true(is_found(&b, "java.rt.vmArgs", "-Xmx1g -Xrs"));
}

static void test_perfdata_broken(void **state)
{
	static const uint32_t offsets[] = {0, 1, 19, 1000, 0x7fffffff, 0x80000000, 0xffffffff};
	struct block b;
	size_t at;

	(void)state;
	for (size_t i = 0; i < sizeof(offsets) / sizeof(*offsets); i++) {
		for (size_t field = 0; field <= 16; field += field == 8 ? 8 : 4) {
			block_begin(&b);
			at = block_add(&b, "a", "value");
			put(&b, at + field, offsets[i], 4);
			/* A value's length alone may be smaller than what is there. */
			if (field == 8 && offsets[i] > 0 && offsets[i] <= 5)
				continue;
			if (field == 8 && offsets[i] == 19)
				continue;
			assert_true(is_found(&b, "a", NULL));
		}
	}

	/* Of a value without an end only what is in it. */
	block_begin(&b);
	at = block_add(&b, "a", "value");
	put(&b, at + 8, 3, 4);
	assert_true(is_found(&b, "a", "val"));
}

/* --- replies */

static struct jvm_attach_result judge(const char *reply)
{
	struct jvm_attach_result result;

	jvm_attach_judge(reply, strlen(reply), &result);
	return result;
}

static void test_replies(void **state)
{
	(void)state;
	assert_int_equal(judge("0\nreturn code: 0\n").outcome, JVM_ATTACH_LOADED); /* 9 and later */
	assert_int_equal(judge("0\n0\n").outcome, JVM_ATTACH_LOADED);              /* 8 */
	assert_string_equal(judge("0\n0\n").reason, "");

	assert_int_equal(judge("0\nreturn code: 7\n").outcome, JVM_ATTACH_REFUSED);
	assert_int_equal(judge("-1\n").outcome, JVM_ATTACH_REFUSED);
	assert_int_equal(judge("0\n").outcome, JVM_ATTACH_REFUSED);
	assert_int_equal(judge("0\n/tmp/x.so was not loaded.\nno such file\n").outcome,
			 JVM_ATTACH_REFUSED);
	assert_string_equal(judge("0\n/tmp/x.so was not loaded.\nno such file\n").reason,
			    "the JVM does not load the agent: /tmp/x.so was not loaded.");
	assert_int_equal(judge("").outcome, JVM_ATTACH_FAILED);
	assert_string_equal(judge("1\x1b[2J\n").reason, "the JVM does not load the agent: 1?[2J");
}

static void test_long_reply(void **state)
{
	struct jvm_attach_result result;
	char reply[4096];

	(void)state;
	memset(reply, 'x', sizeof(reply));
	jvm_attach_judge(reply, sizeof(reply), &result);
	assert_int_equal(result.outcome, JVM_ATTACH_REFUSED);
	assert_int_equal(strlen(result.reason), sizeof(result.reason) - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_flags),           cmocka_unit_test(test_archives),
		cmocka_unit_test(test_tracers),         cmocka_unit_test(test_perfdata),
		cmocka_unit_test(test_perfdata_broken), cmocka_unit_test(test_replies),
		cmocka_unit_test(test_long_reply),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
