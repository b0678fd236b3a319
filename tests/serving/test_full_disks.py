"""Exports that cannot be written: an error in one line, exit code 2, and nothing is left."""

import subprocess
import sys

import keras
import numpy as np
import pytest

from keras_transformer.serving import export
from tests.serving.translators import make_translator

ON_TENSORFLOW = keras.backend.backend() == "tensorflow"
# A disk that is full for files of more than so many bytes.
EXPORT = """
import resource, sys
from keras_transformer.serving.export import main
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), int(sys.argv[1])))
main(sys.argv[2:])
"""


@pytest.mark.skipif(not ON_TENSORFLOW, reason="an export is made on TensorFlow")
@pytest.mark.proof("An export on a full disk ends with exit code 2 and a message, and leaves nothing")
def test_a_full_disk(tmp_path, size, seen):
    make_translator().save(tmp_path / "run")
    limits = np.geomspace(50, 700_000, size(2, full=20)).astype(int)
    for limit in limits:
        command = [sys.executable, "-c", EXPORT, str(limit), str(tmp_path / "run"), str(tmp_path / "out")]
        result = subprocess.run([*command, "--samples", "eins"], capture_output=True, text=True, check=False)
        assert result.returncode == 2, result.stderr[-2000:]
        assert "Traceback" not in result.stderr
        last = result.stderr.splitlines()[-1]
        assert last.startswith("error: ") and "File too large" in last
        assert [path.name for path in (tmp_path / "out").iterdir()] == [".lock"]
    seen(f"{len(limits)} sizes: files of at most {limits[0]:,} to {limits[-1]:,} bytes")


@pytest.mark.skipif(ON_TENSORFLOW, reason="another backend leaves the export to TensorFlow")
def test_the_exit_code_is_that_of_the_process_that_exports(monkeypatch):
    monkeypatch.setattr(export, "run_on_tensorflow", lambda arguments: subprocess.CompletedProcess(arguments, 2, ""))
    with pytest.raises(SystemExit) as end:
        export.main(["run", "out"])
    assert end.value.code == 2
