"""Builds a wheel of the module and the library that it loads, as pip asks for it (PEP 517).

    pip wheel --no-deps regions/python

The library is the one that PERFPROP_REGIONS_LIBRARY names, or else cargo builds it. Nothing but Python's own library is needed.
"""

import base64
import hashlib
import os
import pathlib
import re
import subprocess
import sysconfig
import tempfile
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
LIBRARY = "libperfprop_regions.so"


def _project(key):
    """A text of pyproject.toml, for which Python has a reader only since 3.11."""
    return re.search(rf'^{key} = "(.*)"$', (HERE / "pyproject.toml").read_text(), re.MULTILINE).group(1)


def _library():
    named = os.environ.get("PERFPROP_REGIONS_LIBRARY")
    if named:
        return pathlib.Path(named).read_bytes()
    with tempfile.TemporaryDirectory() as target:
        manifest = HERE.parent / "Cargo.toml"
        command = ["cargo", "build", "--release", "--manifest-path", manifest, "--target-dir", target]
        subprocess.run(command, check=True)
        return (pathlib.Path(target) / "release" / LIBRARY).read_bytes()


def _record(files, path):
    """What the wheel holds, with a digest of each."""
    def line(name, content):
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        return f"{name},sha256={digest},{len(content)}\n"

    return "".join(line(*file) for file in files.items()) + f"{path},,\n"


def build_wheel(directory, config_settings=None, metadata_directory=None):
    version, platform = _project("version"), re.sub("[-.]", "_", sysconfig.get_platform())
    tag, about = f"py3-none-{platform}", f"perfprop_regions-{version}.dist-info"
    metadata = (
        f"Metadata-Version: 2.1\nName: {_project('name')}\nVersion: {version}\n"
        f"Summary: {_project('description')}\nRequires-Python: {_project('requires-python')}\n"
    )
    wheel = f"Wheel-Version: 1.0\nGenerator: perfprop-regions\nRoot-Is-Purelib: false\nTag: {tag}\n"
    files = {
        "perfprop_regions.py": (HERE / "perfprop_regions.py").read_bytes(),
        LIBRARY: _library(),
        f"{about}/METADATA": metadata.encode(),
        f"{about}/WHEEL": wheel.encode(),
    }
    files[f"{about}/RECORD"] = _record(files, f"{about}/RECORD").encode()
    name = f"perfprop_regions-{version}-{tag}.whl"
    with zipfile.ZipFile(pathlib.Path(directory) / name, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in files.items():
            archive.writestr(path, content)
    return name
