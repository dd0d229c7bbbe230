"""Servers that people run their Java on, with the agent in them: of every kind of loop, pool and client one. All that
there are: tests/zoo/run. Absent is a failure, and so is a line that the service prints more or less than alone."""

import zoo


def make(name, java, late=False):
    def case(run):
        before = zoo.alone(run, name, java)
        return zoo.chain_late(run, name, java, before) if late else zoo.chain(run, name, java, before, requests=300)
    case.__doc__ = f"{zoo.SERVICES[name].version}, Java {java}{'; the agent comes late' if late else ''}."
    case.__name__ = f"case_zoo_{name}_{java}{'_late' if late else ''}".replace("-", "_")
    case.__module__ = __name__
    globals()[case.__name__] = case


make("spring-mvc", "17")
make("jetty-12", "17")
make("undertow", "25", late=True)
make("vertx-4", "17")
make("security-manager", "17", late=True)
