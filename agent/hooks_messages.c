/*
 * Messages and streams that are no jobs: actors of Pekko and Akka, futures of Scala, and where Reactor and
 * RxJava go on in another thread. One job delivers what many requests sent, and is nobody's; a message is
 * of whoever sent it, what subscribes of whoever had it made.
 */
#include "hooks_rows.h"

#define TASKS "tsunagi/agent/Tasks"

#define TASK(call, with)                                                              \
	{                                                                             \
		.method = call, .descriptor = "(Ljava/lang/Object;)V", .loads = with, \
		.owner = TASKS                                                        \
	}

#define AROUND(name, type, call)                                     \
	{                                                            \
		.method = name, .descriptor = type, .entry = {call}, \
		.exit = PLAIN(TASKS, "leave"), .is_finally = true    \
	}

static const struct class_hook made[] = {
	AT_EXIT("<init>", NULL, TASK("made", "a0")),
};

static const struct class_hook runs[] = {
	AROUND("run", "()V", TASK("resume", "a0")),
};

static const struct class_hook made_and_runs[] = {
	AT_EXIT("<init>", NULL, TASK("made", "a0")),
	AROUND("run", "()V", TASK("resume", "a0")),
};

/* --- actors */

static const struct class_hook mailbox[] = {
	AROUND("run", "()V", PLAIN(TASKS, "deliver")),
};

static const struct class_hook pekko_cell[] = {
	AROUND("invoke", "(Lorg/apache/pekko/dispatch/Envelope;)V", TASK("resume", "a1")),
};

static const struct class_hook akka_cell[] = {
	AROUND("invoke", "(Lakka/dispatch/Envelope;)V", TASK("resume", "a1")),
};

#define PEKKO   "org/apache/pekko/"
#define REACTOR "reactor/core/publisher/"
#define RX      "io/reactivex/rxjava3/internal/operators/"

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
};

const struct hook_table hooks_messages = {classes, sizeof(classes) / sizeof(*classes)};
