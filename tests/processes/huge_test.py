# SPDX-License-Identifier: Apache-2.0
"""A tensor of more bytes than a signed number of 32 bits holds. It needs 6 GiB of memory and up to a
minute; not a part of CTest, scripts/test --full runs it."""

import hashlib
import os
import struct
import unittest

import harness

COUNT = (1 << 31) + 7
END = bytes(range(1, 11))  # the last seven of it, and a second tensor


class Huge(harness.Case):
    def hole(self):
        """A checkpoint whose file is one hole but for its end."""
        entry = '"dtype":"I8","shape":[%d],"data_offsets":[%d,%d]'
        header = ('{"big":{%s},"next":{%s}}' % (entry % (COUNT, 0, COUNT),
                                                entry % (3, COUNT, COUNT + 3))).encode()
        folder = self.folder / "huge"
        folder.mkdir()
        with open(folder / "model.safetensors", "wb") as file:
            file.write(struct.pack("<Q", len(header)) + header)
            file.seek(COUNT - 7, os.SEEK_CUR)
            file.write(END)
        big, zeros = hashlib.sha256(), bytes(1 << 20)
        for _ in range(COUNT >> 20):
            big.update(zeros)
        big.update(END[:7])
        return folder, {"big": big.hexdigest(), "next": hashlib.sha256(END[7:]).hexdigest()}

    def test_arrives_to_its_last_byte(self):
        folder, digests = self.hole()
        engine = self.engine("e0")
        limits = {name: "300s" for name in ("push", "request", "progress", "gather", "drain")}
        config = self.config([engine], timeouts=limits)
        code, _, text = self.push(config, folder, "2", ranks=2, limit=320)
        self.assertEqual(code, 0, text)
        self.assert_current(engine, "2", digests)


if __name__ == "__main__":
    unittest.main(verbosity=2)
