import gzip
import hashlib
import http.server
import threading

import pytest

from keras_transformer.data.corpora import Checksum, Pairs, multi30k
from keras_transformer.data.corpora import download as download_module
from keras_transformer.data.corpora.download import cache_directory
from keras_transformer.data.corpora.multi30k import CHECKSUMS, FILE_STEMS, LANGUAGES

STEMS = {"train": 5, "val": 3, "test_2016_flickr": 2, "test_2017_flickr": 2, "test_2017_mscoco": 1}


def text_of(stem, language):
    return "".join(f"{stem} ü {number} {language}\n" for number in range(STEMS[stem])).encode()


def sha256(content):
    return hashlib.sha256(content).hexdigest()


@pytest.fixture
def server():
    """A server on this machine with Multi30k's files; `server.answers` can make any of them go wrong."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            name = self.path.rsplit("/", 1)[-1]
            server.requests.append(name)
            status, content, announced = server.answers.get(name, (404, b"", 0))
            self.send_response(status)
            self.send_header("Content-Length", str(announced))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *arguments):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.requests, server.answers, server.checksums = [], {}, {}
    for stem in STEMS:
        for language in ("en", "de", "fr"):
            text = text_of(stem, language)
            content = gzip.compress(text)
            server.answers[f"{stem}.{language}.gz"] = 200, content, len(content)
            server.checksums[f"{stem}.{language}.gz"] = Checksum("sha256", sha256(text), of_text=True)
    server.url = f"http://127.0.0.1:{server.server_address[1]}/raw"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def fetch(server, tmp_path):
    def fetch(**arguments):
        arguments = {
            "cache": tmp_path / "cache",
            "url": server.url,
            "checksums": server.checksums,
            "verbose": False,
        } | arguments
        return multi30k(**arguments)

    return fetch


def files_in(directory):
    return sorted(path.name for path in directory.rglob("*"))


class TestDownload:
    def test_gives_all_splits(self, fetch):
        corpus = fetch()
        assert (corpus.name, corpus.source_language, corpus.target_language) == ("multi30k", "en", "de")
        assert {name: len(pairs) for name, pairs in corpus.splits.items()} == {
            "train": 5,
            "validation": 3,
            "test_2016_flickr": 2,
            "test_2017_flickr": 2,
            "test_2017_mscoco": 1,
        }
        assert corpus.validation[1] == ("val ü 1 en", "val ü 1 de")
        assert corpus.test == corpus["test_2016_flickr"]

    def test_fetches_only_what_is_missing(self, fetch, server, tmp_path):
        fetch()
        assert len(server.requests) == 10
        assert files_in(tmp_path / "cache") == sorted(server.requests)
        fetch()
        assert len(server.requests) == 10
        assert fetch(language="fr").train.target[0] == "train ü 0 fr"
        assert [name for name in server.requests[10:] if ".fr" not in name] == []

    def test_a_missing_file_is_an_error_that_says_how_to_go_on(self, fetch, server, tmp_path):
        del server.answers["train.en.gz"]
        with pytest.raises(ConnectionError) as error:
            fetch()
        assert f"{server.url}/train.en.gz" in str(error.value)
        assert "404" in str(error.value) and "pass their folder as `directory=`" in str(error.value)
        assert not (tmp_path / "cache").exists()

    def test_a_truncated_file_is_not_kept(self, fetch, server, tmp_path):
        _, content, length = server.answers["train.de.gz"]
        server.answers["train.de.gz"] = 200, content[:-9], length
        with pytest.raises(ConnectionError, match=f"ended after {length - 9} of {length} bytes"):
            fetch()
        assert files_in(tmp_path / "cache") == ["train.en.gz"]

    def test_a_file_that_was_truncated_on_the_server_is_not_kept(self, fetch, server, tmp_path):
        _, content, length = server.answers["train.en.gz"]
        server.answers["train.en.gz"] = 200, content[:-9], length - 9
        with pytest.raises(ValueError, match=r"not a complete gzip file.*Nothing was kept.*directory="):
            fetch(checksums={})
        assert not (tmp_path / "cache").exists()

    def test_a_file_with_a_wrong_checksum_is_not_kept(self, fetch, server, tmp_path):
        content = gzip.compress(b"something else\n")
        server.answers["train.de.gz"] = 200, content, len(content)
        with pytest.raises(ValueError) as error:
            fetch()
        assert f"{server.url}/train.de.gz" in str(error.value) and server.checksums["train.de.gz"].digest in str(error.value)
        assert files_in(tmp_path / "cache") == ["train.en.gz"]

    @pytest.mark.parametrize("interruption", [KeyboardInterrupt, ConnectionResetError("connection reset")])
    def test_an_interrupted_download_leaves_nothing_behind(self, fetch, tmp_path, monkeypatch, interruption):
        def interrupted(response, file, *arguments):
            file.write(response.read(3))
            raise interruption

        monkeypatch.setattr(download_module, "copy", interrupted)
        with pytest.raises((KeyboardInterrupt, ConnectionError)):
            fetch()
        assert not (tmp_path / "cache").exists()

    def test_an_unreachable_server_is_an_error(self, fetch, server, tmp_path):
        with pytest.raises(ConnectionError, match=r"127.0.0.1:1/raw/train.en.gz: .*refused"):
            fetch(url="http://127.0.0.1:1/raw")
        assert not (tmp_path / "cache").exists()

    def test_trying_again_goes_on_where_it_failed(self, fetch, server):
        good = server.answers.pop("val.en.gz")
        with pytest.raises(ConnectionError):
            fetch()
        server.answers["val.en.gz"] = good
        assert len(fetch().validation) == 3
        assert server.requests.count("train.en.gz") == 1

    def test_a_damaged_file_in_the_cache_is_fetched_again(self, fetch, server, tmp_path):
        fetch()
        path = tmp_path / "cache" / "val.de.gz"
        for damage in (path.read_bytes()[:-9], gzip.compress(b"a\nb\nc\n"), b""):
            path.write_bytes(damage)
            assert fetch().validation.target[0] == "val ü 0 de"
        assert server.requests[10:] == ["val.de.gz"] * 3

    def test_checksums_of_the_compressed_file_work_too(self, fetch, server):
        content = server.answers["train.en.gz"][1]
        right = Checksum("md5", hashlib.md5(content).hexdigest().upper())
        assert len(fetch(checksums={"train.en.gz": right}).train) == 5
        with pytest.raises(ValueError, match="md5 checksum is not 0000"):
            fetch(checksums={"train.en.gz": Checksum("md5", "0000")})

    def test_shows_progress_on_standard_error(self, fetch, capsys):
        fetch(verbose=True)
        captured = capsys.readouterr()
        assert captured.out == ""
        assert "train.en.gz" in captured.err and "test_2017_mscoco.de.gz" in captured.err

    def test_the_cache_is_in_the_home_folder_or_where_the_environment_says(self, fetch, tmp_path, monkeypatch):
        monkeypatch.delenv("KERAS_TRANSFORMER_CACHE", raising=False)
        monkeypatch.setenv("HOME", str(tmp_path / "home"))
        assert cache_directory("multi30k") == tmp_path / "home" / ".cache" / "keras_transformer" / "multi30k"
        monkeypatch.setenv("KERAS_TRANSFORMER_CACHE", str(tmp_path / "elsewhere"))
        fetch(cache=None)
        assert (tmp_path / "elsewhere" / "multi30k" / "train.en.gz").is_file()

    def test_every_file_has_a_known_checksum(self):
        names = {f"{stem}.{language}.gz" for stem in FILE_STEMS.values() for language in ("en", *LANGUAGES)}
        assert set(CHECKSUMS) == names
        for checksum in CHECKSUMS.values():
            assert len(bytes.fromhex(checksum.digest)) == hashlib.new(checksum.algorithm).digest_size


class TestFolder:
    @pytest.mark.parametrize(
        "text, name",
        [("raw", "{}.{}.gz"), ("raw", "{}.{}"), ("raw", "raw.{}.{}"), ("tok", "tok.{}.{}"), ("tok", "{}.lc.norm.tok.{}")],
    )
    def test_reads_files_under_all_their_names(self, tmp_path, text, name):
        for stem in ("train", "val"):
            for language in ("en", "fr"):
                path = tmp_path / name.format(stem, language)
                content = text_of(stem, language)
                path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
        corpus = multi30k(tmp_path, language="fr", text=text)
        assert list(corpus.splits) == ["train", "validation"]
        assert corpus.train[4] == ("train ü 4 en", "train ü 4 fr")

    def test_both_kinds_of_text_can_lie_in_one_folder(self, tmp_path):
        for kind in ("raw", "tok"):
            for language in ("en", "de"):
                (tmp_path / f"{kind}.train.{language}").write_text(f"{kind}\n")
        assert multi30k(tmp_path, text="raw").train == Pairs(["raw"], ["raw"])
        assert multi30k(tmp_path, text="tok").train == Pairs(["tok"], ["tok"])

    def test_lines_end_at_line_feeds_alone(self, tmp_path):
        (tmp_path / "train.en").write_bytes("a\u2028b\x0bc\r\n\nlast".encode())
        (tmp_path / "train.de").write_bytes(b"1\n2\n3\n")
        assert multi30k(tmp_path).train.source == ["a\u2028b\x0bc", "", "last"]

    def test_a_split_without_its_translation_is_left_away(self, tmp_path):
        for name in ("train.en", "train.de", "val.en"):
            (tmp_path / name).write_text("a\n")
        assert list(multi30k(tmp_path).splits) == ["train"]

    def test_missing_training_text_is_an_error_that_lists_the_names(self, tmp_path):
        (tmp_path / "train.en").write_text("a\n")
        with pytest.raises(
            FileNotFoundError, match=r"no training text in de. Looked for: train.de.gz or train.de or raw.train.de"
        ):
            multi30k(tmp_path)

    def test_a_missing_folder_is_an_error(self, tmp_path):
        with pytest.raises(FileNotFoundError, match=r"no folder .*nowhere"):
            multi30k(tmp_path / "nowhere")

    @pytest.mark.parametrize(
        "content, message",
        [
            (b"a\nb\n", r"train.en with 1 and .*train.de with 2"),
            (b"\xff\n", r"train.de, line 1: not valid UTF-8"),
            (b"a\nb\n\xc3(\n", r"train.de, line 3: not valid UTF-8"),
        ],
    )
    def test_bad_files_are_errors_that_name_the_place(self, tmp_path, content, message):
        (tmp_path / "train.en").write_text("a\n")
        (tmp_path / "train.de").write_bytes(content)
        with pytest.raises(ValueError, match=message):
            multi30k(tmp_path)

    def test_a_damaged_gzip_file_is_an_error(self, tmp_path):
        for language in ("en", "de"):
            (tmp_path / f"train.{language}.gz").write_bytes(gzip.compress(text_of("train", language))[:-3])
        with pytest.raises(ValueError, match=r"train.en.gz is not a complete gzip file"):
            multi30k(tmp_path)


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"language": "cs"}, "`language` must be.*language='cs'"),
        ({"text": "bpe"}, "`text` must be.*text='bpe'"),
        ({"text": "tok"}, 'Pass `directory=` to read tokenized text. Received: text="tok"'),
    ],
)
def test_unknown_choices_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        multi30k(**arguments)
