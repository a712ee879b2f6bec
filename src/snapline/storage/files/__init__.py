"""The ports in a directory: objects, message logs, output and input as plain files."""

from snapline.storage.files.ingress import FileIngress, write_ingress
from snapline.storage.files.log import FileLog, FileLogs
from snapline.storage.files.outlet import FileEgress, FileOutlet
from snapline.storage.files.store import FileStore
from snapline.storage.files.trouble import Trouble, TroubledStore

__all__ = [
    "FileEgress",
    "FileIngress",
    "FileLog",
    "FileLogs",
    "FileOutlet",
    "FileStore",
    "Trouble",
    "TroubledStore",
    "write_ingress",
]
