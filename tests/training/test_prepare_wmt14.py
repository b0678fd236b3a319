"""WMT 2014 in miniature: the archives as they are published, to clean text files."""

import gzip
import io
import tarfile

import pytest

from training.prepare_wmt14 import clean, main
from training.recipe import read_recipe

SGM = """<srcset setid="newstest" srclang="any">
<doc docid="1"><p>
<seg id="1">{first}</seg>
<seg id="2"> {second}
 </seg>
</p></doc></srcset>
"""
TEXTS = {
    "europarl-v7.tgz": {
        "training/europarl-v7.de-en.en": "Resumption of the session\n\nAn \u2028odd line\n  Madam   President \r\n",
        "training/europarl-v7.de-en.de": "Wiederaufnahme der Sitzung\nLeer\nEine \x85komische Zeile\nFrau\tPräsidentin\n",
        "training/europarl-v7.fr-en.en": "not this one\n",
        "training/._europarl-v7.de-en.en": "nor this one\n",
    },
    "commoncrawl.tgz": {"commoncrawl.de-en.en": "Buy now &amp; here\n", "commoncrawl.de-en.de": "Jetzt kaufen &amp; hier\n"},
    "nc-v9.tgz": {
        "training/news-commentary-v9.de-en.en": "PARIS\n",
        "training/news-commentary-v9.de-en.de": "PARIS\n",
    },
    "dev.tgz": {
        "dev/newstest2013-src.en.sgm": SGM.format(first="A Republican strategy", second="R&amp;D"),
        "dev/newstest2013-ref.de.sgm": SGM.format(first="Eine Strategie", second="F&amp;E"),
        "dev/newstest2013.en": "the plain text is second choice\n",
        "dev/newstest2013.de": "der reine Text ist zweite Wahl\n",
    },
    "test-full.tgz": {
        "test-full/newstest2014-deen-src.en.sgm": SGM.format(first="Gutach", second="They"),
        "test-full/newstest2014-deen-ref.de.sgm": SGM.format(first="Gutach:", second=""),
    },
}
EXPECTED = {
    "train.en": ["Resumption of the session", "An odd line", "Madam President", "Buy now &amp; here", "PARIS"],
    "train.de": ["Wiederaufnahme der Sitzung", "Eine komische Zeile", "Frau Präsidentin", "Jetzt kaufen &amp; hier", "PARIS"],
    "newstest2013.en": ["A Republican strategy", "R&D"],
    "newstest2013.de": ["Eine Strategie", "F&E"],
    "newstest2014.en": ["Gutach", "They"],
    "newstest2014.de": ["Gutach:", ""],
}


@pytest.fixture
def downloads(tmp_path):
    """The archives, made small."""
    folder = tmp_path / "downloads"
    folder.mkdir()
    for archive, files in TEXTS.items():
        with tarfile.open(folder / archive, "w:gz") as file:
            for name, text in files.items():
                content = text.encode()
                member = tarfile.TarInfo(name)
                member.size = len(content)
                file.addfile(member, io.BytesIO(content))
    return folder


def written(folder):
    return {path.name: path.read_text(encoding="utf8").split("\n")[:-1] for path in folder.iterdir()}


def test_archives_become_text_files(downloads, tmp_path, capsys):
    assert main([str(downloads), str(tmp_path / "out")]) == 0
    assert written(tmp_path / "out") == EXPECTED
    out = capsys.readouterr().out
    assert "train: 5 of 6 pairs" in out and "newstest2014: 2 of 2 pairs" in out


def test_what_was_in_them_is_as_good(tmp_path):
    for files in TEXTS.values():
        for name, text in files.items():
            path = tmp_path / "downloads" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if name.endswith(".sgm"):
                path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(text.encode()))
            else:
                path.write_bytes(text.encode())
    assert main([str(tmp_path / "downloads"), str(tmp_path / "out")]) == 0
    assert written(tmp_path / "out") == EXPECTED


def test_the_recipes_find_the_files(downloads, tmp_path):
    assert main([str(downloads), str(tmp_path / "out")]) == 0
    for name in ("wmt14-en-de-base", "wmt14-en-de-big"):
        data = read_recipe(name, [f"data.folder={tmp_path / 'out'}"]).data
        files = [file for split in ("train", "validation", "test") for side in data.files(split) for file in side]
        assert len(files) == 6 and all(file.is_file() for file in files)


def test_a_missing_archive_is_named(downloads, tmp_path, capsys):
    (downloads / "commoncrawl.tgz").unlink()
    assert main([str(downloads), str(tmp_path / "out")]) == 2
    assert "lacks the English or the German text of commoncrawl" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_texts_of_different_lengths_are_an_error_and_leave_nothing(downloads, tmp_path, capsys):
    (downloads / "europarl-v7.de-en.de").write_text("eine Zeile\n")
    assert main([str(downloads), str(tmp_path / "out")]) == 2
    assert "europarl-v7.de-en.en and europarl-v7.de-en.de have different numbers of lines" in capsys.readouterr().err
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "newstest2013.de", "newstest2013.en", "newstest2014.de", "newstest2014.en"
    ]  # fmt: skip


def test_what_was_downloaded_is_not_written_over(downloads, tmp_path, capsys):
    (downloads / "dev.tgz").unlink()
    texts = {f"newstest2013.{language}": f"{language}  {language}\n" for language in ("en", "de")}
    for name, text in texts.items():
        (downloads / name).write_text(text)
    assert main([str(downloads), str(downloads)]) == 2
    message = f"{downloads / 'newstest2013.en'} is read, and would be replaced. Choose another folder for OUTPUT"
    assert message in capsys.readouterr().err
    assert {name: (downloads / name).read_text() for name in texts} == texts
    assert sorted(path.name for path in downloads.iterdir()) == sorted([*texts, *(set(TEXTS) - {"dev.tgz"})])


def test_no_folder_is_an_error(tmp_path, capsys):
    assert main([str(tmp_path / "nowhere"), str(tmp_path / "out")]) == 2
    assert "There is no folder" in capsys.readouterr().err


def test_clean():
    assert clean(" a\u2029b \t c\x00d\u00a0e\r\n") == "a b c d e"
