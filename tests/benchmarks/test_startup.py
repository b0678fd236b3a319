"""What importing costs: a fresh process, and the table."""

from benchmarks.startup import Import, imports_of, run_once, section, table


def run(seconds, mib, *loaded):
    return {"seconds": seconds, "mib": mib, "loaded": list(loaded)}


def test_a_fresh_process_imports():
    quick, broken = Import("torch", "import decimal"), Import("torch", "import no_such_package")
    run_once(quick)
    run_once(broken)
    assert quick.best("seconds") > 0 and quick.best("mib") > 1
    assert quick.runs[0]["loaded"] == []
    assert broken.runs == []


def test_each_backend_has_keras_to_compare_with():
    statements = [(one.backend, one.statement) for one in imports_of(["torch"])]
    assert statements[:2] == [("torch", "import keras"), ("torch", "import keras_transformer")]


def test_the_table_takes_the_best_and_subtracts_keras():
    imports = [
        Import("jax", "import keras", [run(2.5, 210, "jax"), run(2.0, 200, "jax")]),
        Import("jax", "import keras_transformer", [run(2.25, 220, "jax"), run(3.0, 207, "jax")]),
        Import("jax", "import keras_hub"),
        Import("torch", "from transformers import MarianMTModel", [run(5.0, 1300, "torch")]),
    ]
    assert table(imports).splitlines()[2:] == [
        "| jax | `import keras` | 2.00 | - | 200 | - | jax |",
        "| jax | `import keras_transformer` | 2.25 | +0.25 | 207 | +7 | jax |",
        "| jax | `import keras_hub` | - | - | - | - | - |",
        "| torch | `from transformers import MarianMTModel` | 5.00 | - | 1,300 | - | torch |",
    ]
    assert section(imports, 2, "python -m benchmarks.startup").startswith("## Importing\n")
