"""Says in one sentence what is missing on this machine, before anything is installed. Needs nothing but Python."""

import os
import re
import shutil
import subprocess
import sys

REMEDY = (
    "Install a Java 17 or 21 runtime (Debian and Ubuntu: apt-get install openjdk-17-jre-headless; macOS: brew install "
    "openjdk@17; Windows and others: adoptium.net) and put it on the PATH, or set JAVA_HOME to it."
)


def problem() -> str:
    """What is wrong, empty if nothing is."""
    if not (3, 10) <= sys.version_info[:2] <= (3, 13):
        found = ".".join(map(str, sys.version_info[:2]))
        return f"secateur needs Python 3.10 to 3.13, this is {found}. Run make with PYTHON=python3.11, for example."
    home = os.environ.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else shutil.which("java")
    if not java or not (os.path.exists(java) or shutil.which(java)):
        where = f"JAVA_HOME is {home}, where there is no bin/java" if home else "there is no java on the PATH"
        return f"Spark needs Java 17 or 21, but {where}. {REMEDY}"
    said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    version = re.search(r'version "(\d+)', said)
    if not version:
        return f"{java} -version does not tell a version: {said.strip() or 'no output'}. {REMEDY}"
    if not 17 <= int(version[1]) <= 23:  # Java 24 took away what Hadoop logs in with: "getSubject is not supported"
        return f"Spark needs Java 17 or 21, but {java} is Java {version[1]}. {REMEDY}"
    return ""


if __name__ == "__main__":
    sys.exit(problem() or 0)
