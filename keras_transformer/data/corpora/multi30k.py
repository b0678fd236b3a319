"""Multi30k: 31,000 captions of photographs, English to German or French."""

import gzip
import os
import zlib
from pathlib import Path

from keras_transformer.data.corpora.corpus import Corpus, Pairs
from keras_transformer.data.corpora.download import Checksum, cache_directory, download, download_progress, gzip_fault

URL = "https://raw.githubusercontent.com/multi30k/dataset/master/data/task1/raw"
LANGUAGES = ("de", "fr")
FILE_STEMS = {
    "train": "train",
    "validation": "val",
    "test_2016_flickr": "test_2016_flickr",
    "test_2017_flickr": "test_2017_flickr",
    "test_2017_mscoco": "test_2017_mscoco",
}
FILE_NAMES = {
    "raw": ("{stem}.{language}.gz", "{stem}.{language}", "raw.{stem}.{language}.gz", "raw.{stem}.{language}"),
    "tok": ("{stem}.lc.norm.tok.{language}", "tok.{stem}.{language}.gz", "tok.{stem}.{language}"),
}
# The SHA-256 of the text where it was at hand; elsewhere the MD5 of the compressed file, as torchtext published it. That rules
# out damage, and a planted file for as long as nobody finds second preimages of MD5.
CHECKSUMS = {
    name: Checksum("sha256", digest, of_text=True)
    for name, digest in {
        "train.en.gz": "460a15fbd157e34a7a9957ee388c1ca247fe47af3ef25fb50442af6c274e0fc6",
        "train.de.gz": "2c2b73fd2b548fbcde3a875e0a78d6ee94d498bfdee6bd3eae3945779e9ddf72",
        "val.en.gz": "1f2a23d992769b5b3d209b0a10dd0b77c08cceb1f20dfb97ed0aafa49d107227",
        "val.de.gz": "660e09eb7e1da2f856ea13ee5ad3cf6d36b3d5b0b733c857e94c5747a3dfc660",
        "test_2016_flickr.en.gz": "399a4382932c1aadd3ceb9bef1008d388a64c76d4ae4e9d4728c6f4301cac182",
        "test_2016_flickr.de.gz": "4be6b5b3236b79c25475c6bb829800a7ce559e9ba7a1f6c2394fe4d40be46d16",
    }.items()
} | {
    name: Checksum("md5", digest)
    for name, digest in {
        "train.fr.gz": "6cb767741dcad3931f966fefbc05203f",
        "val.fr.gz": "93fc564584b7e5ba410c761ea5a1c682",
        "test_2016_flickr.fr.gz": "08dc7cd4a662f31718412de95ca9bfe3",
        "test_2017_flickr.en.gz": "005396bac545d880abe6f00bbb7dbbb4",
        "test_2017_flickr.de.gz": "6a8d5c87f6ae19e3d35681aa6fd16571",
        "test_2017_flickr.fr.gz": "cb09af7d2b501f9112f2d6a59fa1360d",
        "test_2017_mscoco.en.gz": "a7b684e0edbef1d4a23660c8e8e743fd",
        "test_2017_mscoco.de.gz": "e8cd6ec2bc8a11fc846fa48a46e3d0bb",
        "test_2017_mscoco.fr.gz": "4995d10954a804d3cdfd907b9fd093e8",
    }.items()
}


def multi30k(
    directory: str | os.PathLike | None = None,
    language: str = "de",
    text: str = "raw",
    cache: str | os.PathLike | None = None,
    url: str = URL,
    checksums: dict[str, Checksum] | None = None,
    verbose: bool = True,
) -> Corpus:
    """Reads Multi30k (Elliott et al., 2016) from a folder, or downloads it.

    Without a folder, the compressed files (about 1.5 MB) are downloaded once and kept. Each is checked whenever it is used; one
    that is missing or damaged is downloaded again.

    Args:
        directory: A folder with the files, compressed or not, under the names of the public repository (`train.en.gz`,
            `train.en`, `train.lc.norm.tok.en`) or with the kind of text in front (`raw.train.en`, `tok.train.en`). A split that
            is not there is left away; `train` must be.
        language: Target language, `"de"` or `"fr"`.
        text: `"raw"`, or `"tok"` for the lower-cased, tokenized text on which most results were published (from a folder only).
        cache: Folder to keep the downloaded files in. Defaults to `~/.cache/keras_transformer/multi30k`, or to the folder
            `multi30k` in what the environment variable `KERAS_TRANSFORMER_CACHE` names.
        url: Address of the folder to download from.
        checksums: From file names to checksums, in place of the known ones. A file without one needs only be complete.
        verbose: Whether to show the progress of downloads.

    Returns:
        A `Corpus` with the splits `train` (29,000 pairs), `validation` (1,014), `test_2016_flickr` (1,000), `test_2017_flickr`
        (1,000) and `test_2017_mscoco` (461).
    """
    if language not in LANGUAGES:
        raise ValueError(f'`language` must be "de" or "fr". Received: language={language!r}')
    if text not in FILE_NAMES:
        raise ValueError(f'`text` must be "raw" or "tok". Received: text={text!r}')
    if directory is None:
        if text != "raw":
            raise ValueError(f'Only raw text is downloaded. Pass `directory=` to read tokenized text. Received: text="{text}"')
        directory = Path(cache).expanduser() if cache is not None else cache_directory("multi30k")
        download_files(directory, language, url, CHECKSUMS if checksums is None else checksums, verbose)
    return read_folder(Path(directory).expanduser(), language, text)


def download_files(directory: Path, language: str, url: str, checksums: dict[str, Checksum], verbose: bool):
    """Downloads the files of a language pair that are missing or not what they should be."""
    with download_progress(verbose) as progress:
        for name in (f"{stem}.{code}.gz" for stem in FILE_STEMS.values() for code in ("en", language)):
            path, checksum = directory / name, checksums.get(name)
            if not path.is_file() or gzip_fault(path, checksum):
                hint = f"Try again, or download the files of {url} by hand and pass their folder as `directory=`."
                download(f"{url.rstrip('/')}/{name}", path, lambda part, c=checksum: gzip_fault(part, c), hint, progress)


def read_folder(directory: Path, language: str, text: str) -> Corpus:
    """Reads the splits that a folder holds in both languages."""
    if not directory.is_dir():
        raise FileNotFoundError(
            f"There is no folder {directory}. Pass the folder that holds the files of Multi30k as `directory=`."
        )
    splits = {}
    for split, stem in FILE_STEMS.items():
        source, target = (find_file(directory, stem, code, text) for code in ("en", language))
        if source and target:
            splits[split] = read_pairs(source, target)
        elif split == "train":
            missing = [code for code, path in {"en": source, language: target}.items() if not path]
            wanted = "; ".join(" or ".join(candidates(stem, code, text)) for code in missing)
            raise FileNotFoundError(f"{directory} has no training text in {' and '.join(missing)}. Looked for: {wanted}")
    return Corpus("multi30k", "en", language, splits)


def candidates(stem: str, language: str, text: str) -> list[str]:
    """Returns the names that a file may have, the first choice first."""
    return [name.format(stem=stem, language=language) for name in FILE_NAMES[text]]


def find_file(directory: Path, stem: str, language: str, text: str) -> Path | None:
    """Returns the first file that a folder holds under one of its possible names, or `None`."""
    paths = (directory / name for name in candidates(stem, language, text))
    return next((path for path in paths if path.is_file()), None)


def read_pairs(source: Path, target: Path) -> Pairs:
    """Reads two files side by side."""
    source_lines, target_lines = read_lines(source), read_lines(target)
    if len(source_lines) != len(target_lines):
        raise ValueError(
            f"Both languages must have the same number of lines. Received: {source} with {len(source_lines)} and {target} with "
            f"{len(target_lines)}. Was one of them cut off while it was copied?"
        )
    return Pairs(source_lines, target_lines)


def read_lines(path: Path) -> list[str]:
    """Reads a UTF-8 file, compressed or not, as a list of its lines."""
    content = path.read_bytes()
    if path.suffix == ".gz":
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError, zlib.error) as error:
            raise ValueError(f"{path} is not a complete gzip file ({error}). Copy or download it again.") from error
    try:
        lines = content.decode("utf8").split("\n")
    except UnicodeDecodeError as error:
        number = content.count(b"\n", 0, error.start) + 1
        raise ValueError(f"{path}, line {number}: not valid UTF-8 ({error.reason}). Convert the file to UTF-8.") from error
    return [line.removesuffix("\r") for line in (lines[:-1] if lines[-1] == "" else lines)]
