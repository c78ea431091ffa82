"""Writing of files: an interrupted write leaves the old file as it was.

The new content goes to a temporary file in the same folder, is flushed to disk, and takes the place
of the old file by a rename, which is atomic.
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Open a binary file that takes the place of `path` when the block ends without an error.

    A symbolic link is followed, and the new file has the permissions of the old one. A device or a
    pipe is written directly, because a rename would remove it.

    Raises
    ------
    OSError
        If the file cannot be written. An existing file is then unchanged.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():  # a directory raises an error here
        with open(target, "wb") as file:
            yield file
        return
    if target.exists() and not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    temporary = target.with_name(f".{target.name[:40]}-{secrets.token_hex(8)}")
    try:
        with open(temporary, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            shutil.copymode(target, temporary)
        os.replace(temporary, target)
    except OSError as error:
        if error.filename in (None, str(temporary)):
            error.filename = str(path)  # the name that the caller knows
        raise
    finally:
        temporary.unlink(missing_ok=True)


def replace_file(path: str | os.PathLike[str], content: bytes | str) -> None:
    """Write bytes, or text as UTF-8, to a file; an error leaves the old file as it was."""
    with replacing(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)
