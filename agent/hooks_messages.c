/*
 * Messages and streams that are no jobs: actors of Pekko and Akka, futures of Scala, and where Reactor,
 * RxJava and Mutiny go on in another thread. One job delivers what many requests sent, and is nobody's;
 * a message is of whoever sent it, what subscribes of whoever had it made. And results that several
 * requests wait for, as those of caches: who brings one runs what they do then.
 */
#include "hooks_rows.h"

static const struct class_hook made[] = {
	AT_EXIT("<init>", NULL, TASK("made", "a0")),
};

static const struct class_hook runs[] = {
	WORKS("run", "()V", TASK("resume", "a0")),
};

static const struct class_hook made_and_runs[] = {
	AT_EXIT("<init>", NULL, TASK("made", "a0")),
	WORKS("run", "()V", TASK("resume", "a0")),
};

/* --- actors */

static const struct class_hook mailbox[] = {
	WORKS("run", "()V", PLAIN(TASKS, "deliver")),
};

static const struct class_hook pekko_cell[] = {
	WORKS("invoke", "(Lorg/apache/pekko/dispatch/Envelope;)V", TASK("resume", "a1")),
};

static const struct class_hook akka_cell[] = {
	WORKS("invoke", "(Lakka/dispatch/Envelope;)V", TASK("resume", "a1")),
};

/* --- results that are waited for */

#define NOTIFIES(name, type) WORKS(name, type, CALL(LOOPS, "notifying", "a0"))

/* One for each that waits. */
static const struct class_hook waiter[] = {
	AT_EXIT("<init>", NULL, TASK("waits", "a0")),
};

/* What brings it to them, in the classes that these extend. */
static const struct class_hook mono_subscriber[] = {
	NOTIFIES("complete", "(Ljava/lang/Object;)V"),
	NOTIFIES("onComplete", "()V"),
	NOTIFIES("onError", "(Ljava/lang/Throwable;)V"),
};

static const struct class_hook mono_inner[] = {
	NOTIFIES("complete", "(Ljava/lang/Object;)V"),
	NOTIFIES("complete", "()V"),
};

static const struct class_hook next_waiter[] = {
	AT_EXIT("<init>", NULL, TASK("waits", "a0")),
	NOTIFIES("onComplete", "()V"),
	NOTIFIES("onError", "(Ljava/lang/Throwable;)V"),
};

static const struct class_hook sink_waiter[] = {
	AT_EXIT("<init>", NULL, TASK("waits", "a0")),
	NOTIFIES("error", "(Ljava/lang/Throwable;)V"),
};

static const struct class_hook empty_waiter[] = {
	AT_EXIT("<init>", NULL, TASK("waits", "a0")),
	NOTIFIES("complete", NULL),
	NOTIFIES("error", "(Ljava/lang/Throwable;)V"),
};

/* One for all: where several wait it is nobody's. */
#define RX_RESULT                                               \
	AT_ENTRY("subscribeActual", NULL, TASK("waits", "a0")), \
		NOTIFIES("onError", "(Ljava/lang/Throwable;)V")
#define RX_SUCCESS  NOTIFIES("onSuccess", "(Ljava/lang/Object;)V")
#define RX_COMPLETE NOTIFIES("onComplete", "()V")

static const struct class_hook rx_single[] = {RX_RESULT, RX_SUCCESS};
static const struct class_hook rx_maybe[] = {RX_RESULT, RX_SUCCESS, RX_COMPLETE};
static const struct class_hook rx_completable[] = {RX_RESULT, RX_COMPLETE};

/* Mutiny: each that waits for a result that is kept. */
static const struct class_hook mutiny_memoize[] = {
	AT_ENTRY("subscribe", NULL, TASK("waits", "a1")),
	{.method = "forwardTo",
	 .entry = {{"notifying", "(Ljava/lang/Object;)V", "a1", NULL, "tsunagi/agent/Loops"}},
	 .exit = PLAIN(TASKS, "leave"),
	 .is_finally = true},
};

static const struct class_hook vertx_future[] = {
	AT_ENTRY("addListener", NULL, TASK("waits", "a0")),
	NOTIFIES("tryComplete", "(Ljava/lang/Object;)Z"),
	NOTIFIES("tryFail", "(Ljava/lang/Throwable;)Z"),
	NOTIFIES("completeInternal", "(Ljava/lang/Object;Ljava/lang/Throwable;)Z"),
};

#define PEKKO   "org/apache/pekko/"
#define REACTOR "reactor/core/publisher/"
#define RX      "io/reactivex/rxjava3/internal/operators/"
#define RX_HOT  "io/reactivex/rxjava3/subjects/"
#define RX2     "io/reactivex/internal/operators/"
#define RX2_HOT "io/reactivex/subjects/"
#define MUTINY  "io/smallrye/mutiny/operators/"

static const struct hook_class classes[] = {
	CLASS(PEKKO "dispatch/Envelope", "1.0.1", "1.7.0", made),
	CLASS(PEKKO "dispatch/Mailbox", "1.0.1", "1.7.0", mailbox),
	CLASS(PEKKO "actor/ActorCell", "1.0.1", "1.7.0", pekko_cell),
	CLASS("akka/dispatch/Envelope", "2.6.21", "2.6.21", made),
	CLASS("akka/dispatch/Mailbox", "2.6.21", "2.6.21", mailbox),
	CLASS("akka/actor/ActorCell", "2.6.21", "2.6.21", akka_cell),
	CLASS("scala/concurrent/impl/Promise$Transformation", "2.13.8", "2.13.18", made_and_runs),
	CLASS(REACTOR "FluxPublishOn$PublishOnSubscriber", "3.4.41", "3.8.7", made_and_runs),
	CLASS(REACTOR "FluxPublishOn$PublishOnConditionalSubscriber", "3.4.41", "3.8.7",
	      made_and_runs),
	CLASS(REACTOR "MonoPublishOn$PublishOnSubscriber", "3.4.41", "3.8.7", made_and_runs),
	CLASS(RX "flowable/FlowableObserveOn$BaseObserveOnSubscriber", "3.0.13", "3.1.10",
	      made_and_runs),
	CLASS(RX "parallel/ParallelRunOn$BaseRunOnSubscriber", "3.0.13", "3.1.10", made),
	CLASS(RX "parallel/ParallelRunOn$RunOnSubscriber", "3.0.13", "3.1.10", runs),
	CLASS(RX "parallel/ParallelRunOn$RunOnConditionalSubscriber", "3.0.13", "3.1.10", runs),
	CLASS(RX "observable/ObservableObserveOn$ObserveOnObserver", "3.0.13", "3.1.10",
	      made_and_runs),
	CLASS(RX "maybe/MaybeObserveOn$ObserveOnMaybeObserver", "3.0.13", "3.1.10", made_and_runs),
	CLASS(RX "single/SingleObserveOn$ObserveOnSingleObserver", "3.0.13", "3.1.10",
	      made_and_runs),
	CLASS(RX "completable/CompletableObserveOn$ObserveOnCompletableObserver", "3.0.13",
	      "3.1.10", made_and_runs),
	CLASS(REACTOR "Operators$MonoSubscriber", "3.4.41", "3.8.7", mono_subscriber),
	CLASS(REACTOR "Operators$MonoInnerProducerBase", "3.4.41", "3.8.7", mono_inner),
	CLASS(REACTOR "MonoCacheTime$CacheMonoSubscriber", "3.4.41", "3.8.7", waiter),
	CLASS(REACTOR "MonoCacheInvalidateIf$CacheMonoSubscriber", "3.4.41", "3.8.7", waiter),
	CLASS(REACTOR "MonoCacheInvalidateWhen$CacheMonoSubscriber", "3.4.41", "3.8.7", waiter),
	CLASS(REACTOR "NextProcessor$NextInner", "3.4.41", "3.8.7", next_waiter),
	CLASS(REACTOR "SinkOneMulticast$NextInner", "3.4.41", "3.8.7", sink_waiter),
	CLASS(REACTOR "SinkEmptyMulticast$VoidInner", "3.4.41", "3.8.7", empty_waiter),
	CLASS(RX "single/SingleCache", "3.0.13", "3.1.10", rx_single),
	CLASS(RX "maybe/MaybeCache", "3.0.13", "3.1.10", rx_maybe),
	CLASS(RX "completable/CompletableCache", "3.0.13", "3.1.10", rx_completable),
	CLASS(RX_HOT "SingleSubject", "3.0.13", "3.1.10", rx_single),
	CLASS(RX_HOT "MaybeSubject", "3.0.13", "3.1.10", rx_maybe),
	CLASS(RX_HOT "CompletableSubject", "3.0.13", "3.1.10", rx_completable),
	CLASS(RX2 "flowable/FlowableObserveOn$BaseObserveOnSubscriber", "2.1.17", "2.2.21",
	      made_and_runs),
	CLASS(RX2 "parallel/ParallelRunOn$BaseRunOnSubscriber", "2.1.17", "2.2.21", made),
	CLASS(RX2 "parallel/ParallelRunOn$RunOnSubscriber", "2.1.17", "2.2.21", runs),
	CLASS(RX2 "parallel/ParallelRunOn$RunOnConditionalSubscriber", "2.1.17", "2.2.21", runs),
	CLASS(RX2 "observable/ObservableObserveOn$ObserveOnObserver", "2.1.17", "2.2.21",
	      made_and_runs),
	CLASS(RX2 "maybe/MaybeObserveOn$ObserveOnMaybeObserver", "2.1.17", "2.2.21", made_and_runs),
	CLASS(RX2 "single/SingleObserveOn$ObserveOnSingleObserver", "2.1.17", "2.2.21",
	      made_and_runs),
	CLASS(RX2 "completable/CompletableObserveOn$ObserveOnCompletableObserver", "2.1.17",
	      "2.2.21", made_and_runs),
	CLASS(RX2 "single/SingleCache", "2.1.17", "2.2.21", rx_single),
	CLASS(RX2 "maybe/MaybeCache", "2.1.17", "2.2.21", rx_maybe),
	CLASS(RX2 "completable/CompletableCache", "2.1.17", "2.2.21", rx_completable),
	CLASS(RX2_HOT "SingleSubject", "2.1.17", "2.2.21", rx_single),
	CLASS(RX2_HOT "MaybeSubject", "2.1.17", "2.2.21", rx_maybe),
	CLASS(RX2_HOT "CompletableSubject", "2.1.17", "2.2.21", rx_completable),
	CLASS(MUTINY "multi/MultiEmitOnOp$MultiEmitOnProcessor", "2.9.5", "3.1.1", made_and_runs),
	CLASS(MUTINY "uni/UniMemoizeOp", "2.9.5", "3.1.1", mutiny_memoize),
	CLASS("io/vertx/core/impl/future/FutureImpl", "4.5.27", "5.0.7", vertx_future),
};

const struct hook_table hooks_messages = {classes, sizeof(classes) / sizeof(*classes)};
