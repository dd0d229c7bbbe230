"""Asynchronous channels (java.nio.channels): each completion runs for the request whose read or write it completes."""

import apps
from cases_chains import judge_chain, need
from cases_jvm_attach import AUTO, await_agent, expect_untouched
from harness import Skip, scaled

WAYS = ("channels", "inline", "waits")
GROUPS = ("default", "fixed", "cached")


def chain(run, group, way, home=None):
    back = run.app("back", apps.java("Back", "{port}", "{log}", home=home))
    front = run.app("front", apps.java("Async", "{port}", back.port, "{log}", group, way, home=home))
    daemon = run.daemon(run.config(AUTO))
    for process in (front, back):
        await_agent(daemon, process)
        expect_untouched(process)
    run.load(front.port, scaled(3_000), 32, traceparent=20)
    return judge_chain(run, daemon, front, back)


def make(group, way, version=None):
    def case(run):
        need("java", "javac")
        home = version and apps.java_home(version)
        if version and not home:
            raise Skip(f"no Java {version} here")
        return chain(run, group, way, home)

    case.__doc__ = f"Asynchronous channels, group {group}, {way}" + (f", Java {version}." if version else ".")
    case.__name__ = f"case_jvm{version or ''}_async_{group}_{way}"
    case.__module__ = __name__
    return case


# Each way in each group once.
OTHER_JAVAS = {("default", "channels"): "8", ("fixed", "channels"): "11", ("cached", "inline"): "21",
               ("default", "waits"): "25", ("fixed", "inline"): "25"}
for _case in [make(group, way, OTHER_JAVAS.get((group, way))) for group in GROUPS for way in WAYS]:
    globals()[_case.__name__] = _case
