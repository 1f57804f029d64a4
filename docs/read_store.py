"""Prints the memories of a store whose journal is empty, a line of JSON each: read_store.py DIRECTORY"""
import json, pathlib, sys
import numpy as np

def read_store(path, agent=0):
    line, body = (path / "manifest").read_bytes().split(b"\n", 1)
    manifest = json.loads(body[: int(line.split()[-1])])
    segment = manifest["journal_segment"]
    if segment and (path / f"journal.{segment}").stat().st_size > 64 or (path / f"journal.{segment + 1}").exists():
        sys.exit(f"{path}: the journal holds what the columns do not; close the store first")

    def column(name, dtype):
        entry = manifest["columns"][name]
        count = entry["bytes"] // np.dtype(dtype).itemsize
        return np.memmap(path / entry["file"], dtype, "r", shape=count) if count else np.zeros(0, dtype)

    live = np.ones(manifest["rows"], bool)
    live[column("deleted", "<u4")] = False
    last_access = np.array(column("last_access", "<i8"))
    touched = column("access", [("agent", "<u4"), ("row", "<u4"), ("time", "<i8")])
    touched = touched[touched["agent"] == agent]
    last_access[touched["row"]] = touched["time"]
    ends, text = column("text.ends", "<u8").tolist(), column("text", "u1").tobytes()
    texts = np.array([text[start:end].decode() for start, end in zip([0] + ends, ends)], object)
    importance = np.array(column("importance", "<f4"))
    own = column("override", [("agent", "<u4"), ("row", "<u4"), ("importance", "<f4")])
    own = own[own["agent"] == agent]
    importance[own["row"]] = own["importance"]
    element, dim = {"f16": "<f2", "f32": "<f4"}[manifest["dtype"]], manifest["dim"]
    embeddings = column("embedding", element).reshape(-1, dim)
    late = column("vectors", [("row", "<u4"), ("inv_norm", "<f4"), ("elements", element, (dim,))])
    if len(late):
        embeddings = np.array(embeddings)
        embeddings[late["row"]] = late["elements"]
    return (values[live] for values in (column("id", "<u8"), texts, last_access, importance, embeddings))

for row in zip(*(values.tolist() for values in read_store(pathlib.Path(sys.argv[1])))):
    print(json.dumps(dict(zip(("id", "text", "last_access", "importance", "embedding"), row))))
