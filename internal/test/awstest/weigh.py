"""Says how large a folder is as the zip file that the SAM CLI uploads, and fails above a limit.

    weigh.py FOLDER LIMIT
"""

import io
import pathlib
import sys
import zipfile

folder, limit = pathlib.Path(sys.argv[1]), int(sys.argv[2])
uploaded = io.BytesIO()
with zipfile.ZipFile(uploaded, "w", zipfile.ZIP_DEFLATED) as archive:
    for file in sorted(folder.rglob("*")):
        archive.write(file, file.relative_to(folder))
size = len(uploaded.getvalue())
print(f"{folder}: {size / 1e6:.1f} MB zipped, of {limit / 1e6:.1f} MB allowed")
sys.exit(size > limit)
